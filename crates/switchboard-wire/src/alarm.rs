//! One timer for all deadlines of a connection.
//!
//! A timer per request wakes the runtime's driver each time it is set, which costs more than all
//! the rest of a small call. This one stands at the earliest deadline it knows of; requests whose
//! deadline is later leave it alone, and it is looked at again when it rings.

use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(crate) struct Alarm {
    /// When it rings; `None` while there is no deadline.
    rings_at: Mutex<Option<Instant>>,
    earlier: Notify,
}

impl Alarm {
    /// Makes sure that it rings no later than `at`.
    pub(crate) fn set(&self, at: Instant) {
        let mut rings_at = self.rings_at();
        if rings_at.is_none_or(|present| at < present) {
            *rings_at = Some(at);
            self.earlier.notify_one();
        }
    }

    /// Rings for ever: `ring` gets the time and says when to ring next.
    pub(crate) async fn watch(&self, ring: impl Fn(Instant) -> Option<Instant>) -> Infallible {
        loop {
            let at = *self.rings_at();
            let Some(at) = at else {
                self.earlier.notified().await;
                continue;
            };
            tokio::select! {
                () = tokio::time::sleep_until(at) => {
                    // A deadline that is set while it rings counts: the lock is taken again below.
                    *self.rings_at() = None;
                    if let Some(next) = ring(Instant::now()) {
                        self.set(next);
                    }
                }
                () = self.earlier.notified() => {}
            }
        }
    }

    fn rings_at(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.rings_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
