//! Parses configuration files and merges them into one set of servers and settings.
//!
//! The input is text. [`parse::parse`] parses our own files, [`pi_servers::parse`] the list of Pi,
//! and [`hosts::parse`] the files of other hosts. [`layers::merge`] merges the parsed files, and
//! [`expand`] expands the variables of a merged definition. This module does no IO.

pub mod auth;
pub mod conflicts;
pub mod diagnostic;
pub mod edit;
pub mod expand;
pub mod hosts;
pub mod identity;
mod ignored;
pub mod install;
pub mod layers;
pub mod mask;
pub mod parse;
pub mod pi_servers;
pub mod schema;
pub mod secrecy;
pub mod server;
pub mod settings;
pub mod show;
pub mod snippet;
pub mod transport;
pub mod trust;
pub mod values;
pub mod words;

mod canonical;
mod fields;
mod misplaced;
mod reader;
mod syntax;
mod table;

#[cfg(test)]
mod tests;
