//! One connection to another MCP program: requests in both directions and their responses.
//!
//! [`open`] returns a [`Peer`] (a cheap handle that many tasks share), the [`StreamReader`] and the
//! [`StreamWriter`]. The owner runs both and decides what the end of either means. [`detached`] is
//! for transports other than two byte streams: they send the messages of the [`Outlet`] and pass
//! incoming ones to the [`Inlet`].

mod inlet;
mod observer;
mod requests;
mod responder;
mod streams;

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hashbrown::HashMap;
use tokio::sync::{mpsc, watch};

pub use inlet::Inlet;
pub use observer::{ObservedRequest, Observer};
use requests::Waiter;
pub use requests::{Hold, Patience, Ticket};
pub use responder::{Claim, Responder};
pub use streams::{StreamReader, StreamWriter, open};

use crate::alarm::Alarm;
use crate::envelope::{self, Id, Raw, RpcError};
use crate::frame::DEFAULT_MAX_FRAME_BYTES;
use crate::http_client::HttpError;
use crate::outbox::{self, Backlog, Outgoing, Weight};
pub use crate::outbox::{Labels, Outlet, Parcel, ParcelKind};

/// Above this many unwritten bytes, droppable notifications are dropped.
const MOST_UNREAD: usize = 1024 * 1024;

/// Limits of a connection.
#[derive(Clone, Copy, Debug)]
pub struct PeerLimits {
    pub max_frame_bytes: usize,
    /// The time limit of a write: if it takes longer, the other side has stopped reading, and the
    /// connection fails. `None` if there is no limit.
    pub write_deadline: Option<Duration>,
}

impl Default for PeerLimits {
    fn default() -> PeerLimits {
        PeerLimits { max_frame_bytes: DEFAULT_MAX_FRAME_BYTES, write_deadline: None }
    }
}

/// Receives requests and notifications of the other side. It runs on the reader, so it must not
/// block.
pub trait Handler: Send {
    fn request(&mut self, method: String, params: Option<Raw>, responder: Responder);
    fn notification(&mut self, notification: Notification);
    /// Handles a line that is not a message. `error` can be sent as the error response.
    fn malformed(&mut self, error: &envelope::Malformed, peer: &Peer);
    /// A wait before the next message is read. It is necessary if the other side sends requests
    /// faster than it reads responses.
    fn pause(&self) -> Option<Pause> {
        None
    }
}

/// A future that completes when the next message may be read.
pub type Pause = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Debug)]
pub struct Notification {
    pub method: String,
    pub params: Option<Raw>,
    pub exchange: Option<Exchange>,
}

/// Identifies the HTTP POST whose response stream carries a message; other transports have none. A
/// client uses the id of its request as the number, a server counts the POSTs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exchange(pub u64);

/// Why a request has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RequestError {
    #[error("the peer answered with {0}")]
    Refused(RpcError),
    #[error("the peer sent no response within {} ms", .0.as_millis())]
    TimedOut(Duration),
    #[error("the response is larger than {limit} bytes")]
    AnswerTooLarge { limit: usize },
    #[error("the connection closed before the response arrived")]
    Closed,
    /// No byte of the request was written, so it can be sent again safely.
    #[error("the connection closed before the request was sent")]
    NotSent,
    #[error(transparent)]
    Http(#[from] HttpError),
}

/// Opens a connection whose messages another transport carries.
pub fn detached(limits: PeerLimits) -> (Peer, Outlet, Inlet) {
    let (sender, outlet) = outbox::queue();
    let shared = Arc::new(PeerState {
        outbox: sender,
        backlog: Arc::default(),
        next_id: AtomicU64::new(1),
        pending: Mutex::new(Some(HashMap::new())),
        flow: watch::Sender::new(Flow::Open),
        dropped: AtomicU64::new(0),
        max_frame_bytes: limits.max_frame_bytes,
        alarm: Alarm::default(),
        observer: OnceLock::new(),
    });
    let peer = Peer { shared, exchange: None, labels: None };
    (peer.clone(), outlet, Inlet::new(peer))
}

/// A handle to the other side of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    shared: Arc<PeerState>,
    /// The exchange to which everything that this handle sends belongs.
    exchange: Option<Exchange>,
    /// HTTP headers for everything that this handle sends.
    labels: Option<Labels>,
}

#[derive(Debug)]
struct PeerState {
    outbox: mpsc::Sender<Outgoing>,
    backlog: Arc<Backlog>,
    next_id: AtomicU64,
    /// The requests in flight; `None` once the connection has closed, so that later requests fail
    /// at once.
    pending: Mutex<Option<HashMap<u64, Waiter>>>,
    flow: watch::Sender<Flow>,
    dropped: AtomicU64,
    max_frame_bytes: usize,
    alarm: Alarm,
    observer: OnceLock<Arc<dyn Observer>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Open,
    /// The rest of an over-long line is being discarded; new requests wait.
    Draining,
    Closed,
}

impl Peer {
    /// Reports all further messages to `observer`. A second observer is ignored.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        let _first_stays = self.shared.observer.set(observer);
    }

    /// Sends a notification; waits only while the queue is full.
    pub async fn notify(&self, method: &str, params: &str) -> Result<(), RequestError> {
        let frame = envelope::notification_frame(method, params);
        self.send(frame, ParcelKind::Message).await
    }

    /// Sends a notification that may be lost if the other side does not read, such as progress.
    pub fn try_notify(&self, method: &str, params: &str) {
        if self.backlog() > MOST_UNREAD {
            return;
        }
        self.try_send(envelope::notification_frame(method, params), ParcelKind::Message);
    }

    /// Another handle to this connection, which sends everything as part of `exchange`.
    pub fn within(&self, exchange: Option<Exchange>) -> Peer {
        Peer { shared: Arc::clone(&self.shared), exchange, labels: None }
    }

    /// Another handle to this connection, which adds these headers if the transport is HTTP.
    pub fn labelled(&self, labels: Labels) -> Peer {
        Peer { labels: Some(labels), ..self.clone() }
    }

    /// Sends an error response to a malformed line, with its id if it has one.
    pub async fn refuse(&self, malformed: &envelope::Malformed) {
        let error = RpcError::new(malformed.code(), malformed.to_string());
        self.fail(malformed.id(), &error).await;
    }

    /// Sends an error response to the request with this id. Its [`Responder`] must not respond as
    /// well, which a [`Claim`] ensures.
    pub async fn fail(&self, id: Option<&Id>, error: &RpcError) {
        let frame = envelope::error_frame(id, error);
        let _asker_gone = self.send(frame, ParcelKind::Answer).await;
    }

    /// Ends the writer after it has written the queue.
    pub async fn finish(&self) {
        let _already_ended = self.shared.outbox.send(Outgoing::End).await;
    }

    /// Completes when the connection has closed.
    pub async fn closed(&self) {
        let mut flow = self.shared.flow.subscribe();
        let _sender_lives = flow.wait_for(|flow| *flow == Flow::Closed).await;
    }

    /// Whether the connection has closed already.
    pub fn is_closed(&self) -> bool {
        *self.shared.flow.borrow() == Flow::Closed
    }

    /// The number of responses and lines that matched no request.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    async fn send(&self, frame: Bytes, kind: ParcelKind) -> Result<(), RequestError> {
        self.shared.outbox.send(self.parcel(frame, kind)).await.map_err(|_| RequestError::NotSent)
    }

    /// Whether a request to the other side is in flight.
    pub fn is_asked(&self) -> bool {
        self.pending(|pending| !pending.is_empty()) == Some(true)
    }

    /// The number of queued bytes that are not written yet.
    pub fn backlog(&self) -> usize {
        self.shared.backlog.bytes()
    }

    /// Waits until `enough` returns `true` for the number of unwritten bytes. It is called now and
    /// after each write.
    pub async fn written(&self, mut enough: impl FnMut(usize) -> bool) {
        loop {
            let less = self.shared.backlog.less();
            let mut less = pin!(less);
            // The waiter registers before the check, so that no write after the check is missed.
            less.as_mut().enable();
            if enough(self.backlog()) {
                return;
            }
            less.await;
        }
    }

    fn try_send(&self, frame: Bytes, kind: ParcelKind) {
        let _lost_when_full = self.shared.outbox.try_send(self.parcel(frame, kind));
    }

    fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.shared.observer.get()
    }

    fn parcel(&self, frame: Bytes, kind: ParcelKind) -> Outgoing {
        if let Some(observer) = self.observer() {
            observer.sent(&frame);
        }
        let (labels, weight) = (self.labels.clone(), Weight::of(&frame, &self.shared.backlog));
        Outgoing::Frame(Parcel { frame, exchange: self.exchange, kind, labels, weight })
    }

    fn count_dropped(&self) {
        self.shared.dropped.fetch_add(1, Ordering::Relaxed);
    }

    fn close(&self) {
        let pending = self.shared.pending.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.shared.flow.send_replace(Flow::Closed);
        for waiter in pending.into_iter().flatten().map(|(_, waiter)| waiter) {
            let _asker_gone = waiter.answer.send(Err(RequestError::Closed));
        }
    }
}

#[cfg(test)]
mod tests;
