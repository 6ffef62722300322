//! What is needed to take an installation back: the files as they were, and what was moved.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use switchboard_core::config::edit::{self, Change, Edit};
use switchboard_core::config::install::pi::{self, Surroundings};
use switchboard_core::config::install::{self, Target};

use super::error::InstallError;
use super::refused;
use crate::paths::{self, Unread};
use crate::shared_file::{SharedFile, UpdateError};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    pub(super) host: Kept,
    /// `None` if our file was not changed.
    pub(super) ours: Option<Kept>,
    /// The servers that were switched off in the host.
    pub(super) moved: Vec<String>,
    /// Those of them that were copied into our file, as they were written.
    pub(super) copied: Map<String, Value>,
}

/// A file before it was changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    pub(super) path: PathBuf,
    /// `None` if there was none.
    before: Option<String>,
    /// The hash of what we wrote.
    after: Option<String>,
}

impl Kept {
    pub(super) fn new(path: &Path, before: Option<String>, after: Option<&str>) -> Kept {
        Kept { path: path.to_path_buf(), before, after: after.map(hash) }
    }

    /// The old content, if nobody but us changed the file; what is there has to be looked through
    /// otherwise.
    fn untouched(&self, now: Option<&str>) -> Option<Option<String>> {
        let ours = now.map(hash) == self.after || now == self.before.as_deref();
        ours.then(|| self.before.clone())
    }
}

impl Record {
    /// Of one file, with no server moved.
    pub(super) fn of_host(host: Kept) -> Record {
        Record { host, ours: None, moved: Vec::new(), copied: Map::new() }
    }

    /// The host's file without what we did to it.
    pub(super) fn host_before(
        &self,
        target: Target,
        now: Option<String>,
    ) -> Result<Option<String>, InstallError> {
        if let Some(before) = self.host.untouched(now.as_deref()) {
            return Ok(before);
        }
        let Some(now) = now else { return Ok(None) };
        let before = self.host.before.as_deref().unwrap_or_default();
        let without = install::take_out(target, &now)
            .and_then(|text| install::switch_back(target, &text, before, &self.moved));
        without.map(Some).map_err(|cause| refused(&self.host.path, cause))
    }

    /// Pi's settings without what we did to them.
    pub(super) fn settings_before(
        &self,
        now: Option<String>,
        with: Surroundings<'_>,
    ) -> Result<Option<String>, InstallError> {
        if let Some(before) = self.host.untouched(now.as_deref()) {
            return Ok(before);
        }
        let Some(now) = now else { return Ok(None) };
        let before = self.host.before.as_deref().unwrap_or_default();
        let without = pi::take_back(&now, before, with);
        without.map(Some).map_err(|cause| refused(&self.host.path, cause))
    }

    /// Our file without the copies that nobody changed.
    pub(super) fn user_before(&self, now: Option<String>) -> Result<Option<String>, InstallError> {
        let Some(kept) = &self.ours else { return Ok(now) };
        if let Some(before) = kept.untouched(now.as_deref()) {
            return Ok(before);
        }
        let Some(now) = now else { return Ok(None) };
        let refused = |cause| refused(&kept.path, cause);
        let before = kept.before.as_deref().unwrap_or_default();
        let mut edits = Vec::new();
        for (name, copied) in &self.copied {
            let (key, entry) = crate::edit::entry_of(&now, name).map_err(refused)?;
            if entry.as_ref() == Some(copied) {
                // A flag may have stood there.
                let (_, old) = crate::edit::entry_of(before, name).map_err(refused)?;
                edits.push(Edit::new([key, name], old.map_or(Change::Remove, Change::Set)));
            }
        }
        edit::apply(&now, &edits).map(Some).map_err(refused)
    }
}

fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Where the record of one host lies.
pub(super) struct RecordFile {
    path: PathBuf,
}

impl RecordFile {
    pub(super) fn at(path: PathBuf) -> RecordFile {
        RecordFile { path }
    }

    pub(super) fn read(&self) -> Result<Option<Record>, InstallError> {
        let path = self.path.clone();
        let bytes = match paths::read_private(&self.path) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(Unread::Exposed) => return Err(InstallError::Foreign { path }),
            Err(Unread::Io(cause)) => return Err(InstallError::Record { path, cause }),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|_| InstallError::Foreign { path })
    }

    pub(super) fn write(&self, record: &Record) -> Result<(), InstallError> {
        let bytes = serde_json::to_vec(record).map_err(|cause| InstallError::Record {
            path: self.path.clone(),
            cause: cause.into(),
        })?;
        self.done(SharedFile::ours(self.path.clone()).update(|_| Ok(Some(bytes.clone()))))
    }

    pub(super) fn remove(&self) -> Result<(), InstallError> {
        self.done(SharedFile::ours(self.path.clone()).remove(|_| Ok(())))
    }

    fn done(&self, done: Result<(), UpdateError<InstallError>>) -> Result<(), InstallError> {
        done.map_err(|error| match error {
            UpdateError::Io(cause) => InstallError::Record { path: self.path.clone(), cause },
            UpdateError::Change(error) => error,
        })
    }
}
