//! Determines the transport of a server from its merged entry.

use super::diagnostic::DiagnosticKind;
use super::reader::join;
use super::secrecy;
use super::server::ServerEntry;
use super::values::{Template, TransportType};
use super::words;

/// How a server is reached. Templates are not expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    Stdio {
        command: Template,
        args: Vec<Template>,
    },
    /// A `url` that is a command line. It has at least one word, and its words are never expanded.
    CommandLine {
        words: Vec<String>,
    },
    Http {
        url: Template,
        mode: HttpMode,
    },
    WebSocket {
        url: Template,
    },
    Socket {
        path: Template,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpMode {
    /// Streamable HTTP; if the server does not support it, HTTP+SSE.
    Negotiated,
    Streamable,
    Sse,
}

impl Transport {
    /// The name of the transport, as a value of `type`.
    pub fn kind(&self) -> &'static str {
        match self {
            Transport::Stdio { .. } | Transport::CommandLine { .. } => "stdio",
            Transport::Http { mode: HttpMode::Negotiated | HttpMode::Streamable, .. } => "http",
            Transport::Http { mode: HttpMode::Sse, .. } => "sse",
            Transport::WebSocket { .. } => "ws",
            Transport::Socket { .. } => "socket",
        }
    }

    /// The name of the transport for display.
    pub fn title(&self) -> &'static str {
        match self {
            Transport::Stdio { .. } | Transport::CommandLine { .. } => "stdio",
            Transport::Http { mode: HttpMode::Negotiated | HttpMode::Streamable, .. } => "HTTP",
            Transport::Http { mode: HttpMode::Sse, .. } => "SSE",
            Transport::WebSocket { .. } => "WebSocket",
            Transport::Socket { .. } => "socket",
        }
    }

    /// The URL or the command line before expansion, with possible secrets masked.
    pub fn shown(&self) -> String {
        match self {
            Transport::Stdio { command, args } => {
                secrecy::command_line([command].into_iter().chain(args).map(Template::source))
            }
            Transport::CommandLine { words } => {
                secrecy::command_line(words.iter().map(String::as_str))
            }
            Transport::Http { url, .. } | Transport::WebSocket { url } => {
                secrecy::line(url.source().trim())
            }
            Transport::Socket { path } => path.source().to_owned(),
        }
    }
}

impl ServerEntry {
    /// The transport of this entry. `server` is the name for error texts.
    pub fn transport(&self, server: &str) -> Result<Transport, DiagnosticKind> {
        let server = &join("", server);
        let named = |endpoint| DiagnosticKind::TypeMismatch { server: server.to_owned(), endpoint };
        match (&self.command, &self.url, &self.socket) {
            (Some(command), None, None) => match self.transport_type {
                None | Some(TransportType::Stdio) => Ok(Transport::Stdio {
                    command: command.clone(),
                    args: self.args.clone().unwrap_or_default(),
                }),
                Some(_) => Err(named("command")),
            },
            (None, Some(url), None) => from_url(server, url, self.transport_type),
            (None, None, Some(path)) => match self.transport_type {
                None => Ok(Transport::Socket { path: path.clone() }),
                Some(_) => Err(named("socket")),
            },
            (None, None, None) => Err(DiagnosticKind::NoEndpoint { server: server.to_owned() }),
            _ => Err(DiagnosticKind::SeveralEndpoints { server: server.to_owned() }),
        }
    }
}

fn from_url(
    server: &str,
    url: &Template,
    explicit: Option<TransportType>,
) -> Result<Transport, DiagnosticKind> {
    let text = url.source().trim();
    let scheme = scheme(text).map(str::to_ascii_lowercase);
    let form = match scheme.as_deref() {
        Some("http" | "https") => TransportType::Http,
        Some("sse" | "http+sse" | "https+sse") => TransportType::Sse,
        Some("ws" | "wss") => TransportType::WebSocket,
        Some(_) => {
            return Err(DiagnosticKind::InvalidProtocol { server: server.to_owned() });
        }
        // The scheme is unknown if the text begins with a variable. Such a text is a URL, because a
        // URL starts no program.
        None if text.starts_with('$') || text.starts_with("{env:") => TransportType::Http,
        None => TransportType::Stdio,
    };
    // With `type: stdio`, a URL must not be run as a program with that path.
    if explicit == Some(TransportType::Stdio) && is_address(text) {
        return Err(DiagnosticKind::TypeMismatch { server: server.to_owned(), endpoint: "url" });
    }
    let (url, mode) = match explicit.unwrap_or(form) {
        // An error about a program quotes its name, and a URL can contain a secret.
        TransportType::Stdio if looks_like_a_url(text) => {
            return Err(DiagnosticKind::InvalidProtocol { server: server.to_owned() });
        }
        TransportType::Stdio => return command_line(server, text),
        TransportType::WebSocket => return Ok(Transport::WebSocket { url: url.clone() }),
        TransportType::Http => (plain_http(text), HttpMode::Negotiated),
        TransportType::StreamableHttp => (plain_http(text), HttpMode::Streamable),
        TransportType::Sse => (plain_http(text), HttpMode::Sse),
    };
    Ok(Transport::Http { url, mode })
}

/// Whether the text is a URL rather than a program.
pub fn is_address(text: &str) -> bool {
    scheme(text).is_some()
}

/// Whether the program of a command line looks like a URL without a valid scheme, such as
/// `localhost:8080/mcp?token=x`.
pub fn looks_like_a_url(text: &str) -> bool {
    let program = text.split_whitespace().next().unwrap_or_default();
    program.starts_with("//") || program.contains([':', '?', '@', '#'])
}

/// The scheme of a URL: the text before `://`, if it is a valid scheme.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    (scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(valid))
        .then_some(scheme)
}

/// Replaces the scheme: `sse://` and `http+sse://` become `http://`, and `https+sse://` becomes
/// `https://`.
fn plain_http(text: &str) -> Template {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Template::new(text);
    };
    match scheme.to_ascii_lowercase().as_str() {
        "sse" | "http+sse" => Template::new(format!("http://{rest}")),
        "https+sse" => Template::new(format!("https://{rest}")),
        _ => Template::new(text),
    }
}

fn command_line(server: &str, text: &str) -> Result<Transport, DiagnosticKind> {
    match words::split(text) {
        Ok(words) if words.first().is_some_and(|word| !word.is_empty()) => {
            Ok(Transport::CommandLine { words })
        }
        Ok(_) => Err(DiagnosticKind::NoEndpoint { server: server.to_owned() }),
        Err(words::OpenQuote) => Err(DiagnosticKind::OpenQuote { server: server.to_owned() }),
    }
}
