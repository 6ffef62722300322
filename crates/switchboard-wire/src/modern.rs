//! Names and error codes of the stateless revision, for both sides of the gateway.

/// The stateless revision, in which every request carries the client's information and
/// capabilities.
pub const REVISION: &str = "2026-07-28";

/// The method that returns a server's capabilities; it replaces `initialize`.
pub const DISCOVER: &str = "server/discover";
/// The request that stays open while its sender subscribes to changes.
pub const LISTEN: &str = "subscriptions/listen";
/// The notification that acknowledges a subscription; no other precedes it.
pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// Error code: an HTTP header contradicts the message.
pub const HEADER_MISMATCH: i64 = -32020;
/// Error code: the client did not declare a capability that the request needs.
pub const MISSING_CAPABILITY: i64 = -32021;
/// Error code: the server does not support the revision of the request on this connection.
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
