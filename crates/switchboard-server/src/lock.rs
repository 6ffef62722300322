//! Locks shared state, which stays consistent if a task panics while it holds the lock.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
