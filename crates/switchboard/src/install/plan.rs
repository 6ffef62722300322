//! The plan of an installation, shown before it is written.

use std::path::PathBuf;

use switchboard_core::config::install::{Added, Target};

use super::archive::Archive;
use super::ledger::Ledger;
use super::record::InstallRecord;
use crate::edit::Edited;

/// Whether the servers of a host are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// The servers stay in the host.
    Stay,
    /// The servers are copied into Switchboard's file and disabled in the host.
    Move,
}

/// The planned changes of an installation or uninstallation, which [`Installer::carry_out`] writes.
#[derive(Clone, Debug)]
pub struct InstallPlan {
    /// The files that change, in the order in which they are written.
    pub files: Vec<FileChange>,
    /// The servers that are disabled in the host, or enabled again.
    pub moved: Vec<String>,
    /// The servers that stay in the host although the user requested to move all.
    pub stay: Vec<Staying>,
    /// The packages that are removed from Pi because they define the same commands as Switchboard.
    pub displaced: Vec<String>,
    /// The additions to Switchboard's entry besides the command, with their reasons.
    pub added: Vec<Added>,
    /// Whether an uninstallation leaves an entry for Switchboard in the host, because the host had
    /// the entry before the installation.
    pub leaves_ours: bool,
    /// The stored records of all installations at the time of planning.
    pub(super) archive: Archive,
    /// The installation record to store; `None` if the plan stores none.
    pub(super) record: Option<InstallRecord>,
    /// The installation record to remove; `None` if the plan removes none.
    pub(super) forget: Option<InstallRecord>,
    /// The ledger of the user's file, if that file has or had copies of hosts' servers.
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

    /// Whether the plan changes no file.
    pub fn is_nothing(&self) -> bool {
        self.files.is_empty()
    }
}

/// A file before and after an installation or uninstallation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The path of the file.
    pub path: PathBuf,
    /// The owner of the file.
    pub owner: Owner,
    /// The content before the change; `None` if the file does not exist.
    pub before: Option<String>,
    /// The content after the change; `None` if the file is removed.
    pub after: Option<String>,
}

/// The program or the user to which a changed file belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The host whose servers the file holds.
    Host(Target),
    /// The host whose other settings the file holds.
    Settings(Target),
    /// The user: the file is Switchboard's configuration.
    User,
    /// Switchboard's package, which Pi loads.
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

    /// Converts the change to an edit of a configuration file.
    pub fn edited(&self) -> Edited {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Edited { path: self.path.clone(), before: text(&self.before), after: text(&self.after) }
    }
}

/// A server that was not moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staying {
    /// The name of the server.
    pub name: String,
    /// Why the server was not moved.
    pub reason: Reason,
}

/// Why a server is not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The user's file has a different server of that name.
    Conflict,
    /// Only the host can start the server.
    OnlyInHost,
}
