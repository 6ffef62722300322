//! Names and codes of the stateless revision, which both sides of the gateway use.

/// The revision in which every request says who asks and what that one can do.
pub const REVISION: &str = "2026-07-28";

/// The method that tells what a server is; it takes the place of `initialize`.
pub const DISCOVER: &str = "server/discover";
/// The request that stays open for as long as its sender wants to hear of changes.
pub const LISTEN: &str = "subscriptions/listen";
/// The first thing that is said on a subscription.
pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// A header says other than the message that it stands above.
pub const HEADER_MISMATCH: i64 = -32020;
/// The client did not declare what the request needs.
pub const MISSING_CAPABILITY: i64 = -32021;
/// The request is of a revision that the server does not speak, or not on this connection.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// The reserved members of `_meta`.
pub mod meta {
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
}
