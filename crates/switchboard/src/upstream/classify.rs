//! Converts errors of other crates into those of the engine. No other module does.

use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::config::expand::ExpandError;
use switchboard_core::lifecycle::ConnectRefusal;
use switchboard_core::render::words::clean_line;
use switchboard_wire::handshake::HandshakeError;
use switchboard_wire::http_client::{Ended, HttpError};
use switchboard_wire::{RequestError, RpcError};

use super::stateless::DialogueError;
use crate::auth::AuthError;
use crate::auth::vault::VaultError;
use crate::dial::names::NoSuchHost;
use crate::dial::secret::SecretError;
use crate::trust::BrokenSeal;

/// The maximum length of a program's name in a message, in characters.
const HELPER: usize = 100;

/// Why a dial failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error("the program `{command}` was not found")]
    NotFound { command: String },
    #[error("cannot start `{command}`")]
    Spawn {
        command: String,
        #[source]
        cause: io::Error,
    },
    #[error("the working directory `{}` does not exist", path.display())]
    WorkingDirectory { path: PathBuf },
    #[error("cannot expand a value of the server's entry")]
    Expand(#[from] ExpandError),
    #[error("the program `{}` returned no value for `{name}`", clean_line(helper, HELPER))]
    Secret {
        name: String,
        /// The first word of the command; its other words may be secret.
        helper: String,
        #[source]
        cause: SecretError,
    },
    #[error("`{command}` failed to install the server after {}", seconds(*.took))]
    Install {
        command: String,
        took: Duration,
        #[source]
        cause: SecretError,
        stderr: Vec<String>,
        /// The environment variables about the network that are set, but were not passed to the
        /// program.
        withheld: Vec<&'static str>,
    },
    #[error(transparent)]
    Trust(#[from] BrokenSeal),
    /// The task that prepares the connection panicked or was aborted.
    #[error("preparing the connection was interrupted")]
    Unchecked,
    #[error("the `url` of the server's entry is not valid")]
    BadUrl,
    #[error("`{name}` gives a header with an invalid or reserved name, or an invalid value")]
    Header { name: String },
    #[error("`{name}` in the `env` of `requestHeadersCommand` must not be a `!command`")]
    CommandInCommand { name: String },
    #[error("`{name}` of the server's entry is not a valid URL")]
    Incorrect { name: &'static str },
    #[error("cannot load the stored sign-in")]
    Account(#[source] AuthError),
    #[error("no token is stored for the server's URL, but the entry sets `bearerTokenStore`")]
    NoToken,
    #[error("cannot read the stored token of the server")]
    Vault(#[source] VaultError),
    #[error("cannot read the certificates in `{}`", path.display())]
    CaFile {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("no connection to the socket `{}`", path.display())]
    Socket {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("cannot initialise TLS")]
    Tls(#[source] rustls::Error),
    #[error("cannot create the HTTP client")]
    Client(#[source] reqwest::Error),
    #[error("no connection to `{origin}`")]
    Unreachable {
        origin: String,
        #[source]
        cause: Unreachable,
    },
    #[error(transparent)]
    Http(HttpError),
    #[error("the server did not answer `{stage}` within {} s", after.as_secs_f32())]
    TimedOut { stage: &'static str, after: Duration, stderr: Vec<String> },
    #[error("the server ended while it was starting ({exit})")]
    Exited { exit: ExitReason, stderr: Vec<String> },
    #[error("the server answered `{stage}` with an error")]
    Refused {
        stage: &'static str,
        #[source]
        cause: RpcError,
    },
    #[error("the MCP handshake failed")]
    Handshake(#[source] HandshakeError),
    #[error("the server's list of {what} repeats a cursor or has too many pages")]
    EndlessList { what: &'static str },
    #[error("the server's list of {what} is malformed")]
    MalformedList { what: &'static str },
    #[error("the connection was lost ({exit})")]
    Lost { exit: ExitReason, stderr: Vec<String> },
    #[error("the server no longer responds to pings")]
    Unresponsive,
}

impl DialError {
    pub(crate) fn spawn(command: String, cause: io::Error) -> DialError {
        match cause.kind() {
            io::ErrorKind::NotFound => DialError::NotFound { command },
            _ => DialError::Spawn { command, cause },
        }
    }

    /// Whether the user has to review the server's definition again.
    pub(crate) fn needs_trust(&self) -> bool {
        matches!(self, DialError::Trust(_))
    }

    /// Whether the server requires authentication.
    pub(crate) fn needs_sign_in(&self) -> bool {
        matches!(self, DialError::Http(HttpError::SignIn { .. }) | DialError::NoToken)
    }

    /// Whether the transport itself is unusable, for example because of a missing program or an
    /// invalid URL.
    pub(crate) fn lacks_a_way(&self) -> bool {
        matches!(
            self,
            DialError::NotFound { .. }
                | DialError::Spawn { .. }
                | DialError::WorkingDirectory { .. }
                | DialError::Install { .. }
                | DialError::BadUrl
                | DialError::Tls(_)
                | DialError::Client(_)
        )
    }

    /// The last lines that the server wrote to its standard error.
    pub(crate) fn stderr(&self) -> &[String] {
        if let DialError::Install { stderr, .. }
        | DialError::TimedOut { stderr, .. }
        | DialError::Exited { stderr, .. }
        | DialError::Lost { stderr, .. } = self
        {
            return stderr;
        }
        &[]
    }
}

impl From<HttpError> for DialError {
    fn from(error: HttpError) -> DialError {
        match error {
            HttpError::Connect { origin, cause } => {
                DialError::Unreachable { origin, cause: Unreachable::of(&cause) }
            }
            error => DialError::Http(error),
        }
    }
}

/// Why a connection to an origin failed.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum Unreachable {
    #[error("connection refused")]
    Refused,
    #[error("cannot resolve the hostname `{host}`")]
    NoSuchHost { host: String },
    #[error("the TLS connection failed: {0}")]
    Tls(rustls::Error),
    #[error("the connection timed out")]
    TimedOut,
    #[error("{0}")]
    Other(String),
}

impl Unreachable {
    /// Finds the most specific cause of an error; the causes below it repeat each other.
    pub(crate) fn of(error: &reqwest::Error) -> Unreachable {
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
        let mut last = String::new();
        while let Some(error) = next {
            if let Some(NoSuchHost { host, .. }) = error.downcast_ref() {
                return Unreachable::NoSuchHost { host: host.clone() };
            }
            if let Some(tls) = error.downcast_ref() {
                return Unreachable::Tls(rustls::Error::clone(tls));
            }
            let io = error.downcast_ref::<io::Error>();
            match io.map(io::Error::kind) {
                Some(io::ErrorKind::ConnectionRefused) => return Unreachable::Refused,
                Some(io::ErrorKind::TimedOut) => return Unreachable::TimedOut,
                Some(_) | None => {}
            }
            last = error.to_string();
            // `io::Error::source` skips the error that it wraps.
            next = match io.and_then(io::Error::get_ref) {
                Some(inner) => Some(inner),
                None => error.source(),
            };
        }
        if error.is_timeout() { Unreachable::TimedOut } else { Unreachable::Other(last) }
    }
}

/// Why a caller did not get a lease.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum LeaseError {
    #[error("cannot connect")]
    Dial(#[source] Arc<DialError>),
    #[error("the last attempt failed {} ago, the next one is in {}", seconds(*.since), seconds(*.retry_in))]
    Backoff {
        since: Duration,
        retry_in: Duration,
        #[source]
        cause: Option<Arc<DialError>>,
    },
    #[error("the server went down {crashes} times in three minutes, the next attempt is in {}", seconds(*.retry_in))]
    CrashLoop {
        crashes: usize,
        retry_in: Duration,
        #[source]
        cause: Option<Arc<DialError>>,
    },
    /// The caller stopped waiting for the installation, which continues.
    #[error("the server is being installed, for {} so far", seconds(*.since))]
    Installing { since: Duration },
    #[error("the server was disconnected while the request waited for it")]
    Disconnected,
    /// The configuration now has another definition of the server, or none.
    #[error("the server's definition changed while the request waited for it")]
    Replaced,
    #[error("the gateway is shutting down")]
    ShuttingDown,
}

fn seconds(duration: Duration) -> String {
    match duration.as_millis() {
        0..1_000 => format!("{} ms", duration.as_millis()),
        _ => format!("{} s", duration.as_secs()),
    }
}

impl LeaseError {
    /// Whether the attempt failed because the server's address refused the connection.
    pub(crate) fn is_refused_connection(&self) -> bool {
        let (LeaseError::Dial(cause)
        | LeaseError::Backoff { cause: Some(cause), .. }
        | LeaseError::CrashLoop { cause: Some(cause), .. }) = self
        else {
            return false;
        };
        matches!(**cause, DialError::Unreachable { cause: Unreachable::Refused, .. })
    }

    pub(super) fn refused(refusal: ConnectRefusal, last: Option<Arc<DialError>>) -> LeaseError {
        match (refusal, last) {
            (ConnectRefusal::DialFailed, Some(cause)) => LeaseError::Dial(cause),
            (ConnectRefusal::DialFailed, None) | (ConnectRefusal::Disconnected, _) => {
                LeaseError::Disconnected
            }
            (ConnectRefusal::Backoff { since, retry_in }, cause) => {
                LeaseError::Backoff { since, retry_in, cause }
            }
            (ConnectRefusal::CrashLoop { crashes, retry_in }, cause) => {
                LeaseError::CrashLoop { crashes, retry_in, cause }
            }
            (ConnectRefusal::ShuttingDown, _) => LeaseError::ShuttingDown,
        }
    }
}

/// Why a request over a live connection got no result.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("the server answered with an error")]
    Refused(#[source] RpcError),
    #[error("the server did not answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    #[error("the response is larger than the limit of {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the server ended before it answered ({exit})")]
    Lost { exit: ExitReason, stderr: Vec<String> },
    /// The server did not run the tool, because the headers of the call follow an outdated
    /// definition of the tool.
    #[error("the server answered with an error")]
    Outdated(#[source] RpcError),
    #[error("the server did not finish the call")]
    Unfinished(#[from] DialogueError),
    /// The request did not reach the server, so a retry is safe.
    #[error("the connection was closed before the request was sent")]
    NotSent,
    /// The call was cancelled, to be resent on a connection of the session's own. Only read-only
    /// calls are resent.
    #[error("the server sent a request that could belong to several clients")]
    Parted,
    /// The server responded with an HTTP error.
    #[error(transparent)]
    Http(HttpError),
}

impl CallError {
    /// Converts the error of a request. `ended` returns how the connection ended.
    pub(super) fn of(
        error: RequestError,
        ended: impl FnOnce() -> (ExitReason, Vec<String>),
    ) -> CallError {
        match error {
            RequestError::Refused(error) => CallError::Refused(error),
            RequestError::TimedOut(after) => CallError::TimedOut(after),
            RequestError::AnswerTooLarge { limit } => CallError::TooLarge { limit },
            RequestError::Closed => {
                let (exit, stderr) = ended();
                CallError::Lost { exit, stderr }
            }
            RequestError::NotSent | RequestError::Http(HttpError::Connect { .. }) => {
                CallError::NotSent
            }
            RequestError::Http(HttpError::Broken { .. }) => {
                CallError::Lost { exit: ExitReason::Broken, stderr: Vec::new() }
            }
            RequestError::Http(error) => CallError::Http(error),
        }
    }
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitReason {
    Code(i32),
    Signal(i32),
    /// The program closed its output without exiting.
    StreamClosed,
    /// The gateway closed the connection.
    Stopped,
    /// The HTTP server no longer knows the session.
    Forgotten,
    /// The HTTP server is no longer reachable.
    Unreachable,
    /// The HTTP response ended before it was complete.
    Broken,
}

impl From<Ended> for ExitReason {
    fn from(ended: Ended) -> ExitReason {
        match ended {
            Ended::Stopped => ExitReason::Stopped,
            Ended::SessionOver => ExitReason::Forgotten,
            Ended::Unreachable => ExitReason::Unreachable,
            Ended::StreamClosed => ExitReason::StreamClosed,
        }
    }
}

impl From<ExitStatus> for ExitReason {
    fn from(status: ExitStatus) -> ExitReason {
        match (status.code(), status.signal()) {
            (Some(code), _) => ExitReason::Code(code),
            (None, Some(signal)) => ExitReason::Signal(signal),
            (None, None) => ExitReason::StreamClosed,
        }
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExitReason::Code(code) => write!(f, "exit code {code}"),
            ExitReason::Signal(signal) => write!(f, "signal {signal}"),
            ExitReason::StreamClosed => f.write_str("it closed its output"),
            ExitReason::Stopped => f.write_str("it was stopped"),
            ExitReason::Forgotten => f.write_str("it no longer knows the session"),
            ExitReason::Unreachable => f.write_str("it is no longer reachable"),
            ExitReason::Broken => f.write_str("the connection broke"),
        }
    }
}
