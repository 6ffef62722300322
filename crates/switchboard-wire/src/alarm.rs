//! One timer for all deadlines of a connection.
//!
//! Setting a timer for each request would wake the runtime's driver, which costs more than the rest
//! of a small call. This timer is set to the earliest known deadline. Requests with a later
//! deadline do not change it; when it fires, the next deadline is determined.

use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(crate) struct Alarm {
    /// When the timer fires; `None` while there is no deadline.
    rings_at: Mutex<Option<Instant>>,
    earlier: Notify,
}

impl Alarm {
    /// Ensures that the timer fires no later than `at`.
    pub(crate) fn set(&self, at: Instant) {
        let mut rings_at = self.rings_at();
        if rings_at.is_none_or(|present| at < present) {
            *rings_at = Some(at);
            self.earlier.notify_one();
        }
    }

    /// Runs the timer forever. Each time it fires, `ring` is called with the current time and
    /// returns the next deadline.
    pub(crate) async fn watch(&self, ring: impl Fn(Instant) -> Option<Instant>) -> Infallible {
        loop {
            let at = *self.rings_at();
            let Some(at) = at else {
                self.earlier.notified().await;
                continue;
            };
            tokio::select! {
                () = tokio::time::sleep_until(at) => {
                    // The time is cleared before `ring` runs, so that no deadline is lost that
                    // `set` stores in the meantime.
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
