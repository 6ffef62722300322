//! What a connection tells an observer: each message, and each request with its outcome.

use std::fmt;

use super::RequestError;
use crate::envelope::Raw;

/// Sees what goes over a connection. Runs on the task that sends or reads, so it must not wait.
pub trait Observer: fmt::Debug + Send + Sync {
    /// A message of ours was queued: one line of JSON.
    fn sent(&self, message: &[u8]);

    /// A message of the other side arrived, well-formed or not.
    fn received(&self, message: &[u8]);

    /// A request of ours begins; what is returned is told of its outcome, or dropped if the request
    /// is cancelled.
    fn begin(&self, method: &str, params: &str) -> Option<Box<dyn ObservedRequest>>;
}

/// A request that is observed until its outcome is known.
pub trait ObservedRequest: Send + Sync {
    fn end(self: Box<Self>, outcome: &Result<Raw, RequestError>);
}
