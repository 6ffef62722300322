//! The request for an edit of the configuration, and its result.

use std::path::PathBuf;

use serde_json::{Map, Value};
use switchboard_core::name::ServerName;

/// The owner of the configuration to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The user's own file.
    User,
    /// The project's file.
    Project,
}

/// A server to be added.
#[derive(Clone, Debug)]
pub struct NewServer {
    /// The name of the server.
    pub name: ServerName,
    /// The entry of the server, as written to the file.
    pub entry: Map<String, Value>,
}

/// How an existing entry of the same name is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// An entry of the same name is an error.
    Refuse,
    /// An entry of the same name is replaced.
    Replace,
}

/// Whether a change is written, or only computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditEffect {
    /// The change is only computed, to be shown.
    Planned,
    /// The change is written to the file.
    Written,
}

/// Whether a server is enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// The server is enabled.
    On,
    /// The server is disabled.
    Off,
}

/// A file before and after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The path of the file.
    pub path: PathBuf,
    /// The content of the file before the edit; empty if there was no file.
    pub before: String,
    /// The content of the file after the edit.
    pub after: String,
}

impl Edited {
    /// Whether the edit changes the file.
    pub fn is_changed(&self) -> bool {
        self.before != self.after
    }
}
