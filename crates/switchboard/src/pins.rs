//! What was accepted of servers' tools, prompts and instructions: files, and the user's word about
//! changes.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchboard_core::catalog::pin::{self, Baseline, Drift, Pin, Pinned, Record, ServerPins};
use switchboard_core::catalog::{Catalog, Entry, Instructions, Prompt, RawListing, Resolution};
use switchboard_core::config::layers::{Server, Trust};
use switchboard_core::config::trust::definition_hash;
use switchboard_core::failure::Failure;
use switchboard_core::hidden::Hidden;
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
    fn accept(&self, accepted: &[Accepted]) -> Result<Baseline, PinError> {
        let mut baseline = Baseline::Open;
        self.update(|stored| {
            let mut record = match stored {
                Stored::Record(record) => record,
                Stored::Missing | Stored::Damaged => Record::default(),
            };
            for accepted in accepted {
                match accepted {
                    Accepted::Tool(entry) => record.accept(entry),
                    Accepted::Prompt(prompt) => record.accept_prompt(prompt),
                    Accepted::Instructions(instructions) => {
                        record.accept_instructions(instructions);
                    }
                }
            }
            baseline = record.baseline();
            Some(record)
        })?;
        Ok(baseline)
    }

    /// Adds the prompts and instructions of a listing to a record of an older version.
    pub(crate) fn complete(&self, listing: &RawListing) -> Result<Option<Baseline>, PinError> {
        let mut baseline = None;
        self.update(|stored| {
            let Stored::Record(mut record) = stored else { return None };
            record.complete(listing);
            baseline = Some(record.baseline());
            Some(record)
        })?;
        Ok(baseline)
    }

    fn update(&self, mut change: impl FnMut(Stored) -> Option<Record>) -> Result<(), PinError> {
        let updated = SharedFile::guarded(self.path.clone()).update(|before| {
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

/// What the user accepts.
enum Accepted {
    Tool(Arc<Entry>),
    Prompt(Prompt),
    Instructions(Instructions),
}

/// What of a server is not what was accepted, or has hidden text.
struct Found {
    shown: String,
    /// The name that the server has for it.
    name: String,
    pin: Pin,
    hidden: Option<Hidden>,
    what: Accepted,
}

impl Found {
    fn drift(&self, record: &Record) -> Drift {
        let (of, changes) = match &self.what {
            Accepted::Tool(entry) => (Pinned::Tool, record.changes(entry)),
            Accepted::Prompt(prompt) => (Pinned::Prompt, record.changes_of_prompt(prompt)),
            Accepted::Instructions(instructions) => {
                (Pinned::Instructions, record.changes_of_instructions(instructions))
            }
        };
        Drift {
            shown: self.shown.clone(),
            tool: self.name.clone(),
            of,
            pin: self.pin,
            changes: if self.pin == Pin::Same { Vec::new() } else { changes },
            hidden: self.hidden.clone(),
        }
    }
}

impl Gateway {
    /// What is not what was accepted, or has hidden text: of one server, or of all that have such
    /// tools, prompts or instructions. Connects nothing.
    pub async fn pins(&self, server: Option<&str>) -> Result<Vec<ServerPins>, Failure> {
        let catalog = self.catalog();
        let servers: Vec<ServerName> = match server {
            Some(server) => vec![catalog.active_server(server).map_err(explain::resolve)?],
            None => catalog.shelves().map(|(server, _)| server.clone()).collect(),
        };
        let mut report = Vec::new();
        for name in servers {
            let found = found(&catalog, &name);
            if server.is_some() || !found.is_empty() {
                report.push(self.describe_drift(&name, &found).await);
            }
        }
        Ok(report)
    }

    /// Accepts what was listed last: the named tools, or everything of the server. Gives back what
    /// was accepted.
    pub async fn accept_pins(&self, server: &str, tools: &[String]) -> Result<ServerPins, Failure> {
        let catalog = self.catalog();
        let server = catalog.active_server(server).map_err(explain::resolve)?;
        if catalog.listing(&server).is_none() {
            return Err(explain::never_listed(&server));
        }
        let mut found = found(&catalog, &server);
        found.retain(|found| found.pin != Pin::Same);
        if !tools.is_empty() {
            let wanted = tools.iter().map(|tool| named(&catalog, &server, tool));
            let wanted = wanted.collect::<Result<Vec<Arc<Entry>>, Failure>>()?;
            found.retain(|found| match &found.what {
                Accepted::Tool(entry) => wanted.iter().any(|wanted| Arc::ptr_eq(wanted, entry)),
                Accepted::Prompt(_) | Accepted::Instructions(_) => false,
            });
        }
        let accepted = self.describe_drift(&server, &found).await;
        if let Some(file) = self.directory().pin_file(&server)
            && !found.is_empty()
        {
            let what: Vec<Accepted> = found.into_iter().map(|found| found.what).collect();
            let written = blocking(move || file.accept(&what)).await;
            let baseline = written.map_err(|error| explain::storage(error, &server))?;
            self.directory().compare(&server, baseline);
        }
        Ok(accepted)
    }

    async fn describe_drift(&self, server: &ServerName, found: &[Found]) -> ServerPins {
        let record = match self.directory().pin_file(server) {
            Some(file) if !found.is_empty() => match blocking(move || file.read()).await {
                Stored::Record(record) => record,
                Stored::Missing | Stored::Damaged => Record::default(),
            },
            Some(_) | None => Record::default(),
        };
        let drifts = found.iter().map(|found| found.drift(&record)).collect();
        ServerPins { server: server.clone(), drifts }
    }
}

fn found(catalog: &Catalog, server: &ServerName) -> Vec<Found> {
    let tools = catalog.all_tools_of(server).map(|item| Found {
        shown: item.shown.to_string(),
        name: item.entry.name.as_str().to_owned(),
        pin: item.pin,
        hidden: item.entry.hidden.as_deref().cloned(),
        what: Accepted::Tool(Arc::clone(item.entry)),
    });
    let prompts = catalog.prompts_of(server).map(|item| Found {
        shown: item.shown.to_string(),
        name: item.prompt.name.clone(),
        pin: item.pin,
        hidden: item.prompt.hidden.as_deref().cloned(),
        what: Accepted::Prompt(item.prompt.clone()),
    });
    let shelf = catalog.shelf(server).filter(|shelf| shelf.is_active());
    let instructions = shelf.and_then(|shelf| {
        let instructions = shelf.listing()?.instructions.clone()?;
        Some(Found {
            shown: "instructions".to_owned(),
            name: String::new(),
            pin: shelf.instructions_pin(),
            hidden: instructions.hidden.clone(),
            what: Accepted::Instructions(instructions),
        })
    });
    let all = tools.chain(prompts).chain(instructions);
    all.filter(|found| found.pin != Pin::Same || found.hidden.is_some()).collect()
}

fn named(catalog: &Catalog, server: &ServerName, tool: &str) -> Result<Arc<Entry>, Failure> {
    match catalog.resolve(tool, Some(server.as_str())).map_err(explain::resolve)? {
        Resolution::Tool(target) => Ok(target.entry),
        Resolution::Unlisted(server) => Err(explain::no_lists(&server)),
    }
}
