//! Connections by id: parses requests to connect to an address, and defines the data of the
//! replies.

use std::time::Duration;

use crate::catalog::Resource;
use crate::config::diagnostic::DiagnosticKind;
use crate::config::expand;
use crate::config::server::ServerEntry;
use crate::config::transport::{HttpMode, Transport};
use crate::config::values::{Template, TransportType};
use crate::failure::{Code, Failure};
use crate::name::{self, ServerName};
use crate::reply::ToolLine;
use crate::spelled::spelled_enum;

/// The maximum number of ad-hoc connections in one session.
pub const MOST_AD_HOC: usize = 10;

/// The maximum length of an address in bytes. The user has to read all of it before approving.
const LONGEST_ADDRESS: usize = 4_096;

const SHORTEST_TIMEOUT: u64 = 1_000;
const LONGEST_TIMEOUT: u64 = 300_000;

/// A valid request to connect to a server.
#[derive(Clone, Debug)]
pub struct ConnectionRequest {
    pub id: ServerName,
    /// The address exactly as in the request.
    pub address: String,
    pub definition: ServerEntry,
    pub transport: Transport,
}

/// The parameters of a request to connect, before they are checked.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectParams<'a> {
    pub id: &'a str,
    pub address: &'a str,
    pub transport: Option<&'a str>,
    /// The time limit for connecting, in milliseconds.
    pub timeout: Option<u64>,
}

/// Why no connection was made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("id: must contain only alphanumeric characters, underscores and hyphens")]
    BadId,
    #[error("timeout: must be between {SHORTEST_TIMEOUT} and {LONGEST_TIMEOUT} milliseconds")]
    BadTimeout,
    #[error("type: must be one of {}", TransportType::WORDS.join(", "))]
    BadType,
    #[error("Invalid protocol: use http://, https://, sse:// or a command")]
    InvalidProtocol,
    #[error("url: does not match `type`")]
    TypeMismatch,
    #[error("url: must be an address or a command, with every quote closed")]
    BadAddress,
    #[error("url: must not be longer than {LONGEST_ADDRESS} bytes")]
    TooLong,
    #[error("url: variables are not supported")]
    Variables,
    #[error("Connection '{0}' already exists")]
    Exists(ServerName),
    #[error("Maximum connections ({MOST_AD_HOC}) reached")]
    TooMany,
    #[error("Connection timeout after {}ms", after.as_millis())]
    TimedOut {
        after: Duration,
        #[source]
        failure: Failure,
    },
    /// The program could not be started, or the address is invalid.
    #[error("Failed to create transport")]
    NoTransport(#[source] Failure),
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl ConnectError {
    pub fn code(&self) -> Code {
        match self {
            ConnectError::BadId
            | ConnectError::BadTimeout
            | ConnectError::BadType
            | ConnectError::InvalidProtocol
            | ConnectError::TypeMismatch
            | ConnectError::BadAddress
            | ConnectError::TooLong
            | ConnectError::Variables
            | ConnectError::Exists(_)
            | ConnectError::TooMany => Code::BadRequest,
            ConnectError::TimedOut { .. } => Code::TimedOut,
            ConnectError::NoTransport(failure) | ConnectError::Failed(failure) => failure.code,
        }
    }
}

impl ConnectionRequest {
    /// Parses an address like in a configuration file, except that variables are never expanded.
    pub fn read(order: ConnectParams<'_>) -> Result<ConnectionRequest, ConnectError> {
        let id = name::plain_id(order.id).ok_or(ConnectError::BadId)?;
        let within = SHORTEST_TIMEOUT..=LONGEST_TIMEOUT;
        if order.timeout.is_some_and(|timeout| !within.contains(&timeout)) {
            return Err(ConnectError::BadTimeout);
        }
        let transport_type = |word| TransportType::from_word(word).ok_or(ConnectError::BadType);
        let transport_type = order.transport.map(transport_type).transpose()?;
        if order.address.len() > LONGEST_ADDRESS {
            return Err(ConnectError::TooLong);
        }
        let definition = ServerEntry {
            url: Some(Template::new(order.address)),
            transport_type,
            start_timeout: order.timeout.map(Duration::from_millis),
            ..ServerEntry::default()
        };
        let transport = definition.transport(id.as_str()).map_err(|problem| match problem {
            DiagnosticKind::InvalidProtocol { .. } => ConnectError::InvalidProtocol,
            DiagnosticKind::TypeMismatch { .. } => ConnectError::TypeMismatch,
            _ => ConnectError::BadAddress,
        })?;
        let literal = match &transport {
            Transport::Http { url, .. } | Transport::WebSocket { url } => expand::is_literal(url),
            Transport::Stdio { .. } | Transport::Socket { .. } => false,
            // The words of a command line are never expanded.
            Transport::CommandLine { .. } => true,
        };
        if !literal {
            return Err(ConnectError::Variables);
        }
        Ok(ConnectionRequest {
            id,
            address: order.address.trim().to_owned(),
            definition,
            transport,
        })
    }

    /// Whether the configured server has the requested endpoint.
    pub fn is(&self, configured: &Transport) -> bool {
        match (&self.transport, configured) {
            (Transport::CommandLine { words }, Transport::Stdio { command, args }) => {
                let sources = [command].into_iter().chain(args).map(Template::source);
                sources.eq(words.iter().map(String::as_str))
            }
            (
                Transport::Http { url, mode },
                Transport::Http { url: configured, mode: configured_mode },
            ) => url == configured && (mode == configured_mode || *mode == HttpMode::Negotiated),
            (wanted, configured) => wanted == configured,
        }
    }

    /// The words of the command line; `None` for a remote server.
    pub fn command(&self) -> Option<&[String]> {
        match &self.transport {
            Transport::CommandLine { words } => Some(words),
            Transport::Stdio { .. }
            | Transport::Http { .. }
            | Transport::WebSocket { .. }
            | Transport::Socket { .. } => None,
        }
    }
}

/// The reply to a successful connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    pub id: ServerName,
    pub address: String,
    pub transport: &'static str,
    /// The original names of the server's tools.
    pub tools: Vec<String>,
    pub resources: usize,
}

/// A connection that is open, or that can be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLine {
    pub id: ServerName,
    pub address: String,
    pub state: ConnectionState,
    /// The number of tools; `None` until the server was first listed.
    pub tools: Option<usize>,
    /// The name and version that the server declares.
    pub implementation: Option<(String, String)>,
}

spelled_enum! {
    pub enum ConnectionState {
        Connecting = "connecting",
        Connected = "connected",
        Disconnected = "disconnected",
        Error = "error",
    }
}

/// The tools of one connection, with their original names.
#[derive(Debug)]
pub struct ToolsFrom {
    pub id: ServerName,
    pub tools: Vec<ToolLine>,
}

#[derive(Debug)]
pub struct ResourcesFrom {
    pub id: ServerName,
    pub resources: Vec<Resource>,
}

/// The reply after a connection was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    pub id: ServerName,
    pub address: String,
}

/// The result of reloading the configuration files and connecting to the servers that they enable.
#[derive(Debug, Default)]
pub struct Reloaded {
    /// How many connections were closed before the reload; `None` if the request did not ask to
    /// close them.
    pub closed: Option<usize>,
    /// The configuration files that were read.
    pub files: Vec<String>,
    /// The problems in the files, with positions.
    pub mistakes: Vec<String>,
    pub connected: Vec<ServerName>,
    /// The servers that could not be connected, each with the failure.
    pub failed: Vec<(ServerName, Failure)>,
    /// The servers of a project that the user has not approved.
    pub pending: Vec<ServerName>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(id: &str, address: &str, transport: Option<&str>, timeout: Option<u64>) -> String {
        match ConnectionRequest::read(ConnectParams { id, address, transport, timeout }) {
            Ok(wanted) => {
                format!("{} {}", wanted.transport.title(), wanted.transport.shown())
            }
            Err(error) => format!("{:?}: {error}", error.code()),
        }
    }

    #[test]
    fn connection_url_is_parsed_as_in_a_file() {
        let check = |address: &str, transport: Option<&str>, expected: &str| {
            assert_eq!(read("x", address, transport, None), expected, "{address}");
        };
        check("http://localhost:3000/mcp", None, "HTTP http://localhost:3000/mcp");
        check("sse://localhost:3001/sse", None, "SSE http://localhost:3001/sse");
        check("http://localhost:3001/sse", Some("sse"), "SSE http://localhost:3001/sse");
        check("npx -y 'a b'", None, "stdio npx -y a b");
        check("$HOME/x `id`", Some("stdio"), "stdio $HOME/x `id`");
        check(
            "ftp://x",
            None,
            "BadRequest: Invalid protocol: use http://, https://, sse:// or a command",
        );
        check("https://x/", Some("stdio"), "BadRequest: url: does not match `type`");
        let unclosed = "BadRequest: url: must be an address or a command, with every quote closed";
        check("", None, unclosed);
        check("a 'b", None, unclosed);
        let types = "BadRequest: type: must be one of stdio, http, streamable-http, sse, ws";
        check("x", Some("carrier-pigeon"), types);
    }

    #[test]
    fn connection_url_expands_no_variables() {
        for address in ["http://x/${SECRET}", "http://x/$env:SECRET", "http://x/{env:A}"] {
            let read = read("x", address, None, None);
            assert_eq!(read, "BadRequest: url: variables are not supported", "{address}");
        }
    }

    #[test]
    fn invalid_connection_id_timeout_or_long_address_is_rejected() {
        let bad_id =
            "BadRequest: id: must contain only alphanumeric characters, underscores and hyphens";
        for id in ["", "a b", "a/b", "größe", &"x".repeat(257)] {
            assert_eq!(read(id, "x", None, None), bad_id, "{id}");
        }
        for (timeout, fine) in [(999, false), (1_000, true), (300_000, true), (300_001, false)] {
            let read = read("a_B-9", "x", None, Some(timeout));
            assert_eq!(read == "stdio x", fine, "{timeout}: {read}");
        }
        let long = format!("http://x/{}", "a".repeat(LONGEST_ADDRESS));
        assert!(read("x", &long, None, None).contains("must not be longer"));
    }

    #[test]
    fn configured_server_is_recognized_by_its_endpoint() {
        let configured = |entry: ServerEntry| entry.transport("x").unwrap();
        let program = configured(ServerEntry {
            command: Some(Template::new("npx")),
            args: Some(vec![Template::new("-y"), Template::new("server")]),
            ..ServerEntry::default()
        });
        let remote = configured(ServerEntry {
            url: Some(Template::new("sse://h/x")),
            ..ServerEntry::default()
        });
        let check = |address: &str, of: &Transport, expected: bool| {
            let wanted = ConnectionRequest::read(ConnectParams {
                id: "x",
                address,
                ..ConnectParams::default()
            })
            .unwrap();
            assert_eq!(wanted.is(of), expected, "{address}");
        };
        check("npx -y server", &program, true);
        check("npx -y server2", &program, false);
        check("npx -y server --more", &program, false);
        check("sse://h/x", &remote, true);
        check("http://h/x", &remote, true);
        check("http://h/y", &remote, false);
    }
}
