//! Counts the bytes of responses that clients have not read yet, for all clients together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::watch;

/// The soft limit in bytes. Above it, new requests wait, and stalled connections are closed early.
const MOST: usize = 64 * 1024 * 1024;

/// The difference between the soft limit and the hard limit. It is for the responses of running
/// requests. Above the hard limit, stalled connections are closed almost at once.
const ROOM: usize = 3 * MOST;

/// A frame up to this size is not counted, because it fits into a socket buffer.
const COUNTED: usize = 16 * 1024;

/// The number of response bytes of all clients that are not written yet.
#[derive(Clone, Debug)]
pub(super) struct Unsent {
    total: Arc<Total>,
}

#[derive(Debug)]
struct Total {
    bytes: AtomicUsize,
    is_much: watch::Sender<bool>,
}

impl Default for Unsent {
    fn default() -> Unsent {
        let total = Total { bytes: AtomicUsize::new(0), is_much: watch::Sender::new(false) };
        Unsent { total: Arc::new(total) }
    }
}

impl Unsent {
    /// Counts the bytes of `frame` until their last reference is dropped, and returns these bytes.
    pub(super) fn count(&self, frame: Bytes) -> Bytes {
        if frame.len() <= COUNTED {
            return frame;
        }
        self.total.bytes.fetch_add(frame.len(), Ordering::Relaxed);
        self.total.compare();
        Bytes::from_owner(Counted { frame, total: Arc::clone(&self.total) })
    }

    /// Waits until the unwritten bytes are within the soft limit.
    pub(super) async fn room(&self) {
        self.until(false).await;
    }

    /// Waits until the unwritten bytes exceed the soft limit.
    pub(super) async fn is_much(&self) {
        self.until(true).await;
    }

    /// Whether the unwritten bytes are within the hard limit.
    pub(super) fn has_room(&self) -> bool {
        self.total.bytes.load(Ordering::Relaxed) <= ROOM
    }

    async fn until(&self, much: bool) {
        let mut is_much = self.total.is_much.subscribe();
        let _never_closed = is_much.wait_for(|now| *now == much).await;
    }
}

impl Total {
    fn compare(&self) {
        // The bytes are compared under the sender's lock, so that the last of two updates decides.
        self.is_much.send_if_modified(|is_much| {
            let now = self.bytes.load(Ordering::Relaxed) > MOST;
            std::mem::replace(is_much, now) != now
        });
    }
}

struct Counted {
    frame: Bytes,
    total: Arc<Total>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.frame
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.total.bytes.fetch_sub(self.frame.len(), Ordering::Relaxed);
        self.total.compare();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Unsent {
        pub(in super::super) fn more_than_allowed() -> (Unsent, Bytes) {
            Unsent::with(MOST + 1)
        }

        pub(in super::super) fn without_room() -> (Unsent, Bytes) {
            Unsent::with(ROOM + 1)
        }

        fn with(bytes: usize) -> (Unsent, Bytes) {
            let unsent = Unsent::default();
            let frame = unsent.count(Bytes::from(vec![0; bytes]));
            (unsent, frame)
        }
    }

    #[test]
    fn response_bytes_are_counted_until_last_reference_drops() {
        let unsent = Unsent::default();
        let is_much = || *unsent.total.is_much.borrow();
        let first = unsent.count(Bytes::from(vec![0; MOST]));
        assert!(!is_much());
        let second = unsent.count(Bytes::from(vec![0; COUNTED + 1]));
        assert!(is_much());
        let part = first.slice(5..10);
        drop(first);
        assert!(is_much(), "a part of it is held");
        drop(part);
        assert!(!is_much());
        drop(second);
        assert_eq!(unsent.total.bytes.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn new_requests_wait_while_unsent_bytes_exceed_the_limit() {
        let (unsent, frame) = Unsent::more_than_allowed();
        let second = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(second, unsent.room()).await.is_err());
        tokio::join!(unsent.room(), async { drop(frame) });
    }
}
