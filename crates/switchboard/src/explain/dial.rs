//! Why a server cannot be used: what connecting it came to, and what helps.

use std::time::Duration;

use switchboard_core::catalog::known_failure::KnownFailure;
use switchboard_core::config::expand::ExpandError;
use switchboard_core::connection::ConnectError;
use switchboard_core::doctor::check_command;
use switchboard_core::failure::{Code, Failure, Hint, Subject};
use switchboard_core::name::ServerName;
use switchboard_core::render::words::{self, duration};
use switchboard_wire::http_client::HttpError;

use super::{auth, vault_hint, with_hints};
use crate::dial::secret::SecretError;
use crate::upstream::{DialError, LeaseError};

/// When to ask again for a server that is being installed.
const LATER: Duration = Duration::from_secs(15);

pub(crate) fn lease(error: LeaseError, server: &ServerName) -> Failure {
    let subject = Subject::Server(server.clone());
    let (code, mut hints) = match &error {
        LeaseError::Dial(cause) => (dial_code(cause), dial_hints(cause, server)),
        // Waiting does not help: the user has to look at it again.
        LeaseError::Backoff { cause: Some(cause), .. }
        | LeaseError::CrashLoop { cause: Some(cause), .. }
            if cause.needs_trust() =>
        {
            (Code::TrustRequired, dial_hints(cause, server))
        }
        LeaseError::Backoff { cause: Some(cause), .. }
        | LeaseError::CrashLoop { cause: Some(cause), .. }
            if cause.needs_sign_in() =>
        {
            (Code::SignInRequired, dial_hints(cause, server))
        }
        LeaseError::Backoff { retry_in, cause, .. } => {
            let mut hints = vec![Hint::RetryAfter(*retry_in), Hint::Connect(server.clone())];
            hints.extend(cause.as_ref().into_iter().flat_map(|cause| dial_hints(cause, server)));
            (Code::Backoff, hints)
        }
        LeaseError::CrashLoop { retry_in, cause, .. } => {
            let mut hints = vec![Hint::RetryAfter(*retry_in), Hint::Connect(server.clone())];
            hints.extend(cause.as_ref().into_iter().flat_map(|cause| dial_hints(cause, server)));
            (Code::CrashLoop, hints)
        }
        LeaseError::Installing { .. } => (Code::Starting, vec![Hint::RetryAfter(LATER)]),
        LeaseError::Disconnected | LeaseError::Replaced => {
            (Code::Disconnected, vec![Hint::Connect(server.clone())])
        }
        LeaseError::ShuttingDown => (Code::ShuttingDown, Vec::new()),
    };
    hints.dedup();
    with_hints(Failure::new(code, subject, Connecting { server: server.clone(), error }), hints)
}

/// A server that is left alone for a while, because it failed.
pub(crate) fn failed_before(server: &ServerName, failure: &KnownFailure, now: u64) -> Failure {
    let ago = failure.ago(now).unwrap_or_default();
    let (server, reason) = (server.clone(), failure.reason.clone());
    let cause = FailedBefore { server: server.clone(), ago, reason };
    Failure::new(Code::ConnectFailed, Subject::Server(server.clone()), cause)
        .hint(Hint::Connect(server))
}

/// A server that a command does not wait for any longer.
pub(crate) fn still_starting(server: &ServerName, waited: Duration) -> Failure {
    let cause = StillStarting { server: server.clone(), waited };
    Failure::new(Code::Starting, Subject::Server(server.clone()), cause)
        .hint(Hint::Connect(server.clone()))
}

#[derive(Debug, thiserror::Error)]
#[error("the server `{server}` failed {}: {reason}", words::ago(*ago))]
struct FailedBefore {
    server: ServerName,
    ago: Duration,
    reason: Box<str>,
}

#[derive(Debug, thiserror::Error)]
#[error("the server `{server}` is still starting after {}", duration(*waited))]
struct StillStarting {
    server: ServerName,
    waited: Duration,
}

/// A connection that was asked for by id and did not come about.
pub(crate) fn connect(error: LeaseError, server: &ServerName) -> ConnectError {
    let lacks_a_way = match &error {
        LeaseError::Dial(cause) => match &**cause {
            DialError::TimedOut { after, .. } => return ConnectError::TimedOut(*after),
            cause => cause.lacks_a_way(),
        },
        LeaseError::Backoff { .. }
        | LeaseError::CrashLoop { .. }
        | LeaseError::Installing { .. }
        | LeaseError::Disconnected
        | LeaseError::Replaced
        | LeaseError::ShuttingDown => false,
    };
    let failure = lease(error, server);
    if lacks_a_way { ConnectError::NoTransport(failure) } else { ConnectError::Failed(failure) }
}

/// Says which server it was; the cause says the rest.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the server `{server}`")]
struct Connecting {
    server: ServerName,
    #[source]
    error: LeaseError,
}

fn dial_code(error: &DialError) -> Code {
    match error {
        DialError::Trust(_) => Code::TrustRequired,
        DialError::TimedOut { .. } | DialError::Install { cause: SecretError::TimedOut(_), .. } => {
            Code::TimedOut
        }
        DialError::Http(HttpError::SignIn { .. }) | DialError::NoToken => Code::SignInRequired,
        DialError::Vault(_) => Code::Storage,
        DialError::Http(HttpError::Sign(cause)) => {
            auth::of_signer(cause).map_or(Code::ConnectFailed, auth::code)
        }
        DialError::Account(error) => auth::code(error),
        DialError::Expand(_)
        | DialError::BadUrl
        | DialError::Incorrect { .. }
        | DialError::Header { .. }
        | DialError::CaFile { .. } => Code::Config,
        DialError::NotFound { .. }
        | DialError::Spawn { .. }
        | DialError::WorkingDirectory { .. }
        | DialError::Secret { .. }
        | DialError::Install { .. }
        | DialError::Unchecked
        | DialError::Socket { .. }
        | DialError::Tls(_)
        | DialError::Client(_)
        | DialError::Unreachable { .. }
        | DialError::Http(_)
        | DialError::Exited { .. }
        | DialError::Refused { .. }
        | DialError::Handshake(_)
        | DialError::EndlessList { .. }
        | DialError::MalformedList { .. }
        | DialError::Lost { .. }
        | DialError::Unresponsive => Code::ConnectFailed,
    }
}

fn dial_hints(error: &DialError, server: &ServerName) -> Vec<Hint> {
    let mut hints = Vec::new();
    match error {
        DialError::NotFound { command } | DialError::Spawn { command, .. } => {
            hints.push(check_command(command));
        }
        DialError::TimedOut { .. } | DialError::Install { cause: SecretError::TimedOut(_), .. } => {
            hints.push(Hint::Setting("startTimeoutMs"));
        }
        DialError::EndlessList { .. } => hints.push(Hint::Setting("maxPages")),
        DialError::Trust(_) => hints.push(Hint::Trust(server.clone())),
        DialError::Http(error) => hints.extend(http_hints(error, server)),
        DialError::Account(error) => hints.extend(auth::hints(error, server)),
        DialError::Incorrect { name } => hints.push(Hint::Correct((*name).to_owned())),
        DialError::BadUrl => hints.push(Hint::Correct("url".to_owned())),
        DialError::Header { name } => hints.push(Hint::Correct(name.clone())),
        DialError::NoToken => hints.push(Hint::SetToken(server.clone())),
        DialError::Vault(error) => hints.extend(vault_hint(error)),
        DialError::CaFile { .. } => hints.push(Hint::Correct("caFile".to_owned())),
        DialError::Expand(ExpandError::MissingVariable { name }) => {
            hints.push(Hint::SetVariable(name.clone()));
        }
        DialError::WorkingDirectory { .. }
        | DialError::Expand(_)
        | DialError::Secret { .. }
        | DialError::Install { .. }
        | DialError::Unchecked
        | DialError::Socket { .. }
        | DialError::Tls(_)
        | DialError::Client(_)
        | DialError::Unreachable { .. }
        | DialError::Exited { .. }
        | DialError::Refused { .. }
        | DialError::Handshake(_)
        | DialError::MalformedList { .. }
        | DialError::Lost { .. }
        | DialError::Unresponsive => {}
    }
    if let DialError::Install { withheld, .. } = error
        && !withheld.is_empty()
    {
        hints.push(Hint::PassOn(withheld.iter().map(|name| (*name).to_owned()).collect()));
    }
    if !error.stderr().is_empty() {
        hints.push(Hint::Stderr(error.stderr().to_vec()));
        hints.push(Hint::ReadLog(server.clone()));
    }
    hints
}

pub(super) fn http_code(error: &HttpError) -> Code {
    match error {
        HttpError::SignIn { .. } => Code::SignInRequired,
        HttpError::Busy { .. } => Code::Backoff,
        HttpError::Connect { .. } | HttpError::Broken { .. } => Code::ConnectionLost,
        HttpError::Status { .. }
        | HttpError::NotMcp { .. }
        | HttpError::OtherAnswer
        | HttpError::Elsewhere { .. }
        | HttpError::Circle
        | HttpError::Handshake
        | HttpError::OtherProtocol
        | HttpError::Forbidden { .. } => Code::ServerError,
        HttpError::Sign(cause) => auth::of_signer(cause).map_or(Code::ServerError, auth::code),
    }
}

pub(super) fn http_hints(error: &HttpError, server: &ServerName) -> Vec<Hint> {
    match error {
        // Where nobody could sign in, something of the entry was shown.
        HttpError::SignIn { cause: None, .. } => vec![Hint::GiveToken(server.clone())],
        HttpError::SignIn { cause: Some(cause), .. }
        | HttpError::Forbidden { cause, .. }
        | HttpError::Sign(cause) => match auth::of_signer(cause) {
            Some(error) => auth::hints(error, server),
            None => vec![Hint::Correct("requestHeadersCommand".to_owned())],
        },
        HttpError::Busy { retry_after: Some(wait), .. } => vec![Hint::RetryAfter(*wait)],
        HttpError::Elsewhere { .. }
        | HttpError::NotMcp { .. }
        | HttpError::Circle
        | HttpError::Handshake
        | HttpError::OtherProtocol => vec![Hint::Correct("url".to_owned())],
        HttpError::Connect { .. }
        | HttpError::Broken { .. }
        | HttpError::OtherAnswer
        | HttpError::Busy { retry_after: None, .. }
        | HttpError::Status { .. } => Vec::new(),
    }
}
