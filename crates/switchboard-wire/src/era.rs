//! Which revision of the protocol a connection speaks, and the handshake that settles it.

use std::fmt;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::envelope::Raw;
use crate::peer::{Patience, Peer, RequestError};

/// The revisions that open with `initialize`, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
}

impl Revision {
    pub const ALL: [Revision; 4] = [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
    ];
    pub const NEWEST: Revision = Revision::V2025_11_25;

    pub fn as_str(self) -> &'static str {
        match self {
            Revision::V2024_11_05 => "2024-11-05",
            Revision::V2025_03_26 => "2025-03-26",
            Revision::V2025_06_18 => "2025-06-18",
            Revision::V2025_11_25 => "2025-11-25",
        }
    }

    pub fn parse(text: &str) -> Option<Revision> {
        Revision::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// What a server answers to a client that asked for `requested`.
    pub fn negotiate(requested: &str) -> Revision {
        Revision::parse(requested).unwrap_or(Revision::NEWEST)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How the two sides talk. Only the stateful era so far; the stateless one joins here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// `initialize`, then a session that lasts as long as the connection.
    Legacy(Revision),
}

/// What we say of ourselves.
#[derive(Clone, Copy, Debug)]
pub struct ClientHello<'a> {
    pub name: &'a str,
    pub version: &'a str,
    /// JSON object.
    pub capabilities: &'a str,
}

/// What a server said of itself.
#[derive(Clone, Debug)]
pub struct ServerHello {
    pub era: Era,
    pub capabilities: ServerCapabilities,
    pub server_name: String,
    pub server_version: String,
    pub instructions: Option<String>,
    /// The whole answer to `initialize`.
    pub raw: Raw,
}

/// The lists that a server offers; only these are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCapabilities {
    pub tools: bool,
    pub resources: bool,
    pub prompts: bool,
    pub completions: bool,
    pub logging: bool,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum HandshakeError {
    #[error("`initialize` failed")]
    Initialize(#[source] RequestError),
    #[error("the answer to `initialize` is not one that MCP knows")]
    Answer,
    #[error("the server speaks protocol revision `{0}`, which is not known here")]
    Revision(String),
}

/// Opens a connection as a client, at the newest legacy revision.
pub async fn initialize(
    peer: &Peer,
    hello: ClientHello<'_>,
    timeout: Duration,
) -> Result<ServerHello, HandshakeError> {
    let params = serde_json::json!({
        "protocolVersion": Revision::NEWEST.as_str(),
        "capabilities": RawValue::from_string(hello.capabilities.to_owned()).ok(),
        "clientInfo": { "name": hello.name, "version": hello.version },
    })
    .to_string();
    let patience = Patience { timeout: Some(timeout), progress: None };
    let answer = peer
        .request("initialize", |_| params, patience)
        .await
        .map_err(HandshakeError::Initialize)?;
    let hello = read_hello(&answer)?;
    peer.notify("notifications/initialized", "").await.map_err(HandshakeError::Initialize)?;
    Ok(hello)
}

fn read_hello(answer: &Raw) -> Result<ServerHello, HandshakeError> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer<'a> {
        protocol_version: String,
        #[serde(borrow, default)]
        capabilities: Capabilities<'a>,
        #[serde(default)]
        server_info: Info,
        #[serde(default)]
        instructions: Option<String>,
    }
    #[derive(serde::Deserialize, Default)]
    struct Capabilities<'a> {
        #[serde(borrow, default)]
        tools: Option<&'a RawValue>,
        #[serde(borrow, default)]
        resources: Option<&'a RawValue>,
        #[serde(borrow, default)]
        prompts: Option<&'a RawValue>,
        #[serde(borrow, default)]
        completions: Option<&'a RawValue>,
        #[serde(borrow, default)]
        logging: Option<&'a RawValue>,
    }
    #[derive(serde::Deserialize, Default)]
    struct Info {
        #[serde(default)]
        name: String,
        #[serde(default)]
        version: String,
    }

    let raw = answer.clone();
    let answer: Answer<'_> = answer.parse().map_err(|_| HandshakeError::Answer)?;
    let Some(revision) = Revision::parse(&answer.protocol_version) else {
        return Err(HandshakeError::Revision(answer.protocol_version));
    };
    Ok(ServerHello {
        era: Era::Legacy(revision),
        capabilities: ServerCapabilities {
            tools: answer.capabilities.tools.is_some(),
            resources: answer.capabilities.resources.is_some(),
            prompts: answer.capabilities.prompts.is_some(),
            completions: answer.capabilities.completions.is_some(),
            logging: answer.capabilities.logging.is_some(),
        },
        server_name: answer.server_info.name,
        server_version: answer.server_info.version,
        instructions: answer.instructions.filter(|text| !text.trim().is_empty()),
        raw,
    })
}
