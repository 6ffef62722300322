//! The handshake of a client: which era a server is of, and its capabilities and instructions.
//!
//! A server of either era answers the other's opening with some error, or not at all, or by
//! leaving; and one that starts slowly answers nothing for a while. So every answer is taken for
//! what it answers, however late it comes, and nothing but an answer tells of an era.

use std::pin::pin;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::envelope::{Raw, RpcError};
use crate::era::{HelloError, Revision, ServerHello};
use crate::http_client::HttpError;
use crate::modern::{self, meta};
use crate::peer::{Patience, Peer, RequestError};

/// How long only one of the two openings is on its way.
const PROBE: Duration = Duration::from_secs(5);

/// What we say of ourselves.
#[derive(Clone, Copy, Debug)]
pub struct ClientHello<'a> {
    pub name: &'a str,
    pub version: &'a str,
    /// JSON object.
    pub capabilities: &'a str,
}

impl ClientHello<'_> {
    /// The `_meta` of a request of the stateless era.
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

/// What is known of a server before it is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// Nothing: both openings are tried.
    Probe,
    /// It was of the stateless era.
    Discover,
    /// It wanted an `initialize`, or cannot bear anything else.
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
    /// How to begin on a new connection to a server that did not bear this one.
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

/// Opens a connection within `timeout`.
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
                // It may have become another one since.
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

/// Asks what the server is; where there is no answer for `patience`, it is initialised as well.
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
        // Who takes it is in that mode now, whatever else it can do.
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

/// What an answer to `server/discover` tells.
enum Discovered {
    Modern(Box<ServerHello>),
    /// It does not know the method, or speaks older revisions only.
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
        // It says that it does speak what it was asked in: once more.
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
            // Whatever is there has no such method.
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
            | HttpError::Handshake
            | HttpError::OtherProtocol
            | HttpError::Sign(_) => Err(HandshakeError::Discover(RequestError::Http(error))),
        },
        Err(error) => Err(HandshakeError::Discover(error)),
    }
}

/// It told which revisions it speaks.
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

/// At the newest revision that has an `initialize`.
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
