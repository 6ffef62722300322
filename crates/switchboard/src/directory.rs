//! Publishes what all servers offer, and keeps it on disk between runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use switchboard_core::catalog::disk::{self, Stamp};
use switchboard_core::catalog::{Catalog, Listing, ListingPolicy, RawListing, Shelf};
use switchboard_core::name::ServerName;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::paths;

/// A handle to the published catalog; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    catalog: watch::Sender<Arc<Catalog>>,
    plans: watch::Sender<Arc<Plans>>,
    /// Set once the cache has been read: the first search, list or call does it.
    loaded: OnceLock<()>,
    writers: TaskTracker,
}

pub(crate) type Plans = BTreeMap<ServerName, Arc<Plan>>;

/// How one server's lists are read and where they are kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) policy: ListingPolicy,
    /// `None` for a server whose lists are not worth keeping.
    pub(crate) file: Option<CacheFile>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CacheFile {
    pub(crate) path: PathBuf,
    pub(crate) definition: String,
}

impl Directory {
    pub(crate) fn empty() -> Directory {
        let shared = Shared {
            catalog: watch::Sender::default(),
            plans: watch::Sender::default(),
            loaded: OnceLock::new(),
            writers: TaskTracker::new(),
        };
        Directory { shared: Arc::new(shared) }
    }

    /// Takes other servers. What was listed by the same plan stays listed; the lists of the others
    /// come from the cache, if it has any.
    pub(crate) fn replace(&self, mut shelves: BTreeMap<ServerName, Shelf>, plans: Plans) {
        let plans = Arc::new(plans);
        let before = self.shared.plans.send_replace(Arc::clone(&plans));
        if self.shared.loaded.get().is_some() {
            let now = now();
            for (server, shelf) in &mut shelves {
                if before.get(server) != plans.get(server) {
                    fill(server, shelf, &plans, now);
                }
            }
        }
        self.shared.catalog.send_if_modified(|catalog| {
            for (server, shelf) in &mut shelves {
                if shelf.is_active() && before.get(server) == plans.get(server) {
                    shelf.listing = catalog.listing(server).cloned();
                }
            }
            let same = catalog.shelves().map(|(name, shelf)| (name, shelf.identity()));
            if same.eq(shelves.iter().map(|(name, shelf)| (name, shelf.identity()))) {
                return false;
            }
            *catalog = Arc::new(Catalog::new(std::mem::take(&mut shelves)));
            true
        });
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

    /// Takes what a server listed just now by `plan`; another plan's lists are news no more.
    pub(crate) fn publish(&self, server: &ServerName, plan: &Plan, raw: RawListing) {
        if self.shared.plans.borrow().get(server).is_none_or(|current| **current != *plan) {
            return;
        }
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
        // In one step, so that servers which are replaced meanwhile do not come back.
        self.shared.catalog.send_modify(|catalog| {
            let plans = Arc::clone(&self.shared.plans.borrow());
            let shelves = catalog.shelves().map(|(name, shelf)| (name.clone(), shelf.clone()));
            let mut shelves: BTreeMap<ServerName, Shelf> = shelves.collect();
            for (server, shelf) in &mut shelves {
                fill(server, shelf, &plans, now);
            }
            *catalog = Arc::new(Catalog::new(shelves));
        });
    }
}

/// Gives a shelf that has none the listing of the cache.
fn fill(server: &ServerName, shelf: &mut Shelf, plans: &Plans, now: u64) {
    if shelf.is_active()
        && shelf.listing.is_none()
        && let Some(plan) = plans.get(server)
        && let Some(file) = &plan.file
        && let Some(raw) = read(file, now)
    {
        shelf.listing = Some(Arc::new(Listing::build(server.clone(), &raw, &plan.policy)));
    }
}

fn read(file: &CacheFile, now: u64) -> Option<RawListing> {
    let bytes = paths::read(&file.path).ok()??;
    disk::decode(&bytes, &file.definition, now)
}

fn write(file: &CacheFile, raw: &RawListing) -> std::io::Result<()> {
    let stamp = Stamp { definition: &file.definition, listed_at: now() };
    let _lock = paths::lock(&file.path.with_extension("lock"))?;
    paths::replace(&file.path, &disk::encode(raw, stamp))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
