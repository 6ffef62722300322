//! What happened to an authority: every request and what came of it, without a secret.

use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::setup::AuthMethod;

/// A handle on the record of an authority; clones share it.
#[derive(Debug, Clone)]
pub struct Ledger {
    record: watch::Sender<Record>,
}

/// Everything that happened so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Record {
    /// In order of arrival, those that are not answered yet included.
    pub requests: Vec<Seen>,
    /// Pages that a person would have seen.
    pub visits: usize,
    /// Codes, of browsers and of devices, that became tokens.
    pub sign_ins: usize,
    /// Refresh tokens that became an access token.
    pub redemptions: usize,
    /// Refresh tokens that came again after they were redeemed, where that is not allowed.
    pub replays: usize,
    /// Sign-ins that ended, because of a replay or by the revocation endpoint.
    pub revocations: usize,
    /// Requests for a token that did not get one.
    pub refusals: usize,
}

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Seen {
    pub endpoint: Endpoint,
    /// The path of the issuer whose endpoint it is; empty for that of the MCP server, too.
    pub tenant: String,
    /// What the `Host` header says.
    pub host: String,
    /// What a message to the MCP server asks for.
    pub method: Option<String>,
    pub grant_type: Option<String>,
    pub client: Option<String>,
    /// How the client said who it is.
    pub client_auth: Option<AuthMethod>,
    /// The refresh token or the bearer that came along, by its [`fingerprint`].
    pub token: Option<String>,
    pub resource: Option<String>,
    pub scope: Option<String>,
}

/// Where a request went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Endpoint {
    Mcp,
    ResourceMetadata,
    Metadata,
    Register,
    Authorize,
    Token,
    Device,
    /// Where a person approves a device.
    DevicePage,
    Revoke,
    /// Nowhere.
    Unknown,
}

impl Record {
    /// How many requests an endpoint had.
    pub fn count(&self, endpoint: Endpoint) -> usize {
        self.requests.iter().filter(|seen| seen.endpoint == endpoint).count()
    }

    /// The requests to an endpoint.
    pub fn to(&self, endpoint: Endpoint) -> Vec<&Seen> {
        self.requests.iter().filter(|seen| seen.endpoint == endpoint).collect()
    }
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self { record: watch::Sender::new(Record::default()) }
    }

    pub fn now(&self) -> Record {
        self.record.borrow().clone()
    }

    /// Waits until the record satisfies `condition`, and returns it as it was then.
    pub async fn until(&self, condition: impl FnMut(&Record) -> bool) -> Record {
        let mut changes = self.record.subscribe();
        let reached = changes.wait_for(condition).await;
        reached.expect("this handle keeps the sender alive").clone()
    }

    pub(super) fn note(&self, change: impl FnOnce(&mut Record)) {
        self.record.send_modify(change);
    }
}

/// What a ledger has of a secret: enough to tell two apart.
pub fn fingerprint(secret: &str) -> String {
    Sha256::digest(secret).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
