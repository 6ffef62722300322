//! The listings of all servers, as one immutable snapshot.

pub mod account;
mod choice;
mod denied;
pub mod direct;
pub mod disk;
pub mod entry;
pub mod find;
pub mod guess;
pub mod listing;
pub mod known_failure;
pub mod pin;
pub mod prompts;
pub mod resolve;
mod resources;
pub mod rule_match;
pub mod sealed;
pub mod search;
mod shadowed;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;

use crate::config::layers::PendingCause;
use crate::config::values::{DirectTools, ToolPrefix};
use crate::name::{NameTier, Prefixes, ServerName, ShownName, shown_names};
use crate::restriction::Restriction;

use denied::Denied;
use disk::Refresh;
pub use entry::{Annotations, Entry, EntryKind};
use known_failure::KnownFailure;
use pin::{Baseline, DriftCount, Pin};

pub use listing::{
    CacheScope, Era, Instructions, Listing, ListingPolicy, Prompt, PromptArgument, RawListing,
    Resource, ResourceTemplate,
};
pub use resolve::{Resolution, ResolveError, Resolved};

/// A configured server in the catalog: its names, listing and pins.
#[derive(Clone, Debug, Default)]
pub struct Shelf {
    pub prefix: ToolPrefix,
    pub standing: Standing,
    tier: NameTier,
    /// The server's `directTools`: which tools are shown beside `mcp`.
    direct: Option<DirectTools>,
    /// The user's `deny` rules.
    deny: Arc<Restriction>,
    /// The listing of the server; `None` until the server was first listed.
    listing: Option<Arc<Listing>>,
    baseline: Baseline,
    /// For each entry of the listing, how it compares with its pin.
    pins: Arc<[Pin]>,
    /// How each prompt, in listing order, and the instructions compare with their pins.
    word_pins: (Arc<[Pin]>, Pin),
    drift: DriftCount,
    asks_client: bool,
    refresh: Refresh,
    /// The last connection failure, in this process or another.
    failure: Option<Arc<KnownFailure>>,
    /// The era of the server at its last connection; `None` if it is unknown.
    era: Option<Era>,
}

/// Whether a server may be used, and why not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    #[default]
    Active,
    Disabled,
    /// The server comes from a project, and the user has not approved it.
    Pending(PendingCause),
}

/// An immutable snapshot of all listings. A new listing makes a new snapshot.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    shelves: BTreeMap<ServerName, Shelf>,
    /// All tools, sorted by server and then in listing order.
    tools: Vec<Resolved>,
    /// The index in `tools` of each shown name.
    by_shown: HashMap<Arc<str>, usize>,
    drifting: Vec<ServerName>,
    /// The shown names of each server's prompts, in listing order.
    prompt_names: HashMap<ServerName, Vec<Arc<str>>>,
    prefixes: Prefixes,
    /// Names of invalid entries. No other server may use the prefixes of these names.
    reserved: Vec<(ServerName, NameTier)>,
    /// Tools that a `deny` rule matches; computed when first needed.
    denied: OnceLock<Denied>,
}

impl Catalog {
    pub fn new(shelves: BTreeMap<ServerName, Shelf>) -> Catalog {
        Catalog::reserving(shelves, Vec::new())
    }

    /// Like [`Catalog::new`], but also with the names of invalid entries, whose prefixes stay
    /// reserved.
    pub fn reserving(
        shelves: BTreeMap<ServerName, Shelf>,
        reserved: Vec<(ServerName, NameTier)>,
    ) -> Catalog {
        let mut ids = Vec::new();
        let mut entries = Vec::new();
        for (server, shelf) in &shelves {
            for (entry, pin) in shelf.entries() {
                ids.push((entry.id(server), shelf.prefix));
                entries.push((server.clone(), Arc::clone(entry), pin));
            }
        }
        let drifting = shelves.iter().filter(|(_, shelf)| !shelf.drift().is_none());
        let drifting = drifting.map(|(name, _)| name.clone()).collect();
        let configured = shelves.iter().map(|(name, shelf)| (name, shelf.tier));
        let unusable = reserved.iter().map(|(name, tier)| (name, *tier));
        let prefixes = Prefixes::new(configured.chain(unusable));
        let names = shown_names(&ids, &prefixes);
        let mut catalog = Catalog { shelves, drifting, prefixes, reserved, ..Catalog::default() };
        for ((server, entry, pin), ShownName { name, claims }) in entries.into_iter().zip(names) {
            let shown: Arc<str> = Arc::from(name);
            catalog.by_shown.insert(Arc::clone(&shown), catalog.tools.len());
            catalog.tools.push(Resolved {
                server,
                shown,
                entry,
                pin,
                claims: claims.map(Box::new),
            });
        }
        catalog.name_prompts();
        catalog
    }

    /// A new snapshot, in which `server` has another shelf.
    #[must_use]
    pub fn with_shelf(&self, server: &ServerName, shelf: Shelf) -> Catalog {
        let mut shelves = self.shelves.clone();
        shelves.insert(server.clone(), shelf);
        Catalog::reserving(shelves, self.reserved.clone())
    }

    /// The names of all servers, including those with invalid entries.
    pub(crate) fn configured(&self) -> impl Iterator<Item = &ServerName> {
        self.shelves.keys().chain(self.reserved.iter().map(|(name, _)| name))
    }

    /// The names of invalid entries.
    pub fn reserved(&self) -> &[(ServerName, NameTier)] {
        &self.reserved
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

    /// The listings of all active servers.
    pub fn offered(&self) -> impl Iterator<Item = &Arc<Listing>> {
        self.shelves.values().filter(|shelf| shelf.is_active()).filter_map(|shelf| shelf.listing())
    }

    /// The tools of one server that no `deny` rule matches, in listing order. Lists for users and
    /// models contain only these tools.
    pub fn tools_of(&self, server: &ServerName) -> impl Iterator<Item = &Resolved> {
        self.all_tools_of(server).filter(|tool| self.denied_by(&tool.shown).is_none())
    }

    /// All tools that no `deny` rule matches.
    pub fn tools(&self) -> impl Iterator<Item = &Resolved> {
        self.all_tools().filter(|tool| self.denied_by(&tool.shown).is_none())
    }

    /// All tools of one server, including denied ones, to look up a requested name.
    pub fn all_tools_of(&self, server: &ServerName) -> std::slice::Iter<'_, Resolved> {
        let start = self.tools.partition_point(|tool| tool.server < *server);
        let end = self.tools.partition_point(|tool| tool.server <= *server);
        self.tools.get(start..end).unwrap_or_default().iter()
    }

    /// All tools, including denied ones.
    pub fn all_tools(&self) -> std::slice::Iter<'_, Resolved> {
        self.tools.iter()
    }

    /// How many tools no `deny` rule matches.
    pub fn tool_count(&self) -> usize {
        self.tools.len() - self.denied_count(None)
    }

    /// Servers with tools, prompts or instructions that changed since they were pinned.
    pub fn drifting(&self) -> &[ServerName] {
        &self.drifting
    }

    /// Active servers that were never listed.
    pub fn not_listed_yet(&self) -> Vec<ServerName> {
        self.servers_where(|shelf| shelf.is_active() && shelf.listing.is_none())
    }

    /// Servers whose cached listing is due for a refresh.
    pub fn to_refresh(&self) -> Vec<ServerName> {
        self.servers_where(|shelf| shelf.is_active() && shelf.refresh == Refresh::Due)
    }

    /// Servers of a project that the user has not approved.
    pub fn pending(&self) -> Vec<ServerName> {
        self.servers_where(|shelf| matches!(shelf.standing, Standing::Pending(_)))
    }

    fn servers_where(&self, holds: impl Fn(&Shelf) -> bool) -> Vec<ServerName> {
        let found = self.shelves.iter().filter(|(_, shelf)| holds(shelf));
        found.map(|(name, _)| name.clone()).collect()
    }
}

impl Shelf {
    /// A shelf without a listing.
    pub fn new(prefix: ToolPrefix, standing: Standing) -> Shelf {
        let tier = match standing {
            Standing::Pending(_) => NameTier::Project,
            Standing::Active | Standing::Disabled => NameTier::User,
        };
        Shelf { prefix, standing, tier, ..Shelf::default() }
    }

    /// Sets the server's `directTools`.
    #[must_use]
    pub fn with_direct(mut self, direct: Option<DirectTools>) -> Shelf {
        self.direct = direct;
        self
    }

    /// Sets the `deny` rules that apply to the server.
    #[must_use]
    pub fn with_deny(mut self, deny: Arc<Restriction>) -> Shelf {
        self.deny = deny;
        self
    }

    /// Sets whether a file of the user or of a project defines the server. A pending server is
    /// always of a project.
    #[must_use]
    pub fn of_tier(mut self, tier: NameTier) -> Shelf {
        self.tier = tier;
        self
    }

    /// The server's `directTools` setting.
    pub fn direct(&self) -> Option<&DirectTools> {
        self.direct.as_ref()
    }

    pub fn is_active(&self) -> bool {
        self.standing == Standing::Active
    }

    /// A key for comparing shelves: equal keys mean equal shelves.
    pub fn identity(&self) -> impl PartialEq {
        let listed = self.listing.as_ref().map(|it| (Arc::as_ptr(it), Arc::as_ptr(&self.pins)));
        (self.prefix, self.standing, self.tier, &self.direct, &self.deny, listed, self.asks_client)
    }

    /// A shelf with the names and rules of this shelf, and with the listing and state of `old`.
    #[must_use]
    pub fn with_state_of(self, old: &Shelf) -> Shelf {
        let Shelf { prefix, standing, tier, direct, deny, .. } = self;
        Shelf { prefix, standing, tier, direct, deny, ..old.clone() }
    }

    pub fn listing(&self) -> Option<&Arc<Listing>> {
        self.listing.as_ref()
    }

    /// Whether the server is known to send server-to-client requests.
    pub fn asks_client(&self) -> bool {
        self.asks_client
    }

    /// Records that the server sends server-to-client requests.
    #[must_use]
    pub fn asking(mut self) -> Shelf {
        self.asks_client = true;
        self
    }

    /// The era of the server; `None` if it is unknown.
    pub fn era(&self) -> Option<Era> {
        self.era
    }

    /// Records the era of the server. A stateless server returns its server-to-client requests
    /// inside responses, which always reach the client that caused them, so it is not recorded as
    /// sending any.
    #[must_use]
    pub fn of_era(mut self, era: Option<Era>) -> Shelf {
        self.era = era;
        self.asks_client &= era != Some(Era::Modern);
        self
    }

    pub fn baseline(&self) -> &Baseline {
        &self.baseline
    }

    /// How the server's instructions compare with their pin.
    pub fn instructions_pin(&self) -> Pin {
        self.word_pins.1
    }

    /// How many of the tools, prompts and instructions do not match their pins.
    pub fn drift(&self) -> DriftCount {
        self.drift
    }

    /// Replaces the listing, and compares it with the baseline.
    #[must_use]
    pub fn with_listing(mut self, listing: Arc<Listing>) -> Shelf {
        self.listing = Some(listing);
        self.refresh = Refresh::NotDue;
        self.failure = None;
        self.compare();
        self
    }

    /// Removes the listing, which belonged to another credential.
    #[must_use]
    pub fn without_listing(mut self) -> Shelf {
        self.listing = None;
        self.compare();
        self
    }

    /// Sets whether the listing is due for a refresh.
    #[must_use]
    pub fn to_refresh(mut self, refresh: Refresh) -> Shelf {
        self.refresh = refresh;
        self
    }

    /// Sets the last connection failure.
    #[must_use]
    pub fn with_failure(mut self, failure: KnownFailure) -> Shelf {
        self.failure = Some(Arc::new(failure));
        self
    }

    /// The last connection failure, in this process or another.
    pub fn failure(&self) -> Option<&KnownFailure> {
        self.failure.as_deref()
    }

    /// Replaces the baseline, and compares the listing with it.
    #[must_use]
    pub fn with_baseline(mut self, baseline: Baseline) -> Shelf {
        self.baseline = baseline;
        self.compare();
        self
    }

    fn compare(&mut self) {
        let entries = self.listing.iter().flat_map(|listing| &listing.entries);
        self.pins = entries.map(|entry| self.baseline.compare_entry(entry)).collect();
        let prompts = self.listing.iter().flat_map(|listing| &listing.prompts);
        let prompts: Arc<[Pin]> =
            prompts.map(|prompt| self.baseline.compare(&prompt.pinned())).collect();
        let instructions = self.listing.as_ref().and_then(|it| it.instructions.as_ref());
        let instructions = instructions.map(|it| self.baseline.compare(&it.pinned()));
        self.word_pins = (prompts, instructions.unwrap_or_default());
        let (prompts, instructions) = &self.word_pins;
        let all = self.pins.iter().chain(prompts.iter()).chain([instructions]);
        self.drift = DriftCount::of(all.copied());
    }

    fn entries(&self) -> impl Iterator<Item = (&Arc<Entry>, Pin)> {
        let listing = self.listing.as_ref().filter(|_| self.is_active());
        let entries = listing.into_iter().flat_map(|listing| &listing.entries);
        entries.zip(self.pins.iter().copied())
    }
}

#[cfg(test)]
mod hijack;
