//! Failures of sign-ins and tokens, with hints.

use std::time::Duration;

use switchboard_core::failure::{Code, Failure, Hint};
use switchboard_core::name::ServerName;

use super::{of_server, with_hints};
use crate::auth::AuthError;
use crate::auth::discover::DiscoverError;
use crate::auth::net::NetError;
use crate::auth::register::RegisterError;
use crate::auth::requests::TokenError;

/// The error for a failed sign-in to a server. The source of the error has the reason.
#[derive(Debug, thiserror::Error)]
#[error("cannot sign in to the server `{server}`")]
struct SigningIn {
    server: ServerName,
    #[source]
    error: AuthError,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the server `{0}` has no sign-in: it has no URL, or its entry configures other credentials"
)]
struct NoSignIn(ServerName);

/// The failure for a sign-in error.
pub(crate) fn auth(error: AuthError, server: &ServerName) -> Failure {
    let (code, hints) = classify(&error, server);
    with_hints(of_server(code, server, SigningIn { server: server.clone(), error }), hints)
}

pub(crate) fn no_sign_in(server: &ServerName) -> Failure {
    of_server(Code::BadRequest, server, NoSignIn(server.clone()))
}

/// The code of a sign-in error, and the hints.
pub(super) fn classify(error: &AuthError, server: &ServerName) -> (Code, Vec<Hint>) {
    let correct = |name: &str| vec![Hint::Correct(format!("oauth.{name}"))];
    let retry = |wait: &Option<Duration>| wait.map(Hint::RetryAfter).into_iter().collect();
    match error {
        AuthError::NotSignedIn
        | AuthError::Expired
        | AuthError::NotAccepted
        | AuthError::Ended(_)
        | AuthError::MoreScope { .. }
        | AuthError::Callback(_)
        | AuthError::TimedOut(_)
        | AuthError::NothingBegun
        | AuthError::NoDevice { .. } => (Code::SignInRequired, vec![Hint::SignIn(server.clone())]),
        AuthError::Discover(error) => match error {
            DiscoverError::Net { cause: NetError::Unreachable { .. }, .. } => {
                (Code::ConnectFailed, Vec::new())
            }
            DiscoverError::Trouble { retry_after, .. } => {
                (Code::SignInRequired, retry(retry_after))
            }
            DiscoverError::Server(_) => {
                (Code::SignInRequired, vec![Hint::Correct("url".to_owned())])
            }
            DiscoverError::Net { .. }
            | DiscoverError::Document { .. }
            | DiscoverError::Issuer { .. }
            | DiscoverError::Nowhere { .. } => (Code::SignInRequired, Vec::new()),
        },
        AuthError::Exchange(TokenError::Trouble { retry_after, .. }) => {
            (Code::SignInRequired, retry(retry_after))
        }
        AuthError::Exchange(_)
        | AuthError::NoProof { .. }
        | AuthError::NoPage { .. }
        | AuthError::Link(_)
        | AuthError::Elsewhere
        | AuthError::CutShort => (Code::SignInRequired, Vec::new()),
        AuthError::Bind(_) => (Code::SignInRequired, correct("redirectUri")),
        AuthError::Register(error) => match error {
            RegisterError::Document => (Code::Config, correct("clientMetadataUrl")),
            RegisterError::SecretAlone | RegisterError::NoCredentials => {
                (Code::Config, correct("clientId"))
            }
            RegisterError::NotOffered { .. } | RegisterError::Refused { .. } => {
                (Code::SignInRequired, correct("clientId"))
            }
            RegisterError::OtherAuthority { .. } => {
                (Code::SignInRequired, correct("authServerMetadataUrl"))
            }
            RegisterError::Malformed | RegisterError::Net(_) => (Code::SignInRequired, Vec::new()),
        },
        AuthError::Redirect(_) => (Code::Config, correct("redirectUri")),
        AuthError::Reserved { .. } => (Code::Config, correct("authorizationParams")),
        AuthError::NotWanted => (Code::BadRequest, Vec::new()),
        AuthError::StillMoreScope { .. } => (Code::ServerError, correct("scope")),
        AuthError::Forbidden => (Code::ServerError, Vec::new()),
        AuthError::NotRenewed(error) => match &**error {
            TokenError::Trouble { retry_after, .. } => (Code::ConnectFailed, retry(retry_after)),
            _ => (Code::ConnectFailed, Vec::new()),
        },
        AuthError::NotGiven(TokenError::InvalidClient { .. }) => {
            (Code::ConnectFailed, correct("clientSecret"))
        }
        AuthError::NotGiven(_) | AuthError::Requests(_) => (Code::ConnectFailed, Vec::new()),
        AuthError::Vault(_) => (Code::Storage, Vec::new()),
        AuthError::Unreadable(_) => (Code::Storage, vec![Hint::SignIn(server.clone())]),
    }
}
