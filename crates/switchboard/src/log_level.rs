//! The log level that each session requested, and the resulting level of each connection.

use std::sync::{Arc, Mutex};

use hashbrown::HashMap;
use serde::Deserialize;
use serde_json::Value;
use switchboard_core::exact::Args;

use crate::mutex::lock;
use crate::upstream::SessionId;

/// The log levels of MCP, most verbose first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Detailed debugging information.
    Debug,
    /// General information.
    Info,
    /// A normal but significant event.
    Notice,
    /// A warning.
    Warning,
    /// An error.
    Error,
    /// A critical condition.
    Critical,
    /// Action is needed immediately.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LogLevel {
    /// The name of the level in MCP.
    pub fn as_str(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Notice => "notice",
            LogLevel::Warning => "warning",
            LogLevel::Error => "error",
            LogLevel::Critical => "critical",
            LogLevel::Alert => "alert",
            LogLevel::Emergency => "emergency",
        }
    }

    /// The parameters of `logging/setLevel` for this level.
    pub(crate) fn params(self) -> Args {
        Args::of("level", Value::from(self.as_str()))
    }
}

/// The requested levels of all sessions; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogLevels {
    /// The level that each session requested. The mutex is locked only briefly, never across an
    /// `await`.
    wanted: Arc<Mutex<HashMap<SessionId, LogLevel>>>,
}

impl LogLevels {
    pub(crate) fn want(&self, session: SessionId, level: LogLevel) {
        lock(&self.wanted).insert(session, level);
    }

    pub(crate) fn forget(&self, session: SessionId) {
        lock(&self.wanted).remove(&session);
    }

    /// The level for a connection, if a session that uses it set one. A shared connection gets the
    /// most verbose level; each host drops messages below its own.
    pub(crate) fn of(&self, owner: Option<SessionId>) -> Option<LogLevel> {
        let wanted = lock(&self.wanted);
        match owner {
            Some(owner) => wanted.get(&owner).copied(),
            None => wanted.values().min().copied(),
        }
    }
}
