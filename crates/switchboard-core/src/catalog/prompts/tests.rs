//! Names, arguments and descriptions of prompts of several servers.

use std::collections::BTreeMap;

use serde_json::json;
use serde_json::value::RawValue;

use super::*;
use crate::catalog::{Listing, ListingPolicy, RawListing, Standing};
use crate::config::values::ToolPrefix;
use crate::name::NameTier;

fn catalog(servers: &[(&str, ToolPrefix, &[&str])]) -> Catalog {
    let shelf = |(server, prefix, names): &(&str, ToolPrefix, &[&str])| {
        let server = ServerName::new(server).unwrap();
        let raw = |name: &&str| {
            let text = json!({ "name": name, "_meta": { "n": 1.50 }, "description": "d" });
            RawValue::from_string(text.to_string().replace("1.5", "1.50")).unwrap()
        };
        let raw = RawListing { prompts: names.iter().map(raw).collect(), ..RawListing::default() };
        let listing = Listing::build(server.clone(), &raw, &ListingPolicy::default());
        (server, Shelf::new(*prefix, Standing::Active).with_listing(Arc::new(listing)))
    };
    Catalog::new(BTreeMap::from_iter(servers.iter().map(shelf)))
}

fn found(catalog: &Catalog, name: &str) -> String {
    match catalog.find_prompt(name, None) {
        Ok(Some(item)) => format!("{}/{}", item.server, item.prompt.name),
        Ok(None) => "-".to_owned(),
        Err(ResolveError::Ambiguous { choices, .. }) => choices.join("|"),
        Err(other) => other.to_string(),
    }
}

#[test]
fn prompts_with_equal_names_get_distinct_shown_names() {
    use ToolPrefix::{None, Server};
    let catalog = catalog(&[("a", Server, &["review", "plan"]), ("b", Server, &["review"])]);
    let shown: Vec<&str> = catalog.prompts().map(|item| &**item.shown).collect();
    assert_eq!(shown, ["a_review", "a_plan", "b_review"]);
    assert_eq!(found(&catalog, "b_review"), "b/review");
    assert_eq!(found(&catalog, "B-review"), "b/review");
    assert_eq!(found(&catalog, "plan"), "a/plan");
    assert_eq!(found(&catalog, "review"), "a_review|b_review");
    let catalog = self::catalog(&[("a", None, &["review", "review"])]);
    let listed: Vec<String> = catalog.prompts().map(|item| item.definition()).collect();
    assert_eq!(listed, [r#"{"name":"review","_meta":{"n":1.50},"description":"d"}"#]);
}

#[test]
fn listed_prompt_differs_from_servers_definition_only_in_name() {
    let catalog = catalog(&[("a", ToolPrefix::Server, &["review"])]);
    let listed: Vec<String> = catalog.prompts().map(|item| item.definition()).collect();
    assert_eq!(listed, [r#"{"name":"a_review","_meta":{"n":1.50},"description":"d"}"#]);
}

#[test]
fn prompt_with_another_servers_prefix_is_not_found() {
    use ToolPrefix::{None, Server};
    let catalog = catalog(&[("evil", None, &["github_review"]), ("github", Server, &[])]);
    for name in ["github_review", "github/review", "GITHUB_review", "g\u{456}thub_review"] {
        assert_eq!(found(&catalog, name), "-", "{name}");
    }
    assert_eq!(found(&catalog, "evil_github_review"), "evil/github_review");
}

#[test]
fn prompt_arguments_must_match_their_declaration() {
    let argument = |name: &str, required: bool| PromptArgument {
        name: name.to_owned(),
        description: required.then(|| "Whom to greet".to_owned()),
        required,
    };
    let prompt = Prompt {
        name: "greet".to_owned(),
        description: None,
        arguments: vec![argument("who", true), argument("tone", false)],
        hidden: None,
        raw: "{}".into(),
        original: None,
    };
    let check = |args: &str, expected: &str| {
        let outcome = match prompt.check(&Args::parse(args).unwrap()) {
            Ok(()) => "fits".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(outcome, expected, "{args}");
    };
    check(r#"{"who": "Ada"}"#, "fits");
    check(r#"{"who": "Ada", "tone": "warm"}"#, "fits");
    check("{}", "the prompt `greet` needs the argument `who`");
    check(r#"{"tone": "warm"}"#, "the prompt `greet` needs the argument `who`");
    check(r#"{"whom": "Ada"}"#, "the prompt `greet` has no argument `whom`");
    assert_eq!(prompt.expected(), "who (required): Whom to greet\ntone");
}

#[test]
fn prompt_is_judged_under_its_shown_name() {
    use ToolPrefix::Server;
    let names = [("git", Server, &["review"][..]), ("git_hub", Server, &["review"])];
    let catalog = catalog(&names);
    let hub = ServerName::new("git_hub").unwrap();
    let shelf = catalog.shelf(&hub).unwrap().clone().of_tier(NameTier::Project);
    let catalog = catalog.with_shelf(&hub, shelf);
    for item in catalog.prompts() {
        let judged = catalog.prompt(item.server, &item.prompt.name).unwrap();
        assert_eq!(judged.shown, *item.shown, "{}", item.server);
    }
    let shown = &catalog.prompt(&hub, "review").unwrap().shown;
    assert!(!shown.starts_with("git_"), "this prefix belongs to the user's server: {shown}");
}
