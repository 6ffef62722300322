//! What an edit of the configuration is asked to do, and what it changed.

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
    /// Its name.
    pub name: ServerName,
    /// Its entry, as written to the file.
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
    /// It is only computed, to be shown.
    Planned,
    /// It is written to the file.
    Written,
}

/// Whether a server is used.
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
    /// The file.
    pub path: PathBuf,
    /// Its content before the edit; empty if there was no file.
    pub before: String,
    /// Its content after the edit.
    pub after: String,
}

impl Edited {
    /// Whether the edit changes the file.
    pub fn is_changed(&self) -> bool {
        self.before != self.after
    }
}
