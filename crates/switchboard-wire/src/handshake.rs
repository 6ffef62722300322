//! The client's handshake: determines the era, capabilities and instructions of a server.
//!
//! A server may respond to the first request of the other era with an error, not at all, or by
//! exiting. A server that starts slowly responds late. So each response is assigned to its own
//! request, however late it arrives, and only a response determines the era.

use std::pin::pin;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::envelope::{Raw, RpcError};
use crate::era::{HelloError, Revision, ServerHello};
use crate::http_client::HttpError;
use crate::modern::{self, meta};
use crate::peer::{Patience, Peer, RequestError};

/// How long a probe waits for `server/discover` before it also sends `initialize`.
const PROBE: Duration = Duration::from_secs(5);

/// What the client declares about itself.
#[derive(Clone, Copy, Debug)]
pub struct ClientHello<'a> {
    pub name: &'a str,
    pub version: &'a str,
    /// The client's capabilities, as a JSON object.
    pub capabilities: &'a str,
}

impl ClientHello<'_> {
    /// The `_meta` of a request of the stateless revision.
    pub fn meta(&self) -> String {
        let (capabilities, info) = (self.capabilities(), self.info());
        serde_json::json!({
            meta::PROTOCOL_VERSION: modern::REVISION,
            meta::CLIENT_INFO: info,
            meta::CLIENT_CAPABILITIES: capabilities,
        })
        .to_string()
    }

    fn info(&self) -> serde_json::Value {
        serde_json::json!({ "name": self.name, "version": self.version })
    }

    fn capabilities(&self) -> Option<Box<RawValue>> {
        RawValue::from_string(self.capabilities.to_owned()).ok()
    }
}

/// Which handshake to try first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// The era is unknown: tries `server/discover`, then also `initialize`.
    Probe,
    /// The server was stateless at its last connection: tries `server/discover`.
    Discover,
    /// The server was session-based at its last connection, or exits at any other request: tries
    /// `initialize`.
    Initialize,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum HandshakeError {
    #[error("`initialize` failed")]
    Initialize(#[source] RequestError),
    #[error("`server/discover` failed")]
    Discover(#[source] RequestError),
    #[error(transparent)]
    Hello(#[from] HelloError),
}

impl HandshakeError {
    /// The greeting to try on a new connection, if this error may depend on the greeting.
    pub fn another_greeting(&self, tried: Greeting) -> Option<Greeting> {
        match self {
            HandshakeError::Discover(RequestError::Closed | RequestError::NotSent)
                if tried != Greeting::Initialize =>
            {
                Some(Greeting::Initialize)
            }
            HandshakeError::Initialize(RequestError::Refused(refusal))
                if refusal.code == modern::UNSUPPORTED_VERSION && tried != Greeting::Discover =>
            {
                Some(Greeting::Discover)
            }
            HandshakeError::Initialize(_)
            | HandshakeError::Discover(_)
            | HandshakeError::Hello(_) => None,
        }
    }
}

/// Performs the handshake on a new connection within `timeout`.
pub async fn greet(
    peer: &Peer,
    hello: ClientHello<'_>,
    greeting: Greeting,
    timeout: Duration,
) -> Result<ServerHello, HandshakeError> {
    let until = Instant::now() + timeout;
    match greeting {
        Greeting::Probe => probe(peer, hello, until, PROBE.min(timeout / 4)).await,
        Greeting::Discover => match discover(peer, hello, until).await? {
            Discovered::Modern(server) => Ok(*server),
            Discovered::Legacy => initialize(peer, hello, until).await,
        },
        Greeting::Initialize => match initialize(peer, hello, until).await {
            Err(HandshakeError::Initialize(RequestError::Refused(refusal)))
                if refusal.code != modern::UNSUPPORTED_VERSION =>
            {
                // The server may support the stateless revision since an update.
                match discover(peer, hello, until).await {
                    Ok(Discovered::Modern(server)) => Ok(*server),
                    Ok(Discovered::Legacy) | Err(_) => {
                        Err(HandshakeError::Initialize(RequestError::Refused(refusal)))
                    }
                }
            }
            answered => answered,
        },
    }
}

/// Sends `server/discover`, and also `initialize` if there is no response within `patience`.
async fn probe(
    peer: &Peer,
    hello: ClientHello<'_>,
    until: Instant,
    patience: Duration,
) -> Result<ServerHello, HandshakeError> {
    let mut discovering = pin!(discover(peer, hello, until));
    match tokio::time::timeout(patience, &mut discovering).await {
        Ok(discovered) => match discovered? {
            Discovered::Modern(server) => return Ok(*server),
            Discovered::Legacy => return initialize(peer, hello, until).await,
        },
        Err(_silent) => {}
    }
    let mut initializing = pin!(initialize(peer, hello, until));
    tokio::select! {
        // A server that accepts `initialize` is in a session, even if it supports both eras.
        initialized = &mut initializing => {
            let error = match initialized {
                Ok(server) => return Ok(server),
                Err(error) => error,
            };
            match discovering.await {
                Ok(Discovered::Modern(server)) => Ok(*server),
                Err(gone @ HandshakeError::Discover(RequestError::Closed)) => Err(gone),
                Ok(Discovered::Legacy) | Err(_) => Err(error),
            }
        }
        discovered = &mut discovering => match discovered {
            Ok(Discovered::Modern(server)) => {
                match tokio::time::timeout(patience, initializing).await {
                    Ok(Ok(initialized)) => Ok(initialized),
                    Ok(Err(_)) | Err(_) => Ok(*server),
                }
            }
            Ok(Discovered::Legacy) => initializing.await,
            Err(gone @ HandshakeError::Discover(RequestError::Closed)) => Err(gone),
            Err(_) => initializing.await,
        },
    }
}

/// The era that a response to `server/discover` shows.
enum Discovered {
    Modern(Box<ServerHello>),
    /// The server does not know the method, or supports only session-based revisions.
    Legacy,
}

async fn discover(
    peer: &Peer,
    hello: ClientHello<'_>,
    until: Instant,
) -> Result<Discovered, HandshakeError> {
    let params = format!("{{\"_meta\":{}}}", hello.meta());
    let mut asked = ask(peer, modern::DISCOVER, &params, until).await;
    if let Err(RequestError::Refused(refusal)) = &asked
        && refusal.code == modern::UNSUPPORTED_VERSION
        && supported(refusal).iter().any(|version| version == modern::REVISION)
    {
        // The server lists the requested revision as supported: retries once.
        asked = ask(peer, modern::DISCOVER, &params, until).await;
    }
    match asked {
        Ok(answer) => match ServerHello::of_discover(&answer) {
            Ok(server) => Ok(Discovered::Modern(Box::new(server))),
            Err(_) => Ok(Discovered::Legacy),
        },
        Err(RequestError::Refused(refusal)) => match refusal.code {
            modern::UNSUPPORTED_VERSION => of_other_revision(&refusal),
            modern::HEADER_MISMATCH | modern::MISSING_CAPABILITY => {
                Err(HandshakeError::Discover(RequestError::Refused(refusal)))
            }
            _ => Ok(Discovered::Legacy),
        },
        Err(RequestError::Http(error)) => match error {
            // The server does not support `server/discover`.
            HttpError::Status { .. }
            | HttpError::NotMcp { .. }
            | HttpError::OtherAnswer
            | HttpError::Broken { .. } => Ok(Discovered::Legacy),
            HttpError::Connect { .. }
            | HttpError::SignIn { .. }
            | HttpError::Forbidden { .. }
            | HttpError::Busy { .. }
            | HttpError::Elsewhere { .. }
            | HttpError::Circle
            | HttpError::NoLocation
            | HttpError::Handshake
            | HttpError::OtherProtocol
            | HttpError::Sign(_) => Err(HandshakeError::Discover(RequestError::Http(error))),
        },
        Err(error) => Err(HandshakeError::Discover(error)),
    }
}

/// Classifies a server that listed its supported revisions.
fn of_other_revision(refusal: &RpcError) -> Result<Discovered, HandshakeError> {
    let supported = supported(refusal);
    if supported.iter().any(|version| Revision::parse(version).is_some()) {
        return Ok(Discovered::Legacy);
    }
    match supported.into_iter().max() {
        Some(newest) => Err(HelloError::Revision(newest).into()),
        None => Err(HandshakeError::Discover(RequestError::Refused(refusal.clone()))),
    }
}

fn supported(refusal: &RpcError) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct VersionsData {
        supported: Vec<String>,
    }
    let data = refusal.data.as_ref().and_then(|data| data.parse::<VersionsData>().ok());
    data.map(|data| data.supported).unwrap_or_default()
}

/// Requests the newest session-based revision.
async fn initialize(
    peer: &Peer,
    hello: ClientHello<'_>,
    until: Instant,
) -> Result<ServerHello, HandshakeError> {
    let params = serde_json::json!({
        "protocolVersion": Revision::NEWEST.as_str(),
        "capabilities": hello.capabilities(),
        "clientInfo": hello.info(),
    })
    .to_string();
    let asked = ask(peer, "initialize", &params, until).await;
    let answer = asked.map_err(HandshakeError::Initialize)?;
    let server = ServerHello::of_initialize(&answer)?;
    peer.notify("notifications/initialized", "").await.map_err(HandshakeError::Initialize)?;
    Ok(server)
}

async fn ask(peer: &Peer, method: &str, params: &str, until: Instant) -> Result<Raw, RequestError> {
    let timeout = Some(until.saturating_duration_since(Instant::now()));
    peer.request(method, params.to_owned(), Patience { timeout, progress: None }).await
}

#[cfg(test)]
mod tests;
