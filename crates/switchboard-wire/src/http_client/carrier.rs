//! Carries what a peer sends to a server at a URL, until either side has enough.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hashbrown::HashMap;
use tokio::task::{AbortHandle, JoinSet};

use super::Endpoint;
use super::legacy::Answers;
use super::link::Link;
use crate::envelope::{self, Id, Message, Raw};
use crate::outbox::{Outlet, Parcel};
use crate::peer::{Handler, Inlet, Limits, RequestError};

/// What needs no answer must be taken by then.
const TOLD: Duration = Duration::from_secs(30);

/// The moving part of a connection to a URL.
#[derive(Debug)]
pub struct Carrier {
    endpoint: Endpoint,
    limits: Limits,
    outlet: Outlet,
    inlet: Inlet,
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// We have enough.
    Stopped,
    /// The server no longer knows the session.
    SessionOver,
    /// Nothing more can be sent.
    Unreachable,
    /// The stream that brings the answers has ended.
    StreamClosed,
}

impl Carrier {
    pub(super) fn new(endpoint: Endpoint, limits: Limits, outlet: Outlet, inlet: Inlet) -> Carrier {
        Carrier { endpoint, limits, outlet, inlet }
    }

    /// Carries until the connection is over or `stop` completes. What is in flight then is seen to by
    /// [`Traffic::finish`].
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

/// What is under way over a connection.
pub struct Traffic {
    link: Arc<Link>,
    outlet: Outlet,
    exchanges: JoinSet<Done>,
    /// The tasks of requests that wait for their answer.
    in_flight: HashMap<u64, AbortHandle>,
    /// What goes on for as long as the connection does.
    beside: JoinSet<()>,
}

/// A message of ours that was seen to.
enum Done {
    Told,
    Asked { id: u64, answers: Option<Answers> },
}

impl Traffic {
    /// Nobody can ask any more. Requests in flight come to their own end, for as long as `patience`
    /// lasts; what is still unsent fails. Then the server is told, if it can be, that this is over.
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
                    Some(parcel) => self.turn_away(&parcel.frame),
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

    fn carry(&mut self, Parcel { frame, .. }: Parcel) {
        let link = Arc::clone(&self.link);
        match envelope::parse(&frame) {
            Ok(Message::Request { id: Id::Number(id), method, .. })
                if let Some(id) = id.as_u64() =>
            {
                let task = self.exchanges.spawn(async move {
                    let answers = link.exchange(id, &method, frame).await;
                    Done::Asked { id, answers }
                });
                self.in_flight.insert(id, task);
            }
            Ok(Message::Notification { method, .. }) if method == "notifications/initialized" => {
                self.beside.spawn(async move { link.begin(frame).await });
            }
            Ok(Message::Notification { method, params }) => {
                if method == "notifications/cancelled" {
                    self.give_up(params.as_ref());
                }
                self.tell(frame);
            }
            Ok(Message::Answer { .. }) => self.tell(frame),
            // A peer of ours sends no such thing.
            Ok(Message::Request { .. }) | Err(_) => {}
        }
    }

    fn tell(&mut self, frame: Bytes) {
        let link = Arc::clone(&self.link);
        self.exchanges.spawn(async move {
            // There is nobody who could be told that it was not taken.
            let _taken = tokio::time::timeout(TOLD, link.tell(&frame)).await;
            Done::Told
        });
    }

    /// Nobody waits for an answer any more, so nobody reads it.
    fn give_up(&mut self, params: Option<&Raw>) {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled {
            request_id: u64,
        }
        let cancelled = params.and_then(|params| params.parse::<Cancelled>().ok());
        let task = cancelled.and_then(|cancelled| self.in_flight.remove(&cancelled.request_id));
        if let Some(task) = task {
            task.abort();
        }
    }

    fn turn_away(&mut self, frame: &Bytes) {
        match envelope::parse(frame) {
            Ok(Message::Request { id: Id::Number(id), .. }) if let Some(id) = id.as_u64() => {
                self.link.inlet.fail(id, RequestError::NotSent);
            }
            Ok(Message::Notification { method, params }) if method == "notifications/cancelled" => {
                self.give_up(params.as_ref());
            }
            Ok(_) | Err(_) => {}
        }
    }

    fn settle(&mut self, done: Option<Done>) {
        let Some(Done::Asked { id, answers }) = done else { return };
        self.in_flight.remove(&id);
        if let Some(answers) = answers {
            let link = Arc::clone(&self.link);
            self.beside.spawn(async move { answers.read(&link).await });
        }
    }
}
