//! The sessions that use one connection: those with a call in flight, and the session that owns it.
//!
//! A request or notification of a server belongs to a call of one session. Over HTTP the message
//! names the call. Over a pipe the call is certain only while a single session has calls in flight.
//! No session gets the message of another: a request waits until only one session has calls in
//! flight. If that takes too long, each session gets a connection of its own.

use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hashbrown::HashMap;
use switchboard_wire::Exchange;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::host::Host;
use crate::mutex::lock;

/// How long a server-to-client request waits until only one session has calls in flight.
const RECIPIENT_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a server may keep working on an abandoned call.
const ABANDONED_CALL_LIFETIME: Duration = Duration::from_secs(60);

/// Identifies one session of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionId(pub(crate) u64);

/// A session, and the host that answers server-to-client requests for it.
#[derive(Clone)]
pub(crate) struct Listener {
    pub(crate) session: SessionId,
    pub(crate) caller_id: CallerId,
    pub(crate) host: Arc<dyn Host>,
}

/// The caller within a session: a message for one caller never reaches another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerId {
    /// The caller is the only client of the session.
    Client,
    /// One request of a stateless client, which has no other identity. The number is small, because
    /// every call has a `CallerId`.
    Request(NonZeroU32),
}

impl Listener {
    fn is_same(&self, other: &Listener) -> bool {
        (self.session, self.caller_id) == (other.session, other.caller_id)
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.session.fmt(f)
    }
}

#[derive(Debug, Default)]
pub(super) struct Audience {
    /// The session that owns this connection; `None` if it is shared.
    owner: Option<Listener>,
    /// The permit for a call of a stateless client, on a connection whose messages do not name
    /// their call. Only one call without a pending server-to-client request holds the permit, so
    /// that the next request belongs to that call.
    turns: Option<Arc<Semaphore>>,
    /// The calls on this connection. The mutex is locked only briefly, never across an `await`.
    waiting: Mutex<WaitingCalls>,
    /// Notifies waiting tasks when a call ends.
    left: Notify,
    /// Cancelled when the recipient of a server-to-client request is ambiguous. Calls that can be
    /// resent move to a connection of their own.
    parting: CancellationToken,
    questions: watch::Sender<Questions>,
}

/// The calls in flight on one connection, and its abandoned calls.
#[derive(Debug, Default)]
struct WaitingCalls {
    /// The calls in flight by request id.
    calls: HashMap<u64, WaitingCall>,
    /// The number of calls that ended without a response.
    abandoned: u64,
    /// Abandoned calls that the server may still be working on: the next request of the server may
    /// belong to one of them.
    abandoned_calls: Vec<AbandonedCall>,
}

#[derive(Debug)]
struct WaitingCall {
    listener: Listener,
    /// The permit of the call, which it holds while none of its server-to-client requests is
    /// pending.
    turn: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
struct AbandonedCall {
    listener: Listener,
    since: Instant,
}

/// The numbers of server-to-client requests on a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Questions {
    pub(super) ever: usize,
    /// The number of requests without a response so far.
    unanswered: usize,
}

/// The possible recipients of a server's message.
#[derive(Debug)]
pub(super) enum Meant {
    One(Recipient),
    /// Several callers have calls in flight.
    Several {
        /// The number of calls abandoned by the time the message arrived.
        abandoned: u64,
    },
    NoSession,
}

/// The recipient of a server's message.
#[derive(Debug)]
pub(super) struct Recipient {
    pub(super) listener: Listener,
    /// The requests in flight that the message can belong to.
    pub(super) requests: Vec<u64>,
}

impl Audience {
    pub(super) fn of(owner: Option<Listener>, telling: Telling) -> Arc<Audience> {
        let turns = match (&owner, telling) {
            (Some(_), Telling::Nothing) => Some(Arc::new(Semaphore::new(1))),
            (None, _) | (_, Telling::Requests) => None,
        };
        Arc::new(Audience { owner, turns, ..Audience::default() })
    }

    pub(super) fn takes_turns(&self, listener: &Listener) -> bool {
        self.turns.is_some() && listener.caller_id != CallerId::Client
    }

    /// Waits for the permit to make a call, on a connection whose messages do not name their call.
    pub(super) async fn turn(&self, listener: &Listener) -> Option<OwnedSemaphorePermit> {
        let turns = self.turns.as_ref().filter(|_| self.takes_turns(listener))?;
        // The semaphore is never closed, so this does not fail.
        Arc::clone(turns).acquire_owned().await.ok()
    }

    pub(super) fn owner(&self) -> Option<&Listener> {
        self.owner.as_ref()
    }

    /// Registers a call in flight until the seat is dropped.
    pub(super) fn join(
        &self,
        request: u64,
        listener: Listener,
        turn: Option<OwnedSemaphorePermit>,
    ) -> Seat<'_> {
        lock(&self.waiting).calls.insert(request, WaitingCall { listener, turn });
        Seat { audience: self, request, answered: false }
    }

    /// Records that these requests wait for the response to a server-to-client request, and
    /// releases their permits, so that other calls proceed.
    pub(super) fn asked(&self, requests: &[u64]) {
        let mut waiting = lock(&self.waiting);
        for request in requests {
            waiting.calls.get_mut(request).into_iter().for_each(|call| call.turn = None);
        }
    }

    /// Records that the server-to-client request was answered: these requests take the permit
    /// again.
    pub(super) async fn go_on(&self, listener: &Listener, requests: &[u64]) {
        let mut turn = self.turn(listener).await;
        let mut waiting = lock(&self.waiting);
        for request in requests {
            if let Some(call) = waiting.calls.get_mut(request) {
                call.turn = turn.take();
            }
        }
    }

    /// The possible recipients of a message, determined by the calls in flight now.
    pub(super) fn meant(&self, exchange: Option<Exchange>) -> Meant {
        let waiting = &*lock(&self.waiting);
        let (listener, requests) = match exchange {
            Some(Exchange(request)) => {
                let call = waiting.calls.get(&request).map(|call| &call.listener);
                (call.or(self.owner.as_ref()), vec![request])
            }
            None => match waiting.the_only_one() {
                None => return Meant::Several { abandoned: waiting.abandoned },
                Some((listener, requests)) => (listener.or(self.owner.as_ref()), requests),
            },
        };
        match listener.cloned() {
            Some(listener) => Meant::One(Recipient { listener, requests }),
            None => Meant::NoSession,
        }
    }

    /// The recipient of a request that could belong to several callers: waits until the calls of
    /// all but one caller are answered. If that takes too long, there is no recipient, and each
    /// session gets a connection of its own.
    pub(super) async fn decided(&self, abandoned: u64) -> Option<Recipient> {
        let deciding = async {
            loop {
                let mut left = pin!(self.left.notified());
                left.as_mut().enable();
                let meant = self.meant(None);
                if lock(&self.waiting).abandoned != abandoned {
                    return None;
                }
                match meant {
                    Meant::One(recipient) => return Some(recipient),
                    Meant::NoSession => return None,
                    Meant::Several { .. } => left.await,
                }
            }
        };
        let decided = tokio::time::timeout(RECIPIENT_TIMEOUT, deciding).await.ok().flatten();
        // A session that owns its connection has no other connection to move to.
        if decided.is_none() && self.owner.is_none() {
            self.parting.cancel();
        }
        decided
    }

    /// Completes when each session must use a connection of its own.
    pub(super) async fn parted(&self) {
        self.parting.cancelled().await;
    }

    pub(super) fn has_parted(&self) -> bool {
        self.parting.is_cancelled()
    }

    /// Counts a server-to-client request as unanswered until the guard is dropped.
    pub(super) fn unanswered(self: &Arc<Audience>) -> Unanswered {
        self.questions.send_modify(|questions| {
            questions.ever += 1;
            questions.unanswered += 1;
        });
        Unanswered { audience: Arc::clone(self) }
    }

    /// Waits until all server-to-client requests are answered.
    pub(super) async fn answered(&self) -> Questions {
        let mut questions = self.questions.subscribe();
        let _sender_lives = questions.wait_for(|questions| questions.unanswered == 0).await;
        *self.questions.borrow()
    }
}

/// Whether server-to-client requests on a connection name the call to which they belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Telling {
    Requests,
    Nothing,
}

impl WaitingCalls {
    /// The only caller that an unaddressed request can belong to, with its calls; `None` if there
    /// are several.
    fn the_only_one(&self) -> Option<(Option<&Listener>, Vec<u64>)> {
        // A call that waits for the response to a server-to-client request causes no second request
        // meanwhile.
        let takes_turns = self.calls.values().any(|call| call.turn.is_some());
        let free = self.calls.iter().filter(|(_, call)| !takes_turns || call.turn.is_some());
        let mut free: Vec<(u64, &Listener)> =
            free.map(|(request, call)| (*request, &call.listener)).collect();
        free.sort_unstable_by_key(|(request, _)| *request);
        let Some((_, last)) = free.last().copied() else { return Some((None, Vec::new())) };
        let abandoned_calls = self
            .abandoned_calls
            .iter()
            .filter(|call| call.since.elapsed() < ABANDONED_CALL_LIFETIME);
        let others = free
            .iter()
            .map(|(_, listener)| *listener)
            .chain(abandoned_calls.map(|call| &call.listener));
        let is_one = others.into_iter().all(|other| other.is_same(last));
        is_one.then(|| (Some(last), free.iter().map(|(request, _)| *request).collect()))
    }
}

/// The registration of one call in the audience, until it is dropped.
pub(super) struct Seat<'a> {
    audience: &'a Audience,
    request: u64,
    answered: bool,
}

impl Seat<'_> {
    /// Deregisters a call that the server has finished, so that it is not treated as abandoned.
    pub(super) fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.audience.waiting);
        let call = waiting.calls.remove(&self.request);
        if let Some(WaitingCall { listener, .. }) = call.filter(|_| !self.answered) {
            waiting.abandoned += 1;
            waiting.abandoned_calls.retain(|call| call.since.elapsed() < ABANDONED_CALL_LIFETIME);
            waiting.abandoned_calls.push(AbandonedCall { listener, since: Instant::now() });
        }
        drop(waiting);
        self.audience.left.notify_waiters();
    }
}

/// Counts one unanswered server-to-client request.
pub(super) struct Unanswered {
    audience: Arc<Audience>,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.audience.questions.send_modify(|questions| questions.unanswered -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Headless;

    fn listener(session: u64) -> Listener {
        let session = SessionId(session);
        Listener { session, caller_id: CallerId::Client, host: Arc::new(Headless) }
    }

    fn request(number: u32) -> CallerId {
        CallerId::Request(NonZeroU32::new(number).unwrap())
    }

    fn session_for(audience: &Audience, exchange: Option<u64>) -> Option<u64> {
        match audience.meant(exchange.map(Exchange)) {
            Meant::One(recipient) => Some(recipient.listener.session.0),
            Meant::Several { .. } | Meant::NoSession => None,
        }
    }

    #[test]
    fn message_reaches_only_the_session_of_its_call() {
        let shared = Audience::of(None, Telling::Nothing);
        assert_eq!(session_for(&shared, None), None);
        let _one = shared.join(10, listener(1), None);
        let _same = shared.join(11, listener(1), None);
        assert_eq!(session_for(&shared, None), Some(1));
        let other = shared.join(12, listener(2), None);
        assert_eq!(session_for(&shared, None), None);
        assert_eq!(session_for(&shared, Some(10)), Some(1));
        assert_eq!(session_for(&shared, Some(12)), Some(2));
        assert_eq!(session_for(&shared, Some(99)), None);
        other.answered();
        assert_eq!(session_for(&shared, None), Some(1));
        assert_eq!(session_for(&shared, Some(12)), None);
    }

    #[test]
    fn message_without_call_is_ambiguous_between_stateless_requests() {
        let own = Audience::of(Some(listener(7)), Telling::Nothing);
        let voice = |number| Listener { caller_id: request(number), ..listener(7) };
        let _one = own.join(1, voice(1), None);
        assert_eq!(session_for(&own, None), Some(7));
        let other = own.join(2, voice(2), None);
        assert_eq!(session_for(&own, None), None);
        other.answered();
        assert_eq!(session_for(&own, None), Some(7));
    }

    #[tokio::test]
    async fn calls_are_serialized_if_server_requests_name_no_call() {
        let own = Audience::of(Some(listener(7)), Telling::Nothing);
        let voice = |number| Listener { caller_id: request(number), ..listener(7) };
        let turn = own.turn(&voice(1)).await;
        let _one = own.join(1, voice(1), turn);
        {
            let other = voice(2);
            let mut waits = pin!(own.turn(&other));
            assert!(futures_util::poll!(waits.as_mut()).is_pending());
            // Once the first call has a pending request, the second may start, and later requests
            // belong to it.
            own.asked(&[1]);
            let turn = waits.await;
            let second = own.join(2, voice(2), turn);
            let Meant::One(recipient) = own.meant(None) else {
                panic!("the second call is the recipient")
            };
            assert_eq!(recipient.requests, [2]);
            let mut answered = pin!(own.go_on(&recipient.listener, &[1]));
            assert!(futures_util::poll!(answered.as_mut()).is_pending(), "not both at once");
            second.answered();
            answered.await;
        }
        let Meant::One(recipient) = own.meant(None) else {
            panic!("the first call is the recipient")
        };
        assert_eq!(recipient.requests, [1]);
    }

    #[tokio::test(start_paused = true)]
    async fn server_request_of_abandoned_call_reaches_no_other_session() {
        let shared = Audience::of(None, Telling::Nothing);
        drop(shared.join(1, listener(1), None));
        let _other = shared.join(2, listener(2), None);
        assert_eq!(session_for(&shared, None), None);
        tokio::time::advance(ABANDONED_CALL_LIFETIME).await;
        assert_eq!(session_for(&shared, None), Some(2));
        // The same session may get a request at once.
        let own = Audience::of(Some(listener(7)), Telling::Nothing);
        drop(own.join(1, listener(7), None));
        let _again = own.join(2, listener(7), None);
        assert_eq!(session_for(&own, None), Some(7));
    }

    #[test]
    fn connection_owner_gets_messages_without_a_call() {
        let own = Audience::of(Some(listener(7)), Telling::Nothing);
        assert_eq!(session_for(&own, None), Some(7));
        assert_eq!(session_for(&own, Some(3)), Some(7));
    }
}
