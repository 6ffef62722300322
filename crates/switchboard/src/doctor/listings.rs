//! Tools with the prefix of another server, and hidden text, as far as servers have been listed.

use std::collections::BTreeMap;
use std::sync::Arc;

use switchboard_core::catalog::{Catalog, Listing, Standing};
use switchboard_core::config::layers::Server;
use switchboard_core::doctor::hidden_text::{HiddenPlaces, PlaceKind};
use switchboard_core::doctor::{Fault, Finding};
use switchboard_core::hidden::Hidden;
use switchboard_core::name::ServerName;

use crate::blueprint;
use crate::directory;
use crate::env::Environment;
use crate::listing_file::ListingFile;
use crate::load::Loaded;
use crate::paths::Paths;

/// As many tools of one server with a foreign prefix are named.
const NAMED: usize = 3;

pub(super) fn examine(
    environment: &Environment,
    locations: &Paths,
    loaded: &Loaded,
) -> Vec<Finding> {
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
        if let Some(listing) = last_listing(&name, server, (environment, locations), loaded) {
            shelf = shelf.with_listing(Arc::new(listing));
        }
        shelves.insert(name, shelf);
    }
    let catalog = Catalog::reserving(shelves, blueprint::reserved(config));
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
    let hidden = catalog.shelves().flat_map(|(server, _)| {
        let places = HiddenPlaces::of(hidden_in(&catalog, server)).map(Fault::HiddenText);
        let shadowed = catalog.listing(server).map(|listing| listing.shadowed.clone());
        let shadowed = shadowed.filter(|names| !names.is_empty()).map(Fault::ShadowedNames);
        let faults = places.into_iter().chain(shadowed);
        faults.map(|fault| Finding::of(server.as_str(), fault))
    });
    foreign.chain(hidden).collect()
}

/// Where a server hid something.
fn hidden_in<'a>(
    catalog: &'a Catalog,
    server: &'a ServerName,
) -> impl Iterator<Item = (PlaceKind, String, Hidden)> {
    let instructions = catalog.listing(server).and_then(|listing| listing.instructions.as_ref());
    let instructions = instructions.and_then(|it| it.hidden.clone());
    let instructions = instructions.map(|hidden| (PlaceKind::Instructions, String::new(), hidden));
    let tools = catalog.tools_of(server).filter_map(|item| {
        let hidden = item.entry.hidden.as_deref()?;
        Some((PlaceKind::Tool, item.shown.to_string(), hidden.clone()))
    });
    let prompts = catalog.prompts_of(server).filter_map(|item| {
        let hidden = item.prompt.hidden.as_deref()?;
        Some((PlaceKind::Prompt, item.shown.to_string(), hidden.clone()))
    });
    let resources = catalog.listing(server).into_iter().flat_map(|it| &it.hidden_in_resources);
    let resources =
        resources.map(|(uri, hidden)| (PlaceKind::Resource, uri.clone(), hidden.clone()));
    instructions.into_iter().chain(tools).chain(prompts).chain(resources)
}

fn last_listing(
    name: &ServerName,
    server: &Server,
    (environment, locations): (&Environment, &Paths),
    loaded: &Loaded,
) -> Option<Listing> {
    let offer = super::offer(&loaded.config.settings);
    let file = ListingFile::of(name, server, (environment, locations), offer);
    let (raw, _) = file.cached(directory::now())?.listing.ok()?;
    let policy = blueprint::listing_policy(&server.definition, &loaded.config.settings);
    Some(Listing::build(name.clone(), &raw, &policy))
}
