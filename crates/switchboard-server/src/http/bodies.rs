//! Limits the memory of all request bodies: a large body reserves memory before it is read, and
//! again before it is parsed. Both reservations last until its request is answered.

use std::sync::Arc;

use switchboard::exact::parsed_size;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The maximum size of all large bodies together, in bytes.
const ROOM: usize = 64 * 1024 * 1024;

/// The maximum memory of all parsed large bodies together, as estimated, in bytes.
const PARSED: usize = 256 * 1024 * 1024;

/// A body up to this size is not counted, because the number of connections is limited.
const COUNTED: usize = 64 * 1024;

/// The number of bytes that one permit of the semaphore represents.
const UNIT: usize = 1024;

#[derive(Clone, Debug)]
pub(super) struct Bodies {
    room: Arc<Semaphore>,
    parsed: Arc<Semaphore>,
}

/// The memory that is reserved for one body.
#[derive(Debug, Default)]
pub(super) struct BodyRoom {
    permit: Option<OwnedSemaphorePermit>,
    _parsed: Option<OwnedSemaphorePermit>,
}

impl Bodies {
    /// Memory for all large bodies; at least for one body of the size `largest`.
    pub(super) fn new(largest: usize) -> Bodies {
        let semaphore = |bytes| Arc::new(Semaphore::new(units(bytes) as usize));
        Bodies { room: semaphore(ROOM.max(largest)), parsed: semaphore(PARSED) }
    }

    /// Waits until there is memory to read a body of up to this size, in the order of arrival.
    pub(super) async fn room(&self, bytes: usize) -> BodyRoom {
        if bytes <= COUNTED {
            return BodyRoom::default();
        }
        let permit = Arc::clone(&self.room).acquire_many_owned(units(bytes)).await;
        BodyRoom { permit: permit.ok(), _parsed: None }
    }

    /// Waits until there is memory to parse this body. A body that needs all memory waits for all
    /// other bodies.
    pub(super) async fn parsing(&self, body: &[u8], read: BodyRoom) -> BodyRoom {
        let size = std::str::from_utf8(body).map_or(0, parsed_size).min(PARSED);
        let read = read.shrunk_to(body.len());
        if size <= COUNTED {
            return read;
        }
        let permit = Arc::clone(&self.parsed).acquire_many_owned(units(size)).await;
        BodyRoom { _parsed: permit.ok(), ..read }
    }
}

impl BodyRoom {
    /// Releases reserved memory that the body did not need.
    fn shrunk_to(self, bytes: usize) -> BodyRoom {
        let permit = self.permit.filter(|_| bytes > COUNTED).map(|mut permit| {
            let surplus = permit.num_permits().saturating_sub(units(bytes) as usize);
            drop(permit.split(surplus));
            permit
        });
        BodyRoom { permit, ..self }
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const MIB: usize = 1024 * 1024;

    #[tokio::test(start_paused = true)]
    async fn only_large_request_bodies_wait_for_memory() {
        let bodies = Bodies::new(16 * MIB);
        let wait = Duration::from_secs(1);
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(bodies.room(16 * MIB).await);
        }
        assert!(timeout(wait, bodies.room(MIB)).await.is_err(), "there is no room");
        timeout(wait, bodies.room(COUNTED)).await.unwrap();
        let last = held.pop().unwrap().shrunk_to(MIB);
        let more = timeout(wait, bodies.room(15 * MIB)).await.unwrap();
        assert!(timeout(wait, bodies.room(MIB)).await.is_err(), "what is needed is kept");
        drop((last, more));
        timeout(wait, bodies.room(16 * MIB)).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_with_many_json_values_wait_for_memory() {
        let bodies = Bodies::new(16 * MIB);
        let wait = Duration::from_secs(1);
        let many = format!("[{}1]", "1,".repeat(MIB / 2));
        let parse = |body: &str| {
            let (bodies, body) = (bodies.clone(), body.as_bytes().to_owned());
            async move { bodies.parsing(&body, BodyRoom::default()).await }
        };
        let held = (parse(&many).await, parse(&many).await);
        assert!(timeout(wait, parse(&many)).await.is_err(), "there is no room");
        timeout(wait, parse(&"x".repeat(COUNTED / 2))).await.unwrap();
        drop(held);
        // A body that needs more than all memory reserves all of it, and is parsed alone.
        timeout(wait, parse(&many.repeat(4))).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn body_of_maximum_size_is_admitted() {
        let bodies = Bodies::new(200 * MIB);
        timeout(Duration::from_secs(1), bodies.room(200 * MIB)).await.unwrap();
    }
}
