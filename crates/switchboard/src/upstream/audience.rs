//! Who listens to one connection: those who wait for answers on it, and the session that owns it.
//!
//! What a server asks or tells belongs to a call of somebody. Over HTTP the message says to which;
//! over a pipe it can be told only while a single session waits. Nothing is ever given to a
//! session that did not ask for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use switchboard_wire::Exchange;

use crate::host::Host;

/// One conversation with the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionId(pub(crate) u64);

/// A session, and who answers for it.
#[derive(Clone)]
pub(crate) struct Listener {
    pub(crate) session: SessionId,
    pub(crate) host: Arc<dyn Host>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.session.fmt(f)
    }
}

#[derive(Debug, Default)]
pub(super) struct Audience {
    /// The session that has this connection to itself.
    owner: Option<Listener>,
    /// By the id of the request that they wait for.
    waiting: Mutex<HashMap<u64, Listener>>,
}

/// Whom a message of the server is for.
#[derive(Debug)]
pub(super) struct Recipient {
    pub(super) listener: Listener,
    /// The requests that wait on account of it.
    pub(super) requests: Vec<u64>,
}

impl Audience {
    pub(super) fn of(owner: Option<Listener>) -> Arc<Audience> {
        Arc::new(Audience { owner, waiting: Mutex::default() })
    }

    pub(super) fn owner(&self) -> Option<&Listener> {
        self.owner.as_ref()
    }

    /// Takes part until the seat is dropped.
    pub(super) fn join(&self, request: u64, listener: Listener) -> Seat<'_> {
        self.waiting().insert(request, listener);
        Seat { audience: self, request }
    }

    /// Whom a message is for, if that can be told.
    pub(super) fn recipient(&self, exchange: Option<Exchange>) -> Option<Recipient> {
        let waiting = self.waiting();
        if let Some(Exchange(request)) = exchange {
            let listener = waiting.get(&request).or(self.owner.as_ref())?.clone();
            return Some(Recipient { listener, requests: vec![request] });
        }
        let Some(first) = waiting.values().next() else {
            let listener = self.owner.clone()?;
            return Some(Recipient { listener, requests: Vec::new() });
        };
        if waiting.values().any(|other| other.session != first.session) {
            return None;
        }
        let last = waiting.keys().max()?;
        let listener = waiting.get(last)?.clone();
        Some(Recipient { listener, requests: waiting.keys().copied().collect() })
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Listener>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the audience.
pub(super) struct Seat<'a> {
    audience: &'a Audience,
    request: u64,
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.audience.waiting().remove(&self.request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Headless;

    fn listener(session: u64) -> Listener {
        Listener { session: SessionId(session), host: Arc::new(Headless) }
    }

    fn session_for(audience: &Audience, exchange: Option<u64>) -> Option<u64> {
        let recipient = audience.recipient(exchange.map(Exchange))?;
        Some(recipient.listener.session.0)
    }

    #[test]
    fn a_message_is_for_the_session_whose_call_it_belongs_to_or_for_nobody() {
        let shared = Audience::of(None);
        assert_eq!(session_for(&shared, None), None);
        let _one = shared.join(10, listener(1));
        let _same = shared.join(11, listener(1));
        assert_eq!(session_for(&shared, None), Some(1));
        let other = shared.join(12, listener(2));
        assert_eq!(session_for(&shared, None), None);
        assert_eq!(session_for(&shared, Some(10)), Some(1));
        assert_eq!(session_for(&shared, Some(12)), Some(2));
        assert_eq!(session_for(&shared, Some(99)), None);
        drop(other);
        assert_eq!(session_for(&shared, None), Some(1));
        assert_eq!(session_for(&shared, Some(12)), None);
    }

    #[test]
    fn the_owner_of_a_connection_hears_what_belongs_to_no_call() {
        let own = Audience::of(Some(listener(7)));
        assert_eq!(session_for(&own, None), Some(7));
        assert_eq!(session_for(&own, Some(3)), Some(7));
    }
}
