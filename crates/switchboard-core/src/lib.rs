//! The core of Switchboard: its types, and every decision that only depends on values.
//!
//! No code here accesses a runtime, a file, the clock or the environment. The faces and the engine
//! pass such data in as values. The modules are in reading order.

mod spelled;
pub mod name;
pub mod hidden;
pub mod nesting;
pub mod failure;
pub mod exact;
pub mod request;
pub mod host_profile;
pub mod tool_card;
pub mod tokens;
pub mod introduction;
pub mod config;
pub mod schema;
pub mod pattern;
pub mod globs;
pub mod budget;
pub mod catalog;
pub mod approval;
pub mod lifecycle;
pub mod launcher;
pub mod content;
pub mod reply;
pub mod restriction;
pub mod connection;
pub mod elicitation;
pub mod notice;
pub mod message_trace;
pub mod sign_in;
pub mod render;
pub mod doctor;
pub mod pi;
