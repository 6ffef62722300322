//! Sends a peer's messages to an HTTP server until either side ends the connection.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hashbrown::HashMap;
use tokio::task::{AbortHandle, JoinSet};

use super::Endpoint;
use super::exchange::OutgoingRequest;
use super::legacy::Answers;
use super::link::Link;
use super::stateless;
use crate::envelope::{self, Id, Message, Raw};
use crate::outbox::{Outlet, Parcel};
use crate::peer::{Handler, Inlet, PeerLimits, RequestError};

/// Timeout of a message that needs no response.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum number of responses in flight to the server, each on its own connection. If the
/// server sends requests faster than it accepts responses, further responses are dropped.
const MOST_RESPONSES: usize = 64;

/// Transfers the messages of an HTTP connection.
#[derive(Debug)]
pub struct Carrier {
    endpoint: Endpoint,
    limits: PeerLimits,
    outlet: Outlet,
    inlet: Inlet,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The client closed the connection.
    Stopped,
    /// The server no longer knows the session.
    SessionOver,
    /// The server cannot be reached.
    Unreachable,
    /// The stream of responses has ended.
    StreamClosed,
}

impl Carrier {
    pub(super) fn new(
        endpoint: Endpoint,
        limits: PeerLimits,
        outlet: Outlet,
        inlet: Inlet,
    ) -> Carrier {
        Carrier { endpoint, limits, outlet, inlet }
    }

    /// Transfers messages until the connection ends or `stop` completes. [`Traffic::finish`] then
    /// handles the requests in flight.
    pub async fn run(
        self,
        handler: impl Handler + 'static,
        stop: impl Future<Output = ()>,
    ) -> (Ended, Traffic) {
        let Carrier { endpoint, limits, outlet, inlet } = self;
        let link = Arc::new(Link::new(endpoint, limits, inlet, Box::new(handler)));
        let mut traffic = Traffic {
            link: Arc::clone(&link),
            outlet,
            exchanges: JoinSet::new(),
            in_flight: HashMap::new(),
            answering: 0,
            beside: JoinSet::new(),
        };
        let watched = Arc::clone(&link);
        traffic.beside.spawn(async move { watched.inlet.watch_deadlines().await });
        let mut stop = pin!(stop);
        let ended = loop {
            tokio::select! {
                parcel = traffic.outlet.next() => match parcel {
                    Some(parcel) => traffic.carry(parcel),
                    None => break Ended::Stopped,
                },
                Some(done) = traffic.exchanges.join_next() => traffic.settle(done.ok()),
                ended = link.ended.wait() => break *ended,
                () = &mut stop => break Ended::Stopped,
            }
        };
        (ended, traffic)
    }
}

/// The messages in flight of a connection.
pub struct Traffic {
    link: Arc<Link>,
    outlet: Outlet,
    exchanges: JoinSet<Done>,
    /// The requests in flight.
    in_flight: HashMap<u64, Flight>,
    /// The number of responses that are being sent to the server.
    answering: usize,
    /// Tasks that run as long as the connection.
    beside: JoinSet<()>,
}

/// A request in flight.
struct Flight {
    task: AbortHandle,
    /// How a cancellation is signalled to the server.
    cancelled_by: CancelledBy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CancelledBy {
    Notification,
    /// The HTTP response to the request is closed, and no notification is sent.
    ClosedResponse,
}

/// A completed task, by the kind of the message that the task sent.
enum Done {
    Notified,
    Responded,
    Requested { id: u64, answers: Option<Answers> },
}

impl Traffic {
    /// Admits no further requests. If the server may still respond, requests in flight may complete
    /// while `patience` lasts; unsent requests fail. Then ends the session, if there is one.
    pub async fn finish(mut self, ended: Ended, patience: impl Future<Output = ()>) {
        self.link.inlet.shut();
        let mut patience = pin!(patience);
        let answers_come = match ended {
            Ended::SessionOver | Ended::Unreachable => true,
            Ended::Stopped | Ended::StreamClosed => false,
        };
        while answers_come && !self.exchanges.is_empty() {
            tokio::select! {
                parcel = self.outlet.next() => match parcel {
                    Some(parcel) => self.refuse_unsent(&parcel.frame),
                    None => break,
                },
                Some(done) = self.exchanges.join_next() => self.settle(done.ok()),
                () = &mut patience => break,
            }
        }
        self.exchanges.shutdown().await;
        self.beside.shutdown().await;
        self.link.inlet.close();
        if ended == Ended::Stopped {
            self.link.say_goodbye().await;
        }
    }

    fn carry(&mut self, Parcel { frame, labels, .. }: Parcel) {
        let link = Arc::clone(&self.link);
        match envelope::parse(&frame) {
            Ok(Message::Request { id: Id::Number(id), method, params })
                if let Some(id) = id.as_u64() =>
            {
                let stateless = stateless::headers(&method, params.as_ref(), labels.as_deref());
                let cancelled_by = match stateless {
                    Some(_) => CancelledBy::ClosedResponse,
                    None => CancelledBy::Notification,
                };
                let request = OutgoingRequest { id, method, frame, stateless };
                let task = self.exchanges.spawn(async move {
                    let answers = link.exchange(request).await;
                    Done::Requested { id, answers }
                });
                self.in_flight.insert(id, Flight { task, cancelled_by });
            }
            Ok(Message::Notification { method, .. }) if method == "notifications/initialized" => {
                self.beside.spawn(async move { link.begin(frame).await });
            }
            Ok(Message::Notification { method, params }) => {
                if method == "notifications/cancelled"
                    && self.give_up(params.as_ref()) == CancelledBy::ClosedResponse
                {
                    return;
                }
                self.tell(frame, Done::Notified);
            }
            Ok(Message::Answer { .. }) if self.answering >= MOST_RESPONSES => {}
            Ok(Message::Answer { .. }) => {
                self.answering += 1;
                self.tell(frame, Done::Responded);
            }
            // A `Peer` sends neither requests with other ids nor malformed messages.
            Ok(Message::Request { .. }) | Err(_) => {}
        }
    }

    fn tell(&mut self, frame: Bytes, done: Done) {
        let link = Arc::clone(&self.link);
        self.exchanges.spawn(async move {
            // The outcome is ignored, because no caller waits for it.
            let _taken = tokio::time::timeout(NOTIFY_TIMEOUT, link.tell(&frame)).await;
            done
        });
    }

    /// Aborts a cancelled request and returns how to signal that to the server.
    fn give_up(&mut self, params: Option<&Raw>) -> CancelledBy {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled {
            request_id: u64,
        }
        let cancelled = params.and_then(|params| params.parse::<Cancelled>().ok());
        let flight = cancelled.and_then(|cancelled| self.in_flight.remove(&cancelled.request_id));
        match flight {
            Some(Flight { task, cancelled_by }) => {
                task.abort();
                cancelled_by
            }
            // Without a session, only running requests need a cancellation, and this request has
            // completed.
            None if self.link.ready.get().is_none() => CancelledBy::ClosedResponse,
            None => CancelledBy::Notification,
        }
    }

    fn refuse_unsent(&mut self, frame: &Bytes) {
        match envelope::parse(frame) {
            Ok(Message::Request { id: Id::Number(id), .. }) if let Some(id) = id.as_u64() => {
                self.link.inlet.fail(id, RequestError::NotSent);
            }
            Ok(Message::Notification { method, params }) if method == "notifications/cancelled" => {
                let _no_notification = self.give_up(params.as_ref());
            }
            Ok(_) | Err(_) => {}
        }
    }

    fn settle(&mut self, done: Option<Done>) {
        match done {
            Some(Done::Requested { id, answers }) => {
                self.in_flight.remove(&id);
                if let Some(answers) = answers {
                    let link = Arc::clone(&self.link);
                    self.beside.spawn(async move { answers.read(&link).await });
                }
            }
            Some(Done::Responded) => self.answering = self.answering.saturating_sub(1),
            Some(Done::Notified) | None => {}
        }
    }
}
