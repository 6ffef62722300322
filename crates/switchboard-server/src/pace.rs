//! Limits how much one client requests before it reads responses. Two limits apply: the bytes of
//! the responses of running requests, and the bytes of unread responses, above which no further
//! request is read.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use switchboard_wire::Peer;
use switchboard_wire::peer::Pause;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The maximum number of bytes of the responses of all running requests, as estimated.
const ROOM: usize = 32 * 1024 * 1024;

/// The maximum number of running requests while responses are small.
const MAX_RUNNING: usize = 64;
/// The maximum number of running requests while responses are large.
const MIN_RUNNING: usize = 2;

/// The maximum number of running requests before the size of responses is known. Each response
/// allows one more request, as long as that many responses of its size fit into [`ROOM`].
const SLOW_START: usize = 8;

/// After this time without a request, the maximum is [`SLOW_START`] again: the responses of later
/// requests may be larger.
const IDLE: Duration = Duration::from_millis(100);

/// After this time without a response, one more request may run.
const WIDEN_AFTER: Duration = Duration::from_millis(250);

/// The number of waiting requests at which no further request is read.
const MAX_WAITING: usize = 512;

/// The number of unwritten bytes above which no further request is read.
const MAX_UNWRITTEN: usize = 4 * 1024 * 1024;

/// The memory of running and waiting requests, as estimated, above which no further request is
/// read.
const MAX_REQUEST_BYTES: usize = 32 * 1024 * 1024;

/// A request up to this size is not counted, because its memory is small.
const MIN_COUNTED: usize = 64 * 1024;

/// Limits the requests of one client.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    pacing: Arc<Pacing>,
    client: Peer,
}

#[derive(Debug)]
struct Pacing {
    /// A permit for each request that may run.
    room: Arc<Semaphore>,
    /// The number of permits of `room`, free or in use.
    window: AtomicUsize,
    begun: Instant,
    /// When the last running request was answered, in milliseconds since `begun`; 0 while a request
    /// runs.
    idle_at: AtomicU64,
    /// The size of the largest recent response in bytes. It decreases slowly.
    largest: AtomicUsize,
    waiting: AtomicUsize,
    /// The memory of the large requests that are not answered yet, as estimated.
    large_bytes: AtomicUsize,
    fewer: Notify,
}

/// The permission of one request to run; dropping it admits another request.
#[derive(Debug)]
pub(crate) struct Room {
    pacing: Arc<Pacing>,
    permit: Option<OwnedSemaphorePermit>,
    /// The counted memory of a large request; `None` for a small one.
    _request: Option<Counted>,
}

impl Pace {
    pub(crate) fn of(client: &Peer) -> Pace {
        let pacing = Pacing {
            room: Arc::new(Semaphore::new(SLOW_START)),
            window: AtomicUsize::new(SLOW_START),
            begun: Instant::now(),
            idle_at: AtomicU64::new(0),
            largest: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            large_bytes: AtomicUsize::new(0),
            fewer: Notify::new(),
        };
        Pace { pacing: Arc::new(pacing), client: client.clone() }
    }

    /// Waits until a request of this size may run, in the order of arrival.
    pub(crate) fn room(&self, bytes: usize) -> impl Future<Output = Room> + use<> {
        let (pacing, client) = (Arc::clone(&self.pacing), self.client.clone());
        // The request is counted when it is read, not when its task first runs.
        let waiting = Counted::new(&pacing, |pacing| &pacing.waiting, 1);
        let large = bytes > MIN_COUNTED;
        let request = large.then(|| Counted::new(&pacing, |pacing| &pacing.large_bytes, bytes));
        async move {
            let permit = pacing.permit().await;
            // Responses that are written but unread are counted too.
            client.written(|backlog| backlog <= MAX_UNWRITTEN).await;
            drop(waiting);
            Room { pacing, permit, _request: request }
        }
    }

    /// A future to await before the next request is read; `None` if it can be read at once.
    pub(crate) fn pause(&self) -> Option<Pause> {
        if !self.is_over(self.client.backlog()) {
            return None;
        }
        let pace = self.clone();
        Some(Box::pin(async move {
            loop {
                let fewer = pace.pacing.fewer.notified();
                let mut fewer = std::pin::pin!(fewer);
                fewer.as_mut().enable();
                if !pace.is_over(pace.client.backlog()) {
                    return;
                }
                tokio::select! {
                    () = pace.client.written(|backlog| !pace.is_over(backlog)) => return,
                    () = fewer => {}
                    () = pace.client.closed() => return,
                }
            }
        }))
    }

    /// Whether the client has so many unanswered requests that a further one is refused. Reading
    /// cannot pause, because the response to a server-to-client request would not be read.
    pub(crate) fn refuses(&self) -> bool {
        self.is_full() && self.client.is_asked()
    }

    fn is_full(&self) -> bool {
        self.pacing.waiting.load(Ordering::Relaxed) >= MAX_WAITING
            || self.pacing.large_bytes.load(Ordering::Relaxed) > MAX_REQUEST_BYTES
    }

    /// Reading never pauses while a server-to-client request has no response, because running calls
    /// may depend on that response.
    fn is_over(&self, backlog: usize) -> bool {
        backlog > MAX_UNWRITTEN || self.is_full() && !self.client.is_asked()
    }
}

impl Pacing {
    /// Waits until an earlier request is answered, or for a short time if one more request may fit.
    async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        let idle_at = self.idle_at.swap(0, Ordering::Relaxed);
        if idle_at != 0 && self.now() >= idle_at + IDLE.as_millis() as u64 {
            self.start_slowly();
        }
        if let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() {
            return Some(permit);
        }
        let mut permit = pin!(Arc::clone(&self.room).acquire_owned());
        tokio::select! {
            permit = &mut permit => permit.ok(),
            () = tokio::time::sleep(WIDEN_AFTER) => {
                self.widen();
                permit.await.ok()
            }
        }
    }

    /// Milliseconds since `begun`, never 0.
    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }

    fn start_slowly(&self) {
        while self.narrow(SLOW_START) {
            if self.room.forget_permits(1) == 0 {
                // Every permit is in use again, because a request has begun in the meantime.
                self.window.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
    }

    /// The number of responses of the largest recent size that fit into [`ROOM`].
    fn fitting(&self) -> usize {
        let largest = self.largest.load(Ordering::Relaxed).max(1);
        (ROOM / largest).clamp(MIN_RUNNING, MAX_RUNNING)
    }

    fn widen(&self) {
        let fitting = self.fitting();
        let wider = |window: usize| (window < fitting).then_some(window + 1);
        if self.window.fetch_update(Ordering::Relaxed, Ordering::Relaxed, wider).is_ok() {
            self.room.add_permits(1);
        }
    }

    fn narrow(&self, most: usize) -> bool {
        let narrower = |window: usize| (window > most).then_some(window - 1);
        self.window.fetch_update(Ordering::Relaxed, Ordering::Relaxed, narrower).is_ok()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        let pacing = &self.pacing;
        if pacing.narrow(pacing.fitting()) {
            // The permit is not returned, so the number of permits shrinks by one.
            permit.forget();
            return;
        }
        drop(permit);
        let window = pacing.window.load(Ordering::Relaxed);
        if window > SLOW_START && pacing.room.available_permits() >= window {
            pacing.idle_at.store(pacing.now(), Ordering::Relaxed);
        }
    }
}

impl Room {
    /// Records the size of a response: that of the server's result, or of the written response if
    /// that is larger.
    pub(crate) fn answered(&self, bytes: usize) {
        let largest = &self.pacing.largest;
        // If two updates are concurrent, one of them may be lost without harm.
        let before = largest.load(Ordering::Relaxed);
        let fading = before - before / 16;
        largest.store(fading.max(bytes), Ordering::Relaxed);
        self.pacing.widen();
    }
}

/// Counts a waiting request, or the bytes of a large one, until it is dropped.
#[derive(Debug)]
struct Counted {
    pacing: Arc<Pacing>,
    counter: fn(&Pacing) -> &AtomicUsize,
    amount: usize,
}

impl Counted {
    fn new(pacing: &Arc<Pacing>, counter: fn(&Pacing) -> &AtomicUsize, amount: usize) -> Counted {
        counter(pacing).fetch_add(amount, Ordering::Relaxed);
        Counted { pacing: Arc::clone(pacing), counter, amount }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.counter)(&self.pacing).fetch_sub(self.amount, Ordering::Relaxed);
        self.pacing.fewer.notify_waiters();
    }
}
