//! The stored data of all installations: a record for each file of a host, and a ledger for each
//! file of the user that servers were copied into.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use switchboard_core::config::install::Target;

use super::error::InstallError;
use super::ledger::{Copy, Ledger};
use super::record::{FileBackup, InstallRecord, hash};
use crate::edit::text_of;
use crate::paths::{self, Paths, Unread};
use crate::shared_file::{self, SharedFile, UpdateError};

/// The maximum number of record files to read, more than a machine has installations.
const MOST_FILES: usize = 1_000;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Archive {
    records: Vec<InstallRecord>,
    ledgers: Vec<Ledger>,
    /// Record files of earlier versions, one per host; `records` holds their content in the current
    /// format.
    older: Vec<PathBuf>,
}

impl Archive {
    pub(super) fn read(locations: &Paths) -> Result<Archive, InstallError> {
        let directory = locations.installed();
        let mut archive = Archive::default();
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).take(MOST_FILES).collect();
        files.retain(|path| path.extension().is_some_and(|kind| kind == "json"));
        files.sort_unstable();
        for path in files {
            let is_ledger =
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(LEDGER));
            match is_ledger {
                true => archive.ledgers.extend(read_file(&path)?),
                false => archive.records.extend(read_file(&path)?),
            }
        }
        archive.read_older(locations)?;
        Ok(archive)
    }

    /// The record of an installation in one of the files in `files`; `None` if there is none.
    pub(super) fn record(&self, target: Target, files: &[PathBuf]) -> Option<&InstallRecord> {
        files.iter().find_map(|file| {
            let file = identity(file);
            let is_in = |record: &&InstallRecord| identity(&record.host.path) == file;
            self.records.iter().filter(|record| record.target == target).find(is_in)
        })
    }

    /// Whether the host has an installation in another file.
    pub(super) fn has_another(&self, record: Option<&InstallRecord>, target: Target) -> bool {
        self.records.iter().any(|other| other.target == target && Some(other) != record)
    }

    /// The files of a host that have an installation.
    pub(super) fn files(&self, target: Target) -> impl Iterator<Item = PathBuf> {
        let records = self.records.iter().filter(move |record| record.target == target);
        records.map(|record| record.host.path.clone())
    }

    pub(super) fn ledger(&self, file: &Path) -> Option<&Ledger> {
        let file = identity(file);
        self.ledgers.iter().find(|ledger| identity(&ledger.path) == file)
    }

    /// The servers in a file of the user that installations other than `but` need.
    pub(super) fn held(&self, file: &Path, but: Option<&InstallRecord>) -> HashSet<&str> {
        let file = identity(file);
        let others = self.records.iter().filter(|record| Some(*record) != but);
        let others = others
            .filter(|record| record.user.as_deref().is_some_and(|user| identity(user) == file));
        others.flat_map(|record| &record.moved).map(String::as_str).collect()
    }

    /// Rewrites records of earlier versions in the current format.
    pub(super) fn renew(&self, locations: &Paths) -> Result<(), InstallError> {
        if self.older.is_empty() {
            return Ok(());
        }
        let directory = locations.installed();
        self.ledgers
            .iter()
            .try_for_each(|ledger| write(&ledger_file(&directory, ledger), ledger))?;
        self.records
            .iter()
            .try_for_each(|record| write(&record_file(&directory, record), record))?;
        self.older.iter().try_for_each(|path| remove(path))
    }

    fn read_older(&mut self, locations: &Paths) -> Result<(), InstallError> {
        let mut all = Vec::new();
        for target in Target::all() {
            let path = locations.installed_earlier(target);
            let Some(older) = read_file::<OlderRecord>(&path)? else { continue };
            self.older.push(path);
            // A record in the current format takes precedence over one of an earlier version.
            if self.record(target, std::slice::from_ref(&older.host.path)).is_none() {
                all.push((target, older));
            }
        }
        let mut files: Vec<PathBuf> = all.iter().filter_map(|(_, older)| older.user()).collect();
        files.sort_unstable();
        files.dedup();
        for file in files {
            if self.ledger(&file).is_some() {
                continue;
            }
            let of_file = all.iter().map(|(_, older)| older);
            let of_file = of_file.filter(|older| older.user().as_ref() == Some(&file));
            self.ledgers.push(older_ledger(&file, of_file.collect())?);
        }
        self.records.extend(all.into_iter().map(|(target, older)| {
            let user = older.user().filter(|_| !older.moved.is_empty());
            InstallRecord { target, host: older.host, settings: None, user, moved: older.moved }
        }));
        Ok(())
    }
}

const LEDGER: &str = "copies-";

/// An installation record that an earlier version of Switchboard wrote.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OlderRecord {
    host: FileBackup,
    ours: Option<FileBackup>,
    moved: Vec<String>,
    copied: Map<String, Value>,
}

impl OlderRecord {
    fn user(&self) -> Option<PathBuf> {
        self.ours.as_ref().map(|kept| kept.path.clone())
    }
}

/// Rebuilds, from records of earlier versions, the ledger of a file into which servers were copied
/// one host after the other: each record's backup is the file as the installation before left it.
fn older_ledger(file: &Path, mut records: Vec<&OlderRecord>) -> Result<Ledger, InstallError> {
    let now = text_of(file)?;
    let mut base = now.clone();
    let mut copies = Vec::new();
    while let Some(at) = records.iter().position(|record| {
        record.ours.as_ref().is_some_and(|kept| kept.after == base.as_deref().map(hash))
    }) {
        let record = records.remove(at);
        base = record.ours.as_ref().and_then(|kept| kept.before.clone());
        copies.splice(0..0, copies_of(record));
    }
    if records.is_empty() {
        return Ok(Ledger::of(file, base, copies).unchanged_since(now.as_deref()));
    }
    let first = records.first().and_then(|record| record.ours.as_ref()?.before.clone());
    copies.extend(records.into_iter().flat_map(copies_of));
    Ok(Ledger::of(file, first, copies))
}

fn copies_of(record: &OlderRecord) -> impl Iterator<Item = Copy> {
    record.copied.iter().filter_map(|(name, entry)| {
        Some(Copy { name: name.clone(), entry: entry.as_object()?.clone() })
    })
}

pub(super) fn record_file(directory: &Path, record: &InstallRecord) -> PathBuf {
    directory.join(format!("{}-{}.json", record.target, short(&record.host.path)))
}

pub(super) fn ledger_file(directory: &Path, ledger: &Ledger) -> PathBuf {
    directory.join(format!("{LEDGER}{}.json", short(&ledger.path)))
}

/// The path of a file without symbolic links, so that each file has one identity.
fn identity(path: &Path) -> PathBuf {
    shared_file::end_of_links(path).unwrap_or_else(|_| path.to_path_buf())
}

fn short(path: &Path) -> String {
    let hash = hash(&identity(path).to_string_lossy());
    hash.get(..16).unwrap_or(&hash).to_owned()
}

fn read_file<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, InstallError> {
    let of = || path.to_path_buf();
    let bytes = match paths::read_private(path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(Unread::Exposed) => return Err(InstallError::Foreign { path: of() }),
        Err(Unread::Io(cause)) => return Err(InstallError::Record { path: of(), cause }),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|_| InstallError::Foreign { path: of() })
}

pub(super) fn write(path: &Path, content: &impl Serialize) -> Result<(), InstallError> {
    let bytes = serde_json::to_vec(content)
        .map_err(|cause| InstallError::Record { path: path.to_path_buf(), cause: cause.into() })?;
    done(path, SharedFile::ours(path.to_path_buf()).update(|_| Ok(Some(bytes.clone()))))
}

pub(super) fn remove(path: &Path) -> Result<(), InstallError> {
    if !path.exists() {
        return Ok(());
    }
    done(path, SharedFile::ours(path.to_path_buf()).remove(|_| Ok(())))
}

fn done(path: &Path, done: Result<(), UpdateError<InstallError>>) -> Result<(), InstallError> {
    let failed = |cause| InstallError::Record { path: path.to_path_buf(), cause };
    done.map_err(|error| error.or_io(failed))
}
