//! MCP on bytes: parsing, framing and transports, without decisions about messages.
//!
//! A gateway relays messages, so a frame is parsed once, payloads stay unchanged bytes ([`Raw`]),
//! and unknown members are kept. Modules in reading order:
//!
//! - [`frame`]: newline-delimited frames, bounded;
//! - [`envelope`]: the JSON-RPC envelope, ids with their type, raw payloads;
//! - [`peer`]: requests, answers, notifications, cancellation and progress over one connection;
//! - [`era`]: protocol revisions, and the result of a handshake;
//! - [`handshake`]: the handshake of a client;
//! - [`modern`]: names and codes of the stateless revision;
//! - [`stdio`]: the pipes of this process without blocking threads;
//! - [`pipe`]: a pair of connected in-process ends;
//! - [`sse`]: event streams, bounded;
//! - [`http_client`]: servers over HTTP;
//! - [`websocket`]: servers over WebSocket.

mod alarm;
pub mod envelope;
pub mod era;
pub mod frame;
pub mod handshake;
pub mod http_client;
pub mod modern;
mod outbox;
pub mod peer;
pub mod pipe;
pub mod sse;
pub mod stdio;
pub mod websocket;

pub use envelope::{Id, Message, Raw, RpcError};
pub use peer::{Exchange, Handler, Notification, Peer, RequestError, Responder};
