//! What an installation would change: shown before it is written.

use std::path::PathBuf;

use switchboard_core::config::install::{Added, Target};

use super::archive::Archive;
use super::ledger::Ledger;
use super::record::InstallRecord;
use crate::edit::Edited;

/// What happens to the servers that a host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// They stay in the host.
    Stay,
    /// They are copied into our file and switched off in the host.
    Move,
}

/// What would be written. Nothing is until [`Installer::carry_out`].
#[derive(Clone, Debug)]
pub struct InstallPlan {
    /// The files that change, in the order in which they are written.
    pub files: Vec<FileChange>,
    /// The servers that are switched off in the host, or on again.
    pub moved: Vec<String>,
    /// The servers that stay in the host although all were to be moved.
    pub stay: Vec<Staying>,
    /// The packages that go because ours is after the same commands.
    pub displaced: Vec<String>,
    /// What is written besides the command, and why.
    pub added: Vec<Added>,
    /// Whether the host still has an entry of ours afterwards: one that it had before we came.
    pub leaves_ours: bool,
    /// What was written down when it was planned.
    pub(super) archive: Archive,
    /// What shall be written down.
    pub(super) record: Option<InstallRecord>,
    /// What shall be written down no more.
    pub(super) forget: Option<InstallRecord>,
    /// The copies in the user's file, if that has or had any.
    pub(super) ledger: Option<Ledger>,
}

impl InstallPlan {
    pub(super) fn nothing(archive: Archive) -> InstallPlan {
        InstallPlan {
            files: Vec::new(),
            moved: Vec::new(),
            stay: Vec::new(),
            displaced: Vec::new(),
            added: Vec::new(),
            leaves_ours: false,
            archive,
            record: None,
            forget: None,
            ledger: None,
        }
    }

    /// Whether everything is so already.
    pub fn is_nothing(&self) -> bool {
        self.files.is_empty()
    }
}

/// A file before and after; `None` means that there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file.
    pub path: PathBuf,
    /// Whose file it is.
    pub owner: Owner,
    /// Its content before; `None` if it does not exist.
    pub before: Option<String>,
    /// Its content after; `None` if it is removed.
    pub after: Option<String>,
}

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The host, with its servers.
    Host(Target),
    /// The host's, with its settings.
    Settings(Target),
    /// The user, with the servers of Switchboard.
    User,
    /// It is one of the package that Pi loads.
    Package,
}

impl FileChange {
    pub(super) fn new(
        path: PathBuf,
        owner: Owner,
        before: Option<String>,
        after: Option<String>,
    ) -> FileChange {
        FileChange { path, owner, before, after }
    }

    /// The change as an edit of a configuration file.
    pub fn edited(&self) -> Edited {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Edited { path: self.path.clone(), before: text(&self.before), after: text(&self.after) }
    }
}

/// A server that was not moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staying {
    /// Its name.
    pub name: String,
    /// Why it is not taken over.
    pub reason: Reason,
}

/// Why an entry is not taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Our own file has another server of that name.
    Conflict,
    /// Only the host can start it.
    OnlyInHost,
}
