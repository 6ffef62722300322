//! The MCP face: any host that speaks MCP reaches the gateway through here.
//!
//! - [`stdio`]: one client over standard input and output;
//! - [`http`]: many clients over HTTP, each with a session of its own;
//! - `service`: one client, what it asks and tells;
//! - `conversation`: what its requests have in common, and how each is answered;
//! - `calls`: its requests, until each is answered once;
//! - `proxy`: all servers behind the one tool;
//! - `direct`: the tools beside it;
//! - `granular`: all servers behind a tool for each step;
//! - `mirror`: one server as it is;
//! - `pi`: what the extension of Pi asks for its user;
//! - `answer`: replies and failures, translated to MCP results;
//! - `modern`: what requests and answers of the stateless revision say beside themselves;
//! - `rounds`: calls that go on over several requests of such a client;
//! - `bulletin`, `listen`: changes, for those who asked to hear of them;
//! - `host`, `question`: the user behind the client, and what is asked of it.

mod answer;
mod bulletin;
mod calls;
mod conversation;
mod direct;
mod granular;
mod host;
pub mod http;
mod levels;
mod listen;
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
