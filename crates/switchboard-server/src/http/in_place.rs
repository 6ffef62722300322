//! Polls a future again on the spot when it woke itself.
//!
//! A connection wakes itself with every request that has a body: `hyper` hands the body from one half
//! of its future to the other. The runtime takes a task that did so for one that lets others go
//! first: it goes to the end of the queue, and another worker is woken to look there. Two threads
//! then take turns on each call, which costs more than all the rest of a small one.

use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// So often it is polled on the spot; then others have their turn.
const TURNS: usize = 16;

/// It is being polled.
const POLLED: u8 = 1;
/// It was woken since the last poll began.
const WOKEN: u8 = 2;

/// For one future.
#[derive(Debug)]
pub(super) struct InPlace {
    bell: Arc<Bell>,
    /// Rings the bell.
    waker: Waker,
}

#[derive(Debug)]
struct Bell {
    state: AtomicU8,
    /// The task that the future is part of.
    task: Mutex<Waker>,
}

impl InPlace {
    pub(super) fn new() -> InPlace {
        let task = Mutex::new(Waker::noop().clone());
        let bell = Arc::new(Bell { state: AtomicU8::new(0), task });
        InPlace { waker: Waker::from(Arc::clone(&bell)), bell }
    }

    pub(super) fn poll<F: Future>(
        &self,
        mut future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<F::Output> {
        self.bell.task.lock().unwrap_or_else(PoisonError::into_inner).clone_from(cx.waker());
        let state = &self.bell.state;
        for _ in 0..TURNS {
            state.swap(POLLED, Ordering::AcqRel);
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&self.waker))
            {
                return Poll::Ready(output);
            }
            // Whoever rings from now on wakes the task.
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
        // Written in any case, so that the next poll sees what happened before.
        if self.state.fetch_or(WOKEN, Ordering::AcqRel) & POLLED == 0 {
            let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
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

    /// Polls once a future that wakes itself so often before it is done; whether it was done, and
    /// how often its task was woken.
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
    fn what_wakes_itself_goes_on_at_once_and_not_for_ever() {
        check(0, (true, 0));
        check(1, (true, 0));
        check(TURNS - 1, (true, 0));
        check(TURNS, (false, 1));
        check(1_000, (false, 1));
    }

    #[test]
    fn what_others_wake_is_woken_as_ever() {
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
