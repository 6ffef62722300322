//! The MCP face: any host that speaks MCP reaches the gateway through here.
//!
//! - [`stdio`]: one client over standard input and output;
//! - `service`: MCP methods, translated to requests of a session;
//! - `answer`: replies and failures, translated to MCP results;
//! - `host`: the user behind the client, asked by elicitation.

mod answer;
mod host;
mod service;
pub mod stdio;
