//! Findings in the cached listings: names and prefixes of other servers, hidden text, and rules
//! that match nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use switchboard_core::catalog::rule_match::{RuleList, Unmatched};
use switchboard_core::catalog::{Catalog, Listing, Standing};
use switchboard_core::config::layers::Server;
use switchboard_core::config::settings::Settings;
use switchboard_core::config::values::ToolPrefix;
use switchboard_core::doctor::hidden_text::{HiddenPlaces, PlaceKind};
use switchboard_core::doctor::{Fault, Finding};
use switchboard_core::hidden::Hidden;
use switchboard_core::name::ServerName;
use switchboard_core::render::words::clean_line;

use crate::blueprint;
use crate::env::Environment;
use crate::load::Loaded;
use crate::paths::Paths;

/// The maximum number of tools of one server that are reported for the prefix of another server.
const NAMED: usize = 3;

/// The maximum number of rules of each list that are examined.
const MOST_RULES: usize = 100;

/// The maximum length, in characters, of a tool name in a finding.
const NAME: usize = 100;

/// The catalog of the configured servers, with their cached listings. Reads files; connects
/// nothing.
pub fn known_catalog(environment: &Environment, locations: &Paths, loaded: &Loaded) -> Catalog {
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
    Catalog::reserving(shelves, blueprint::reserved(config))
}

pub(super) fn examine(
    environment: &Environment,
    locations: &Paths,
    loaded: &Loaded,
) -> Vec<Finding> {
    let catalog = known_catalog(environment, locations, loaded);
    let servers = catalog.shelves().map(|(server, _)| server);
    let foreign = servers.flat_map(|server| {
        let claiming = catalog
            .all_tools_of(server)
            .filter_map(|item| Some((item.claims.as_deref()?.clone(), item)));
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
    let mut findings: Vec<Finding> = foreign.chain(hidden).collect();
    findings.extend(shared_names(&catalog));
    findings.extend(unmatched_rules(&catalog, &loaded.config.settings));
    findings
}

/// Findings about servers without a prefix that have tools of the same name.
fn shared_names(catalog: &Catalog) -> Vec<Finding> {
    let bare = catalog.shelves().filter(|(_, shelf)| shelf.prefix == ToolPrefix::None);
    let mut owners: BTreeMap<&str, &ServerName> = BTreeMap::new();
    let mut shared: BTreeMap<(&ServerName, &ServerName), Vec<String>> = BTreeMap::new();
    for (server, _) in bare {
        for item in catalog.all_tools_of(server) {
            let other = *owners.entry(item.entry.name.as_str()).or_insert(&item.server);
            if *other != item.server {
                let tool = format!("`{}`", clean_line(item.entry.name.as_str(), NAME));
                shared.entry((&item.server, other)).or_default().push(tool);
            }
        }
    }
    let finding = |((server, other), tools): ((&ServerName, &ServerName), _)| {
        let other = other.to_string();
        Finding::of(server.as_str(), Fault::SharedNames { other, tools })
    };
    shared.into_iter().map(finding).collect()
}

/// Rules that match nothing; empty unless all servers are listed.
fn unmatched_rules(catalog: &Catalog, settings: &Settings) -> Vec<Finding> {
    if !catalog.is_complete() {
        return Vec::new();
    }
    let lists =
        [(RuleList::Allow, "allow", &settings.allow), (RuleList::Deny, "deny", &settings.deny)];
    let rules = lists.into_iter().flat_map(|(list, name, patterns)| {
        patterns.iter().take(MOST_RULES).filter_map(move |pattern| {
            let Unmatched { nearest, .. } = catalog.unmatched(list, pattern)?;
            let fault = Fault::UnmatchedRule { list: name, pattern: pattern.clone(), nearest };
            Some(Finding { server: None, fault })
        })
    });
    rules.collect()
}

/// The places in a server's listing with hidden text.
fn hidden_in<'a>(
    catalog: &'a Catalog,
    server: &'a ServerName,
) -> impl Iterator<Item = (PlaceKind, String, Hidden)> {
    let instructions = catalog.listing(server).and_then(|listing| listing.instructions.as_ref());
    let instructions = instructions.and_then(|it| it.hidden.clone());
    let instructions = instructions.map(|hidden| (PlaceKind::Instructions, String::new(), hidden));
    let tools = catalog.all_tools_of(server).filter_map(|item| {
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
    means: (&Environment, &Paths),
    loaded: &Loaded,
) -> Option<Listing> {
    let settings = &loaded.config.settings;
    let mut cached = super::cached(name, server, settings, means);
    let (raw, _) = cached.find_map(|cached| cached.listing.ok())?;
    let policy = blueprint::listing_policy(&server.definition, settings);
    Some(Listing::build(name.clone(), &raw, &policy))
}
