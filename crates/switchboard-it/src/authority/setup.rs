//! What an authority offers and how it misbehaves, as data.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An authority and the server that it guards; the default is well-behaved and strict.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Setup {
    /// What the guarded MCP server acts.
    pub script: String,
    /// Of the MCP server; any free one if it is zero.
    pub port: u16,
    pub layout: Layout,
    /// The path of the issuer, such as `/tenant`.
    pub tenant: String,

    /// The MCP server is elsewhere now, and says so to everybody.
    pub sends_on: Option<String>,
    pub challenge: Challenge,
    pub resource: Document<ResourcePlace>,
    pub metadata: Document<MetadataPlace>,

    /// Those that both documents list; if there are any, no other is granted.
    pub scopes: Vec<String>,
    /// What the challenge asks for.
    pub challenge_scope: Option<String>,
    /// The scope that a call of a tool needs.
    pub tool_scopes: BTreeMap<String, String>,
    pub step_up: StepUp,

    /// Clients that were registered before.
    pub clients: Vec<KnownClient>,
    /// Addresses of client documents that are accepted; none is fetched.
    pub client_documents: Vec<String>,
    pub registration: Registration,
    /// How the answer to a registration comes, if not as it should.
    pub registered: Manner,
    /// Fields of the answer to a device that are replaced.
    pub device_fields: Map<String, Value>,

    pub consent: Consent,
    pub iss: Iss,
    /// The true lifetime of an access token, whatever is said of it.
    pub lifetime_s: u64,
    pub expires_in: ExpiresIn,
    pub refresh: Refresh,
    /// How the next requests for a token are answered.
    pub token_answers: VecDeque<Manner>,
    /// How the next questions for the token of a device are answered.
    pub polls: VecDeque<Poll>,
    /// How long a device is told to wait between two questions; it may ask sooner.
    pub poll_interval_s: u64,

    /// Another issuer is in charge after so many sign-ins.
    pub migrates_after: Option<usize>,
    /// The authority takes so long for every answer.
    pub delay_ms: u64,
    /// Every secret that is given out begins with it, so that it can be looked for.
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
    /// From words such as `refresh=rotate` or `resource={"manner":"html"}`: the name of a field
    /// and its value, as JSON or as bare text.
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
    #[error("cannot understand the setup")]
    Parse(#[from] serde_json::Error),
}

/// On which origins things are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// The authority has an origin of its own.
    Apart,
    /// The MCP server's origin is the issuer's too, as in revision 2025-03-26.
    Together,
}

/// What a 401 says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Challenge {
    Proper,
    /// Nothing.
    Missing,
    /// A text that does not follow the grammar.
    Malformed,
    /// Several schemes in one header, with quoted commas and escapes.
    Multi,
    /// The metadata are on another origin, which has them.
    CrossOrigin,
}

/// A JSON document that is published.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[serde(bound = "Place: Usual + Deserialize<'de>")]
pub struct Document<Place> {
    pub places: Vec<Place>,
    /// Fields that are replaced; `null` takes one out.
    pub fields: Map<String, Value>,
    pub manner: Manner,
}

/// The places where a document is, unless something else is said.
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

/// Where the metadata of the protected resource are (RFC 9728).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourcePlace {
    /// At an address that only the challenge knows.
    Pointed,
    /// At the well-known place for the path of the MCP server.
    Path,
    /// At the well-known place of its origin.
    Root,
}

/// Where the metadata of the authority are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetadataPlace {
    /// RFC 8414: the tenant after the well-known part.
    Oauth,
    /// OpenID Connect, likewise.
    OpenId,
    /// OpenID Connect, with the tenant before the well-known part.
    OpenIdAppended,
}

/// How an answer comes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Manner {
    #[default]
    Right,
    /// With a status, and nothing else.
    Status(u16),
    /// 429 and the seconds to wait.
    Busy { retry_after: u64 },
    /// 400 and an error of OAuth.
    Error(String),
    /// Never.
    Hang,
    /// As it should be, with all that it means, after [`super::Authority::release`].
    Late,
    /// A page for people, with status 200.
    Html,
    /// As JSON that says to be text.
    PlainText,
    /// As JSON of more than a megabyte.
    Huge,
    /// As JSON of ten thousand levels.
    Deep,
    /// From another address.
    Redirect(String),
    /// With status 200, these headers and these bytes.
    Raw { headers: Vec<(String, String)>, body: Vec<u8> },
}

/// Whether it helps to ask for the scope that was missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepUp {
    Granted,
    /// It is missing ever after.
    Loop,
}

/// A client that somebody registered by hand.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KnownClient {
    pub id: String,
    pub secret: Option<String>,
    /// The only way in which it may show its secret.
    pub method: AuthMethod,
    /// Any on loopback if there are none.
    #[serde(default)]
    pub redirect_uris: Vec<String>,
}

/// How a client says at the token endpoint who it is.
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
    /// Not offered.
    Off,
    /// Offered, and refused with an error.
    Fails,
    /// Everybody gets a secret, which ends in an hour or by [`super::Authority::expire_secrets`].
    ExpiringSecret,
    /// Refuses whoever calls itself a native application.
    NoNative,
}

/// What the person before the browser does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consent {
    Given,
    Denied,
}

/// The issuer in the redirect (RFC 9207).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Iss {
    Right,
    Wrong,
    Missing,
    /// The same for whoever normalises it, and for nobody else.
    Normalised,
}

/// What is said of the lifetime of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpiresIn {
    True,
    Zero,
    Negative,
    Missing,
    /// More than any clock holds.
    Huge,
    /// The truth, as a string.
    Text,
}

/// What becomes of a refresh token that was redeemed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refresh {
    /// None is ever given.
    Never,
    /// It goes on, and the answer has no other one.
    Omit,
    /// It goes on, beside another one.
    Rotate,
    /// It is refused when it comes again.
    SingleUse,
    /// When it comes again, everything that the sign-in gave ends.
    FamilyRevoke,
}

/// An answer to a device that asks whether it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Poll {
    Pending,
    SlowDown,
    Expired,
}
