//! What all servers offer, as one immutable snapshot.

pub mod disk;
pub mod entry;
pub mod find;
pub mod listing;
pub mod resolve;
pub mod search;

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::config::values::ToolPrefix;
use crate::name::{ServerName, ToolId, shown_names};

pub use entry::{Annotations, Entry, Kind};
pub use listing::{Listing, ListingPolicy, Prompt, RawListing, Resource};
pub use resolve::{Resolution, ResolveError, Resolved};

/// A configured server, as far as names and tools are concerned.
#[derive(Clone, Debug)]
pub struct Shelf {
    pub prefix: ToolPrefix,
    pub standing: Standing,
    /// `None` until the server has been listed once.
    pub listing: Option<Arc<Listing>>,
}

/// Whether a server may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Active,
    Disabled,
    /// Comes from a project and was not approved.
    Pending,
}

/// One snapshot. Cheap to share, never changed: publishing a listing makes a new one.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    shelves: BTreeMap<ServerName, Shelf>,
    by_shown: HashMap<Arc<str>, Resolved>,
    /// Shown names, in the order of the listing's entries.
    shown: HashMap<ServerName, Vec<Arc<str>>>,
}

/// A tool together with the name that it is shown with.
#[derive(Clone, Debug)]
pub struct Item<'a> {
    pub server: &'a ServerName,
    pub shown: &'a Arc<str>,
    pub entry: &'a Arc<Entry>,
}

impl Catalog {
    pub fn new(shelves: BTreeMap<ServerName, Shelf>) -> Catalog {
        let mut tools = Vec::new();
        let mut entries = Vec::new();
        for (server, shelf) in &shelves {
            for entry in shelf.entries() {
                let id = ToolId { server: server.clone(), tool: entry.name.clone() };
                tools.push((id, shelf.prefix));
                entries.push((server.clone(), Arc::clone(entry)));
            }
        }
        let mut catalog = Catalog { shelves, ..Catalog::default() };
        for ((server, entry), name) in entries.into_iter().zip(shown_names(&tools)) {
            let shown: Arc<str> = Arc::from(name);
            catalog.shown.entry(server.clone()).or_default().push(Arc::clone(&shown));
            let resolved = Resolved { server, shown: Arc::clone(&shown), entry };
            catalog.by_shown.insert(shown, resolved);
        }
        catalog
    }

    /// A snapshot in which `server` has these tools.
    #[must_use]
    pub fn with_listing(&self, server: &ServerName, listing: Arc<Listing>) -> Catalog {
        let mut shelves = self.shelves.clone();
        if let Some(shelf) = shelves.get_mut(server) {
            shelf.listing = Some(listing);
        }
        Catalog::new(shelves)
    }

    pub fn shelf(&self, server: &ServerName) -> Option<&Shelf> {
        self.shelves.get(server)
    }

    pub fn shelves(&self) -> impl Iterator<Item = (&ServerName, &Shelf)> {
        self.shelves.iter()
    }

    pub fn listing(&self, server: &ServerName) -> Option<&Arc<Listing>> {
        self.shelves.get(server)?.listing.as_ref()
    }

    /// The tools of one server, in its own order.
    pub fn tools_of(&self, server: &ServerName) -> impl Iterator<Item = Item<'_>> {
        let found = self.shelves.get_key_value(server).zip(self.shown.get(server));
        found.into_iter().flat_map(|((server, shelf), names)| {
            shelf.entries().iter().zip(names).map(move |(entry, shown)| Item {
                server,
                shown,
                entry,
            })
        })
    }

    pub fn tools(&self) -> impl Iterator<Item = Item<'_>> {
        self.shelves.keys().flat_map(|server| self.tools_of(server))
    }

    pub fn tool_count(&self) -> usize {
        self.by_shown.len()
    }

    /// Servers that could be asked but never were.
    pub fn not_listed_yet(&self) -> Vec<ServerName> {
        let unknown =
            |(_, shelf): &(&ServerName, &Shelf)| shelf.is_active() && shelf.listing.is_none();
        self.shelves.iter().filter(unknown).map(|(name, _)| name.clone()).collect()
    }

    /// Servers that wait for the user's trust.
    pub fn pending(&self) -> Vec<ServerName> {
        let pending = |(_, shelf): &(&ServerName, &Shelf)| shelf.standing == Standing::Pending;
        self.shelves.iter().filter(pending).map(|(name, _)| name.clone()).collect()
    }
}

impl Shelf {
    pub fn is_active(&self) -> bool {
        self.standing == Standing::Active
    }

    /// Equal for shelves that hold the same.
    pub fn identity(&self) -> (ToolPrefix, Standing, Option<*const Listing>) {
        (self.prefix, self.standing, self.listing.as_ref().map(Arc::as_ptr))
    }

    fn entries(&self) -> &[Arc<Entry>] {
        match &self.listing {
            Some(listing) if self.is_active() => &listing.entries,
            Some(_) | None => &[],
        }
    }
}
