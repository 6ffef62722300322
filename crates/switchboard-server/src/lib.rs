//! The MCP face: any host that speaks MCP reaches the gateway through here.
//!
//! - [`stdio`]: one client over standard input and output;
//! - [`http`]: many clients over HTTP, each with a session of its own;
//! - `service`: one client, what it asks and tells;
//! - `calls`: its requests, until each is answered once;
//! - `proxy`: all servers behind the one tool;
//! - `granular`: all servers behind a tool for each step;
//! - `mirror`: one server as it is;
//! - `answer`: replies and failures, translated to MCP results;
//! - `host`: the user behind the client, asked by elicitation.

mod answer;
mod calls;
mod granular;
mod host;
pub mod http;
mod levels;
mod mirror;
mod news;
mod params;
mod proxy;
mod service;
pub mod stdio;

pub use service::Offer;
