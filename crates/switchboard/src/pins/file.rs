//! The pin file of one server.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use switchboard_core::catalog::pin::{self, Baseline, Pinned, PinnedDefinition, Records};
use switchboard_core::catalog::{Entry, Instructions, Prompt, RawListing};
use switchboard_core::config::layers::{Server, Trust};
use switchboard_core::config::trust::definition_hash;
use switchboard_core::name::ServerName;

use crate::capabilities::{CapabilitySet, Offer};
use crate::mutex::lock;
use crate::paths::{self, Paths};
use crate::shared_file::SharedFile;

/// Reads and writes the pin file of one server.
#[derive(Debug)]
pub(crate) struct PinFile {
    path: PathBuf,
    key: String,
    offer: Offer,
    /// The version of the file at the last access, to detect changes by other processes.
    seen: Mutex<Option<Stamp>>,
}

/// Compares the location of the file, not the version that was read.
impl PartialEq for PinFile {
    fn eq(&self, other: &PinFile) -> bool {
        self.path == other.path && self.key == other.key && self.offer == other.offer
    }
}

impl Eq for PinFile {}

/// Identifies a version of the file; every write creates a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    seconds: i64,
    nanoseconds: i64,
    length: u64,
}

/// The error for a pin file that cannot be parsed.
pub(crate) struct DamagedPins;

#[derive(Debug, thiserror::Error)]
#[error("cannot write the pin file `{}`", path.display())]
pub(crate) struct PinError {
    path: PathBuf,
    #[source]
    cause: io::Error,
}

impl PinFile {
    /// The pin file of a server: one in each project for a project's server, a single one for a
    /// user's server.
    pub(crate) fn of(
        name: &ServerName,
        server: &Server,
        (project, paths): (&Path, &Paths),
        offer: Offer,
    ) -> PinFile {
        let project = match server.trust {
            Trust::UserFile => None,
            Trust::Approved(_) => Some(project.to_string_lossy()),
        };
        let definition = definition_hash(&server.definition).to_string();
        let key = pin::key(name, project.as_deref(), &definition);
        PinFile { path: paths.pins_of(name, &key), key, offer, seen: Mutex::new(None) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The records on disk; empty if there is no file.
    pub(crate) fn read(&self) -> Result<Records, DamagedPins> {
        *lock(&self.seen) = self.stamp();
        let bytes = paths::read(&self.path).map_err(|_| DamagedPins)?;
        self.decode(bytes.as_deref())
    }

    fn decode(&self, bytes: Option<&[u8]>) -> Result<Records, DamagedPins> {
        let Some(bytes) = bytes else { return Ok(Records::default()) };
        Records::decode(bytes, &self.key).ok_or(DamagedPins)
    }

    /// The baseline for the clients of this gateway.
    pub(crate) fn baseline(&self) -> Baseline {
        let baseline = |records: Records| records.baseline(self.set().code());
        self.read().map_or(Baseline::Damaged, baseline)
    }

    /// The client capabilities that this gateway offers the server.
    pub(crate) fn set(&self) -> CapabilitySet {
        self.offer.set_or_usual()
    }

    /// Whether another process has changed the file since the last access.
    pub(crate) fn has_changed(&self) -> bool {
        self.stamp() != *lock(&self.seen)
    }

    /// Writes the first pins for clients with these capabilities, unless another process already
    /// has. Returns the baseline in effect.
    pub(crate) fn establish(&self, listing: &RawListing) -> Result<Baseline, PinError> {
        let set = self.set().code();
        let mut baseline = Baseline::Damaged;
        self.update(|stored| {
            let mut records = stored.ok()?;
            let is_first = records.of_set(set).is_none();
            baseline = records.take_first(set, listing).baseline();
            is_first.then_some(records)
        })?;
        Ok(baseline)
    }

    /// Pins these definitions as they are; other pins stay unchanged. A damaged file is replaced by
    /// one with only these pins.
    pub(super) fn accept(&self, accepted: &[Accepted]) -> Result<Baseline, PinError> {
        let mut baseline = Baseline::Damaged;
        self.update(|stored| {
            let mut records = stored.unwrap_or_else(|DamagedPins| Records::after_damage());
            for Accepted { sets, definition } in accepted {
                for set in sets {
                    records.of_set_mut(set.code()).accept(definition.pinned());
                }
            }
            baseline = records.baseline(self.set().code());
            Some(records)
        })?;
        Ok(baseline)
    }

    fn update(
        &self,
        mut change: impl FnMut(Result<Records, DamagedPins>) -> Option<Records>,
    ) -> Result<(), PinError> {
        let updated = SharedFile::guarded(self.path.clone()).update(|before| {
            let records = change(self.decode(before));
            Ok(records.map(|records| records.encode(&self.key)))
        });
        let failed = |cause| PinError { path: self.path.clone(), cause };
        updated.map_err(|error| error.or_io(failed))?;
        *lock(&self.seen) = self.stamp();
        Ok(())
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
}

/// A definition that the user accepts, and the client capabilities that it is listed to.
pub(super) struct Accepted {
    pub(super) sets: Vec<CapabilitySet>,
    pub(super) definition: AcceptedDefinition,
}

#[derive(Clone)]
pub(super) enum AcceptedDefinition {
    Tool(Arc<Entry>),
    Prompt(Prompt),
    Instructions(Instructions),
}

impl AcceptedDefinition {
    pub(super) fn pinned(&self) -> PinnedDefinition<'_> {
        match self {
            AcceptedDefinition::Tool(entry) => entry.pinned(),
            AcceptedDefinition::Prompt(prompt) => prompt.pinned(),
            AcceptedDefinition::Instructions(instructions) => instructions.pinned(),
        }
    }

    pub(super) fn kind(&self) -> Pinned {
        match self {
            AcceptedDefinition::Tool(_) => Pinned::Tool,
            AcceptedDefinition::Prompt(_) => Pinned::Prompt,
            AcceptedDefinition::Instructions(_) => Pinned::Instructions,
        }
    }

    pub(super) fn text(&self) -> &str {
        match self {
            AcceptedDefinition::Tool(entry) => entry.definition(),
            AcceptedDefinition::Prompt(prompt) => prompt.definition(),
            AcceptedDefinition::Instructions(instructions) => instructions.original(),
        }
    }
}
