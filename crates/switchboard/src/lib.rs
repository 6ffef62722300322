//! Every MCP server behind one tool: the engine of Switchboard, as a library.
//!
//! A [`Gateway`] manages the servers and starts them on first use. A [`Session`] handles the
//! requests of one client: it takes a [`Request`](request::Request) and returns a
//! [`Reply`](reply::Reply) or a [`Failure`](failure::Failure).
//!
//! ```
//! use switchboard::exact::Args;
//! use switchboard::{Environment, Gateway, Headless};
//! use switchboard::request::{CallRequest, Request};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! let environment = Environment::made_of([("SWITCHBOARD_HOME", "/nowhere")], "/");
//! let gateway = Gateway::builder(environment).demo().build();
//! let session = gateway.session(Headless);
//!
//! let args = Args::parse(r#"{ "a": 2, "b": 40 }"#)?;
//! let call = CallRequest::new("demo_add", None, args);
//! let reply = session.handle(Request::Call(call)).await?;
//! assert_eq!(switchboard::render::text::reply(&reply), "42");
//! gateway.shutdown().await;
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! In a program whose `main` begins with [`reaper::run_if_asked`], all servers end with the
//! program, even if it is killed.
//!
//! Modules in reading order: [`gateway`], [`session`], then `call` (the pipeline) and `modes`;
//! `blueprint` and `follow` (convert the configuration, and apply its changes); below them
//! `upstream` (one actor for each server), `directory` (all listings) and `dial` (opening
//! connections).

#![warn(missing_docs)]

pub mod gateway;
pub mod session;
mod call;
mod modes;
pub mod connections;
mod notices;
pub mod relay;
pub mod inspect;
mod subscription;
pub mod log_level;
pub mod message_log;
mod blueprint;
mod follow;
pub mod explain;
pub mod host;
pub mod capabilities;
pub mod load;
pub mod discover;
mod sources;
pub mod doctor;
pub mod edit;
pub mod install;
mod known_files;
mod last_good;
pub mod trust;
pub mod auth;
mod upstream;
mod directory;
mod listing_file;
mod pins;
pub mod dial;
pub mod reaper;
mod results;
mod select;
pub mod demo;
pub mod env;
pub mod paths;
pub mod secret;
mod shared_file;
mod blocking;
mod mutex;

pub use call::FoundTool;
pub use env::Environment;
pub use gateway::{Gateway, GatewayBuilder};
pub use host::{Headless, Host};
pub use last_good::LastGood;
pub use session::Session;
pub use upstream::lease::{Caller, Progress};

pub use switchboard_core::{
    approval, catalog, config, connection, content, elicitation, exact, failure, hidden,
    host_profile, lifecycle, name, nesting, notice, pi, render, reply, request, schema, sign_in,
    tool_card,
};
