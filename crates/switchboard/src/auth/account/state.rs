//! What an account holds in memory: the grant in use, the last challenge and failure of its server,
//! and the sign-in that waits.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use switchboard_core::sign_in::challenge::Challenge;
use switchboard_core::sign_in::token::{Condition, condition};
use tokio::time::Instant;

use super::Account;
use crate::auth::grant::Grant;
use crate::auth::requests::TokenError;
use crate::auth::sign_in::Beside;
use crate::auth::vault::IndexVersion;
use crate::secret::Secret;

/// A token that is still good is not refreshed again for as long after a failure.
const BREATHER: Duration = Duration::from_secs(10);

/// Sign-ins for more scopes within this time count as in a row.
const IN_A_ROW: Duration = Duration::from_secs(10 * 60);

/// Locked for a moment at a time, never across an await.
#[derive(Default)]
pub(super) struct AccountState {
    pub(super) held: Option<Arc<HeldGrant>>,
    /// The token in the vault, where what is held came after it and could not be written down.
    pub(super) outdated: Option<Secret>,
    /// The last challenge of the server.
    challenge: Challenge,
    /// The last renewal failed, and when.
    pub(super) failure: Option<(Arc<TokenError>, Instant)>,
    /// How often in a row a sign-in was begun because the server wanted more, and when last.
    steps: Option<(u32, Instant)>,
    /// The sign-in that waits for its answer.
    pending: Option<Beside>,
    /// The index of the vault when it was looked at last.
    pub(super) index: Option<IndexVersion>,
}

/// A grant in use.
pub(in crate::auth) struct HeldGrant {
    pub(in crate::auth) grant: Grant,
    /// How old its tokens were when they were taken up; unknown if the clock was set meanwhile.
    age: Option<Duration>,
    since: Instant,
    source: TokenSource,
    /// Of the sign-in that it comes from: the same for renewed tokens.
    pub(super) identity: Option<String>,
    /// Whether it is in the vault, where a sign-out removes it.
    pub(super) kept: AtomicBool,
}

/// Where the tokens in use come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenSource {
    /// The authorization server gave them to this process.
    Authority,
    /// They were kept, and may have ended since.
    Vault,
}

impl HeldGrant {
    fn of(grant: Grant, source: TokenSource, identity: Option<String>) -> HeldGrant {
        let age = SystemTime::now().duration_since(grant.tokens.received).ok();
        let kept = AtomicBool::new(source == TokenSource::Vault);
        HeldGrant { grant, age, since: Instant::now(), source, identity, kept }
    }

    pub(super) fn condition(&self) -> Condition {
        let age = self.age.map(|age| age + self.since.elapsed());
        condition(self.grant.tokens.lifetime, age)
    }
}

impl Account {
    /// The identity of the sign-in in use.
    pub(crate) fn identity(&self) -> Option<String> {
        self.held()?.identity.clone()
    }

    /// Whether this process was granted this token: if it is refused, another one will be, too.
    pub(in crate::auth) fn is_given(&self, token: &Secret) -> bool {
        self.holding(token).is_some_and(|held| held.source == TokenSource::Authority)
    }

    /// The grant in use, if this is its token.
    pub(in crate::auth) fn holding(&self, token: &Secret) -> Option<Arc<HeldGrant>> {
        self.held().filter(|held| held.grant.tokens.access == *token)
    }

    pub(in crate::auth) fn held(&self) -> Option<Arc<HeldGrant>> {
        self.state().held.clone()
    }

    pub(in crate::auth) fn challenge(&self) -> Challenge {
        self.state().challenge.clone()
    }

    pub(in crate::auth) fn was_challenged(&self, challenge: Challenge) {
        self.state().challenge = challenge;
    }

    /// A sign-in begins because the server wanted more.
    pub(in crate::auth) fn steps_up(&self) {
        let times = self.steps() + 1;
        self.state().steps = Some((times, Instant::now()));
    }

    pub(super) fn steps(&self) -> u32 {
        let steps = self.state().steps.filter(|(_, last)| last.elapsed() < IN_A_ROW);
        steps.map_or(0, |(times, _)| times)
    }

    pub(in crate::auth) fn let_go(&self) {
        let mut state = self.state();
        (state.held, state.outdated, state.failure, state.steps) = (None, None, None, None);
    }

    /// Sets the sign-in that a pasted code belongs to.
    pub(in crate::auth) fn awaits(&self, beside: Option<Beside>) {
        self.state().pending = beside;
    }

    pub(in crate::auth) fn pending(&self) -> Option<Beside> {
        self.state().pending.clone().filter(|beside| !beside.paste.is_closed())
    }

    /// Uses a grant from now on.
    pub(super) fn hold(&self, grant: Grant, source: TokenSource, identity: Option<String>) {
        let mut state = self.state();
        state.held = Some(Arc::new(HeldGrant::of(grant, source, identity)));
        (state.outdated, state.failure) = (None, None);
    }

    pub(super) fn is_resting(&self) -> bool {
        self.state().failure.as_ref().is_some_and(|(_, at)| at.elapsed() < BREATHER)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, AccountState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
