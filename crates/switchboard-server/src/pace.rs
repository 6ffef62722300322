//! How much a client may ask for before it reads: answers in flight are bounded by bytes, and its
//! requests stay unread while its answers are unread.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use switchboard_wire::Peer;
use switchboard_wire::peer::Pause;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// What the answers of all requests that run may come to.
const ROOM: usize = 32 * 1024 * 1024;

/// Requests that run at the same time while answers are small, and while they are large.
const MOST_RUNNING: usize = 64;
const FEWEST_RUNNING: usize = 2;

/// Requests that run before it is known how large their answers are. Each answer lets one more run, as
/// long as there is room for so many of its size.
const SLOW_START: usize = 8;

/// After so long without a request, the next burst starts slowly again: it may have other answers.
const IDLE: Duration = Duration::from_millis(100);

/// How long the others wait for an answer. Those that run may take long.
const GRACE: Duration = Duration::from_millis(250);

/// Requests that may wait to run before no more are read.
const MOST_WAITING: usize = 512;

/// Bytes that may wait to be written before no more requests are read.
const MOST_UNREAD: usize = 4 * 1024 * 1024;

/// Bytes of requests that run or wait before no more are read.
const MOST_ASKED: usize = 32 * 1024 * 1024;

/// A smaller request is not worth counting.
const COUNTED: usize = 64 * 1024;

/// The requests of one client.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    shared: Arc<Shared>,
    client: Peer,
}

#[derive(Debug)]
struct Shared {
    /// A permit for each request that may run.
    room: Arc<Semaphore>,
    /// The number of these permits.
    window: AtomicUsize,
    begun: Instant,
    /// When the last request that ran was answered, in milliseconds after the beginning; 0 while one
    /// runs.
    idle_at: AtomicU64,
    /// The largest of the last answers, in bytes: one that is large is forgotten slowly.
    largest: AtomicUsize,
    waiting: AtomicUsize,
    /// Bytes of large requests, until they are answered.
    asked: AtomicUsize,
    fewer: Notify,
}

/// The room for one answer.
#[derive(Debug)]
pub(crate) struct Room {
    shared: Arc<Shared>,
    permit: Option<OwnedSemaphorePermit>,
    _asked: Option<Asked>,
}

impl Pace {
    pub(crate) fn of(client: &Peer) -> Pace {
        let shared = Shared {
            room: Arc::new(Semaphore::new(SLOW_START)),
            window: AtomicUsize::new(SLOW_START),
            begun: Instant::now(),
            idle_at: AtomicU64::new(0),
            largest: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            asked: AtomicUsize::new(0),
            fewer: Notify::new(),
        };
        Pace { shared: Arc::new(shared), client: client.clone() }
    }

    /// Waits for room for a request of this size, in the order in which requests came.
    pub(crate) fn room(&self, bytes: usize) -> impl Future<Output = Room> + use<> {
        let (shared, client) = (Arc::clone(&self.shared), self.client.clone());
        // Counted when the request is read, not when its task first runs.
        let waiting = Waiting::new(&shared);
        let asked = (bytes > COUNTED).then(|| Asked::new(&shared, bytes));
        async move {
            let permit = shared.permit().await;
            // What was answered and is not read counts as well.
            client.written(|backlog| backlog <= MOST_UNREAD).await;
            drop(waiting);
            Room { shared, permit, _asked: asked }
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
        let waiting = self.shared.waiting.load(Ordering::Relaxed) >= MOST_WAITING;
        let large = self.shared.asked.load(Ordering::Relaxed) > MOST_ASKED;
        backlog > MOST_UNREAD || (waiting || large) && !self.client.is_asked()
    }
}

impl Shared {
    /// Waits for an answer to an earlier request, but not for long if there may be room.
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
            () = tokio::time::sleep(GRACE) => {
                self.widen();
                permit.await.ok()
            }
        }
    }

    /// Milliseconds since the beginning, and never 0.
    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }

    fn start_slowly(&self) {
        while self.narrow(SLOW_START) {
            if self.room.forget_permits(1) == 0 {
                // A request has begun meanwhile.
                self.window.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
    }

    /// How many answers as large as the largest there is room for.
    fn fitting(&self) -> usize {
        let largest = self.largest.load(Ordering::Relaxed).max(1);
        (ROOM / largest).clamp(FEWEST_RUNNING, MOST_RUNNING)
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
        let shared = &self.shared;
        if shared.narrow(shared.fitting()) {
            // For the next one there is no room.
            permit.forget();
            return;
        }
        drop(permit);
        let window = shared.window.load(Ordering::Relaxed);
        if window > SLOW_START && shared.room.available_permits() >= window {
            shared.idle_at.store(shared.now(), Ordering::Relaxed);
        }
    }
}

impl Room {
    /// Remembers how large answers are: what a server gave, or what was written if that is more.
    pub(crate) fn answered(&self, bytes: usize) {
        let largest = &self.shared.largest;
        // Of two at once, one is enough.
        let before = largest.load(Ordering::Relaxed);
        let fading = before - before / 16;
        largest.store(fading.max(bytes), Ordering::Relaxed);
        self.shared.widen();
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
        // Only below the limit is there something new to say.
        if self.0.waiting.fetch_sub(1, Ordering::Relaxed) == MOST_WAITING {
            self.0.fewer.notify_waiters();
        }
    }
}

/// The bytes of a large request, for as long as they are in memory.
#[derive(Debug)]
struct Asked {
    shared: Arc<Shared>,
    bytes: usize,
}

impl Asked {
    fn new(shared: &Arc<Shared>, bytes: usize) -> Asked {
        shared.asked.fetch_add(bytes, Ordering::Relaxed);
        Asked { shared: Arc::clone(shared), bytes }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.shared.asked.fetch_sub(self.bytes, Ordering::Relaxed);
        self.shared.fewer.notify_waiters();
    }
}
