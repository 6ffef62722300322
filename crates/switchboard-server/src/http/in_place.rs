//! Polls a future again at once if it woke itself.
//!
//! A connection wakes itself for every request that has a body: `hyper` passes the body from one
//! half of its future to the other. The runtime treats a task that woke itself as yielding: the
//! task goes to the end of the queue, and another worker is woken to look there. Two threads then
//! alternate on each call, which costs more than the rest of a small call.

use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use crate::lock::lock;

/// The maximum number of consecutive polls. Then other tasks run.
const MAX_POLLS: usize = 16;

/// Flag: the future is being polled.
const POLLED: u8 = 1;
/// Flag: the future was woken since the last poll began.
const WOKEN: u8 = 2;

/// Polls one future, and polls it again at once if it woke itself.
#[derive(Debug)]
pub(super) struct InPlace {
    tracker: Arc<Bell>,
    /// The waker that the future gets; it sets [`WOKEN`] in `tracker`.
    waker: Waker,
}

#[derive(Debug)]
struct Bell {
    state: AtomicU8,
    /// The waker of the task that the future is part of.
    task: Mutex<Waker>,
}

impl InPlace {
    pub(super) fn new() -> InPlace {
        let task = Mutex::new(Waker::noop().clone());
        let tracker = Arc::new(Bell { state: AtomicU8::new(0), task });
        InPlace { waker: Waker::from(Arc::clone(&tracker)), tracker }
    }

    pub(super) fn poll<F: Future>(
        &self,
        mut future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<F::Output> {
        lock(&self.tracker.task).clone_from(cx.waker());
        let state = &self.tracker.state;
        for _ in 0..MAX_POLLS {
            state.swap(POLLED, Ordering::AcqRel);
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&self.waker))
            {
                return Poll::Ready(output);
            }
            // From now on, waking the future wakes its task.
            if state.compare_exchange(POLLED, 0, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return Poll::Pending;
            }
        }
        state.swap(0, Ordering::AcqRel);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // The flag is stored in any case, so that the next poll sees all earlier writes.
        if self.state.fetch_or(WOKEN, Ordering::AcqRel) & POLLED == 0 {
            let task = lock(&self.task).clone();
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Polls once a future that wakes itself `wakes` times before it is done; expects whether it
    /// was done, and how often its task was woken.
    fn check(wakes: usize, expected: (bool, usize)) {
        let mut left = wakes;
        let future = pin!(poll_fn(|cx| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let polled = InPlace::new().poll(future, &mut Context::from_waker(&waker));
        assert_eq!((polled.is_ready(), count.0.load(Ordering::Relaxed)), expected, "{wakes}");
    }

    #[test]
    fn self_waking_future_gets_a_bounded_number_of_polls() {
        check(0, (true, 0));
        check(1, (true, 0));
        check(MAX_POLLS - 1, (true, 0));
        check(MAX_POLLS, (false, 1));
        check(1_000, (false, 1));
    }

    #[test]
    fn future_woken_between_polls_wakes_its_task() {
        let mut waiting: Option<Waker> = None;
        let mut future = pin!(poll_fn(|cx| -> Poll<()> {
            waiting = Some(cx.waker().clone());
            Poll::Pending
        }));
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let in_place = InPlace::new();
        assert!(in_place.poll(future.as_mut(), &mut Context::from_waker(&waker)).is_pending());
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        waiting.take().unwrap().wake();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }
}
