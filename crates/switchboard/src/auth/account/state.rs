//! The state of an account in memory: the grant in use, the last challenge and failure of its
//! server, and the sign-in in progress.

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

/// After a failed refresh, a token that is still valid is not refreshed for this long.
const REFRESH_PAUSE: Duration = Duration::from_secs(10);

/// The maximum time between two sign-ins for more scopes that are treated as sign-ins in a row.
const STEP_UP_WINDOW: Duration = Duration::from_secs(10 * 60);

/// The state of an account. Its mutex is locked only briefly, never across an `await`.
#[derive(Default)]
pub(super) struct AccountState {
    pub(super) held: Option<Arc<HeldGrant>>,
    /// The outdated token in the vault, if a newer grant is in use that could not be stored;
    /// otherwise `None`.
    pub(super) outdated: Option<Secret>,
    /// The last `WWW-Authenticate` challenge of the server.
    challenge: Challenge,
    /// The error and the time of the last failed refresh.
    pub(super) failure: Option<(Arc<TokenError>, Instant)>,
    /// The number of sign-ins in a row for more scopes, and the time of the last one.
    steps: Option<(u32, Instant)>,
    /// The background sign-in that waits for the authorization response.
    pending: Option<Beside>,
    /// The version of the vault's index that was read last.
    pub(super) index: Option<IndexVersion>,
}

/// The grant that an account uses for its requests.
pub(in crate::auth) struct HeldGrant {
    pub(in crate::auth) grant: Grant,
    /// The age of the tokens when they were loaded; `None` if the clock was set back.
    age: Option<Duration>,
    since: Instant,
    source: TokenSource,
    /// The identity of the sign-in, which stays the same after a refresh.
    pub(super) identity: Option<String>,
    /// Whether the grant is in the vault. If it is, its removal from the vault means a sign-out.
    pub(super) kept: AtomicBool,
}

/// The origin of the tokens in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenSource {
    /// The authorization server issued the tokens to this process.
    Authority,
    /// The tokens were loaded from the vault, and may be outdated.
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
    /// The identity of the sign-in in use; `None` if its grant is not in the vault.
    pub(crate) fn identity(&self) -> Option<String> {
        self.held()?.identity.clone()
    }

    /// Whether the authorization server issued this token to this process. If the server refuses
    /// such a token, a newer token would not help.
    pub(in crate::auth) fn is_given(&self, token: &Secret) -> bool {
        self.holding(token).is_some_and(|held| held.source == TokenSource::Authority)
    }

    /// The grant in use, if `token` is its access token.
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

    /// Records that a sign-in begins because the server required more scopes.
    pub(in crate::auth) fn steps_up(&self) {
        let times = self.steps() + 1;
        self.state().steps = Some((times, Instant::now()));
    }

    pub(super) fn steps(&self) -> u32 {
        let steps = self.state().steps.filter(|(_, last)| last.elapsed() < STEP_UP_WINDOW);
        steps.map_or(0, |(times, _)| times)
    }

    pub(in crate::auth) fn let_go(&self) {
        let mut state = self.state();
        (state.held, state.outdated, state.failure, state.steps) = (None, None, None, None);
    }

    /// Sets the sign-in in the background that receives the redirect URL or code that the user
    /// pastes. `None`: no sign-in is waiting.
    pub(in crate::auth) fn awaits(&self, beside: Option<Beside>) {
        self.state().pending = beside;
    }

    pub(in crate::auth) fn pending(&self) -> Option<Beside> {
        self.state().pending.clone().filter(|beside| !beside.paste.is_closed())
    }

    /// Replaces the grant that the account uses for its requests.
    pub(super) fn hold(&self, grant: Grant, source: TokenSource, identity: Option<String>) {
        let mut state = self.state();
        state.held = Some(Arc::new(HeldGrant::of(grant, source, identity)));
        (state.outdated, state.failure) = (None, None);
    }

    pub(super) fn is_resting(&self) -> bool {
        self.state().failure.as_ref().is_some_and(|(_, at)| at.elapsed() < REFRESH_PAUSE)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, AccountState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
