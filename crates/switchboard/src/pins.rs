//! The accepted definitions of servers' tools: their files, and the user's word about changes.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchboard_core::catalog::pin::{self, Baseline, Drift, Pin, Record, ServerPins};
use switchboard_core::catalog::{Catalog, Entry, Item, Resolution};
use switchboard_core::config::layers::{Server, Trust};
use switchboard_core::config::trust::definition_hash;
use switchboard_core::failure::Failure;
use switchboard_core::name::ServerName;

use crate::blocking::blocking;
use crate::explain;
use crate::gateway::Gateway;
use crate::paths::{self, Paths};
use crate::shared_file::{SharedFile, UpdateError};

/// Where one server's accepted definitions are kept.
#[derive(Debug)]
pub(crate) struct PinFile {
    path: PathBuf,
    key: String,
    /// The file that was read last, to notice that another process changed it.
    seen: Mutex<Option<Stamp>>,
}

/// The same place is the same file, whoever read it last.
impl PartialEq for PinFile {
    fn eq(&self, other: &PinFile) -> bool {
        self.path == other.path && self.key == other.key
    }
}

impl Eq for PinFile {}

/// Tells one version of a file from the next, which is always a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    seconds: i64,
    nanoseconds: i64,
    length: u64,
}

/// What is on disk.
pub(crate) enum Stored {
    Missing,
    Record(Record),
    Damaged,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot keep what was accepted in `{}`", path.display())]
pub(crate) struct PinError {
    path: PathBuf,
    #[source]
    cause: io::Error,
}

impl PinFile {
    /// A project's server has a file of its own in each project; a user's is the same everywhere.
    pub(crate) fn of(name: &ServerName, server: &Server, project: &Path, paths: &Paths) -> PinFile {
        let project = match server.trust {
            Trust::UserFile => None,
            Trust::Approved(_) => Some(project.to_string_lossy()),
        };
        let definition = definition_hash(&server.definition).to_string();
        let key = pin::key(name, project.as_deref(), &definition);
        PinFile { path: paths.pins_of(name, &key), key, seen: Mutex::new(None) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn read(&self) -> Stored {
        *self.seen() = self.stamp();
        match paths::read(&self.path) {
            Ok(bytes) => self.stored(bytes.as_deref()),
            Err(_) => Stored::Damaged,
        }
    }

    fn stored(&self, bytes: Option<&[u8]>) -> Stored {
        let Some(bytes) = bytes else { return Stored::Missing };
        Record::decode(bytes, &self.key).map_or(Stored::Damaged, Stored::Record)
    }

    pub(crate) fn baseline(&self) -> Baseline {
        match self.read() {
            Stored::Missing => Baseline::Open,
            Stored::Record(record) => record.baseline(),
            Stored::Damaged => Baseline::Damaged,
        }
    }

    /// Whether the file is another one than that which was read or written last.
    pub(crate) fn has_changed(&self) -> bool {
        self.stamp() != *self.seen()
    }

    /// Writes the first record. Where another process was faster, its baseline stands and is given
    /// back.
    pub(crate) fn establish(&self, record: &Record) -> Result<Option<Baseline>, PinError> {
        let mut stands = None;
        self.update(|stored| {
            stands = match stored {
                Stored::Missing => return Some(record.clone()),
                Stored::Record(theirs) => Some(theirs.baseline()),
                Stored::Damaged => Some(Baseline::Damaged),
            };
            None
        })?;
        Ok(stands)
    }

    /// Accepts these tools as they are; the others stay as they were. What does not read begins
    /// anew.
    fn accept(&self, entries: &[Arc<Entry>]) -> Result<Baseline, PinError> {
        let mut baseline = Baseline::Open;
        self.update(|stored| {
            let mut record = match stored {
                Stored::Record(record) => record,
                Stored::Missing | Stored::Damaged => Record::default(),
            };
            entries.iter().for_each(|entry| record.accept(entry));
            baseline = record.baseline();
            Some(record)
        })?;
        Ok(baseline)
    }

    fn update(&self, mut change: impl FnMut(Stored) -> Option<Record>) -> Result<(), PinError> {
        let updated = SharedFile::ours(self.path.clone()).update(|before| {
            let record = change(self.stored(before));
            Ok::<_, Infallible>(record.map(|record| record.encode(&self.key)))
        });
        match updated {
            Ok(()) => {
                *self.seen() = self.stamp();
                Ok(())
            }
            Err(UpdateError::Io(cause)) => Err(self.failed(cause)),
            Err(UpdateError::Change(never)) => match never {},
        }
    }

    fn failed(&self, cause: io::Error) -> PinError {
        PinError { path: self.path.clone(), cause }
    }

    fn stamp(&self) -> Option<Stamp> {
        let data = fs::metadata(&self.path).ok()?;
        Some(Stamp {
            inode: data.ino(),
            seconds: data.mtime(),
            nanoseconds: data.mtime_nsec(),
            length: data.len(),
        })
    }

    fn seen(&self) -> MutexGuard<'_, Option<Stamp>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway {
    /// The tools that are not what was accepted: of one server, or of all that have such tools.
    /// Connects nothing.
    pub async fn pins(&self, server: Option<&str>) -> Result<Vec<ServerPins>, Failure> {
        let catalog = self.catalog();
        let servers: Vec<ServerName> = match server {
            Some(server) => vec![catalog.active_server(server).map_err(explain::resolve)?],
            None => catalog.drifting().to_vec(),
        };
        let mut report = Vec::new();
        for server in servers {
            let items = drifting(&catalog, &server);
            report.push(self.describe_drift(&server, &items).await);
        }
        Ok(report)
    }

    /// Accepts tools as they were listed last: the named ones, or all of the server. Gives back
    /// what was accepted.
    pub async fn accept_pins(&self, server: &str, tools: &[String]) -> Result<ServerPins, Failure> {
        let catalog = self.catalog();
        let server = catalog.active_server(server).map_err(explain::resolve)?;
        if catalog.listing(&server).is_none() {
            return Err(explain::never_listed(&server));
        }
        let mut items = drifting(&catalog, &server);
        if !tools.is_empty() {
            let wanted = tools.iter().map(|tool| named(&catalog, &server, tool));
            let wanted = wanted.collect::<Result<Vec<Arc<Entry>>, Failure>>()?;
            items.retain(|item| wanted.iter().any(|entry| Arc::ptr_eq(entry, item.entry)));
        }
        let accepted = self.describe_drift(&server, &items).await;
        if let Some(file) = self.directory().pin_file(&server)
            && !items.is_empty()
        {
            let entries: Vec<Arc<Entry>> =
                items.iter().map(|item| Arc::clone(item.entry)).collect();
            let written = blocking(move || file.accept(&entries)).await;
            let baseline = written.map_err(|error| explain::storage(error, &server))?;
            self.directory().compare(&server, baseline);
        }
        Ok(accepted)
    }

    async fn describe_drift(&self, server: &ServerName, items: &[Item<'_>]) -> ServerPins {
        let record = match self.directory().pin_file(server) {
            Some(file) if !items.is_empty() => match blocking(move || file.read()).await {
                Stored::Record(record) => record,
                Stored::Missing | Stored::Damaged => Record::default(),
            },
            Some(_) | None => Record::default(),
        };
        let drifts = items.iter().map(|item| Drift {
            shown: item.shown.to_string(),
            tool: item.entry.name.as_str().to_owned(),
            pin: item.pin,
            changes: record.changes(item.entry),
        });
        ServerPins { server: server.clone(), drifts: drifts.collect() }
    }
}

fn drifting<'a>(catalog: &'a Catalog, server: &ServerName) -> Vec<Item<'a>> {
    catalog.tools_of(server).filter(|item| item.pin != Pin::Same).collect()
}

fn named(catalog: &Catalog, server: &ServerName, tool: &str) -> Result<Arc<Entry>, Failure> {
    match catalog.resolve(tool, Some(server.as_str())).map_err(explain::resolve)? {
        Resolution::Tool(target) => Ok(target.entry),
        Resolution::Unlisted(server) => Err(explain::no_lists(&server)),
    }
}
