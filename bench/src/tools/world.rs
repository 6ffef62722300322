//! The set of tools for a task: the tools of its own server and of other whole servers, up to a
//! number, the same in every run.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use switchboard_core::catalog::{Catalog, Listing, ListingPolicy, RawListing, Shelf, Standing};
use switchboard_core::config::values::ToolPrefix;
use switchboard_core::name::ServerName;

use crate::BenchResult;
use crate::data::{Tool, ToolData};

/// The data that all tasks and sizes share: the listings of the servers, and the cost of each
/// definition.
pub(crate) struct Worlds<'a> {
    data: &'a ToolData,
    listings: BTreeMap<&'a str, Arc<Listing>>,
    /// The tokens of each definition by the tool's id, counted on first use.
    costs: BTreeMap<&'a str, OnceCell<usize>>,
}

/// Some servers with their tools.
pub(crate) struct World<'a> {
    pub(crate) lists: Vec<&'a [Tool]>,
    pub(crate) catalog: Catalog,
    /// The tokens of all definitions together.
    pub(crate) direct: usize,
}

impl<'a> Worlds<'a> {
    pub(crate) fn new(data: &'a ToolData) -> BenchResult<Worlds<'a>> {
        let mut listings = BTreeMap::new();
        let mut costs = BTreeMap::new();
        for (server, tools) in &data.servers {
            listings.insert(server.as_str(), Arc::new(listing(server, tools)?));
            for tool in tools {
                costs.insert(tool.id.as_str(), OnceCell::new());
            }
        }
        Ok(Worlds { data, listings, costs })
    }

    /// A world of at most `size` tools that contains this tool. Of a larger server, it has only the
    /// tools around this one.
    pub(crate) fn around(&self, tool: &Tool, size: usize) -> BenchResult<World<'a>> {
        let own = self.data.servers.get(&tool.server).map_or(&[][..], Vec::as_slice);
        let at = own.iter().position(|other| other.id == tool.id).unwrap_or_default();
        let from = at.saturating_sub(size / 2).min(own.len().saturating_sub(size));
        let mut lists = vec![own.get(from..own.len().min(from + size)).unwrap_or_default()];
        let mut room = size.saturating_sub(own.len());
        let others = self.data.servers.iter().filter(|(name, _)| **name != tool.server);
        let mut others: Vec<(&String, &Vec<Tool>)> = others.collect();
        others.sort_by_key(|(name, _)| shuffled(name, size));
        for (_, tools) in others {
            if tools.len() <= room {
                room -= tools.len();
                lists.push(tools);
            }
        }
        let mut shelves = BTreeMap::new();
        for list in &lists {
            let Some(first) = list.first() else { continue };
            let whole = self.listings.get(first.server.as_str());
            let listing = match whole.filter(|whole| whole.entries.len() == list.len()) {
                Some(whole) => Arc::clone(whole),
                None => Arc::new(listing(&first.server, list)?),
            };
            let shelf = Shelf::new(ToolPrefix::default(), Standing::Active);
            shelves.insert(listing.server.clone(), shelf.with_listing(listing));
        }
        let all = lists.iter().copied().flatten();
        let direct = all.map(|tool| self.cost(tool)).sum();
        Ok(World { lists, catalog: Catalog::new(shelves), direct })
    }
}

impl Worlds<'_> {
    /// A catalog of all servers.
    pub(crate) fn whole(&self) -> Catalog {
        let shelf = |listing: &Arc<Listing>| {
            let shelf = Shelf::new(ToolPrefix::default(), Standing::Active);
            (listing.server.clone(), shelf.with_listing(Arc::clone(listing)))
        };
        Catalog::new(self.listings.values().map(shelf).collect())
    }

    fn cost(&self, tool: &Tool) -> usize {
        let cost = self.costs.get(tool.id.as_str());
        cost.map_or(0, |cost| *cost.get_or_init(|| tokens(&tool.definition().to_string())))
    }
}

impl<'a> World<'a> {
    pub(crate) fn tools(&self) -> impl Iterator<Item = &'a Tool> {
        self.lists.iter().copied().flatten()
    }

    /// The shown name of a tool; `None` if the tool is not in this world.
    pub(crate) fn shown(&self, tool: &Tool) -> Option<&str> {
        let server = server_name(&tool.server).ok()?;
        let mut items = self.catalog.tools_of(&server);
        items.find(|item| item.entry.name.as_str() == tool.name).map(|item| &*item.shown)
    }
}

/// The number of tokens of a text with the tokenizer of `o200k`.
pub(crate) fn tokens(text: &str) -> usize {
    bpe_openai::o200k_base().count(text)
}

/// Converts a server name from a public list, which may be a URL, into a short one, as users choose
/// it.
pub(crate) fn server_name(server: &str) -> BenchResult<ServerName> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    Ok(ServerName::new(&server.chars().map(plain).collect::<String>())?)
}

fn listing(server: &str, tools: &[Tool]) -> BenchResult<Listing> {
    let raw = |tool: &Tool| RawValue::from_string(tool.listed().to_string());
    let tools = tools.iter().map(raw).collect::<Result<_, _>>()?;
    let raw = RawListing { tools, ..RawListing::default() };
    let policy = ListingPolicy { max_tools: usize::MAX, ..ListingPolicy::default() };
    Ok(Listing::build(server_name(server)?, &raw, &policy))
}

/// A hash that orders servers as if at random, but in the same way in every run (FNV-1a).
fn shuffled(name: &str, size: usize) -> u64 {
    let bytes = size.to_le_bytes().into_iter().chain(name.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
