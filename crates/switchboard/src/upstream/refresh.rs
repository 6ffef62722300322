//! Callers of an explicit refresh, which get their lease after a listing that began after their
//! request.

use tokio::sync::oneshot;

use super::{Lease, LeaseError};

/// The channel that sends a waiting caller its lease.
pub(super) type LeaseReply = oneshot::Sender<Result<Lease, LeaseError>>;

/// The callers that wait for a listing that began after their request.
#[derive(Default)]
pub(super) struct Refreshes {
    waiting: Vec<LeaseReply>,
    /// The number of callers at the front of `waiting` that the current relisting serves; the other
    /// callers came later.
    served_by_walk: usize,
}

impl Refreshes {
    pub(super) fn add(&mut self, reply: LeaseReply) {
        self.waiting.push(reply);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn walk_begins(&mut self) {
        self.served_by_walk = self.waiting.len();
    }

    /// Ends the current relisting, and returns the callers that it served.
    pub(super) fn walk_ended(&mut self) -> Vec<LeaseReply> {
        // The number is limited, because a relisting over an earlier connection may end late.
        let served = std::mem::take(&mut self.served_by_walk).min(self.waiting.len());
        self.waiting.drain(..served).collect()
    }

    /// Returns all callers, because no further relisting follows on this connection.
    pub(super) fn connection_ended(&mut self) -> Vec<LeaseReply> {
        self.served_by_walk = 0;
        std::mem::take(&mut self.waiting)
    }
}
