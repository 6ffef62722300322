//! Who listens to one connection: those who wait for answers on it, and the session that owns it.
//!
//! What a server asks or tells belongs to a call of somebody. Over HTTP the message says to which;
//! over a pipe it can be told only while a single session waits. Nothing is ever given to a
//! session that did not ask for it: a question waits until one is left that can be meant, and if
//! that takes too long, the sessions part.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashbrown::HashMap;
use switchboard_wire::Exchange;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::host::Host;

/// How long a question waits for the calls of all sessions but one to be answered.
const UNDECIDED: Duration = Duration::from_millis(500);

/// One conversation with the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionId(pub(crate) u64);

/// A session, and who answers for it.
#[derive(Clone)]
pub(crate) struct Listener {
    pub(crate) session: SessionId,
    pub(crate) voice: Voice,
    pub(crate) host: Arc<dyn Host>,
}

/// Who speaks within a session: what is meant for one voice is never told to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    /// Its one client.
    Client,
    /// One request of a client that nothing else is known of.
    Request(u64),
}

impl Listener {
    fn is_same(&self, other: &Listener) -> bool {
        (self.session, self.voice) == (other.session, other.voice)
    }
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
    /// Held for a moment at a time, never across an await.
    waiting: Mutex<Waiting>,
    /// Told whenever somebody leaves.
    left: Notify,
    /// Cancelled when it could not be told whom a question is for: calls that can be made elsewhere
    /// leave.
    parting: CancellationToken,
    questions: watch::Sender<Questions>,
}

/// Those who wait for an answer.
#[derive(Debug, Default)]
struct Waiting {
    /// By the id of the request.
    calls: HashMap<u64, Listener>,
    /// How many went without an answer: what the server asks later may still be on their account.
    abandoned: u64,
}

/// How many questions the server has asked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Questions {
    pub(super) ever: usize,
    /// These wait for their answer.
    unanswered: usize,
}

/// Whom a message of the server can be for.
#[derive(Debug)]
pub(super) enum Meant {
    One(Recipient),
    /// More than one voice waits.
    Several(Undecided),
    Nobody,
}

/// A question that several may be meant by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undecided {
    /// How many had gone without an answer when it came.
    abandoned: u64,
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
        Arc::new(Audience { owner, ..Audience::default() })
    }

    pub(super) fn owner(&self) -> Option<&Listener> {
        self.owner.as_ref()
    }

    /// Takes part until the seat is dropped.
    pub(super) fn join(&self, request: u64, listener: Listener) -> Seat<'_> {
        self.waiting().calls.insert(request, listener);
        Seat { audience: self, request, answered: false }
    }

    /// Whom a message is for, as far as that can be told now.
    pub(super) fn meant(&self, exchange: Option<Exchange>) -> Meant {
        let Waiting { calls, abandoned } = &*self.waiting();
        let (listener, requests) = match exchange {
            Some(Exchange(request)) => (calls.get(&request).or(self.owner.as_ref()), vec![request]),
            None => {
                let mut listeners = calls.values();
                let first = listeners.next();
                if listeners.any(|other| first.is_some_and(|first| !first.is_same(other))) {
                    return Meant::Several(Undecided { abandoned: *abandoned });
                }
                let last = calls.iter().max_by_key(|(request, _)| **request);
                let listener = last.map(|(_, listener)| listener).or(self.owner.as_ref());
                (listener, calls.keys().copied().collect())
            }
        };
        match listener.cloned() {
            Some(listener) => Meant::One(Recipient { listener, requests }),
            None => Meant::Nobody,
        }
    }

    /// Whom a question is for that several could be meant by: the one who is left when the others
    /// have their answers. If that does not turn out soon, nobody is, and they part.
    pub(super) async fn decided(&self, question: Undecided) -> Option<Recipient> {
        let deciding = async {
            loop {
                let mut left = pin!(self.left.notified());
                left.as_mut().enable();
                let meant = self.meant(None);
                if self.waiting().abandoned != question.abandoned {
                    return None;
                }
                match meant {
                    Meant::One(recipient) => return Some(recipient),
                    Meant::Nobody => return None,
                    Meant::Several(_) => left.await,
                }
            }
        };
        let decided = tokio::time::timeout(UNDECIDED, deciding).await.ok().flatten();
        if decided.is_none() {
            self.parting.cancel();
        }
        decided
    }

    /// Completes when sessions should use connections of their own.
    pub(super) async fn parted(&self) {
        self.parting.cancelled().await;
    }

    pub(super) fn has_parted(&self) -> bool {
        self.parting.is_cancelled()
    }

    /// Counts a question until the guard is dropped.
    pub(super) fn unanswered(self: &Arc<Audience>) -> Unanswered {
        self.questions.send_modify(|questions| {
            questions.ever += 1;
            questions.unanswered += 1;
        });
        Unanswered { audience: Arc::clone(self) }
    }

    /// Waits until no question is without an answer.
    pub(super) async fn answered(&self) -> Questions {
        let mut questions = self.questions.subscribe();
        let _sender_lives = questions.wait_for(|questions| questions.unanswered == 0).await;
        *self.questions.borrow()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the audience.
pub(super) struct Seat<'a> {
    audience: &'a Audience,
    request: u64,
    answered: bool,
}

impl Seat<'_> {
    /// Leaves as one whose request is over on the other side, too.
    pub(super) fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut waiting = self.audience.waiting();
        waiting.calls.remove(&self.request);
        waiting.abandoned += u64::from(!self.answered);
        drop(waiting);
        self.audience.left.notify_waiters();
    }
}

/// A question that waits for its answer.
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
        Listener { session, voice: Voice::Client, host: Arc::new(Headless) }
    }

    fn session_for(audience: &Audience, exchange: Option<u64>) -> Option<u64> {
        match audience.meant(exchange.map(Exchange)) {
            Meant::One(recipient) => Some(recipient.listener.session.0),
            Meant::Several(_) | Meant::Nobody => None,
        }
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
    fn requests_without_a_session_are_told_apart() {
        let own = Audience::of(Some(listener(7)));
        let voice = |number| Listener { voice: Voice::Request(number), ..listener(7) };
        let _one = own.join(1, voice(1));
        assert_eq!(session_for(&own, None), Some(7));
        let other = own.join(2, voice(2));
        assert_eq!(session_for(&own, None), None);
        drop(other);
        assert_eq!(session_for(&own, None), Some(7));
    }

    #[test]
    fn the_owner_of_a_connection_hears_what_belongs_to_no_call() {
        let own = Audience::of(Some(listener(7)));
        assert_eq!(session_for(&own, None), Some(7));
        assert_eq!(session_for(&own, Some(3)), Some(7));
    }
}
