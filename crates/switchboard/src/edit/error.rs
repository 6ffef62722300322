//! Why a configuration file was not changed.

use std::io;
use std::path::{Path, PathBuf};

use switchboard_core::config::diagnostic::DiagnosticKind;
use switchboard_core::config::edit;
use switchboard_core::name::ServerName;

use crate::load::{LoadError, RefusedEntry};
use crate::trust::TrustError;

/// Why a configuration file was not edited.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant documents it")]
pub enum EditError {
    #[error("cannot change `{}`", path.display())]
    Io {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("`{}` was not changed, because it is not UTF-8", path.display())]
    NotText { path: PathBuf },
    #[error("cannot change `{}`", path.display())]
    Refused {
        path: PathBuf,
        #[source]
        cause: edit::EditError,
    },
    #[error("cannot read `{}`", path.display())]
    Unread {
        path: PathBuf,
        #[source]
        cause: edit::EditError,
    },
    #[error("the definition of `{server}` is invalid")]
    BadDefinition {
        server: ServerName,
        #[source]
        cause: DiagnosticKind,
    },
    #[error("`{}` already has a server named `{server}`", path.display())]
    Exists { server: ServerName, path: PathBuf },
    #[error("`{key}` is not a key of {of}")]
    UnknownKey { key: String, of: &'static str, suggestions: Vec<String> },
    #[error("invalid value for `{key}`, so `{}` was not changed", path.display())]
    BadValue {
        key: String,
        path: PathBuf,
        #[source]
        cause: Box<DiagnosticKind>,
    },
    #[error("`{pattern}` is not a valid pattern for tool names")]
    BadPattern { pattern: String },
    #[error("there is no `{list}` rule `{pattern}`")]
    NoRule { list: &'static str, pattern: String, suggestions: Vec<String> },
    #[error(transparent)]
    RefusedEntry(Box<RefusedEntry>),
    #[error("no server is named `{name}`")]
    Unknown { name: String, suggestions: Vec<String> },
    #[error("`{server}` is defined in `{}`, which belongs to another program", path.display())]
    Elsewhere { server: ServerName, path: PathBuf },
    #[error("`{}` is a symbolic link that leads out of the project", path.display())]
    LeadsOut { path: PathBuf },
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// Why an edit is refused, without the path of the file.
pub(super) enum EditRefusal {
    Text(edit::EditError),
    Exists(ServerName),
    /// The new value of the key would make the file invalid.
    Value {
        key: String,
        problem: Box<DiagnosticKind>,
    },
}

impl EditRefusal {
    pub(super) fn at(self, path: &Path) -> EditError {
        let path = path.to_path_buf();
        match self {
            EditRefusal::Text(cause) => EditError::Refused { path, cause },
            EditRefusal::Exists(server) => EditError::Exists { server, path },
            EditRefusal::Value { key, problem: cause } => EditError::BadValue { key, path, cause },
        }
    }
}
