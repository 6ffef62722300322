//! Records, for later commands, which servers the user's configuration files name and whether the
//! files hold rules. If a file is damaged later, the names stay reserved and the rules are treated
//! as unreadable.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use switchboard_core::config::diagnostic::Diagnostic;
use switchboard_core::config::layers::{Layer, Tier};

use crate::load::FileState;
use crate::paths::{self, Unread};
use crate::shared_file::{SharedFile, UpdateError};

/// The maximum number of names per file that are recorded.
const MOST_NAMES: usize = 1_000;

/// The maximum number of records. Above it, records of removed files that this load did not look
/// for are dropped.
const MOST_FILES: usize = 1_000;

/// The records that earlier commands stored about configuration files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KnownFiles {
    Read(FileRecords),
    /// The records are damaged, or writable by another user: any file may have held rules.
    Unreadable,
}

/// The record of each configuration file, by the path of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileRecords {
    files: BTreeMap<String, KnownFile>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct KnownFile {
    servers: Vec<String>,
    rules: bool,
}

impl KnownFiles {
    pub(crate) fn read(path: &Path) -> KnownFiles {
        match paths::read_private(path) {
            Ok(bytes) => KnownFiles::of(bytes.as_deref()),
            Err(Unread::Io(_) | Unread::Exposed) => KnownFiles::Unreadable,
        }
    }

    fn of(bytes: Option<&[u8]>) -> KnownFiles {
        match bytes.map(serde_json::from_slice) {
            None => KnownFiles::Read(FileRecords::default()),
            Some(Ok(record)) => KnownFiles::Read(record),
            Some(Err(_)) => KnownFiles::Unreadable,
        }
    }

    /// The names of the servers in the last valid version of a file.
    pub(crate) fn servers(&self, path: &str) -> impl Iterator<Item = &str> {
        let file = match self {
            KnownFiles::Read(record) => record.files.get(path),
            KnownFiles::Unreadable => None,
        };
        file.into_iter().flat_map(|file| file.servers.iter().map(String::as_str))
    }

    /// Whether the last valid version of a file may have held rules.
    pub(crate) fn had_rules(&self, path: &str) -> bool {
        match self {
            KnownFiles::Read(record) => record.files.get(path).is_some_and(|file| file.rules),
            KnownFiles::Unreadable => true,
        }
    }

    /// Records the content of valid files. The record of a removed file is kept if it held rules,
    /// because the file may reappear damaged.
    pub(crate) fn remember(&self, path: &Path, files: &[FileState], layers: &[Layer]) {
        let now = self.updated(files, layers);
        if *self == KnownFiles::Read(now) {
            return;
        }
        let written = SharedFile::guarded(path.to_owned()).update(|present| {
            let known = match self {
                KnownFiles::Read(_) => KnownFiles::of(present),
                KnownFiles::Unreadable => KnownFiles::Unreadable,
            };
            serde_json::to_vec(&known.updated(files, layers)).map(Some).map_err(io::Error::from)
        });
        if let Err(UpdateError::Io(error) | UpdateError::Change(error)) = written {
            // The error is only logged: a full or read-only disk must not make a command fail.
            tracing::debug!(%error, "cannot record the names of servers");
        }
    }

    fn updated(&self, files: &[FileState], layers: &[Layer]) -> FileRecords {
        let own = files.iter().filter(|file| file.tier == Tier::User && file.host.is_none());
        let own: Vec<String> = own.map(|file| file.path.to_string_lossy().into_owned()).collect();
        let mut record = match self {
            KnownFiles::Read(record) => record.clone(),
            // The records are lost, so each file is treated as one with rules until it is valid
            // again.
            KnownFiles::Unreadable => {
                let open = || KnownFile { servers: Vec::new(), rules: true };
                FileRecords { files: own.iter().map(|path| (path.clone(), open())).collect() }
            }
        };
        let room = record.files.len() <= MOST_FILES;
        record.files.retain(|path, file| {
            !is_gone(Path::new(path)) || file.rules && (room || own.contains(path))
        });
        for layer in layers.iter().filter(|layer| layer.source.tier == Tier::User) {
            if !is_sound(layer) {
                if has_broken_rules(layer) {
                    record.files.entry(layer.source.path.to_string()).or_default().rules = true;
                }
                continue;
            }
            let names = layer.file.names().take(MOST_NAMES).map(str::to_owned);
            let rules = layer.file.has_rules() || has_broken_rules(layer);
            let known = KnownFile { servers: names.collect(), rules };
            if known == KnownFile::default() {
                record.files.remove(&*layer.source.path);
            } else {
                record.files.insert(layer.source.path.to_string(), known);
            }
        }
        record
    }
}

/// Whether nothing exists at the path of a file. A broken symbolic link and an inaccessible
/// directory are treated as damage to the file instead.
pub(crate) fn is_gone(path: &Path) -> bool {
    let looked = path.symlink_metadata();
    looked.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Whether a file that can be parsed holds a faulty rule. Such a file is recorded as one with
/// rules, in case it cannot be parsed later.
fn has_broken_rules(layer: &Layer) -> bool {
    let problems = &layer.file.diagnostics;
    let parses = !problems.iter().any(|problem| problem.kind.invalidates_file());
    parses && (!layer.file.refused.is_empty() || problems.iter().any(may_hide_rules))
}

pub(crate) fn is_sound(layer: &Layer) -> bool {
    layer.source.tier == Tier::User && !layer.file.diagnostics.iter().any(may_hide_rules)
}

fn may_hide_rules(problem: &Diagnostic) -> bool {
    problem.is_error() && problem.hides_rules()
}
