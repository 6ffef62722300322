//! How much a client may ask for before it reads: answers in flight are bounded by bytes, and its
//! requests stay unread while its answers are unread.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use switchboard_wire::Peer;
use switchboard_wire::peer::Pause;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// What the answers of all requests that run may come to, in [`UNIT`]s: 32 MiB.
const UNITS: usize = 1024;
const UNIT: usize = 32 * 1024;

/// The least that is set aside for an answer: 64 requests run at the same time.
const LEAST_UNITS: usize = 16;

/// Requests that run before it is known how large their answers are. Each small answer lets one more
/// run, as many as there is room for.
const SLOW_START: usize = 8;

/// How long others wait for that. Requests may take long, so they run without it then.
const GRACE: Duration = Duration::from_millis(250);

/// Requests that may wait to run before no more are read.
const MOST_WAITING: usize = 512;

/// Bytes that may wait to be written before no more requests are read.
const MOST_UNREAD: usize = 4 * 1024 * 1024;

/// The requests of one client.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    shared: Arc<Shared>,
    client: Peer,
}

#[derive(Debug)]
struct Shared {
    room: Arc<Semaphore>,
    running: AtomicUsize,
    /// How many may run.
    window: AtomicUsize,
    /// Told when one has ended, or when more may run.
    ended: Notify,
    /// The largest of the last answers, in bytes: one that is large is forgotten slowly.
    largest: AtomicUsize,
    waiting: AtomicUsize,
    fewer: Notify,
}

/// The room for one answer.
#[derive(Debug)]
pub(crate) struct Room {
    shared: Arc<Shared>,
    _permit: Option<OwnedSemaphorePermit>,
    _running: Running,
}

impl Pace {
    pub(crate) fn of(client: &Peer) -> Pace {
        let shared = Shared {
            room: Arc::new(Semaphore::new(UNITS)),
            running: AtomicUsize::new(0),
            window: AtomicUsize::new(SLOW_START),
            ended: Notify::new(),
            largest: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            fewer: Notify::new(),
        };
        Pace { shared: Arc::new(shared), client: client.clone() }
    }

    /// Waits for room, in the order in which requests came.
    pub(crate) fn room(&self) -> impl Future<Output = Room> + use<> {
        let (shared, client) = (Arc::clone(&self.shared), self.client.clone());
        // Counted when the request is read, not when its task first runs.
        let waiting = Waiting::new(&shared);
        async move {
            let running = match shared.try_start() {
                Some(running) => running,
                None => shared.start().await,
            };
            let units = shared.largest.load(Ordering::Relaxed).div_ceil(UNIT);
            let units = u32::try_from(units.clamp(LEAST_UNITS, UNITS)).unwrap_or(u32::MAX);
            let permit = Arc::clone(&shared.room).acquire_many_owned(units).await.ok();
            // What was answered and is not read counts as well.
            client.written(|backlog| backlog <= MOST_UNREAD).await;
            drop(waiting);
            Room { shared, _permit: permit, _running: running }
        }
    }

    /// What to wait for before the next request is read.
    pub(crate) fn pause(&self) -> Option<Pause> {
        if !self.is_over(self.client.backlog()) {
            return None;
        }
        let pace = self.clone();
        Some(Box::pin(async move {
            loop {
                let fewer = pace.shared.fewer.notified();
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

    /// While the client is asked something itself, calls may wait for what it says next.
    fn is_over(&self, backlog: usize) -> bool {
        let waiting = self.shared.waiting.load(Ordering::Relaxed);
        backlog > MOST_UNREAD || waiting >= MOST_WAITING && !self.client.is_asked()
    }
}

impl Shared {
    /// Waits until one more may run, for an answer to an earlier request, but not for long.
    async fn start(self: &Arc<Self>) -> Running {
        let patience = tokio::time::sleep(GRACE);
        let mut patience = pin!(patience);
        let mut waited = false;
        loop {
            let fewer = self.ended.notified();
            let mut fewer = pin!(fewer);
            fewer.as_mut().enable();
            if let Some(running) = self.try_start() {
                return running;
            }
            tokio::select! {
                () = fewer => {}
                () = &mut patience, if !waited => {
                    waited = true;
                    self.widen();
                }
            }
        }
    }

    fn try_start(self: &Arc<Self>) -> Option<Running> {
        let window = self.window.load(Ordering::Relaxed);
        let one_more = |running: usize| (running < window).then_some(running + 1);
        let started = self.running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        started.is_ok().then(|| Running(Arc::clone(self)))
    }

    fn widen(&self) {
        let wider = |window: usize| (window < UNITS / LEAST_UNITS).then_some(window + 1);
        let widened = self.window.fetch_update(Ordering::Relaxed, Ordering::Relaxed, wider);
        if widened.is_ok() {
            self.ended.notify_one();
        }
    }
}

/// A request that runs.
#[derive(Debug)]
struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        let before = self.0.running.fetch_sub(1, Ordering::Relaxed);
        if before == 1 {
            // The next burst of requests starts slowly again.
            self.0.window.store(SLOW_START, Ordering::Relaxed);
        }
        if self.0.waiting.load(Ordering::Relaxed) > 0 {
            self.0.ended.notify_one();
        }
    }
}

impl Room {
    /// Remembers how large answers are: what a server gave, or what was written if that is more.
    pub(crate) fn answered(&self, bytes: usize) {
        if bytes <= LEAST_UNITS * UNIT {
            self.shared.widen();
        }
        let largest = &self.shared.largest;
        // Of two at once, one is enough.
        let before = largest.load(Ordering::Relaxed);
        let fading = before - before / 16;
        largest.store(fading.max(bytes), Ordering::Relaxed);
    }
}

struct Waiting(Arc<Shared>);

impl Waiting {
    fn new(shared: &Arc<Shared>) -> Waiting {
        shared.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(Arc::clone(shared))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        self.0.fewer.notify_waiters();
    }
}
