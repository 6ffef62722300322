//! The record of an authorization server: every request and its outcome, without secrets.

use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::setup::AuthMethod;

/// A handle on the record of an authorization server; clones share it.
#[derive(Debug, Clone)]
pub struct Ledger {
    record: watch::Sender<Record>,
}

/// The requests and their outcomes so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Record {
    /// All requests in order of arrival, including those without a response.
    pub requests: Vec<Seen>,
    /// Requests for pages of the user.
    pub visits: usize,
    /// Authorization and device codes that were exchanged for tokens.
    pub sign_ins: usize,
    /// Refresh tokens that were exchanged for an access token.
    pub redemptions: usize,
    /// Refresh tokens that were used again although they are single-use.
    pub replays: usize,
    /// Sign-ins that were revoked by a replay or by the revocation endpoint.
    pub revocations: usize,
    /// Token requests that were refused.
    pub refusals: usize,
}

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Seen {
    pub endpoint: Endpoint,
    /// The path of the issuer that owns the endpoint; empty for the MCP server.
    pub tenant: String,
    /// The `Host` header.
    pub host: String,
    /// The JSON-RPC method of a message to the MCP server.
    pub method: Option<String>,
    pub grant_type: Option<String>,
    pub client: Option<String>,
    /// The authentication method of the client.
    pub client_auth: Option<AuthMethod>,
    /// The [`fingerprint`] of the refresh token or bearer token.
    pub token: Option<String>,
    pub resource: Option<String>,
    pub scope: Option<String>,
}

/// The endpoint of a request.
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
    /// The page where the user approves a device.
    DevicePage,
    Revoke,
    /// A path without an endpoint.
    Unknown,
}

impl Record {
    /// The number of requests to an endpoint.
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

    /// Waits until the record satisfies `condition`, and returns it.
    pub async fn until(&self, condition: impl FnMut(&Record) -> bool) -> Record {
        let mut changes = self.record.subscribe();
        let reached = changes.wait_for(condition).await;
        reached.expect("this handle keeps the sender alive").clone()
    }

    pub(super) fn note(&self, change: impl FnOnce(&mut Record)) {
        self.record.send_modify(change);
    }
}

/// A short hash of a secret, enough to tell two apart.
pub fn fingerprint(secret: &str) -> String {
    Sha256::digest(secret).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
