//! Limits the memory of all request bodies: a large body reserves room before it is read, and keeps
//! it until its request is answered.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of all large bodies together.
const ROOM: usize = 64 * 1024 * 1024;

/// The size up to which a body needs no room: the number of connections limits small bodies.
const COUNTED: usize = 64 * 1024;

/// Bytes of one permit.
const UNIT: usize = 1024;

#[derive(Clone, Debug)]
pub(super) struct Bodies {
    room: Arc<Semaphore>,
}

/// The room reserved for one body.
#[derive(Debug, Default)]
pub(super) struct BodyRoom {
    permit: Option<OwnedSemaphorePermit>,
}

impl Bodies {
    /// Room for all bodies; at least for one body of the size `largest`.
    pub(super) fn new(largest: usize) -> Bodies {
        Bodies { room: Arc::new(Semaphore::new(units(ROOM.max(largest)) as usize)) }
    }

    /// Waits for room for a body of up to this size, in the order of arrival.
    pub(super) async fn room(&self, bytes: usize) -> BodyRoom {
        if bytes <= COUNTED {
            return BodyRoom::default();
        }
        let permit = Arc::clone(&self.room).acquire_many_owned(units(bytes)).await;
        BodyRoom { permit: permit.ok() }
    }
}

impl BodyRoom {
    /// Releases room that the body did not need.
    pub(super) fn shrunk_to(self, bytes: usize) -> BodyRoom {
        let permit = self.permit.filter(|_| bytes > COUNTED).map(|mut permit| {
            let surplus = permit.num_permits().saturating_sub(units(bytes) as usize);
            drop(permit.split(surplus));
            permit
        });
        BodyRoom { permit }
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
    async fn large_bodies_wait_for_memory_and_small_do_not() {
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
    async fn body_of_maximum_size_is_admitted() {
        let bodies = Bodies::new(200 * MIB);
        timeout(Duration::from_secs(1), bodies.room(200 * MIB)).await.unwrap();
    }
}
