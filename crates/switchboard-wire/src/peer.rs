//! One connection to another MCP program: requests out, answers back, and what it asks of us.
//!
//! [`open`] gives a [`Peer`] (a cheap handle that many tasks share), the [`Reader`] and the
//! [`Writer`]; the owner runs both and so decides what the end of either means. [`detached`] is for
//! transports that are not two byte streams: they carry what the [`Outlet`] gives and hand the
//! [`Inlet`] what comes in.

mod inlet;
mod observer;
mod streams;

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hashbrown::HashMap;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

pub use inlet::Inlet;
pub use observer::{ObservedRequest, Observer};
pub use streams::{Reader, Writer, open};

use crate::alarm::Alarm;
use crate::envelope::{self, Id, Raw, RpcError};
use crate::frame::DEFAULT_MAX_FRAME_BYTES;
use crate::http_client::HttpError;
use crate::outbox::{self, Backlog, Outgoing, Weight};
pub use crate::outbox::{Kind, Labels, Outlet, Parcel};

/// Bytes that may wait to be written before notifications that may be lost are.
const MOST_UNREAD: usize = 1024 * 1024;

/// What a connection may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub max_frame_bytes: usize,
    /// A write that takes longer means that the other side stopped reading.
    pub write_deadline: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_frame_bytes: DEFAULT_MAX_FRAME_BYTES, write_deadline: None }
    }
}

/// Takes what the other side asks or tells. Runs on the reader, so it must not wait.
pub trait Handler: Send {
    fn request(&mut self, method: String, params: Option<Raw>, responder: Responder);
    fn notification(&mut self, notification: Notification);
    /// A line that is no message; `error` is what a server would answer.
    fn malformed(&mut self, error: &envelope::Malformed, peer: &Peer);
    /// What to wait for before the next message is read; nothing, unless the other side asks for more
    /// than it takes.
    fn pause(&self) -> Option<Pause> {
        None
    }
}

/// Completes when the next message may be read.
pub type Pause = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Debug)]
pub struct Notification {
    pub method: String,
    pub params: Option<Raw>,
    pub exchange: Option<Exchange>,
}

/// What a message belongs to, where the transport tells: over HTTP, the POST whose response stream
/// carries it. A client numbers it as its own request, a server as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exchange(pub u64);

/// Why a request got no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RequestError {
    #[error("the other side answered with {0}")]
    Refused(RpcError),
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    #[error("the answer is larger than {limit} bytes")]
    AnswerTooLarge { limit: usize },
    #[error("the connection closed before the answer came")]
    Closed,
    /// Nothing of the request was written, so asking again is safe.
    #[error("the connection was closed already")]
    NotSent,
    #[error(transparent)]
    Http(HttpError),
}

/// Opens a connection whose frames another transport carries.
pub fn detached(limits: Limits) -> (Peer, Outlet, Inlet) {
    let (sender, outlet) = outbox::queue();
    let shared = Arc::new(Shared {
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

/// A handle to the other side.
#[derive(Clone, Debug)]
pub struct Peer {
    shared: Arc<Shared>,
    /// What this handle sends belongs to it.
    exchange: Option<Exchange>,
    /// Stands on what this handle sends, where the transport has a place for it.
    labels: Option<Labels>,
}

#[derive(Debug)]
struct Shared {
    outbox: mpsc::Sender<Outgoing>,
    backlog: Arc<Backlog>,
    next_id: AtomicU64,
    /// `None` once the connection has closed: whoever asks later learns it at once.
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
    /// An over-long line is being drained; answers that follow it wait behind it.
    Draining,
    Closed,
}

#[derive(Debug)]
struct Waiter {
    answer: oneshot::Sender<Result<Raw, RequestError>>,
    progress: Option<mpsc::Sender<Raw>>,
    patience: Option<Deadline>,
}

/// When to give up, and by how much each sign of life puts that off.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: Instant,
    timeout: Duration,
}

/// How to wait for an answer.
#[derive(Debug, Default)]
pub struct Patience {
    /// Counted from the last progress notification.
    pub timeout: Option<Duration>,
    /// Where progress goes; `None` asks for no progress.
    pub progress: Option<mpsc::Sender<Raw>>,
}

impl Peer {
    /// Tells `observer` of every message from now on; the first observer stays.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        let _first_stays = self.shared.observer.set(observer);
    }

    /// Asks and waits. `params` gets the progress token to put into `_meta`, and writes JSON.
    ///
    /// Dropping the future cancels the request on the other side.
    pub async fn request(
        &self,
        method: &str,
        params: impl FnOnce(u64) -> String,
        patience: Patience,
    ) -> Result<Raw, RequestError> {
        if *self.shared.flow.borrow() != Flow::Open {
            Box::pin(self.settled_within(patience.timeout)).await?;
        }
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, mut answered) = oneshot::channel();
        let deadline =
            patience.timeout.map(|timeout| Deadline { at: Instant::now() + timeout, timeout });
        let waiter = Waiter { answer, progress: patience.progress, patience: deadline };
        if !self.register(id, waiter) {
            return Err(RequestError::NotSent);
        }
        if let Some(deadline) = deadline {
            self.shared.alarm.set(deadline.at);
        }
        let mut in_flight = InFlight { peer: self, id, done: false };
        let params = params(id);
        let observed = self.observer().and_then(|observer| observer.begin(method, &params));
        let frame = envelope::request_frame(id, method, &params);
        drop(params);
        let queued = tokio::select! {
            biased;
            sent = self.shared.outbox.send(self.parcel(frame, Kind::Message)) => sent.is_ok(),
            // The time was up, or the connection closed, while the queue was full.
            early = &mut answered => {
                in_flight.done = true;
                return early.unwrap_or(Err(RequestError::Closed));
            }
        };
        if !queued {
            in_flight.done = true;
            self.take(id);
            return Err(RequestError::NotSent);
        }
        let outcome = answered.await.unwrap_or(Err(RequestError::Closed));
        if let Some(observed) = observed {
            observed.end(&outcome);
        }
        // Whoever timed out has not been answered: the other side is told that nobody waits.
        in_flight.done = true;
        if let Err(RequestError::TimedOut(_)) = outcome {
            self.cancel(id);
        }
        outcome
    }

    /// Tells the other side something; waits only while its queue is full.
    pub async fn notify(&self, method: &str, params: &str) -> Result<(), RequestError> {
        let frame = envelope::notification_frame(method, params);
        self.send(frame, Kind::Message).await
    }

    /// Tells something that may be lost when the other side does not read: progress, log lines.
    pub fn try_notify(&self, method: &str, params: &str) {
        if self.backlog() > MOST_UNREAD {
            return;
        }
        self.try_send(envelope::notification_frame(method, params), Kind::Message);
    }

    /// The same connection; what this handle sends belongs to `exchange`.
    pub fn within(&self, exchange: Option<Exchange>) -> Peer {
        Peer { shared: Arc::clone(&self.shared), exchange, labels: None }
    }

    /// The same connection; what this handle sends has these headers, where there are headers.
    pub fn labelled(&self, labels: Labels) -> Peer {
        Peer { labels: Some(labels), ..self.clone() }
    }

    /// Answers a line that was no message, under its id if it asked for something.
    pub async fn refuse(&self, malformed: &envelope::Malformed) {
        let error = RpcError::new(malformed.code(), malformed.to_string());
        self.fail(malformed.id(), &error).await;
    }

    /// Answers the request with this id with an error. Its [`Responder`] must not answer as well: a
    /// [`Claim`] sees to that.
    pub async fn fail(&self, id: Option<&Id>, error: &RpcError) {
        let frame = envelope::error_frame(id, error);
        let _asker_gone = self.send(frame, Kind::Answer).await;
    }

    /// Lets what is queued go out, then ends the writer.
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

    /// Answers and lines that belonged to nobody.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    async fn send(&self, frame: Bytes, kind: Kind) -> Result<(), RequestError> {
        self.shared.outbox.send(self.parcel(frame, kind)).await.map_err(|_| RequestError::NotSent)
    }

    /// Whether the other side owes an answer.
    pub fn is_asked(&self) -> bool {
        self.pending(|pending| !pending.is_empty()) == Some(true)
    }

    /// Bytes that were said and are not written yet.
    pub fn backlog(&self) -> usize {
        self.shared.backlog.bytes()
    }

    /// Waits until `enough` holds of the backlog; asked again whenever something was written.
    pub async fn written(&self, mut enough: impl FnMut(usize) -> bool) {
        loop {
            let less = self.shared.backlog.less();
            let mut less = pin!(less);
            // So that nothing that is written meanwhile is missed.
            less.as_mut().enable();
            if enough(self.backlog()) {
                return;
            }
            less.await;
        }
    }

    fn try_send(&self, frame: Bytes, kind: Kind) {
        let _lost_when_full = self.shared.outbox.try_send(self.parcel(frame, kind));
    }

    fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.shared.observer.get()
    }

    fn parcel(&self, frame: Bytes, kind: Kind) -> Outgoing {
        if let Some(observer) = self.observer() {
            observer.sent(&frame);
        }
        let (labels, weight) = (self.labels.clone(), Weight::of(&frame, &self.shared.backlog));
        Outgoing::Frame(Parcel { frame, exchange: self.exchange, kind, labels, weight })
    }

    /// Waits out an over-long line, so that no answer is asked for that would be drained with it.
    async fn settled_within(&self, timeout: Option<Duration>) -> Result<(), RequestError> {
        match timeout {
            Some(timeout) => tokio::time::timeout(timeout, self.settled())
                .await
                .unwrap_or(Err(RequestError::TimedOut(timeout))),
            None => self.settled().await,
        }
    }

    async fn settled(&self) -> Result<(), RequestError> {
        let mut flow = self.shared.flow.subscribe();
        match flow.wait_for(|flow| *flow != Flow::Draining).await.as_deref() {
            Ok(Flow::Open) => Ok(()),
            Ok(Flow::Draining | Flow::Closed) | Err(_) => Err(RequestError::NotSent),
        }
    }

    fn register(&self, id: u64, waiter: Waiter) -> bool {
        self.pending(|pending| pending.insert(id, waiter)).is_some()
    }

    fn take(&self, id: u64) -> Option<Waiter> {
        self.pending(|pending| pending.remove(&id)).flatten()
    }

    /// Runs `work` on the waiting requests; `None` after the connection has closed.
    fn pending<T>(&self, work: impl FnOnce(&mut HashMap<u64, Waiter>) -> T) -> Option<T> {
        let mut pending = self.shared.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.as_mut().map(work)
    }

    fn settle(&self, id: u64, outcome: Result<Raw, RequestError>) {
        match self.take(id) {
            Some(waiter) => {
                let _asker_gone = waiter.answer.send(outcome);
            }
            None => self.count_dropped(),
        }
    }

    /// Tells the other side that nobody waits for this answer any more.
    fn cancel(&self, id: u64) {
        let params = format!("{{\"requestId\":{id},\"reason\":\"no longer needed\"}}");
        let frame = envelope::notification_frame("notifications/cancelled", &params);
        self.try_send(frame, Kind::Message);
    }

    /// Fails the requests whose time is up; when the next one's is.
    fn expire(&self, now: Instant) -> Option<Instant> {
        let expired: Vec<(u64, Duration)> = self.pending(|pending| {
            let due = |(id, waiter): (&u64, &Waiter)| {
                waiter.patience.filter(|d| d.at <= now).map(|deadline| (*id, deadline.timeout))
            };
            pending.iter().filter_map(due).collect()
        })?;
        for (id, timeout) in expired {
            self.settle(id, Err(RequestError::TimedOut(timeout)));
        }
        self.pending(|pending| pending.values().filter_map(|w| Some(w.patience?.at)).min())?
    }

    /// Puts off the deadlines of these requests by `patience` while the hold lives; afterwards each
    /// has its whole time again.
    pub fn hold(&self, requests: Vec<u64>, patience: Duration) -> Hold {
        self.put_off(&requests, |_| patience);
        Hold { peer: self.clone(), requests }
    }

    fn put_off(&self, requests: &[u64], by: impl Fn(Duration) -> Duration) {
        let now = Instant::now();
        let _closed = self.pending(|pending| {
            for id in requests {
                if let Some(waiter) = pending.get_mut(id)
                    && let Some(deadline) = &mut waiter.patience
                {
                    deadline.at = now + by(deadline.timeout);
                    self.shared.alarm.set(deadline.at);
                }
            }
        });
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

/// Cancels on the other side when the asker gives up.
struct InFlight<'a> {
    peer: &'a Peer,
    id: u64,
    done: bool,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.done && self.peer.take(self.id).is_some() {
            self.peer.cancel(self.id);
        }
    }
}

/// Keeps requests from timing out.
#[derive(Debug)]
pub struct Hold {
    peer: Peer,
    requests: Vec<u64>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.peer.put_off(&self.requests, |timeout| timeout);
    }
}

/// The right, and the duty, to answer one request.
#[derive(Debug)]
pub struct Responder {
    id: Id,
    peer: Peer,
    claim: Option<Arc<dyn Claim>>,
}

/// Who settles a request, where several could: whoever takes it.
pub trait Claim: fmt::Debug + Send + Sync {
    /// `true` once.
    fn take(&self) -> bool;
}

impl Responder {
    pub fn id(&self) -> &Id {
        &self.id
    }

    /// The asker; what this handle sends belongs to the exchange of the request.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    pub fn exchange(&self) -> Option<Exchange> {
        self.peer.exchange
    }

    /// Takes `claim` before the answer can arrive; if somebody else has it, the answer is kept back.
    #[must_use]
    pub fn claiming(self, claim: Arc<dyn Claim>) -> Responder {
        Responder { claim: Some(claim), ..self }
    }

    /// `write` puts the result's JSON into the frame.
    pub async fn result(self, write: impl FnOnce(&mut String)) {
        let frame = envelope::result_frame(&self.id, write);
        self.send(frame).await;
    }

    /// Answers without waiting; lost when the other side does not read its answers.
    pub fn try_result(self, json: &str) {
        let frame = envelope::result_frame(&self.id, |out| out.push_str(json));
        self.try_send(frame);
    }

    /// Refuses without waiting; lost when the other side does not read its answers.
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
            let _asker_gone = self.peer.send(frame, Kind::Answer).await;
        }
    }

    fn try_send(self, frame: Bytes) {
        if self.may_answer() {
            self.peer.try_send(frame, Kind::Answer);
        }
    }

    fn may_answer(&self) -> bool {
        self.claim.as_ref().is_none_or(|claim| claim.take())
    }
}

#[cfg(test)]
mod tests;
