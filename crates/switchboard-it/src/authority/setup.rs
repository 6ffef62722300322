//! The features and faults of an authorization server, as data.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An authorization server and its protected MCP server; the default is correct and strict.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Setup {
    /// The fixture script of the protected MCP server.
    pub script: String,
    /// The port of the MCP server; zero takes any free port.
    pub port: u16,
    pub layout: Layout,
    /// The path of the issuer, such as `/tenant`.
    pub tenant: String,

    /// The URL to which the MCP server redirects all requests; `None` if it serves them.
    pub sends_on: Option<String>,
    pub challenge: Challenge,
    pub resource: Document<ResourcePlace>,
    pub metadata: Document<MetadataPlace>,

    /// The `scopes_supported` of both documents; if not empty, no other scope is granted.
    pub scopes: Vec<String>,
    /// The `scope` of the 401 challenge.
    pub challenge_scope: Option<String>,
    /// The required scope of each tool.
    pub tool_scopes: BTreeMap<String, String>,
    pub step_up: StepUp,

    /// Pre-registered clients.
    pub clients: Vec<KnownClient>,
    /// URLs of accepted client ID metadata documents; none is fetched.
    pub client_documents: Vec<String>,
    pub registration: Registration,
    /// The fault of the registration response.
    pub registered: Manner,
    /// Replaced fields of the device authorization response.
    pub device_fields: Map<String, Value>,

    pub consent: Consent,
    pub iss: Iss,
    /// The true lifetime of an access token, whatever `expires_in` says.
    pub lifetime_s: u64,
    pub expires_in: ExpiresIn,
    pub refresh: Refresh,
    /// The responses to the next token requests.
    pub token_answers: VecDeque<Manner>,
    /// The responses to the next token requests of a device.
    pub polls: VecDeque<Poll>,
    /// The polling `interval` of the device flow, which is not enforced.
    pub poll_interval_s: u64,

    /// The number of sign-ins after which the issuer changes.
    pub migrates_after: Option<usize>,
    /// The delay of every response.
    pub delay_ms: u64,
    /// The prefix of every issued secret, so that tests can search for it.
    pub canary: String,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            script: "everything@dual".into(),
            port: 0,
            layout: Layout::Apart,
            tenant: String::new(),
            sends_on: None,
            challenge: Challenge::Proper,
            resource: Document::default(),
            metadata: Document::default(),
            scopes: Vec::new(),
            challenge_scope: None,
            tool_scopes: BTreeMap::new(),
            step_up: StepUp::Granted,
            clients: Vec::new(),
            client_documents: Vec::new(),
            registration: Registration::Open,
            registered: Manner::Right,
            device_fields: Map::new(),
            consent: Consent::Given,
            iss: Iss::Right,
            lifetime_s: 3600,
            expires_in: ExpiresIn::True,
            refresh: Refresh::FamilyRevoke,
            token_answers: VecDeque::new(),
            polls: VecDeque::new(),
            poll_interval_s: 0,
            migrates_after: None,
            delay_ms: 0,
            canary: String::new(),
        }
    }
}

impl Setup {
    /// Parses `NAME=VALUE` arguments such as `refresh=rotate` or `resource={"manner":"html"}`, with
    /// values as JSON or bare text.
    pub fn of_words(words: impl IntoIterator<Item = String>) -> Result<Self, SetupError> {
        let mut fields = Map::new();
        for word in words {
            let Some((name, value)) = word.split_once('=') else {
                return Err(SetupError::NoValue { word });
            };
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            fields.insert(name.to_owned(), value);
        }
        Ok(serde_json::from_value(fields.into())?)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("`{word}` is not NAME=VALUE")]
    NoValue { word: String },
    #[error("cannot parse the setup of the test authority")]
    Parse(#[from] serde_json::Error),
}

/// The origins of the two servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// The authorization server has its own origin.
    Apart,
    /// Both servers share one origin, as in revision 2025-03-26.
    Together,
}

/// The `WWW-Authenticate` header of a 401.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Challenge {
    Proper,
    /// A 401 without the header.
    Missing,
    /// A malformed header.
    Malformed,
    /// Several schemes in one header, with quoted commas and escapes.
    Multi,
    /// The metadata URL is on another origin, which serves the document.
    CrossOrigin,
}

/// A published JSON document.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[serde(bound = "Place: Usual + Deserialize<'de>")]
pub struct Document<Place> {
    pub places: Vec<Place>,
    /// Replaced fields; `null` removes one.
    pub fields: Map<String, Value>,
    pub manner: Manner,
}

/// The default places of a document.
pub trait Usual: Sized {
    fn usual() -> Vec<Self>;
}

impl<Place: Usual> Default for Document<Place> {
    fn default() -> Self {
        Self { places: Place::usual(), fields: Map::new(), manner: Manner::Right }
    }
}

impl Usual for ResourcePlace {
    fn usual() -> Vec<Self> {
        vec![Self::Pointed, Self::Path]
    }
}

impl Usual for MetadataPlace {
    fn usual() -> Vec<Self> {
        vec![Self::Oauth, Self::OpenId, Self::OpenIdAppended]
    }
}

/// Where the metadata of the protected resource is (RFC 9728).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourcePlace {
    /// At a URL that only the challenge names.
    Pointed,
    /// At the well-known path for the path of the MCP server.
    Path,
    /// At the well-known path of the MCP server's origin.
    Root,
}

/// Where the metadata of the authorization server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetadataPlace {
    /// RFC 8414: the tenant after the well-known part.
    Oauth,
    /// OpenID Connect: the tenant after the well-known part.
    OpenId,
    /// OpenID Connect, with the tenant before the well-known part.
    OpenIdAppended,
}

/// A response: correct, or with a fault.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Manner {
    #[default]
    Right,
    /// A status without a body.
    Status(u16),
    /// 429 with `Retry-After` in seconds.
    Busy { retry_after: u64 },
    /// 400 with an OAuth error code.
    Error(String),
    /// The request gets no response.
    Hang,
    /// The correct response, sent after [`super::Authority::release`].
    Late,
    /// An HTML page with status 200.
    Html,
    /// JSON with the content type `text/plain`.
    PlainText,
    /// JSON of more than a megabyte.
    Huge,
    /// JSON nested ten thousand levels deep.
    Deep,
    /// A redirect to this URL.
    Redirect(String),
    /// Status 200 with these headers and this body.
    Raw { headers: Vec<(String, String)>, body: Vec<u8> },
}

/// Whether step-up authorization grants the missing scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepUp {
    Granted,
    /// The missing scope is not granted, so the token stays insufficient.
    Loop,
}

/// A pre-registered client.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KnownClient {
    pub id: String,
    pub secret: Option<String>,
    /// The only accepted authentication method.
    pub method: AuthMethod,
    /// The registered redirect URIs. If there are none, any URI on loopback is accepted.
    #[serde(default)]
    pub redirect_uris: Vec<String>,
}

/// How a client authenticates at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AuthMethod {
    #[serde(rename = "none")]
    None,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
}

/// Dynamic registration (RFC 7591).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Registration {
    Open,
    /// The server offers no registration.
    Off,
    /// Every registration is refused with an error.
    Fails,
    /// Every client gets a secret that expires in an hour or by
    /// [`super::Authority::expire_secrets`].
    ExpiringSecret,
    /// Clients with `application_type` `native` are refused.
    NoNative,
}

/// The decision of the user in the browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consent {
    Given,
    Denied,
}

/// The `iss` parameter of the redirect (RFC 9207).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Iss {
    Right,
    Wrong,
    Missing,
    /// An issuer that is equal only after URL normalisation.
    Normalised,
}

/// The `expires_in` field of a token response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpiresIn {
    True,
    Zero,
    Negative,
    Missing,
    /// A number of seconds greater than any clock can represent.
    Huge,
    /// The true lifetime, as a string.
    Text,
}

/// What happens to a redeemed refresh token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refresh {
    /// No refresh token is issued.
    Never,
    /// The used refresh token stays valid; the response has no new refresh token.
    Omit,
    /// The used refresh token stays valid; the response has a new refresh token.
    Rotate,
    /// A replay is refused.
    SingleUse,
    /// A replay revokes all tokens of the sign-in.
    FamilyRevoke,
}

/// The response to a polling device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Poll {
    Pending,
    SlowDown,
    Expired,
}
