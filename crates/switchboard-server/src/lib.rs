//! The MCP face: hosts that speak MCP reach the gateway through this crate.
//!
//! - [`stdio`]: one client over standard input and output;
//! - [`http`]: many clients over HTTP, each with a session of its own;
//! - `service`: one client, its requests and notifications;
//! - `conversation`: the state that the requests of a client share, and how each is answered;
//! - `calls`: the requests in flight of one client; each is answered exactly once;
//! - `proxy`: all servers behind the tool `mcp`;
//! - `direct`: the direct tools beside `mcp`;
//! - `granular`: the granular tools, one for each step;
//! - `mirror`: one server, passed through unchanged;
//! - `pi`: requests of the Pi extension;
//! - `answer`: replies and failures, translated to MCP results;
//! - `modern`: metadata in requests and results of the stateless revision;
//! - `rounds`: calls that span several requests of a stateless client;
//! - `bulletin`, `listen`: change notifications for subscribed stateless clients;
//! - `host`, `question`: the forms that ask the user behind the client.

mod answer;
mod bulletin;
mod calls;
mod conversation;
mod direct;
mod granular;
mod host;
pub mod http;
mod listen;
mod lock;
mod mirror;
mod modern;
mod news;
mod pace;
mod params;
mod pi;
mod proxy;
mod question;
mod rounds;
mod service;
pub mod stdio;

pub use direct::{definitions, warning_of_many};
pub use service::{HostKind, Offer};
