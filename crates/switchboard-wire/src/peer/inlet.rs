//! Delivers the incoming messages of a connection.

use bytes::Bytes;
use hashbrown::HashMap;
use tokio::time::Instant;

use super::requests::Waiter;
use super::{Exchange, Flow, Handler, Notification, Peer, RequestError, Responder};
use crate::envelope::{self, INTERNAL_ERROR, Id, Message, Raw, RpcError};
use crate::modern;

/// The incoming side of a connection. Dropping it closes the connection and fails the requests in
/// flight.
#[derive(Debug)]
pub struct Inlet {
    peer: Peer,
}

impl Inlet {
    pub(super) fn new(peer: Peer) -> Inlet {
        Inlet { peer }
    }

    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Delivers one message: a response to its request, any other message to `handler`.
    pub fn take(&self, frame: &Bytes, exchange: Option<Exchange>, handler: &mut dyn Handler) {
        if let Some(observer) = self.peer.observer() {
            observer.received(frame);
        }
        match envelope::parse(frame) {
            Ok(message) => self.take_message(message, exchange, handler),
            // A malformed response fails its request at once, not only at its timeout.
            Err(envelope::Malformed::Answer { id: Id::Number(id) })
                if let Some(id) = id.as_u64().filter(|id| self.awaits(*id)) =>
            {
                let error = RpcError::new(INTERNAL_ERROR, "the server's answer is malformed");
                self.fail(id, RequestError::Refused(error));
            }
            Err(malformed) => {
                self.peer.count_dropped();
                handler.malformed(&malformed, &self.peer.within(exchange));
            }
        }
    }

    /// Fails the request with this id, if it is in flight.
    pub fn fail(&self, id: u64, error: RequestError) {
        self.peer.settle(id, Err(error));
    }

    /// Whether the request with this id is in flight.
    pub fn awaits(&self, id: u64) -> bool {
        self.peer.pending(|pending| pending.contains_key(&id)) == Some(true)
    }

    /// The current deadline of the request with this id.
    pub fn deadline_of(&self, id: u64) -> Option<Instant> {
        let waiting = |pending: &mut HashMap<u64, Waiter>| Some(pending.get(&id)?.deadline?.at);
        self.peer.pending(waiting).flatten()
    }

    /// Refuses new requests; those in flight continue.
    pub fn shut(&self) {
        self.peer.shared.flow.send_replace(Flow::Closed);
    }

    /// Closes the connection and fails the requests in flight.
    pub fn close(&self) {
        self.peer.close();
    }

    /// Fails requests at their deadline, as long as the connection lives.
    pub async fn watch_deadlines(&self) {
        watch_deadlines(&self.peer).await;
    }

    /// Handles the beginning of an over-long line, and returns whether its message could be
    /// assigned to a request.
    pub(super) fn too_long(&self, head: &[u8], handler: &mut dyn Handler) -> Overlong {
        self.peer.shared.flow.send_replace(Flow::Draining);
        let id = envelope::id_in_head(head);
        if envelope::asks_in_head(head) {
            let limit = self.peer.shared.max_frame_bytes;
            let malformed = envelope::Malformed::TooLong { id: id.map(Id::number), limit };
            handler.malformed(&malformed, &self.peer);
            Overlong::Assigned
        } else if let Some(id) = id {
            self.fail(id, self.too_large());
            Overlong::Assigned
        } else {
            Overlong::Unassigned
        }
    }

    /// Handles the end of an over-long line. A response without a known id may belong to any
    /// request, so all requests in flight fail.
    pub(super) fn drained(&self, overlong: Overlong, tail: &[u8]) {
        if overlong == Overlong::Unassigned {
            match envelope::id_in_tail(tail) {
                Some(id) => self.fail(id, self.too_large()),
                None => self.too_large_for_all(),
            }
        }
        self.peer.shared.flow.send_replace(Flow::Open);
    }

    /// Fails all requests in flight, after an over-long response with an unknown id.
    pub(crate) fn too_large_for_all(&self) {
        let waiting: Option<Vec<u64>> =
            self.peer.pending(|pending| pending.keys().copied().collect());
        for id in waiting.unwrap_or_default() {
            self.fail(id, self.too_large());
        }
    }

    fn too_large(&self) -> RequestError {
        RequestError::AnswerTooLarge { limit: self.peer.shared.max_frame_bytes }
    }

    fn take_message(
        &self,
        message: Message,
        exchange: Option<Exchange>,
        handler: &mut dyn Handler,
    ) {
        match message {
            Message::Answer { id, outcome } => match &id {
                Id::Number(number) if let Some(id) = number.as_u64() => {
                    self.peer.settle(id, outcome.map_err(RequestError::Refused));
                }
                Id::Number(_) | Id::Odd(_) | Id::Text(_) => self.peer.count_dropped(),
            },
            Message::Request { id, method, params } => {
                let peer = self.peer.within(exchange);
                handler.request(method, params, Responder { id, peer, claim: None });
            }
            Message::Notification { method, params } => {
                let is_progress = params.as_ref().is_some_and(|params| {
                    let request = match method.as_str() {
                        "notifications/progress" => progress_token(params),
                        modern::ACKNOWLEDGED => subscription_id(params),
                        _ => None,
                    };
                    request.is_some_and(|id| self.progress(id, params))
                });
                if !is_progress {
                    handler.notification(Notification { method, params, exchange });
                }
            }
        }
    }

    /// Reports progress of the request with this id; `false` if it is not in flight.
    fn progress(&self, id: u64, params: &Raw) -> bool {
        let known = self.peer.pending(|pending| {
            let Some(waiter) = pending.get_mut(&id) else { return false };
            if let Some(deadline) = &mut waiter.deadline {
                deadline.at = Instant::now() + deadline.timeout;
            }
            if let Some(progress) = &waiter.progress {
                // A slow reader misses progress, never the result.
                let _lagging = progress.try_send(params.clone());
            }
            true
        });
        known == Some(true)
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        self.close();
    }
}

/// The request that a progress notification belongs to.
fn progress_token(params: &Raw) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Progress {
        #[serde(rename = "progressToken")]
        token: u64,
    }
    Some(params.parse::<Progress>().ok()?.token)
}

/// The id of the request that an acknowledgement belongs to.
fn subscription_id(params: &Raw) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Acknowledged {
        #[serde(rename = "_meta")]
        meta: SubscriptionMeta,
    }
    #[derive(serde::Deserialize)]
    struct SubscriptionMeta {
        #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
        subscription: u64,
    }
    Some(params.parse::<Acknowledged>().ok()?.meta.subscription)
}

pub(super) async fn watch_deadlines(peer: &Peer) {
    peer.shared.alarm.watch(|now| peer.expire(now)).await;
}

/// Whether the message of an over-long line has been assigned to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overlong {
    /// The request of the response has failed, or the line was itself a request or notification.
    Assigned,
    /// A response whose id may be at the end of the line.
    Unassigned,
}
