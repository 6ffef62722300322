//! Why a configuration file stays as it is.

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
    #[error("`{}` is not text, so it stays as it is", path.display())]
    NotText { path: PathBuf },
    #[error("cannot change `{}`, which stays as it is", path.display())]
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
    #[error("the definition of `{server}` cannot be used")]
    BadDefinition {
        server: ServerName,
        #[source]
        cause: DiagnosticKind,
    },
    #[error("`{}` has a server named `{server}` already", path.display())]
    Exists { server: ServerName, path: PathBuf },
    #[error("`{key}` is no key of the {of}")]
    UnknownKey { key: String, of: &'static str, suggestions: Vec<String> },
    #[error("`{key}` cannot have this value, so `{}` stays as it is", path.display())]
    BadValue {
        key: String,
        path: PathBuf,
        #[source]
        cause: Box<DiagnosticKind>,
    },
    #[error("`{pattern}` is no pattern over names of tools")]
    BadPattern { pattern: String },
    #[error(transparent)]
    RefusedEntry(Box<RefusedEntry>),
    #[error("no server is named `{name}`")]
    Unknown { name: String, suggestions: Vec<String> },
    #[error("`{server}` stands in `{}`, which belongs to another program", path.display())]
    Elsewhere { server: ServerName, path: PathBuf },
    #[error("`{}` is a link that leads out of the project", path.display())]
    LeadsOut { path: PathBuf },
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// Why the edits of a file cannot be worked out.
pub(super) enum EditRefusal {
    Text(edit::EditError),
    Exists(ServerName),
    /// The file would not be read any more.
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
