//! Failures of connecting to a server, with hints.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::catalog::known_failure::{FailureKind, KnownFailure};
use switchboard_core::config::expand::ExpandError;
use switchboard_core::connection::ConnectError;
use switchboard_core::doctor::check_command;
use switchboard_core::failure::{Code, Failure, Hint};
use switchboard_core::name::ServerName;
use switchboard_core::render::words::{self, duration};
use switchboard_wire::http_client::{HttpError, SignError};

use super::{auth, of_server, vault_hint, with_hints};
use crate::dial::secret::SecretError;
use crate::upstream::{DialError, LeaseError};

/// How long a caller should wait before it retries a server that is being installed.
const INSTALL_RETRY: Duration = Duration::from_secs(15);

pub(crate) fn lease(error: LeaseError, server: &ServerName) -> Failure {
    let (code, mut hints) = match &error {
        LeaseError::Dial(cause) => dial(cause, server),
        LeaseError::Backoff { retry_in, cause, .. }
        | LeaseError::CrashLoop { retry_in, cause, .. } => {
            let hints = cause.as_ref().map_or(Vec::new(), |cause| dial(cause, server).1);
            let is_backoff = matches!(error, LeaseError::Backoff { .. });
            match cause {
                // To wait for the next attempt does not help here: the user has to approve the
                // server or sign in.
                Some(cause) if cause.needs_trust() => (Code::TrustRequired, hints),
                Some(cause) if cause.needs_sign_in() => (Code::SignInRequired, hints),
                Some(_) | None => {
                    let retry = [Hint::RetryAfter(*retry_in), Hint::Connect(server.clone())];
                    let code = if is_backoff { Code::Backoff } else { Code::CrashLoop };
                    (code, retry.into_iter().chain(hints).collect())
                }
            }
        }
        LeaseError::Installing { .. } => (Code::Starting, vec![Hint::RetryAfter(INSTALL_RETRY)]),
        LeaseError::Disconnected | LeaseError::Replaced => {
            (Code::Disconnected, vec![Hint::Connect(server.clone())])
        }
        LeaseError::ShuttingDown => (Code::ShuttingDown, Vec::new()),
    };
    hints.dedup();
    with_hints(of_server(code, server, Connecting { server: server.clone(), error }), hints)
}

/// The failure for a server that recently failed and is not retried yet.
pub(crate) fn failed_before(server: &ServerName, failure: &KnownFailure, now: u64) -> Failure {
    let ago = failure.ago(now).unwrap_or_default();
    let (name, reason) = (server.clone(), failure.reason.clone());
    let failure = match failure.kind {
        FailureKind::Failed => {
            of_server(Code::ConnectFailed, server, FailedBefore { server: name, ago, reason })
        }
        FailureKind::NotReady => {
            of_server(Code::Starting, server, UnreadyBefore { server: name, ago, doing: reason })
        }
    };
    failure.hint(Hint::Connect(server.clone()))
}

/// The failure for a server that was being installed or starting when a command stopped waiting for it.
pub(crate) fn not_ready(server: &ServerName, doing: &'static str, waited: Duration) -> Failure {
    let cause = NotReady { server: server.clone(), doing, waited };
    of_server(Code::Starting, server, cause).hint(Hint::Connect(server.clone()))
}

#[derive(Debug, thiserror::Error)]
#[error("the server `{server}` failed {}: {reason}", words::ago(*ago))]
struct FailedBefore {
    server: ServerName,
    ago: Duration,
    reason: Box<str>,
}

#[derive(Debug, thiserror::Error)]
#[error("the server `{server}` was still {doing} {}", words::ago(*ago))]
struct UnreadyBefore {
    server: ServerName,
    ago: Duration,
    doing: Box<str>,
}

#[derive(Debug, thiserror::Error)]
#[error("the server `{server}` is still {doing} after {}", duration(*waited))]
struct NotReady {
    server: ServerName,
    doing: &'static str,
    waited: Duration,
}

/// The error for an ad hoc connection that failed.
pub(crate) fn connect(error: LeaseError, server: &ServerName) -> ConnectError {
    let LeaseError::Dial(cause) = &error else {
        return ConnectError::Failed(lease(error, server));
    };
    let cause = Arc::clone(cause);
    let failure = lease(error, server);
    match &*cause {
        DialError::TimedOut { after, .. } => ConnectError::TimedOut { after: *after, failure },
        cause if cause.lacks_a_way() => ConnectError::NoTransport(failure),
        _ => ConnectError::Failed(failure),
    }
}

/// The error for a server that cannot be used. The source of the error has the reason.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the server `{server}`")]
struct Connecting {
    server: ServerName,
    #[source]
    error: LeaseError,
}

/// The code of a failed dial, and the hints.
fn dial(error: &DialError, server: &ServerName) -> (Code, Vec<Hint>) {
    let correct = |field: &str| vec![Hint::Correct(field.to_owned())];
    let (code, mut hints) = match error {
        DialError::NotFound { command } | DialError::Spawn { command, .. } => {
            (Code::ConnectFailed, vec![check_command(command)])
        }
        DialError::TimedOut { .. } | DialError::Install { cause: SecretError::TimedOut(_), .. } => {
            (Code::TimedOut, vec![Hint::Setting("startTimeoutMs")])
        }
        DialError::EndlessList { .. } => (Code::ConnectFailed, vec![Hint::Setting("maxPages")]),
        DialError::Trust(_) => (Code::TrustRequired, vec![Hint::Trust(server.clone())]),
        DialError::Http(HttpError::Sign(cause)) => {
            let (code, hints) = signer(cause, server);
            (code.unwrap_or(Code::ConnectFailed), hints)
        }
        DialError::Http(error @ HttpError::SignIn { .. }) => http(error, server),
        DialError::Http(error) => (Code::ConnectFailed, http(error, server).1),
        DialError::Account(error) => auth::classify(error, server),
        DialError::NoToken => (Code::SignInRequired, vec![Hint::SetToken(server.clone())]),
        DialError::Vault(error) => (Code::Storage, vault_hint(error).into_iter().collect()),
        DialError::Incorrect { name } => (Code::Config, correct(name)),
        DialError::BadUrl => (Code::Config, correct("url")),
        DialError::Header { name } | DialError::CommandInCommand { name } => {
            (Code::Config, correct(name))
        }
        DialError::CaFile { .. } => (Code::Config, correct("caFile")),
        DialError::Expand(ExpandError::MissingVariable { name }) => {
            (Code::Config, vec![Hint::SetVariable(name.clone())])
        }
        DialError::Expand(_) => (Code::Config, Vec::new()),
        DialError::WorkingDirectory { .. } => (Code::ConnectFailed, correct("cwd")),
        DialError::Unreachable { .. } => (Code::ConnectFailed, vec![Hint::CheckUrl]),
        DialError::Secret { .. }
        | DialError::Install { .. }
        | DialError::Unchecked
        | DialError::Socket { .. }
        | DialError::Tls(_)
        | DialError::Client(_)
        | DialError::Exited { .. }
        | DialError::Refused { .. }
        | DialError::Handshake(_)
        | DialError::MalformedList { .. }
        | DialError::Lost { .. }
        | DialError::Unresponsive => (Code::ConnectFailed, Vec::new()),
    };
    if let DialError::Install { withheld, .. } = error
        && !withheld.is_empty()
    {
        hints.push(Hint::PassOn(withheld.iter().map(|name| (*name).to_owned()).collect()));
    }
    if !error.stderr().is_empty() {
        hints.extend([Hint::Stderr(error.stderr().to_vec()), Hint::ReadLog(server.clone())]);
    }
    (code, hints)
}

/// The code of an HTTP error, and the hints.
pub(super) fn http(error: &HttpError, server: &ServerName) -> (Code, Vec<Hint>) {
    match error {
        // Without a cause, the server refused a credential of the entry.
        HttpError::SignIn { cause: None, .. } => {
            (Code::SignInRequired, vec![Hint::GiveToken(server.clone())])
        }
        HttpError::SignIn { cause: Some(cause), .. } => {
            (Code::SignInRequired, signer(cause, server).1)
        }
        HttpError::Forbidden { cause, .. } => (Code::ServerError, signer(cause, server).1),
        HttpError::Sign(cause) => {
            let (code, hints) = signer(cause, server);
            (code.unwrap_or(Code::ServerError), hints)
        }
        HttpError::Busy { retry_after, .. } => {
            (Code::Backoff, retry_after.map(Hint::RetryAfter).into_iter().collect())
        }
        HttpError::Connect { .. } | HttpError::Broken { .. } => (Code::ConnectionLost, Vec::new()),
        HttpError::Elsewhere { .. }
        | HttpError::NotMcp { .. }
        | HttpError::Circle
        | HttpError::NoLocation
        | HttpError::Handshake
        | HttpError::OtherProtocol => (Code::ServerError, vec![Hint::Correct("url".to_owned())]),
        HttpError::OtherAnswer | HttpError::Status { .. } => (Code::ServerError, Vec::new()),
    }
}

/// The hints for an error of a signer, and its code if the signer is an account.
fn signer(cause: &SignError, server: &ServerName) -> (Option<Code>, Vec<Hint>) {
    match (**cause).downcast_ref() {
        Some(error) => {
            let (code, hints) = auth::classify(error, server);
            (Some(code), hints)
        }
        None => (None, vec![Hint::Correct("requestHeadersCommand".to_owned())]),
    }
}
