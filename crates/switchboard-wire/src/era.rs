//! Protocol revisions, and a server's response to the handshake.

use std::fmt;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::envelope::{Raw, text_json};
use crate::modern;

/// The session-based revisions, oldest first.
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

    /// The revision that a server offers a client that requests `requested`.
    pub fn negotiate(requested: &str) -> Revision {
        Revision::parse(requested).unwrap_or(Revision::NEWEST)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The protocol revision of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// `initialize`, then a session that lasts as long as the connection.
    Legacy(Revision),
    /// The stateless revision: a server returns its requests inside responses, and sends
    /// notifications only on a subscription.
    Modern,
}

/// The result of the handshake: what the server declares about itself.
#[derive(Clone, Debug)]
pub struct ServerHello {
    pub era: Era,
    pub capabilities: ServerCapabilities,
    pub server_name: String,
    pub server_version: String,
    pub instructions: Option<String>,
    /// The server's `capabilities`, unchanged.
    pub raw_capabilities: Raw,
    /// The server's `serverInfo`, unchanged.
    pub raw_info: Raw,
}

/// The capabilities of a server that we use. Methods of an undeclared capability are never
/// requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCapabilities {
    pub tools: bool,
    pub resources: bool,
    pub prompts: bool,
    pub completions: bool,
    pub logging: bool,
    /// The lists whose changes the server reports in notifications.
    pub changes: Changes,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub tools: bool,
    pub resources: bool,
    pub prompts: bool,
}

impl ServerHello {
    /// Parses the result of `initialize`.
    pub(crate) fn of_initialize(answer: &Raw) -> Result<ServerHello, HelloError> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct InitializeResult<'a> {
            protocol_version: String,
            #[serde(borrow, default)]
            capabilities: Option<&'a RawValue>,
            #[serde(borrow, default)]
            server_info: Option<&'a RawValue>,
            #[serde(default)]
            instructions: Option<String>,
        }
        let answer: InitializeResult<'_> = answer.parse().map_err(|_| HelloError::Malformed)?;
        let Some(revision) = Revision::parse(&answer.protocol_version) else {
            return Err(HelloError::Revision(answer.protocol_version));
        };
        let era = Era::Legacy(revision);
        ServerHello::new(era, answer.capabilities, answer.server_info, answer.instructions)
    }

    /// Parses the result of `server/discover`.
    pub(crate) fn of_discover(answer: &Raw) -> Result<ServerHello, HelloError> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct DiscoverResult<'a> {
            supported_versions: Vec<String>,
            #[serde(borrow, default)]
            capabilities: Option<&'a RawValue>,
            #[serde(borrow, default)]
            server_info: Option<&'a RawValue>,
            #[serde(default)]
            instructions: Option<String>,
            #[serde(borrow, default, rename = "_meta")]
            meta: Option<DiscoverMeta<'a>>,
        }
        #[derive(serde::Deserialize)]
        struct DiscoverMeta<'a> {
            #[serde(borrow, default, rename = "io.modelcontextprotocol/serverInfo")]
            server_info: Option<&'a RawValue>,
        }
        let answer: DiscoverResult<'_> = answer.parse().map_err(|_| HelloError::Malformed)?;
        if !answer.supported_versions.iter().any(|version| version == modern::REVISION) {
            let newest = answer.supported_versions.into_iter().max().unwrap_or_default();
            return Err(HelloError::Revision(newest));
        }
        let info = answer.meta.and_then(|meta| meta.server_info).or(answer.server_info);
        ServerHello::new(Era::Modern, answer.capabilities, info, answer.instructions)
    }

    fn new(
        era: Era,
        capabilities: Option<&RawValue>,
        info: Option<&RawValue>,
        instructions: Option<String>,
    ) -> Result<ServerHello, HelloError> {
        #[derive(serde::Deserialize, Default)]
        struct Info {
            #[serde(default)]
            name: String,
            #[serde(default)]
            version: String,
        }
        let (capabilities, info) = (object(capabilities), object(info));
        let Info { name, version } = info.parse().map_err(|_| HelloError::Malformed)?;
        Ok(ServerHello {
            era,
            capabilities: ServerCapabilities::read(&capabilities)?,
            server_name: name,
            server_version: version,
            instructions: instructions.filter(|text| !text.trim().is_empty()),
            raw_capabilities: capabilities,
            raw_info: info,
        })
    }

    /// Converts the handshake result of either era into a result of `initialize`, with the revision
    /// of the connection.
    pub fn to_initialize_result(&self) -> Raw {
        let revision = self.revision();
        let (capabilities, info) = (self.raw_capabilities.as_str(), self.raw_info.as_str());
        let mut json = format!(
            "{{\"protocolVersion\":\"{revision}\",\"capabilities\":{capabilities},\"serverInfo\":{info}"
        );
        if let Some(instructions) = &self.instructions {
            json.push_str(",\"instructions\":");
            json.push_str(&text_json(instructions));
        }
        json.push('}');
        Raw::from_json(json)
    }

    /// The revision of the connection.
    pub fn revision(&self) -> &'static str {
        match self.era {
            Era::Legacy(revision) => revision.as_str(),
            Era::Modern => modern::REVISION,
        }
    }

    /// Whether the connection uses the stateless revision.
    pub fn is_modern(&self) -> bool {
        self.era == Era::Modern
    }
}

/// Why the result of the handshake is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    #[error("the server's handshake result is malformed")]
    Malformed,
    /// The newest revision that the server supports. We support none of its revisions.
    #[error("the server speaks protocol revision `{0}`, which is unsupported")]
    Revision(String),
}

fn object(json: Option<&RawValue>) -> Raw {
    Raw::from_json(json.map_or("{}", RawValue::get).to_owned())
}

impl ServerCapabilities {
    fn read(json: &Raw) -> Result<ServerCapabilities, HelloError> {
        #[derive(serde::Deserialize, Default)]
        #[serde(default)]
        struct Capabilities<'a> {
            tools: Option<Value>,
            resources: Option<Value>,
            prompts: Option<Value>,
            #[serde(borrow)]
            completions: Option<&'a RawValue>,
            #[serde(borrow)]
            logging: Option<&'a RawValue>,
        }
        let read: Capabilities<'_> = json.parse().map_err(|_| HelloError::Malformed)?;
        let changes = |list: &Option<Value>| {
            list.as_ref().and_then(|list| list.get("listChanged")) == Some(&Value::Bool(true))
        };
        Ok(ServerCapabilities {
            tools: read.tools.is_some(),
            resources: read.resources.is_some(),
            prompts: read.prompts.is_some(),
            completions: read.completions.is_some(),
            logging: read.logging.is_some(),
            changes: Changes {
                tools: changes(&read.tools),
                resources: changes(&read.resources),
                prompts: changes(&read.prompts),
            },
        })
    }
}
