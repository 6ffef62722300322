//! Counts the callers of a live connection without the actor.
//!
//! Most calls find their server connected. The actor's queue would cost more than the rest of a
//! small call, so a connection has a door. While a caller is inside, the server is not stopped for
//! idleness; the actor shuts the door only while no caller is inside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use switchboard_core::lifecycle::Usage;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The bit of the count that is set while no caller may enter.
const SHUT: usize = 1 << (usize::BITS - 1);

#[derive(Debug)]
pub(super) struct Door {
    /// The number of callers inside, combined with the flag [`SHUT`].
    inside: AtomicUsize,
    /// Microseconds from `began` until the last caller left, plus one; 0 if none has left yet.
    left_at: AtomicU64,
    /// Whether a call on this connection has succeeded.
    worked: AtomicBool,
    /// Notifies waiting tasks when the last caller leaves a door that is shut.
    emptied: Notify,
    began: Instant,
}

/// Counts one caller as inside the door until it is dropped.
#[derive(Debug)]
pub(super) struct Pass {
    door: Arc<Door>,
}

impl Door {
    /// Creates an open door. Its times are durations since `began`.
    pub(super) fn new(began: Instant) -> Arc<Door> {
        Arc::new(Door {
            inside: AtomicUsize::new(0),
            left_at: AtomicU64::new(0),
            worked: AtomicBool::new(false),
            emptied: Notify::new(),
            began,
        })
    }

    /// Counts a caller in, unless the door is shut.
    pub(super) fn enter(self: &Arc<Door>) -> Option<Pass> {
        let one_more = |inside| (inside & SHUT == 0).then_some(inside + 1);
        self.inside.fetch_update(Ordering::Acquire, Ordering::Relaxed, one_more).ok()?;
        Some(Pass { door: Arc::clone(self) })
    }

    /// Shuts the door for good, without waiting for the callers inside.
    pub(super) fn shut(&self) {
        self.inside.fetch_or(SHUT, Ordering::AcqRel);
    }

    /// Waits until the last caller has left a door that was shut for good.
    pub(super) async fn emptied(&self) {
        while self.inside.load(Ordering::Acquire) != SHUT {
            self.emptied.notified().await;
        }
    }

    /// Shuts the door if no caller is inside. In either case, returns the usage of the door.
    pub(super) fn shut_if_empty(&self) -> Usage {
        let swap = self.inside.compare_exchange(0, SHUT, Ordering::AcqRel, Ordering::Acquire);
        // `held` follows from the failed swap: the caller may have left since, but the door is
        // still open.
        let held = !matches!(swap, Ok(_) | Err(SHUT));
        Usage { held, ..self.usage() }
    }

    pub(super) fn reopen(&self) {
        self.inside.fetch_and(!SHUT, Ordering::AcqRel);
    }

    pub(super) fn usage(&self) -> Usage {
        let left_at = self.left_at.load(Ordering::Acquire).checked_sub(1);
        Usage {
            held: self.inside.load(Ordering::Acquire) & !SHUT > 0,
            left_at: left_at.map(Duration::from_micros),
            worked: self.worked.load(Ordering::Acquire),
        }
    }
}

impl Pass {
    /// Records that a call succeeded.
    pub(super) fn worked(&self) {
        self.door.worked.store(true, Ordering::Release);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let now = u64::try_from(self.door.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.door.left_at.fetch_max(now.saturating_add(1), Ordering::AcqRel);
        if self.door.inside.fetch_sub(1, Ordering::AcqRel) == SHUT + 1 {
            self.door.emptied.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn connection_door_with_a_caller_does_not_shut() {
        let door = Door::new(Instant::now());
        assert_eq!(door.shut_if_empty(), Usage::default());
        assert!(door.enter().is_none(), "the door is shut");
        door.reopen();
        let pass = door.enter().unwrap();
        assert!(door.shut_if_empty().held);
        let second = door.enter().expect("the door is open");
        tokio::time::advance(Duration::from_secs(5)).await;
        drop((pass, second));
        let left_at = Some(Duration::from_secs(5));
        let expected = Usage { held: false, left_at, worked: false };
        assert_eq!(door.shut_if_empty(), expected);
        assert!(door.enter().is_none());
    }

    #[tokio::test]
    async fn connection_door_shut_for_good_lets_callers_leave() {
        let door = Door::new(Instant::now());
        let pass = door.enter().unwrap();
        door.shut();
        assert!(door.enter().is_none());
        assert!(door.usage().held);
        drop(pass);
        assert!(!door.usage().held);
        assert!(door.enter().is_none());
        door.emptied().await;
    }

    #[tokio::test]
    async fn wait_for_callers_ends_when_last_caller_leaves() {
        let door = Door::new(Instant::now());
        let passes = [door.enter().unwrap(), door.enter().unwrap()];
        door.shut();
        let leaving = async {
            for pass in passes {
                tokio::task::yield_now().await;
                assert!(door.usage().held);
                drop(pass);
            }
        };
        tokio::join!(door.emptied(), leaving);
        assert!(!door.usage().held);
    }

    #[test]
    fn connection_door_shut_under_contention_has_no_caller() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let door = Door::new(Instant::now());
            let crowd: tokio::task::JoinSet<()> = (0..4)
                .map(|_| Arc::clone(&door))
                .map(|door| async move {
                    for _ in 0..20_000 {
                        drop(door.enter());
                    }
                })
                .collect();
            for _ in 0..20_000 {
                if !door.shut_if_empty().held {
                    assert!(!door.usage().held, "a caller is inside a shut door");
                    door.reopen();
                }
            }
            crowd.join_all().await;
        });
    }
}
