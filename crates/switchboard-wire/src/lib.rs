//! MCP on bytes: what stands on the wire, and nothing about what to do with it.
//!
//! A gateway relays, so a frame is parsed once, payloads stay the bytes that they were ([`Raw`]),
//! and whatever this crate does not know survives. Modules in reading order:
//!
//! - [`frame`]: newline-delimited frames, bounded;
//! - [`envelope`]: the JSON-RPC envelope, ids with their type, raw payloads;
//! - [`peer`]: requests, answers, notifications, cancellation and progress over one connection;
//! - [`era`]: which revision of the protocol is spoken, and what a server says of itself;
//! - [`handshake`]: how a client finds that out;
//! - [`modern`]: names and codes of the stateless revision;
//! - [`stdio`]: the pipes of this process without blocking threads;
//! - [`pipe`]: a pair of connected in-process ends;
//! - [`sse`]: event streams, bounded;
//! - [`http_client`]: servers at a URL;
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
