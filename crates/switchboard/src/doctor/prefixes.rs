//! Tools with the prefix of another server, as far as their servers have been listed.

use std::collections::BTreeMap;
use std::sync::Arc;

use switchboard_core::catalog::{Catalog, Listing, Standing, disk};
use switchboard_core::config::layers::Server;
use switchboard_core::config::trust::definition_hash;
use switchboard_core::doctor::{Fault, Finding};
use switchboard_core::name::ServerName;

use crate::blueprint;
use crate::directory;
use crate::load::Loaded;
use crate::paths::{self, Paths};

/// As many tools of one server are named.
const NAMED: usize = 3;

pub(super) fn examine(locations: &Paths, loaded: &Loaded) -> Vec<Finding> {
    let config = &loaded.config;
    let mut shelves = BTreeMap::new();
    for pending in &config.pending {
        let Ok(name) = ServerName::new(&pending.name) else { continue };
        let standing = Standing::Pending(pending.cause);
        shelves.insert(name, blueprint::shelf(&pending.definition, &config.settings, standing));
    }
    for (name, server) in &config.servers {
        let Ok(name) = ServerName::new(name) else { continue };
        let standing = match server.definition.is_disabled() {
            true => Standing::Disabled,
            false => Standing::Active,
        };
        let shelf = blueprint::shelf(&server.definition, &config.settings, standing);
        let mut shelf = shelf.of_tier(blueprint::tier_of(&server.trust));
        if let Some(listing) = last_listing(&name, server, locations, loaded) {
            shelf = shelf.with_listing(Arc::new(listing));
        }
        shelves.insert(name, shelf);
    }
    let catalog = Catalog::new(shelves);
    let servers = catalog.shelves().map(|(server, _)| server);
    let foreign = servers.flat_map(|server| {
        let claiming =
            catalog.tools_of(server).filter_map(|item| Some((item.claims?.clone(), item)));
        claiming.take(NAMED).map(|(other, item)| {
            let (tool, shown) = (item.entry.name.to_string(), item.shown.to_string());
            let fault = Fault::ForeignPrefix { tool, shown, other: other.to_string() };
            Finding::of(server.as_str(), fault)
        })
    });
    foreign.collect()
}

fn last_listing(
    name: &ServerName,
    server: &Server,
    locations: &Paths,
    loaded: &Loaded,
) -> Option<Listing> {
    let definition = definition_hash(&server.definition).to_string();
    let file = paths::read(&locations.listing_of(name, &definition)).ok()??;
    let raw = disk::decode(&file, &definition, directory::now()).ok()?;
    let policy = blueprint::listing_policy(&server.definition, &loaded.config.settings);
    Some(Listing::build(name.clone(), &raw, &policy))
}
