//! The record of one installation, with backups of the host's files and the moved servers.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use switchboard_core::config::edit::EditError;
use switchboard_core::config::install::{self, Target};
use switchboard_core::pi::settings::{self as pi, Surroundings};

use super::error::InstallError;
use super::refused;
use crate::secret::hex;

/// One installation: Switchboard's entry in one file of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InstallRecord {
    #[serde(with = "by_name")]
    pub(super) target: Target,
    pub(super) host: FileBackup,
    /// The host's settings, if something was added to them.
    #[serde(default)]
    pub(super) settings: Option<FileBackup>,
    /// The file of the user that servers were moved to; `None` if none was moved.
    pub(super) user: Option<PathBuf>,
    /// The servers that were disabled in the host.
    pub(super) moved: Vec<String>,
}

/// The content of a file before it was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileBackup {
    pub(super) path: PathBuf,
    /// The content before the change; `None` if the file did not exist.
    pub(super) before: Option<String>,
    /// The hash of the written content; `None` if the file was removed.
    pub(super) after: Option<String>,
}

impl FileBackup {
    pub(super) fn new(path: &Path, before: Option<String>, after: Option<&str>) -> FileBackup {
        FileBackup { path: path.to_path_buf(), before, after: after.map(hash) }
    }

    /// The backup of the file after Switchboard has changed it once more.
    pub(super) fn then(&self, now: Option<&str>, after: &str) -> FileBackup {
        match self.untouched(now) {
            Some(_) => FileBackup { after: Some(hash(after)), ..self.clone() },
            // The file holds edits of the user or another program, so the recorded hash stays: with
            // a new hash, undoing would restore the old content and lose the edits.
            None => self.clone(),
        }
    }

    /// The file without the installation: its old content, or if another program changed the file
    /// since, the result of `without` for the current and the old text.
    pub(super) fn undone(
        &self,
        now: Option<String>,
        without: impl FnOnce(&str, &str) -> Result<String, EditError>,
    ) -> Result<Option<String>, InstallError> {
        if let Some(before) = self.untouched(now.as_deref()) {
            return Ok(before);
        }
        let Some(now) = now else { return Ok(None) };
        let without = without(&now, self.before.as_deref().unwrap_or_default());
        without.map(Some).map_err(|cause| refused(&self.path, cause))
    }

    /// A host's settings without the permissions that the installation added.
    pub(super) fn settings_before(
        &self,
        target: Target,
        now: Option<String>,
    ) -> Result<Option<String>, InstallError> {
        self.undone(now, |now, before| install::revoke(target, now, before))
    }

    /// The old content, if only Switchboard changed the file.
    fn untouched(&self, now: Option<&str>) -> Option<Option<String>> {
        let ours = now.map(hash) == self.after || now == self.before.as_deref();
        ours.then(|| self.before.clone())
    }
}

impl InstallRecord {
    /// The record of an installation that changes only the host's file.
    pub(super) fn of_host(target: Target, host: FileBackup) -> InstallRecord {
        InstallRecord { target, host, settings: None, user: None, moved: Vec::new() }
    }

    /// The host's file without the installation.
    pub(super) fn host_before(&self, now: Option<String>) -> Result<Option<String>, InstallError> {
        self.host.undone(now, |now, before| {
            let text = install::undo(self.target, now, before)?;
            install::restore_servers(self.target, &text, before, &self.moved)
        })
    }

    /// Pi's settings without the installation.
    pub(super) fn settings_before(
        &self,
        now: Option<String>,
        with: Surroundings<'_>,
    ) -> Result<Option<String>, InstallError> {
        self.host.undone(now, |now, before| pi::undo(now, before, with))
    }
}

pub(super) fn hash(text: &str) -> String {
    hex(&Sha256::digest(text))
}

mod by_name {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};
    use switchboard_core::config::install::Target;

    pub(super) fn serialize<S: Serializer>(target: &Target, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(target.as_str())
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Target, D::Error> {
        let word = String::deserialize(from)?;
        Target::from_word(&word).ok_or_else(|| D::Error::custom("unknown host"))
    }
}
