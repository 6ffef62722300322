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
    #[error("not signed in yet")]
    NotSignedIn,
    #[error("the sign-in has expired, and the authorization server issued no refresh token")]
    Expired,
    #[error("the server rejected the current token")]
    NotAccepted,
    #[error("the sign-in is no longer valid")]
    Ended(#[source] TokenError),
    #[error("the server requires more scopes: `{}`", .scopes.join(" "))]
    MoreScope { scopes: Vec<String> },
    /// The user signed in again, and the new token did not satisfy the server either.
    #[error("the server still requires more scopes after {times} sign-ins for them")]
    StillMoreScope { times: u32 },
    #[error("the sign-in is valid, but the server forbids this request")]
    Forbidden,
    #[error("cannot refresh the token at the moment")]
    NotRenewed(#[source] Arc<TokenError>),
    #[error("the authorization server issued no token for the client")]
    NotGiven(#[source] TokenError),
    #[error("cannot read or store the tokens")]
    Vault(#[from] VaultError),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error("cannot discover the authorization server")]
    Discover(#[from] DiscoverError),
    #[error("the server requires no authentication and names no authorization server")]
    NotWanted,
    #[error("cannot get an OAuth client")]
    Register(#[from] RegisterError),
    #[error("the authorization server `{issuer}` does not support PKCE with S256")]
    NoProof { issuer: String },
    #[error("the authorization server `{issuer}` has no authorization endpoint")]
    NoPage { issuer: String },
    #[error("the authorization server `{issuer}` does not support device authorization")]
    NoDevice { issuer: String },
    #[error("the sign-in URL is refused")]
    Link(#[source] BadLink),
    #[error("the entry's `redirectUri` is invalid")]
    Redirect(#[from] BadRedirect),
    #[error("the entry's `authorizationParams` must not set `{name}`")]
    Reserved { name: String },
    #[error(transparent)]
    Bind(#[from] CallbackBindError),
    #[error("the authorization response ended the sign-in")]
    Callback(#[from] CallbackError),
    #[error("the authorization server issued no tokens")]
    Exchange(#[source] TokenError),
    #[error("the sign-in was not completed within {} minutes", .0.as_secs() / 60)]
    TimedOut(Duration),
    #[error("no sign-in is in progress")]
    NothingBegun,
    #[error("another process is signing in to this server")]
    Elsewhere,
    #[error("cannot create the HTTP client")]
    Requests(#[source] Arc<DialError>),
    /// The task of the refresh or sign-in ended before it had a result.
    #[error("the sign-in was interrupted")]
    CutShort,
}

impl AuthError {
    /// Whether a new sign-in of the user would resolve the error.
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
