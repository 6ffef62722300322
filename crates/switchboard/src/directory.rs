//! Publishes the catalog of all listings, and stores it on disk between runs.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use switchboard_core::catalog::disk::{self, Stamp};
use switchboard_core::catalog::known_failure::{FailureKind, KnownFailure};
use switchboard_core::catalog::pin::{Baseline, Records};
use switchboard_core::catalog::{Catalog, Era, Listing, ListingPolicy, RawListing, Shelf};
use switchboard_core::name::{NameTier, ServerName};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::auth::vault::IndexVersion;
use crate::explain::chain;
use crate::listing_file::{self, CacheIndex, Cached, ListingFile, Located};
use crate::mutex::lock;
use crate::pins::PinFile;
use crate::shared_file::SharedFile;
use crate::upstream::DialError;

/// A handle to the published catalog; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory {
    shared: Arc<DirectoryState>,
}

#[derive(Debug, Default)]
struct DirectoryState {
    catalog: watch::Sender<Arc<Catalog>>,
    plans: watch::Sender<Arc<Plans>>,
    /// Set once the cache has been read; the first search, list or call reads it.
    loaded: OnceLock<()>,
    /// The sign-ins with which servers were listed. The mutex is locked only briefly, never across
    /// an `await`.
    sign_ins: Mutex<SignIns>,
    writers: TaskTracker,
}

/// The identities with which servers with a sign-in were listed.
#[derive(Debug, Default)]
struct SignIns {
    /// The version of the vault's index at the last check.
    seen: Option<Option<IndexVersion>>,
    identities: BTreeMap<ServerName, Option<String>>,
}

pub(crate) type Plans = BTreeMap<ServerName, Arc<ListingPlan>>;

/// How one server's lists are filtered, and where they are stored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListingPlan {
    pub(crate) policy: ListingPolicy,
    /// The cache file; `None` for a server whose lists are not stored.
    pub(crate) file: Option<ListingFile>,
    /// The pin file; `None` if definitions are not compared with pins.
    pub(crate) pins: Option<Arc<PinFile>>,
}

impl Directory {
    /// Replaces the servers of the catalog. Listings with an unchanged plan stay; other listings
    /// come from the cache, if it has them.
    pub(crate) fn replace(
        &self,
        mut shelves: BTreeMap<ServerName, Shelf>,
        reserved: Vec<(ServerName, NameTier)>,
        plans: Plans,
    ) {
        let plans = Arc::new(plans);
        let before = self.shared.plans.send_replace(Arc::clone(&plans));
        if self.shared.loaded.get().is_some() {
            let (now, index) = (now(), index(&plans));
            for (server, shelf) in &mut shelves {
                if before.get(server) != plans.get(server) {
                    fill(server, shelf, &plans, &index, now);
                }
            }
        }
        self.shared.catalog.send_if_modified(|catalog| {
            for (server, shelf) in &mut shelves {
                if shelf.is_active()
                    && before.get(server) == plans.get(server)
                    && let Some(old) = catalog.shelf(server)
                {
                    *shelf = shelf.clone().with_state_of(old);
                }
            }
            let same = catalog.shelves().map(|(name, shelf)| (name, shelf.identity()));
            if same.eq(shelves.iter().map(|(name, shelf)| (name, shelf.identity())))
                && catalog.reserved() == reserved
            {
                return false;
            }
            let shelves = std::mem::take(&mut shelves);
            *catalog = Arc::new(Catalog::reserving(shelves, reserved.clone()));
            true
        });
    }

    /// The current snapshot of the catalog. The first call reads the cache, which is small.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.load_if_possible();
        self.reload_changed_pins();
        self.drop_outdated_listings();
        Arc::clone(&self.shared.catalog.borrow())
    }

    /// A receiver of every new snapshot of the catalog.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Catalog>> {
        self.shared.catalog.subscribe()
    }

    /// Publishes and stores a new listing. Ignores the listing of a plan that is no longer current.
    /// The first listing of a server becomes its baseline.
    pub(crate) fn publish(&self, server: &ServerName, plan: &ListingPlan, mut raw: RawListing) {
        if !self.is_current(server, plan) {
            return;
        }
        self.shared.loaded.get_or_init(|| self.load());
        if plan.file.as_ref().is_some_and(|file| file.sign_ins().is_some()) {
            // The identity is recorded, because the connection may have signed in for the first
            // time.
            lock(&self.shared.sign_ins).identities.insert(server.clone(), raw.identity.clone());
        }
        let listing = Arc::new(Listing::build(server.clone(), &raw, &plan.policy));
        if !listing.shadowed.is_empty() {
            let count = listing.shadowed.len();
            tracing::warn!(%server, count, "omitted tools or prompts with shadowed names");
        }
        let mut is_first = false;
        self.change(server, |shelf| {
            let shelf = shelf.with_listing(listing).of_era(raw.era);
            match (shelf.baseline(), &plan.pins) {
                (Baseline::Open(others), Some(pins)) => {
                    is_first = true;
                    let mut records = Records::clone(others);
                    let baseline = records.take_first(pins.set().code(), &raw).baseline();
                    shelf.with_baseline(baseline)
                }
                (Baseline::Open(_), None) => shelf,
                (Baseline::Off | Baseline::Taken(_) | Baseline::Damaged, _) => shelf,
            }
        });
        if let Some(pins) = plan.pins.clone().filter(|_| is_first) {
            let (directory, server, raw) = (self.clone(), server.clone(), raw.clone());
            let establish = move || directory.establish(&server, &pins, &raw);
            self.shared.writers.spawn_blocking(establish);
        }
        let (directory, server) = (self.clone(), server.clone());
        let identity = raw.identity.clone();
        let locate = move |file: &ListingFile| file.listed_with(identity.as_deref());
        self.keep(plan, locate, move |present, stamp| {
            // `asks_client` is read while the file is locked, so that concurrent writers do not
            // lose it.
            raw.asks_client = directory.asks_client(&server);
            disk::renewed(present, &raw, stamp)
        });
    }

    /// Updates the server's cache file in the background. `change` receives the present content.
    fn keep(
        &self,
        plan: &ListingPlan,
        locate: impl FnOnce(&ListingFile) -> io::Result<Located> + Send + 'static,
        mut change: impl FnMut(Option<&[u8]>, Stamp<'_>) -> Option<Vec<u8>> + Send + 'static,
    ) {
        let Some(file) = plan.file.clone() else { return };
        self.shared.writers.spawn_blocking(move || {
            let written = locate(&file).and_then(|located| {
                let stamp = Stamp { definition: &located.digest, listed_at: now() };
                file.forget_failure();
                let shared = SharedFile::ours(located.path);
                let updated = shared.update(|present| Ok(change(present, stamp)));
                updated.map_err(|error| error.or_io(|io| io))
            });
            if let Err(error) = written {
                tracing::debug!(%error, "cannot store the listing");
            }
        });
    }

    fn is_current(&self, server: &ServerName, plan: &ListingPlan) -> bool {
        self.shared.plans.borrow().get(server).is_some_and(|current| **current == *plan)
    }

    /// Stores why the server failed, for this process and later ones. A missing approval or sign-in
    /// has a status of its own and is not stored.
    pub(crate) fn failed(&self, server: &ServerName, plan: &ListingPlan, error: &DialError) {
        if !error.needs_trust() && !error.needs_sign_in() {
            self.remember(server, plan, FailureKind::Failed, &chain(error));
        }
    }

    /// Stores the reason why a server could not be listed.
    pub(crate) fn remember(
        &self,
        server: &ServerName,
        plan: &ListingPlan,
        kind: FailureKind,
        reason: &str,
    ) {
        if !self.is_current(server, plan) {
            return;
        }
        let failure = KnownFailure::new(now(), kind, reason);
        self.change(server, |shelf| shelf.with_failure(failure.clone()));
        let Some(file) = plan.file.clone() else { return };
        self.shared.writers.spawn_blocking(move || {
            if let Err(error) = file.remember(&failure) {
                tracing::debug!(%error, "cannot store the failure");
            }
        });
    }

    /// Stores that the server sends requests to its client.
    pub(crate) fn mark_asking(&self, server: &ServerName, plan: &ListingPlan) {
        if !self.is_current(server, plan) || self.asks_client(server) {
            return;
        }
        self.change(server, Shelf::asking);
        self.keep(plan, ListingFile::known, |present, stamp| {
            let (known, _) = disk::decode(present?, stamp.definition, stamp.listed_at).ok()?;
            let known = Some(known).filter(|raw| !raw.asks_client)?;
            Some(disk::encode(&RawListing { asks_client: true, ..known }, stamp))
        });
    }

    /// Whether the server is known to send requests to its client.
    pub(crate) fn asks_client(&self, server: &ServerName) -> bool {
        self.shared.catalog.borrow().shelf(server).is_some_and(Shelf::asks_client)
    }

    /// The era of the server at its last connection, in this or an earlier process.
    pub(crate) fn era(&self, server: &ServerName) -> Option<Era> {
        self.load_if_possible();
        self.shared.catalog.borrow().shelf(server)?.era()
    }

    pub(crate) fn has_listed(&self, server: &ServerName) -> bool {
        self.shared.catalog.borrow().listing(server).is_some()
    }

    /// Sets the baseline with which the definitions of a server are compared.
    pub(crate) fn compare(&self, server: &ServerName, baseline: Baseline) {
        self.shared.catalog.send_if_modified(|catalog| {
            let Some(shelf) = catalog.shelf(server) else { return false };
            let differs = !shelf.baseline().accepts_the_same_as(&baseline);
            if differs {
                let shelf = shelf.clone().with_baseline(baseline);
                *catalog = Arc::new(catalog.with_shelf(server, shelf));
            }
            differs
        });
    }

    pub(crate) fn plan(&self, server: &ServerName) -> Option<Arc<ListingPlan>> {
        self.shared.plans.borrow().get(server).cloned()
    }

    pub(crate) fn pin_file(&self, server: &ServerName) -> Option<Arc<PinFile>> {
        self.shared.plans.borrow().get(server)?.pins.clone()
    }

    fn change(&self, server: &ServerName, change: impl FnOnce(Shelf) -> Shelf) {
        self.shared.catalog.send_modify(|catalog| {
            if let Some(shelf) = catalog.shelf(server).cloned() {
                *catalog = Arc::new(catalog.with_shelf(server, change(shelf)));
            }
        });
    }

    /// Stores the first pins of a server, unless another process already has.
    fn establish(&self, server: &ServerName, pins: &PinFile, raw: &RawListing) {
        match pins.establish(raw) {
            Ok(baseline) => self.compare(server, baseline),
            Err(error) => tracing::warn!(%server, %error, "cannot store the pins"),
        }
    }

    /// Reloads the pins of servers with changed definitions: the user may have accepted the change
    /// in another process. Reads no file if no definition has changed.
    fn reload_changed_pins(&self) {
        let catalog = Arc::clone(&self.shared.catalog.borrow());
        for server in catalog.drifting() {
            if let Some(file) = self.pin_file(server)
                && file.has_changed()
            {
                self.compare(server, file.baseline());
            }
        }
    }

    /// Drops the listings of sign-ins that ended: the user may have signed out, or in to another
    /// account, in another process. If nothing changed, only the metadata of one file is read.
    fn drop_outdated_listings(&self) {
        let plans = Arc::clone(&self.shared.plans.borrow());
        let files = plans.iter().filter_map(|(server, plan)| Some((server, plan.file.as_ref()?)));
        let files: Vec<_> = files.filter(|(_, file)| file.sign_ins().is_some()).collect();
        let Some((_, first)) = files.first() else { return };
        let mut changed = Vec::new();
        {
            let mut sign_ins = lock(&self.shared.sign_ins);
            let now = first.sign_ins();
            if sign_ins.seen == now {
                return;
            }
            sign_ins.seen = now;
            for (server, file) in files {
                let identity = file.stored_identity();
                let before = sign_ins.identities.insert(server.clone(), identity.clone());
                if before.is_some_and(|before| before != identity) {
                    changed.push(server.clone());
                }
            }
        }
        let index = if changed.is_empty() { CacheIndex::default() } else { index(&plans) };
        for server in changed {
            self.change(&server, |shelf| {
                let mut shelf = shelf.without_listing();
                fill(&server, &mut shelf, &plans, &index, now());
                shelf
            });
        }
    }

    /// Waits until all published listings are on disk.
    pub(crate) async fn flush(&self) {
        self.shared.writers.close();
        self.shared.writers.wait().await;
    }

    /// Reads the cache once, as soon as the client capabilities are known.
    fn load_if_possible(&self) {
        let offered =
            || any_file(&self.shared.plans.borrow()).is_none_or(|file| file.offered().is_some());
        if self.shared.loaded.get().is_none() && offered() {
            self.shared.loaded.get_or_init(|| self.load());
        }
    }

    fn load(&self) {
        let now = now();
        self.sweep();
        // The change is one step, so that servers removed meanwhile do not reappear.
        self.shared.catalog.send_modify(|catalog| {
            let plans = Arc::clone(&self.shared.plans.borrow());
            let shelves = catalog.shelves().map(|(name, shelf)| (name.clone(), shelf.clone()));
            let mut shelves: BTreeMap<ServerName, Shelf> = shelves.collect();
            let index = index(&plans);
            for (server, shelf) in &mut shelves {
                fill(server, shelf, &plans, &index, now);
            }
            let reserved = catalog.reserved().to_vec();
            *catalog = Arc::new(Catalog::reserving(shelves, reserved));
        });
    }

    /// Removes unused files from the cache.
    fn sweep(&self) {
        let plans = Arc::clone(&self.shared.plans.borrow());
        if let Some(file) = any_file(&plans)
            && let Err(error) = listing_file::sweep(file.directory())
        {
            tracing::debug!(%error, "cannot clean up the cache");
        }
    }
}

/// The key and file names of the cache; empty if no plan has a cache file.
fn index(plans: &Plans) -> CacheIndex {
    any_file(plans).map(ListingFile::index).unwrap_or_default()
}

/// The cache file of one arbitrary server, to locate the cache: all files are in one directory and
/// depend on the same capabilities.
fn any_file(plans: &Plans) -> Option<&ListingFile> {
    plans.values().find_map(|plan| plan.file.as_ref())
}

/// Sets the baseline of a shelf, and its listing from the cache if it has none.
fn fill(server: &ServerName, shelf: &mut Shelf, plans: &Plans, index: &CacheIndex, now: u64) {
    let Some(plan) = plans.get(server) else { return };
    if let Some(pins) = &plan.pins {
        *shelf = shelf.clone().with_baseline(pins.baseline());
        if let Baseline::Damaged = shelf.baseline() {
            tracing::warn!(%server, "cannot parse the pin file of this server");
        }
    }
    let Some(file) = plan.file.as_ref().filter(|_| shelf.is_active()) else { return };
    let (cached, failure) = file.look(index, now);
    if let Some(failure) = failure.filter(|failure| failure.ago(now).is_some()) {
        *shelf = shelf.clone().with_failure(failure);
    }
    let cached = cached.filter(|_| shelf.listing().is_none());
    let Some(Cached { listing, era, .. }) = cached else { return };
    *shelf = shelf.clone().of_era(era);
    if let Ok((raw, refresh)) = listing {
        let listing = Listing::build(server.clone(), &raw, &plan.policy);
        let failure = shelf.failure().cloned();
        *shelf = shelf.clone().with_listing(Arc::new(listing)).to_refresh(refresh);
        if let Some(failure) = failure {
            *shelf = shelf.clone().with_failure(failure);
        }
        if raw.asks_client {
            *shelf = shelf.clone().asking();
        }
        // The cached listing has no pins yet, because it was made by an earlier version or while
        // pins were off: its definitions are pinned now.
        if let (Baseline::Open(others), Some(pins)) = (shelf.baseline(), &plan.pins) {
            let mut records = Records::clone(others);
            let own = records.take_first(pins.set().code(), &raw).baseline();
            let baseline = pins.establish(&raw).unwrap_or(own);
            *shelf = shelf.clone().with_baseline(baseline);
        }
    }
}

/// Seconds since the Unix epoch.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
