//! Publishes what all servers offer, and keeps it on disk between runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use switchboard_core::catalog::disk::{self, Stamp};
use switchboard_core::catalog::pin::{Baseline, Record};
use switchboard_core::catalog::{Catalog, Listing, ListingPolicy, RawListing, Shelf};
use switchboard_core::name::ServerName;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::paths;
use crate::pins::PinFile;

/// A handle to the published catalog; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    catalog: watch::Sender<Arc<Catalog>>,
    plans: BTreeMap<ServerName, Plan>,
    /// Set once the cache has been read: the first search, list or call does it.
    loaded: OnceLock<()>,
    writers: TaskTracker,
}

/// How one server's lists are read and where they are kept.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) policy: ListingPolicy,
    /// `None` for a server whose lists are not worth keeping.
    pub(crate) file: Option<CacheFile>,
    /// `None` where nothing is compared with what was accepted.
    pub(crate) pins: Option<Arc<PinFile>>,
}

#[derive(Clone, Debug)]
pub(crate) struct CacheFile {
    pub(crate) path: PathBuf,
    pub(crate) definition: String,
}

impl Directory {
    pub(crate) fn new(
        shelves: BTreeMap<ServerName, Shelf>,
        plans: BTreeMap<ServerName, Plan>,
    ) -> Directory {
        let catalog = watch::Sender::new(Arc::new(Catalog::new(shelves)));
        let shared =
            Shared { catalog, plans, loaded: OnceLock::new(), writers: TaskTracker::new() };
        Directory { shared: Arc::new(shared) }
    }

    /// The present snapshot. The first call reads the cache; it is small, and read once.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.shared.loaded.get_or_init(|| self.load());
        self.hear_of_accepted_tools();
        Arc::clone(&self.shared.catalog.borrow())
    }

    /// Tells of every new snapshot.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Catalog>> {
        self.shared.catalog.subscribe()
    }

    /// Takes what a server listed just now. The first listing ever is what later ones are compared
    /// with.
    pub(crate) fn publish(&self, server: &ServerName, raw: RawListing) {
        let Some(plan) = self.shared.plans.get(server) else { return };
        self.shared.loaded.get_or_init(|| self.load());
        let listing = Arc::new(Listing::build(server.clone(), &raw, &plan.policy));
        let mut first = None;
        self.change(server, |shelf| {
            let shelf = shelf.with_listing(listing);
            match shelf.baseline() {
                Baseline::Open => {
                    let record = first.insert(Record::of(&raw));
                    let baseline = record.baseline();
                    shelf.with_baseline(baseline)
                }
                Baseline::Off | Baseline::Taken(_) | Baseline::Damaged => shelf,
            }
        });
        if let Some(record) = first {
            let (directory, server) = (self.clone(), server.clone());
            let establish = move || directory.establish(&server, &record);
            self.shared.writers.spawn_blocking(establish);
        }
        if let Some(file) = plan.file.clone() {
            self.shared.writers.spawn_blocking(move || {
                if let Err(error) = write(&file, &raw) {
                    tracing::debug!(%error, "cannot keep the listing");
                }
            });
        }
    }

    /// Compares the tools of a server with another baseline from now on.
    pub(crate) fn compare(&self, server: &ServerName, baseline: Baseline) {
        self.change(server, |shelf| shelf.with_baseline(baseline));
    }

    pub(crate) fn pin_file(&self, server: &ServerName) -> Option<Arc<PinFile>> {
        self.shared.plans.get(server)?.pins.clone()
    }

    fn change(&self, server: &ServerName, change: impl FnOnce(Shelf) -> Shelf) {
        self.shared.catalog.send_modify(|catalog| {
            if let Some(shelf) = catalog.shelf(server).cloned() {
                *catalog = Arc::new(catalog.with_shelf(server, change(shelf)));
            }
        });
    }

    /// Keeps the first record of a server, unless another process was faster.
    fn establish(&self, server: &ServerName, record: &Record) {
        let Some(file) = self.pin_file(server) else { return };
        match file.establish(record) {
            Ok(None) => {}
            Ok(Some(theirs)) => self.compare(server, theirs),
            Err(error) => tracing::warn!(%server, %error, "cannot keep what the tools are"),
        }
    }

    /// The user may have accepted in another process what counts as changed here. While nothing
    /// does, this looks at no file.
    fn hear_of_accepted_tools(&self) {
        let catalog = Arc::clone(&self.shared.catalog.borrow());
        for server in catalog.drifting() {
            if let Some(file) = self.pin_file(server)
                && file.has_changed()
            {
                self.compare(server, file.baseline());
            }
        }
    }

    /// Waits until everything that was published lies on disk.
    pub(crate) async fn flush(&self) {
        self.shared.writers.close();
        self.shared.writers.wait().await;
    }

    fn load(&self) {
        let now = now();
        let mut shelves: BTreeMap<ServerName, Shelf> = self
            .shared
            .catalog
            .borrow()
            .shelves()
            .map(|(name, shelf)| (name.clone(), shelf.clone()))
            .collect();
        for (server, shelf) in &mut shelves {
            let Some(plan) = self.shared.plans.get(server) else { continue };
            if let Some(pins) = &plan.pins {
                *shelf = shelf.clone().with_baseline(pins.baseline());
                if let Baseline::Damaged = shelf.baseline() {
                    tracing::warn!(%server, "what was accepted of its tools does not read");
                }
            }
            if shelf.is_active()
                && shelf.listing().is_none()
                && let Some(file) = &plan.file
                && let Some(raw) = read(file, now)
            {
                let listing = Listing::build(server.clone(), &raw, &plan.policy);
                *shelf = shelf.clone().with_listing(Arc::new(listing));
                // Listed by a version, or under a setting, that pinned nothing.
                if let (Baseline::Open, Some(pins)) = (shelf.baseline(), &plan.pins) {
                    let record = Record::of(&raw);
                    let taken = pins.establish(&record).ok().flatten();
                    let baseline = taken.unwrap_or_else(|| record.baseline());
                    *shelf = shelf.clone().with_baseline(baseline);
                }
            }
        }
        self.shared.catalog.send_replace(Arc::new(Catalog::new(shelves)));
    }
}

fn read(file: &CacheFile, now: u64) -> Option<RawListing> {
    let bytes = paths::read(&file.path).ok()??;
    disk::decode(&bytes, &file.definition, now).ok()
}

fn write(file: &CacheFile, raw: &RawListing) -> std::io::Result<()> {
    let stamp = Stamp { definition: &file.definition, listed_at: now() };
    let _lock = paths::lock(&file.path.with_extension("lock"))?;
    paths::replace(&file.path, &disk::encode(raw, stamp))
}

/// Seconds since the epoch.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
