//! Why there is no token for a server, or no sign-in to it, and what helps.

use switchboard_core::failure::{Code, Failure, Hint, Subject};
use switchboard_core::name::ServerName;
use switchboard_wire::http_client::SignError;

use super::with_hints;
use crate::auth::AuthError;
use crate::auth::discover::DiscoverError;
use crate::auth::net::NetError;
use crate::auth::register::RegisterError;
use crate::auth::requests::TokenError;

/// Says which server it was; the cause says the rest.
#[derive(Debug, thiserror::Error)]
#[error("cannot sign in to the server `{server}`")]
struct SigningIn {
    server: ServerName,
    #[source]
    error: AuthError,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the server `{0}` has no sign-in: it is no server at a URL, or its entry says what it is shown"
)]
struct NoSignIn(ServerName);

/// A sign-in that did not come about.
pub(crate) fn auth(error: AuthError, server: &ServerName) -> Failure {
    let (code, hints) = (code(&error), hints(&error, server));
    let cause = SigningIn { server: server.clone(), error };
    with_hints(Failure::new(code, Subject::Server(server.clone()), cause), hints)
}

pub(crate) fn no_sign_in(server: &ServerName) -> Failure {
    Failure::new(Code::BadRequest, Subject::Server(server.clone()), NoSignIn(server.clone()))
}

/// What an account said about a request, if it was an account that said it.
pub(super) fn of_signer(cause: &SignError) -> Option<&AuthError> {
    (**cause).downcast_ref()
}

pub(super) fn code(error: &AuthError) -> Code {
    match error {
        AuthError::Discover(DiscoverError::Net { cause: NetError::Unreachable { .. }, .. }) => {
            Code::ConnectFailed
        }
        AuthError::NotSignedIn
        | AuthError::Expired
        | AuthError::NotAccepted
        | AuthError::Ended(_)
        | AuthError::MoreScope { .. }
        | AuthError::Discover(_)
        | AuthError::NoProof { .. }
        | AuthError::NoPage { .. }
        | AuthError::NoDevice { .. }
        | AuthError::Link(_)
        | AuthError::Bind(_)
        | AuthError::Callback(_)
        | AuthError::Exchange(_)
        | AuthError::TimedOut(_)
        | AuthError::NothingBegun
        | AuthError::Elsewhere
        | AuthError::CutShort => Code::SignInRequired,
        AuthError::Register(error) => match error {
            RegisterError::Document | RegisterError::SecretAlone | RegisterError::NoCredentials => {
                Code::Config
            }
            RegisterError::NotOffered { .. }
            | RegisterError::Refused { .. }
            | RegisterError::Malformed
            | RegisterError::OtherAuthority { .. }
            | RegisterError::Net(_) => Code::SignInRequired,
        },
        AuthError::Redirect(_) | AuthError::Reserved { .. } => Code::Config,
        AuthError::NotWanted => Code::BadRequest,
        AuthError::StillMoreScope { .. } | AuthError::Forbidden => Code::ServerError,
        AuthError::NotRenewed(_) | AuthError::NotGiven(_) | AuthError::Requests(_) => {
            Code::ConnectFailed
        }
        AuthError::Vault(_) | AuthError::Unreadable(_) => Code::Storage,
    }
}

pub(super) fn hints(error: &AuthError, server: &ServerName) -> Vec<Hint> {
    let correct = |name: &str| vec![Hint::Correct(format!("oauth.{name}"))];
    match error {
        AuthError::NotSignedIn
        | AuthError::Expired
        | AuthError::NotAccepted
        | AuthError::Ended(_)
        | AuthError::MoreScope { .. }
        | AuthError::Callback(_)
        | AuthError::TimedOut(_)
        | AuthError::NothingBegun
        | AuthError::NoDevice { .. }
        | AuthError::Unreadable(_) => vec![Hint::SignIn(server.clone())],
        AuthError::NotRenewed(error) => match **error {
            TokenError::Trouble { retry_after: Some(wait), .. } => vec![Hint::RetryAfter(wait)],
            _ => Vec::new(),
        },
        AuthError::Exchange(TokenError::Trouble { retry_after: Some(wait), .. })
        | AuthError::Discover(DiscoverError::Trouble { retry_after: Some(wait), .. }) => {
            vec![Hint::RetryAfter(*wait)]
        }
        AuthError::Register(error) => match error {
            RegisterError::NotOffered { .. }
            | RegisterError::Refused { .. }
            | RegisterError::SecretAlone
            | RegisterError::NoCredentials => correct("clientId"),
            RegisterError::Document => correct("clientMetadataUrl"),
            RegisterError::OtherAuthority { .. } => correct("authServerMetadataUrl"),
            RegisterError::Malformed | RegisterError::Net(_) => Vec::new(),
        },
        AuthError::Redirect(_) | AuthError::Bind(_) => correct("redirectUri"),
        AuthError::Reserved { .. } => correct("authorizationParams"),
        AuthError::NotGiven(TokenError::InvalidClient { .. }) => correct("clientSecret"),
        AuthError::StillMoreScope { .. } => correct("scope"),
        AuthError::Discover(DiscoverError::Server(_)) => vec![Hint::Correct("url".to_owned())],
        AuthError::Discover(_)
        | AuthError::NotWanted
        | AuthError::NotGiven(_)
        | AuthError::Exchange(_)
        | AuthError::Forbidden
        | AuthError::NoProof { .. }
        | AuthError::NoPage { .. }
        | AuthError::Link(_)
        | AuthError::Elsewhere
        | AuthError::Requests(_)
        | AuthError::CutShort
        | AuthError::Vault(_) => Vec::new(),
    }
}
