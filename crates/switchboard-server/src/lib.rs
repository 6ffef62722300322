//! The MCP face: any host that speaks MCP reaches the gateway through here.
//!
//! - [`stdio`]: one client over standard input and output;
//! - [`http`]: many clients over HTTP, each with a session of its own;
//! - `service`: MCP methods, translated to requests of a session;
//! - `answer`: replies and failures, translated to MCP results;
//! - `host`: the user behind the client, asked by elicitation.

mod answer;
mod host;
pub mod http;
mod service;
pub mod stdio;
