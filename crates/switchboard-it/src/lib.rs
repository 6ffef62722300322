//! The test kit of Switchboard: scripted MCP servers that share no code with the product, and an
//! isolated environment for the gateway.
//!
//! A [`fixture::Script`] defines the features and faults of a server; [`fixture::act`] runs it over
//! any pair of byte streams, and a [`fixture::FixtureState`] lets a test observe and control it:
//!
//! ```ignore
//! let (ours, theirs) = tokio::io::duplex(64 * 1024);
//! let (reader, writer) = tokio::io::split(theirs);
//! let state = FixtureState::default();
//! let script = Arc::new(Script::load("everything")?);
//! tokio::spawn(act(script, state.clone(), reader, writer, tokio::io::sink()));
//! // … the engine talks to `ours` …
//! state.call_started(1).await;
//! state.release();
//! ```

pub mod authority;
pub mod client;
pub mod faces;
pub mod fixture;
pub mod harness;
pub mod host;
pub mod http_client;
pub mod grove;
pub mod keyring;
pub mod network;
pub mod processes;
pub mod program;
pub mod relay;
pub mod scenario;
pub mod soak;
pub mod terminal;
