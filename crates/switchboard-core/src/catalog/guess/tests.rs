//! Misspelt tool names, and calls of tools that the caller did not name exactly.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::catalog::{Listing, ListingPolicy, RawListing, Shelf, Standing};
use crate::name::ServerName;

fn catalog(servers: &[(&str, &[Value])]) -> Catalog {
    let shelves = servers.iter().map(|(server, tools)| {
        let server = ServerName::new(server).unwrap();
        let tools = tools.iter().map(|tool| RawValue::from_string(tool.to_string()).unwrap());
        let raw = RawListing { tools: tools.collect(), ..RawListing::default() };
        let policy = ListingPolicy { max_tools: 100, ..ListingPolicy::default() };
        let listing = Listing::build(server.clone(), &raw, &policy);
        let shelf = Shelf::new(ToolPrefix::Server, Standing::Active);
        (server, shelf.with_listing(Arc::new(listing)))
    });
    Catalog::new(BTreeMap::from_iter(shelves))
}

fn named(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| json!({ "name": name, "inputSchema": {} })).collect()
}

#[test]
fn tool_does_not_match_if_query_names_another_server() {
    let issue = named(&["create_issue"]);
    let catalog = catalog(&[("github", &issue), ("evil", &issue), ("\u{444}\u{430}", &issue)]);
    let evil = catalog.tools().find(|tool| tool.server.as_str() == "evil").unwrap();
    for query in
        ["create issue with the GitHub server", "on github create_issue", "\u{424}\u{410} issue"]
    {
        assert!(!catalog.can_mean(query, evil), "{query}");
    }
    for query in ["create issue", "create an issue on evil", "githubs issue"] {
        assert!(catalog.can_mean(query, evil), "{query}");
    }
}

#[test]
fn misspelt_tool_name_resolves_to_the_only_similar_tool() {
    let code = named(&["list_issues", "get_v1", "echo", "add", "read_file", "read_files"]);
    let one = catalog(&[("github", &code)]);
    let check = |catalog: &Catalog, name: &str, expected: Option<&str>| {
        let found = catalog.misspelt(name, None);
        assert_eq!(found.as_ref().map(|tool| &*tool.shown), expected, "{name}");
    };
    for name in ["github_list_isues", "lsit_issues", "GitHub-List-Issue", "gihub_list_issues"] {
        check(&one, name, Some("github_list_issues"));
    }
    for name in ["github_ecko", "eco", "mcp__github_echoo"] {
        check(&one, name, Some("github_echo"));
    }
    // Each name has too many edits, is too short, has another digit or is ambiguous.
    for name in ["list_teams", "github_ad", "ad", "get_v2", "read_fil", "eho_", "", "gitlab_echo"] {
        check(&one, name, None);
    }
    check(&one, &"list_issues".repeat(1_000), None);

    let issues = named(&["list_issues"]);
    let two = catalog(&[("github", &issues), ("gitlab", &issues), ("hub", &named(&["echo"]))]);
    check(&two, "lst_issues", None);
    check(&two, "gitlab_lst_issues", Some("gitlab_list_issues"));
    check(&two, "hub_list_issues", None);
    let within = two.misspelt("lst_issues", Some("github")).unwrap();
    assert_eq!(&*within.shown, "github_list_issues");
    let near = catalog(&[("task", &named(&["show"])), ("tasks", &named(&["list"]))]);
    check(&near, "task_list", None);
    check(&near, "tsk_show", Some("task_show"));
}

#[test]
fn inexact_name_calls_only_read_only_or_additive_tools() {
    let check_with = |access: Access, tool: Value, args: &str, expected: Result<&str, &str>| {
        let mut tool = tool;
        tool["name"] = json!("t");
        let catalog = catalog(&[("s", &[tool])]);
        let target = catalog.shown("s_t").unwrap().clone();
        let checked = target.check_unnamed(Args::parse(args).unwrap(), access);
        let seen = checked.map(|checked| checked.args.to_string()).map_err(|why| why.to_string());
        assert_eq!(seen, expected.map(str::to_owned).map_err(str::to_owned));
    };
    let check = |tool: Value, args: &str, expected: Result<&str, &str>| {
        check_with(Access::Full, tool, args, expected);
    };
    let reads = json!({ "readOnlyHint": true });
    let closed = json!({ "properties": { "n": { "type": "integer" } } });
    let tool =
        |schema: &Value, declares: Value| json!({ "inputSchema": schema, "annotations": declares });
    check(tool(&closed, reads.clone()), r#"{"n": "7"}"#, Ok(r#"{"n":7}"#));
    check(tool(&closed, reads.clone()), "{}", Ok("{}"));
    check(
        tool(&closed, reads.clone()),
        r#"{"m": 7}"#,
        Err("the arguments do not fit: `m` is not a parameter (s_t)"),
    );
    check(
        tool(&closed, json!({})),
        r#"{"n": "x"}"#,
        Err("the arguments do not fit: `n` must be an integer, not a string (s_t)"),
    );
    let writes = Err("s_t does not declare itself read-only or additive");
    for declares in [
        json!({}),
        json!({ "readOnlyHint": false }),
        json!({ "idempotentHint": true }),
        json!({ "readOnlyHint": true, "destructiveHint": true }),
        json!({ "destructiveHint": false }),
        json!({ "openWorldHint": false }),
        json!({ "destructiveHint": false, "openWorldHint": true }),
        json!({ "destructiveHint": true, "openWorldHint": false }),
    ] {
        check(tool(&closed, declares), "{}", writes);
    }
    let adds = json!({ "destructiveHint": false, "openWorldHint": false });
    check(tool(&closed, adds.clone()), r#"{"n": 7}"#, Ok(r#"{"n":7}"#));
    check_with(Access::ReadOnly, tool(&closed, adds), r#"{"n": 7}"#, writes);
    for open in [json!({}), json!({ "properties": {}, "additionalProperties": true })] {
        let error = "the arguments do not fit: `m` is not a parameter (s_t)";
        check(tool(&open, reads.clone()), r#"{"m":7}"#, Err(error));
        check(tool(&open, reads.clone()), "{}", Ok("{}"));
    }
    let odd = json!({ "$schema": "https://example.com/none", "properties": { "n": {} } });
    check(tool(&odd, reads), "{}", Err("cannot check the arguments of s_t"));
}
