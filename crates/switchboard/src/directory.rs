//! Publishes what all servers offer, and keeps it on disk between runs.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use switchboard_core::catalog::disk::{self, Stamp};
use switchboard_core::catalog::{Catalog, Listing, ListingPolicy, RawListing, Shelf};
use switchboard_core::name::ServerName;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::paths;
use crate::shared_file::{SharedFile, UpdateError};

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
        Arc::clone(&self.shared.catalog.borrow())
    }

    /// Tells of every new snapshot.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Catalog>> {
        self.shared.catalog.subscribe()
    }

    /// Takes what a server listed just now.
    pub(crate) fn publish(&self, server: &ServerName, raw: RawListing) {
        let Some(plan) = self.shared.plans.get(server) else { return };
        self.shared.loaded.get_or_init(|| self.load());
        let listing = Arc::new(Listing::build(server.clone(), &raw, &plan.policy));
        self.shared.catalog.send_modify(|catalog| {
            *catalog = Arc::new(catalog.with_listing(server, listing));
        });
        if let Some(file) = plan.file.clone() {
            self.shared.writers.spawn_blocking(move || {
                if let Err(error) = write(&file, &raw) {
                    tracing::debug!(%error, "cannot keep the listing");
                }
            });
        }
    }

    /// Waits until everything that was published lies on disk.
    pub(crate) async fn flush(&self) {
        self.shared.writers.close();
        self.shared.writers.wait().await;
    }

    fn load(&self) {
        let now = now();
        self.sweep();
        let mut shelves: BTreeMap<ServerName, Shelf> = self
            .shared
            .catalog
            .borrow()
            .shelves()
            .map(|(name, shelf)| (name.clone(), shelf.clone()))
            .collect();
        for (server, shelf) in &mut shelves {
            let Some(plan) = self.shared.plans.get(server) else { continue };
            if shelf.is_active()
                && shelf.listing.is_none()
                && let Some(file) = &plan.file
                && let Some(raw) = read(file, now)
            {
                let listing = Listing::build(server.clone(), &raw, &plan.policy);
                shelf.listing = Some(Arc::new(listing));
            }
        }
        self.shared.catalog.send_replace(Arc::new(Catalog::new(shelves)));
    }

    /// Removes what killed writers left in the cache.
    fn sweep(&self) {
        let file = self.shared.plans.values().find_map(|plan| plan.file.as_ref());
        if let Some(directory) = file.and_then(|file| file.path.parent())
            && let Err(error) = SharedFile::sweep_directory(directory)
        {
            tracing::debug!(%error, "cannot tidy the cache");
        }
    }
}

fn read(file: &CacheFile, now: u64) -> Option<RawListing> {
    let bytes = paths::read(&file.path).ok()??;
    disk::decode(&bytes, &file.definition, now)
}

fn write(file: &CacheFile, raw: &RawListing) -> std::io::Result<()> {
    let stamp = Stamp { definition: &file.definition, listed_at: now() };
    let bytes = disk::encode(raw, stamp);
    let update = |_: Option<&[u8]>| Ok::<_, Infallible>(Some(bytes.clone()));
    SharedFile::ours(file.path.clone()).update(update).map_err(|error| match error {
        UpdateError::Io(cause) => cause,
        UpdateError::Change(never) => match never {},
    })
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
