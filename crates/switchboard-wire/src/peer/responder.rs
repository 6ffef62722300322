//! The response to one request of the other side.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::{Exchange, ParcelKind, Peer};
use crate::envelope::{self, Id, RpcError};

/// Answers one request; must be used exactly once.
#[derive(Debug)]
pub struct Responder {
    pub(super) id: Id,
    pub(super) peer: Peer,
    pub(super) claim: Option<Arc<dyn Claim>>,
}

/// Ensures that only one of several parties answers a request: the first that takes the claim.
pub trait Claim: fmt::Debug + Send + Sync {
    /// Returns `true` to the first caller only.
    fn take(&self) -> bool;
}

impl Responder {
    pub fn id(&self) -> &Id {
        &self.id
    }

    /// The sender of the request. This handle sends everything as part of its exchange.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    pub fn exchange(&self) -> Option<Exchange> {
        self.peer.exchange
    }

    /// Takes `claim` before it answers. If another party has taken it, no answer is sent.
    #[must_use]
    pub fn claiming(self, claim: Arc<dyn Claim>) -> Responder {
        Responder { claim: Some(claim), ..self }
    }

    /// Sends a result; `write` appends its JSON to the frame.
    pub async fn result(self, write: impl FnOnce(&mut String)) {
        let frame = envelope::result_frame(&self.id, write);
        self.send(frame).await;
    }

    /// Sends a result without waiting. It is lost if the other side does not read its responses.
    pub fn try_result(self, json: &str) {
        let frame = envelope::result_frame(&self.id, |out| out.push_str(json));
        self.try_send(frame);
    }

    /// Sends an error without waiting. It is lost if the other side does not read its responses.
    pub fn try_error(self, error: &RpcError) {
        let frame = envelope::error_frame(Some(&self.id), error);
        self.try_send(frame);
    }

    pub async fn error(self, error: &RpcError) {
        let frame = envelope::error_frame(Some(&self.id), error);
        self.send(frame).await;
    }

    async fn send(self, frame: Bytes) {
        if self.may_answer() {
            let _asker_gone = self.peer.send(frame, ParcelKind::Answer).await;
        }
    }

    fn try_send(self, frame: Bytes) {
        if self.may_answer() {
            self.peer.try_send(frame, ParcelKind::Answer);
        }
    }

    fn may_answer(&self) -> bool {
        self.claim.as_ref().is_none_or(|claim| claim.take())
    }
}
