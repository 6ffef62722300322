//! Outgoing requests: ids, deadlines, progress and cancellation.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hashbrown::HashMap;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::{Flow, ParcelKind, Peer, RequestError};
use crate::envelope::{self, Raw};

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) answer: oneshot::Sender<Result<Raw, RequestError>>,
    pub(super) progress: Option<mpsc::Sender<Raw>>,
    pub(super) deadline: Option<Deadline>,
}

/// When a request times out. Each progress notification moves `at` to `timeout` from then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    pub(super) at: Instant,
    pub(super) timeout: Duration,
}

/// How long to wait for a response, and the receiver of progress.
#[derive(Debug, Default)]
pub struct Patience {
    /// The time without a response and without progress after which the request fails; `None`
    /// waits without a limit.
    pub timeout: Option<Duration>,
    /// The receiver of progress notifications, if any.
    pub progress: Option<mpsc::Sender<Raw>>,
}

/// The reserved id of a request that has not been sent.
#[derive(Debug)]
pub struct Ticket {
    id: u64,
}

impl Ticket {
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl Peer {
    /// Reserves the id of a request, which is also its progress token.
    pub fn begin(&self) -> Ticket {
        Ticket { id: self.shared.next_id.fetch_add(1, Ordering::Relaxed) }
    }

    /// Sends a request and waits for its result. `params` is JSON, or empty.
    ///
    /// Dropping the future cancels the request on the other side.
    pub async fn request(
        &self,
        method: &str,
        params: String,
        patience: Patience,
    ) -> Result<Raw, RequestError> {
        self.request_with(self.begin(), method, params, patience).await
    }

    /// Sends the request whose id was reserved, and waits for its result.
    ///
    /// Dropping the future cancels the request on the other side.
    pub async fn request_with(
        &self,
        Ticket { id }: Ticket,
        method: &str,
        params: String,
        patience: Patience,
    ) -> Result<Raw, RequestError> {
        if *self.shared.flow.borrow() != Flow::Open {
            Box::pin(self.settled_within(patience.timeout)).await?;
        }
        let (answer, mut answered) = oneshot::channel();
        let deadline =
            patience.timeout.map(|timeout| Deadline { at: Instant::now() + timeout, timeout });
        let waiter = Waiter { answer, progress: patience.progress, deadline };
        if !self.register(id, waiter) {
            return Err(RequestError::NotSent);
        }
        if let Some(deadline) = deadline {
            self.shared.alarm.set(deadline.at);
        }
        let mut in_flight = InFlight { peer: self, id, done: false };
        let observed = self.observer().and_then(|observer| observer.begin(method, &params));
        let frame = envelope::request_frame(id, method, &params);
        drop(params);
        let queued = tokio::select! {
            biased;
            sent = self.shared.outbox.send(self.parcel(frame, ParcelKind::Message)) => sent.is_ok(),
            // The request timed out, or the connection closed, while the queue was full.
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
        in_flight.done = true;
        // The other side may still be working on a timed-out request, so it is cancelled there.
        if let Err(RequestError::TimedOut(_)) = outcome {
            self.cancel(id);
        }
        outcome
    }

    /// Waits until an over-long line has been discarded: a response of unknown id in it fails all
    /// requests in flight.
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

    pub(super) fn take(&self, id: u64) -> Option<Waiter> {
        self.pending(|pending| pending.remove(&id)).flatten()
    }

    /// Runs `work` on the requests in flight; `None` after the connection has closed.
    pub(super) fn pending<T>(
        &self,
        work: impl FnOnce(&mut HashMap<u64, Waiter>) -> T,
    ) -> Option<T> {
        let mut pending = self.shared.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.as_mut().map(work)
    }

    pub(super) fn settle(&self, id: u64, outcome: Result<Raw, RequestError>) {
        match self.take(id) {
            Some(waiter) => {
                let _asker_gone = waiter.answer.send(outcome);
            }
            None => self.count_dropped(),
        }
    }

    /// Cancels the request on the other side.
    fn cancel(&self, id: u64) {
        let params = format!("{{\"requestId\":{id},\"reason\":\"no longer needed\"}}");
        let frame = envelope::notification_frame("notifications/cancelled", &params);
        self.try_send(frame, ParcelKind::Message);
    }

    /// Fails the requests that have timed out, and returns the next deadline.
    pub(super) fn expire(&self, now: Instant) -> Option<Instant> {
        let expired: Vec<(u64, Duration)> = self.pending(|pending| {
            let due = |(id, waiter): (&u64, &Waiter)| {
                waiter.deadline.filter(|d| d.at <= now).map(|deadline| (*id, deadline.timeout))
            };
            pending.iter().filter_map(due).collect()
        })?;
        for (id, timeout) in expired {
            self.settle(id, Err(RequestError::TimedOut(timeout)));
        }
        self.pending(|pending| pending.values().filter_map(|w| Some(w.deadline?.at)).min())?
    }

    /// Extends the deadlines of these requests to `patience` from now while the hold lives.
    /// Afterwards each request has its full timeout again.
    pub fn hold(&self, requests: Vec<u64>, patience: Duration) -> Hold {
        self.put_off(&requests, |_| patience);
        Hold { peer: self.clone(), requests }
    }

    fn put_off(&self, requests: &[u64], by: impl Fn(Duration) -> Duration) {
        let now = Instant::now();
        let _closed = self.pending(|pending| {
            for id in requests {
                if let Some(waiter) = pending.get_mut(id)
                    && let Some(deadline) = &mut waiter.deadline
                {
                    deadline.at = now + by(deadline.timeout);
                    self.shared.alarm.set(deadline.at);
                }
            }
        });
    }
}

/// Cancels the request on the other side when its future is dropped.
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

/// Keeps the deadlines of its requests extended until it is dropped.
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
