//! Requests of one client that are in flight: each is answered exactly once, or dropped when the
//! client cancels it.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use hashbrown::HashMap;
use switchboard_wire::envelope::{INTERNAL_ERROR, INVALID_REQUEST};
use switchboard_wire::peer::Claim;
use switchboard_wire::{Id, Peer, Responder, RpcError};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::lock::lock;

/// The time limit for aborted calls to end.
const GIVING_UP: Duration = Duration::from_secs(1);

const IN_USE: &str = "a request with this id is in flight";
const CUT_OFF: &str =
    "the session ended before the response; whether the request took effect is unknown";
const BROKEN: &str = "internal error in the gateway; whether the request took effect is unknown";

/// The requests of one client. Each runs in a task of its own.
#[derive(Clone, Default)]
pub(crate) struct Calls {
    running: TaskTracker,
    /// A token that is cancelled when the `subscriptions/listen` requests must end.
    closing: CancellationToken,
    unanswered: Arc<Mutex<Unanswered>>,
}

/// The accepted requests without a response. Code that removes a request from the map must answer
/// it, unless the client cancelled it.
#[derive(Debug, Default)]
struct Unanswered {
    accepted: u64,
    /// The running requests by the client's request id, to find cancelled requests and to refuse
    /// duplicate ids.
    by_id: HashMap<Id, RunningCall>,
    /// Set when the connection ends: later requests are refused.
    over: bool,
}

#[derive(Debug)]
struct RunningCall {
    /// Distinguishes the request from an earlier one with the same id.
    number: u64,
    /// The task that answers the request; `None` until it is spawned.
    task: Option<AbortHandle>,
    /// The client, which gets an error if the task ends without a response.
    client: Peer,
}

/// The right to answer one request. [`Claim::take`] grants the right once, before the
/// response is written, and frees the id of the request.
#[derive(Debug)]
pub(crate) struct Accepted {
    unanswered: Arc<Mutex<Unanswered>>,
    id: Id,
    number: u64,
}

impl Claim for Accepted {
    fn take(&self) -> bool {
        self.settle().is_some()
    }
}

impl Accepted {
    fn settle(&self) -> Option<RunningCall> {
        let mut unanswered = lock(&self.unanswered);
        let waits = unanswered.by_id.get(&self.id).is_some_and(|call| call.number == self.number);
        if waits { unanswered.by_id.remove(&self.id) } else { None }
    }
}

impl Calls {
    /// Registers a request under its id. A request whose id is in use is refused.
    pub(crate) fn accept(&self, responder: Responder) -> Option<(Arc<Accepted>, Responder)> {
        let mut unanswered = lock(&self.unanswered);
        let refusal = match (unanswered.over, unanswered.by_id.contains_key(responder.id())) {
            (true, _) => RpcError::new(INTERNAL_ERROR, CUT_OFF),
            (false, true) => RpcError::new(INVALID_REQUEST, IN_USE),
            (false, false) => {
                unanswered.accepted += 1;
                let (id, number) = (responder.id().clone(), unanswered.accepted);
                let client = responder.peer().clone();
                unanswered.by_id.insert(id.clone(), RunningCall { number, task: None, client });
                let held = Arc::clone(&self.unanswered);
                let accepted = Arc::new(Accepted { unanswered: held, id, number });
                let claim = Arc::<Accepted>::clone(&accepted);
                return Some((accepted, responder.claiming(claim)));
            }
        };
        drop(unanswered);
        self.spawn(async move { responder.error(&refusal).await });
        None
    }

    /// Runs the task that answers a request. If it panics or ends without a response, the client
    /// gets an error; other requests are unaffected.
    pub(crate) fn run(
        &self,
        accepted: Arc<Accepted>,
        answering: impl Future<Output = ()> + Send + 'static,
    ) {
        let running = Arc::clone(&accepted);
        // Boxed, because a future that takes another future by value has room for it twice.
        let answering = Box::pin(answering);
        let task = self.running.spawn(async move {
            if caught(answering).await.is_err() {
                tracing::error!("a request panicked");
            }
            if let Some(call) = accepted.settle() {
                let error = RpcError::new(INTERNAL_ERROR, BROKEN);
                call.client.fail(Some(&accepted.id), &error).await;
            }
        });
        let mut unanswered = lock(&self.unanswered);
        let call = unanswered.by_id.get_mut(&running.id);
        if let Some(call) = call.filter(|call| call.number == running.number) {
            call.task = Some(task.abort_handle());
        }
    }

    /// The token that is cancelled when the `subscriptions/listen` requests must end.
    pub(crate) fn closing(&self) -> CancellationToken {
        self.closing.clone()
    }

    /// Runs a short task that belongs to no request. [`Calls::drain`] waits for it too.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.running.spawn(work);
    }

    /// Aborts the request with this id without a response, because its client cancelled it.
    pub(crate) fn cancel(&self, id: &Id) {
        if let Some(call) = lock(&self.unanswered).by_id.remove(id) {
            call.abort();
        }
    }

    /// Aborts all requests without a response, because the client has disconnected.
    pub(crate) fn abandon(&self) {
        self.closing.cancel();
        let mut unanswered = lock(&self.unanswered);
        unanswered.over = true;
        unanswered.by_id.drain().for_each(|(_, call)| call.abort());
    }

    /// Waits at most `limit` for all requests. The remaining ones are aborted and answered with an
    /// error.
    pub(crate) async fn drain(&self, limit: Duration) {
        self.running.close();
        self.closing.cancel();
        let _too_long = tokio::time::timeout(limit, self.running.wait()).await;
        let left: Vec<(Id, RunningCall)> = {
            let mut unanswered = lock(&self.unanswered);
            unanswered.over = true;
            unanswered.by_id.drain().collect()
        };
        left.iter().for_each(|(_, call)| call.abort());
        let telling = async {
            let error = RpcError::new(INTERNAL_ERROR, CUT_OFF);
            for (id, call) in &left {
                call.client.fail(Some(id), &error).await;
            }
            self.running.wait().await;
        };
        // The client may have stopped reading, so this wait is bounded.
        let _given_up = tokio::time::timeout(GIVING_UP, telling).await;
    }
}

impl RunningCall {
    fn abort(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Unwind safe: the future is dropped after a panic, and shared state is behind locks and
/// snapshots.
async fn caught(mut work: Pin<Box<impl Future<Output = ()>>>) -> thread::Result<()> {
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(())) => Poll::Ready(Ok(())),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

#[cfg(test)]
mod tests;
