//! Observers of a connection: receive each message, and each request with its outcome.

use std::fmt;

use super::RequestError;
use crate::envelope::Raw;

/// Observes the messages of a connection. Runs on the task that sends or reads, so it must not
/// block.
pub trait Observer: fmt::Debug + Send + Sync {
    /// An outgoing message was queued: one line of JSON.
    fn sent(&self, message: &[u8]);

    /// An incoming message arrived, well-formed or not.
    fn received(&self, message: &[u8]);

    /// An outgoing request begins. The return value receives its outcome, or is dropped if the
    /// request is cancelled.
    fn begin(&self, method: &str, params: &str) -> Option<Box<dyn ObservedRequest>>;
}

/// A request that is observed until its outcome is known.
pub trait ObservedRequest: Send + Sync {
    fn end(self: Box<Self>, outcome: &Result<Raw, RequestError>);
}
