//! A call reaches only the server whose prefix the tool's name has.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use serde_json::value::RawValue;

use super::*;
use crate::approval::Access;
use crate::config::layers::PendingCause;
use crate::exact::Args;
use crate::name::{NameTier, Owner};

const SERVERS: &[&str] = &[
    "github",
    "GitHub",
    "git",
    "git-hub",
    "git_hub",
    "github-mcp",
    "githubmcp",
    "g\u{456}thub",
    "evil",
    "e v",
    "e.v",
    "mcp",
    "mcp__github",
    "a",
    "a_b",
    "m",
    "rn",
];

const TOOLS: &[&str] = &[
    "create_issue",
    "hub_create_issue",
    "github_create_issue",
    "GitHub-create_issue",
    "github/create_issue",
    "mcp__github__create_issue",
    "g\u{456}thub_create_issue",
    "b_c",
    "c",
    "a_b_c",
    "git_hub_x",
    "x",
    "mcp_x",
    "github\u{ff3f}x",
    "rn_x",
];

/// A random server with its tools, in any state.
fn any_server() -> impl Strategy<Value = (&'static str, ToolPrefix, u8, Vec<&'static str>)> {
    let tools = proptest::collection::vec(select(TOOLS), 0..6);
    (select(SERVERS), select(&ToolPrefix::ALL[..]), 0_u8..6, tools)
}

/// The number for a server whose entry is invalid.
const RESERVED: u8 = 5;

fn shelf((server, prefix, state, tools): &(&str, ToolPrefix, u8, Vec<&str>)) -> Shelf {
    let standing = match state {
        0 => Standing::Disabled,
        1 => Standing::Pending(PendingCause::New),
        _ => Standing::Active,
    };
    let shelf = Shelf::new(*prefix, standing);
    if *state == 2 {
        return shelf;
    }
    let tool = |name: &&str| {
        let text = json!({
            "name": name,
            "inputSchema": { "type": "object" },
            "annotations": { "readOnlyHint": true },
        });
        RawValue::from_string(text.to_string()).unwrap()
    };
    let raw = RawListing { tools: tools.iter().map(tool).collect(), ..RawListing::default() };
    let policy = ListingPolicy { prefix: *prefix, max_tools: 100, ..ListingPolicy::default() };
    let listing = Listing::build(ServerName::new(server).unwrap(), &raw, &policy);
    shelf.with_listing(Arc::new(listing))
}

/// A tool name as a model could write it in a call.
fn any_call() -> impl Strategy<Value = String> {
    let joined = (select(SERVERS), select(&["_", "/", "-", ".", " ", "__"][..]), select(TOOLS))
        .prop_map(|(server, separator, tool)| format!("{server}{separator}{tool}"));
    let outer = joined.clone().prop_map(|name| format!("mcp__{name}"));
    let shouted = joined.clone().prop_map(|name| name.to_uppercase());
    let slip = joined.clone().prop_map(|name| name.replacen('i', "j", 1));
    prop_oneof![4 => joined, 1 => outer, 1 => shouted, 1 => slip, 2 => select(TOOLS).prop_map(str::to_owned)]
}

/// The servers whose prefix a name has, found independently of the code under test. The longest
/// prefix decides, and servers of the user come before those of a project. If several servers
/// remain, the name resolves to none of them.
fn bearers(catalog: &Catalog, name: &str) -> Vec<ServerName> {
    let tiers = [NameTier::User, NameTier::Project];
    let of_tier = |tier: NameTier| bearers_of(catalog, name, tier);
    tiers.into_iter().map(of_tier).find(|found| !found.is_empty()).unwrap_or_default()
}

fn bearers_of(catalog: &Catalog, name: &str, tier: NameTier) -> Vec<ServerName> {
    let alike = |text: &str| {
        let text = text.to_lowercase().replace('\u{456}', "i").replace('\u{ff3f}', "_");
        let text = text.replace(['-', '.', ' ', '/', ':'], "_").replace('m', "rn");
        let parts: Vec<&str> = text.split('_').filter(|part| !part.is_empty()).collect();
        let end = if text.ends_with('_') { "_" } else { "" };
        parts.join("_").replace('i', "l") + end
    };
    let name = alike(name);
    let mut best = (0, Vec::new());
    let usable = catalog.shelves().map(|(server, shelf)| (server, shelf.tier));
    let reserved = catalog.reserved().iter().map(|(server, tier)| (server, *tier));
    for (server, _) in usable.chain(reserved).filter(|(_, its)| *its == tier) {
        // The names of servers as in the configuration, and as in shown names.
        let typed = [server.as_str().to_owned(), server.as_str().replace('\u{456}', "_456_")];
        for own in typed.map(|own| alike(&own)) {
            let short = own.strip_suffix(&alike("mcp")).map(|stem| stem.trim_end_matches('_'));
            let short = short.filter(|stem| !stem.is_empty()).unwrap_or(&own).to_owned();
            let outer = [&own, &short].map(|inner| format!("{}_{inner}", alike("mcp")));
            for prefix in outer.into_iter().chain([own, short]) {
                if !name.starts_with(&format!("{prefix}_")) || prefix.len() < best.0 {
                    continue;
                }
                if prefix.len() > best.0 {
                    best = (prefix.len(), Vec::new());
                }
                best.1.push(server.clone());
            }
        }
    }
    best.1
}

#[test]
fn lookalike_server_cannot_use_name_of_an_invalid_entry() {
    let name = |name: &str| ServerName::new(name).unwrap();
    let shelves = [(name("GITHUB"), Shelf::new(ToolPrefix::Server, Standing::Active))];
    let catalog =
        Catalog::reserving(BTreeMap::from(shelves), vec![(name("github"), NameTier::User)]);
    assert!(catalog.server("github").is_err());
    assert!(catalog.server("GitHub").is_err());
    assert_eq!(catalog.server("GITHUB").ok(), Some(name("GITHUB")));
    for id in ["GitHub", "github_", "g1thub", "github-mcp", "g\u{456}thub", "GITHUB"] {
        assert!(catalog.similar_server(&name(id)).is_some(), "{id}");
    }
    for id in ["github_2", "git", "hub", "githubs"] {
        assert_eq!(catalog.similar_server(&name(id)), None, "{id}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]
    #[test]
    fn tool_name_with_a_prefix_reaches_only_its_server(
        servers in proptest::collection::vec(any_server(), 1..6),
        calls in proptest::collection::vec(any_call(), 1..8),
    ) {
        let (unusable, usable): (Vec<_>, Vec<_>) =
            servers.iter().partition(|(_, _, state, _)| *state == RESERVED);
        let named = |one: &&(&str, ToolPrefix, u8, Vec<&str>)| ServerName::new(one.0).unwrap();
        let shelves = usable.iter().map(|one| (named(one), shelf(one)));
        let reserved = unusable.iter().map(|one| (named(one), NameTier::User));
        let catalog = Catalog::reserving(BTreeMap::from_iter(shelves), reserved.collect());
        for name in &calls {
            let bearers = bearers(&catalog, name);
            let mut reached = Vec::new();
            if let Ok(resolution) = catalog.resolve(name, None) {
                reached.push(match resolution {
                    Resolution::Tool(tool) => tool.server,
                    Resolution::Unlisted(server) => server,
                });
            }
            let guessed = catalog.misspelt(name, None);
            let guessed = guessed.and_then(|tool| tool.check_unnamed(Args::default(), Access::Full).ok());
            reached.extend(guessed.map(|checked| checked.target.server));
            let searched = catalog.named(name, None).ok().flatten();
            reached.extend(searched.map(|tool| tool.server));
            let tools = catalog.tools().cloned();
            let found = tools.filter(|tool| catalog.can_mean(name, tool));
            reached.extend(found.map(|tool| tool.server));
            for server in reached {
                prop_assert!(
                    bearers.is_empty() || bearers.contains(&server),
                    "{} went to {}, and is of {:?}", name, server, bearers
                );
            }
        }
        for item in catalog.tools() {
            let bearers = bearers(&catalog, &item.shown);
            prop_assert!(
                bearers.is_empty() || bearers.contains(&item.server),
                "{} is shown for {}, and is of {:?}", item.shown, item.server, bearers
            );
            let called = match catalog.resolve(&item.shown, None) {
                Ok(Resolution::Tool(tool)) => Some(tool.server),
                Ok(Resolution::Unlisted(_)) | Err(_) => None,
            };
            prop_assert_eq!(called.as_ref(), Some(&item.server), "{} cannot be called", item.shown);
        }
    }
}

#[test]
fn prefix_of_a_disabled_server_reaches_no_other_server() {
    let catalog = Catalog::new(BTreeMap::from_iter([
        (ServerName::new("github").unwrap(), shelf(&("github", ToolPrefix::Server, 0, vec![]))),
        (ServerName::new("evil").unwrap(), shelf(&("evil", ToolPrefix::None, 3, vec!["github_x"]))),
    ]));
    let github = ServerName::new("github").unwrap();
    assert_eq!(catalog.prefixes.owner("github_x"), Owner::Server(github.clone()));
    let refused = catalog.resolve("github_x", None);
    assert!(matches!(refused, Err(ResolveError::Disabled(server)) if server == github));
    let tool = catalog.tools().next().unwrap();
    assert_eq!(&*tool.shown, "evil_github_x");
    assert_eq!(tool.claims.as_deref(), Some(&github));
}
