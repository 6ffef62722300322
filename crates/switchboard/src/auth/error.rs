//! Why there is no token for a server, or no sign-in to it.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::sign_in::callback::CallbackError;
use switchboard_core::sign_in::link::BadLink;
use switchboard_core::sign_in::redirect::BadRedirect;

use super::callback::CallbackBindError;
use super::discover::DiscoverError;
use super::grant::Unreadable;
use super::register::RegisterError;
use super::requests::TokenError;
use super::vault::VaultError;
use crate::upstream::DialError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum AuthError {
    #[error("there was no sign-in to it yet")]
    NotSignedIn,
    #[error("the sign-in has expired, and the authority gave nothing to renew it with")]
    Expired,
    #[error("it does not accept the present sign-in")]
    NotAccepted,
    #[error("the sign-in has ended")]
    Ended(#[source] TokenError),
    #[error("it wants to be allowed more: `{}`", .scopes.join(" "))]
    MoreScope { scopes: Vec<String> },
    /// Signing in again was tried, and changed nothing.
    #[error("it wants to be allowed more, also after {times} sign-ins for that")]
    StillMoreScope { times: u32 },
    #[error("the sign-in is good, and does not allow this")]
    Forbidden,
    #[error("the token cannot be renewed just now")]
    NotRenewed(#[source] Arc<TokenError>),
    #[error("no token is given for the client")]
    NotGiven(#[source] TokenError),
    #[error("the tokens cannot be used")]
    Vault(#[from] VaultError),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error("it cannot be found out who guards the server")]
    Discover(#[from] DiscoverError),
    #[error("it answers without authentication, and names no authorization server")]
    NotWanted,
    #[error("the authority does not know us")]
    Register(#[from] RegisterError),
    #[error(
        "the authority `{issuer}` does not protect codes against interception (PKCE with S256)"
    )]
    NoProof { issuer: String },
    #[error("the authority `{issuer}` has no page to sign in at")]
    NoPage { issuer: String },
    #[error("the authority `{issuer}` has no sign-in by another device")]
    NoDevice { issuer: String },
    #[error("the address of the sign-in cannot be opened")]
    Link(#[source] BadLink),
    #[error("the entry's `redirectUri` cannot be used")]
    Redirect(#[from] BadRedirect),
    #[error("the entry's `authorizationParams` set `{name}`, which is for us to say")]
    Reserved { name: String },
    #[error(transparent)]
    Bind(#[from] CallbackBindError),
    #[error("what came back ends the sign-in")]
    Callback(#[from] CallbackError),
    #[error("the authority gave no tokens")]
    Exchange(#[source] TokenError),
    #[error("there was no sign-in within {} minutes", .0.as_secs() / 60)]
    TimedOut(Duration),
    #[error("no sign-in has been started, or it is over")]
    NothingBegun,
    #[error("another process is signing in to it just now")]
    Elsewhere,
    #[error("no requests can be made")]
    Requests(#[source] Arc<DialError>),
    /// A task of ours ended early.
    #[error("the sign-in was cut short")]
    CutShort,
}

impl AuthError {
    /// Whether a sign-in would help.
    pub(crate) fn wants_sign_in(&self) -> bool {
        matches!(
            self,
            AuthError::NotSignedIn
                | AuthError::Expired
                | AuthError::NotAccepted
                | AuthError::Ended(_)
                | AuthError::MoreScope { .. }
        )
    }
}
