//! Which direct tools are shown beside `mcp`.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::catalog::{Listing, ListingPolicy, RawListing, Shelf, Standing, pin::PinRecord};
use crate::config::values::ToolPrefix;
use crate::name::ToolName;

fn raw(tools: &[Value]) -> RawListing {
    let tools = tools.iter().map(|tool| RawValue::from_string(tool.to_string()).unwrap());
    RawListing { tools: tools.collect(), ..RawListing::default() }
}

fn named(names: &[&str]) -> RawListing {
    let tool = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
    raw(&names.iter().map(tool).collect::<Vec<_>>())
}

fn shelf(server: &str, listing: &RawListing, prefix: ToolPrefix) -> (ServerName, Shelf) {
    let server = ServerName::new(server).unwrap();
    let policy = ListingPolicy { prefix, max_tools: 5_000, ..ListingPolicy::default() };
    let listing = Listing::build(server.clone(), listing, &policy);
    (server, Shelf::new(prefix, Standing::Active).with_listing(Arc::new(listing)))
}

fn plain(server: &str, names: &[&str]) -> (ServerName, Shelf) {
    shelf(server, &named(names), ToolPrefix::Server)
}

fn saying((server, shelf): (ServerName, Shelf), direct: DirectTools) -> (ServerName, Shelf) {
    (server, shelf.with_direct(Some(direct)))
}

fn list(shelves: Vec<(ServerName, Shelf)>, otherwise: &DirectTools) -> DirectList {
    let found = BTreeSet::new();
    let choice = Choice { otherwise, found: &found, pins: Pins::Warn };
    Catalog::new(BTreeMap::from_iter(shelves)).direct(choice)
}

fn names(list: &DirectList) -> Vec<&str> {
    list.tools.iter().map(|tool| &*tool.shown).collect()
}

#[test]
fn direct_tools_key_of_an_entry_overrides_the_setting() {
    let words = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let check = |own: Option<DirectTools>, otherwise: DirectTools, expected: &[&str]| {
        let (server, shelf) = plain("git", &["log", "push"]);
        let list = list(vec![(server, shelf.with_direct(own.clone()))], &otherwise);
        assert_eq!(names(&list), expected, "{own:?} {otherwise:?}");
    };
    let some = |names: &[&str]| DirectTools::Named(words(names));
    check(None, DirectTools::None, &[]);
    check(None, DirectTools::All, &["git_log", "git_push"]);
    check(Some(DirectTools::None), DirectTools::All, &[]);
    check(Some(DirectTools::All), DirectTools::None, &["git_log", "git_push"]);
    check(Some(DirectTools::Search), DirectTools::All, &[]);
    // `directTools` accepts the original name and every possible shown name.
    check(Some(some(&["push"])), DirectTools::None, &["git_push"]);
    check(Some(some(&["git_push"])), DirectTools::All, &["git_push"]);
    check(Some(some(&["pus", "p*"])), DirectTools::All, &[]);
}

#[test]
fn direct_tools_set_to_search_lists_only_found_tools() {
    let (server, shelf) = saying(plain("git", &["log", "push"]), DirectTools::Search);
    let found = BTreeSet::from([
        ToolId { server: server.clone(), tool: ToolName::new("push").unwrap() },
        ToolId { server: server.clone(), tool: ToolName::new("gone").unwrap() },
    ]);
    let choice = Choice { otherwise: &DirectTools::None, found: &found, pins: Pins::Warn };
    let list = Catalog::new(BTreeMap::from([(server, shelf)])).direct(choice);
    assert_eq!(names(&list), ["git_push"]);
}

#[test]
fn direct_tools_are_sorted_by_server_then_listing() {
    let shelves = vec![plain("zed", &["b", "a"]), plain("ace", &["z", "y"])];
    let list = list(shelves, &DirectTools::All);
    assert_eq!(names(&list), ["ace_z", "ace_y", "zed_b", "zed_a"]);
}

#[test]
fn direct_tool_names_are_unique_and_never_built_in() {
    let bare = |server, names: &[&str]| shelf(server, &named(names), ToolPrefix::None);
    let taken = ["mcp", "MCP", "mcp_connect", "mcp_x", "mcp-x", "mcpx", "search"];
    let shelves = vec![bare("a", &taken), bare("b", &["search"]), plain("mcp", &["status"])];
    let list = list(shelves, &DirectTools::All);
    let names = names(&list);
    let (prefixed, marked) = names.split_at(4);
    assert_eq!(prefixed, ["a_mcp_connect", "a_mcp_x", "a_mcp-x", "mcpx"]);
    assert!(marked.iter().all(|name| name.starts_with("search_")), "{marked:?}");
    assert_eq!(marked.len(), 2);
    assert_ne!(marked[0], marked[1]);
}

#[test]
fn mcp_double_underscore_prefix_is_not_reserved() {
    let list = list(vec![shelf("git", &named(&["log"]), ToolPrefix::Mcp)], &DirectTools::All);
    assert_eq!(names(&list), ["mcp__git_log"]);
}

#[test]
fn direct_definition_keeps_schema_and_annotations_exactly() {
    let text = r#"{"name":"go","description":"Goes\u001b[31m there.","inputSchema":{ "type" :"object","properties":{"n":{"const":1.50}} },"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true, "title":"Go \u200bthere"},"_meta":{"x":1}}"#;
    let tools = vec![RawValue::from_string(text.to_owned()).unwrap()];
    let raw = RawListing { tools, ..RawListing::default() };
    let list = list(vec![shelf("s", &raw, ToolPrefix::Server)], &DirectTools::All);
    insta::assert_snapshot!(list.tools[0].definition, @r#"{"name":"s_go","title":"Go there","description":"(hidden text was left out of its definition) Goes there.","inputSchema":{ "type" :"object","properties":{"n":{"const":1.50}} },"annotations":{"readOnlyHint":true, "title":"Go there"}}"#);
}

#[test]
fn direct_tool_without_title_shows_its_original_name() {
    let check = |tool: Value, expected: &str| {
        let list = list(vec![shelf("s", &raw(&[tool]), ToolPrefix::Server)], &DirectTools::All);
        let shown: Value = serde_json::from_str(&list.tools[0].definition).unwrap();
        assert_eq!(shown["title"], expected);
    };
    let schema = json!({ "type": "object" });
    check(json!({ "name": "go.to", "inputSchema": schema }), "go.to");
    check(json!({ "name": "go", "title": "Go", "inputSchema": schema }), "Go");
    let claimed = json!({ "title": "Claimed" });
    check(json!({ "name": "go", "inputSchema": schema, "annotations": claimed }), "Claimed");
    check(json!({ "name": "go", "inputSchema": schema, "annotations": 7 }), "go");
}

#[test]
fn direct_tool_with_pin_mismatch_is_annotated_or_omitted() {
    let accepted = PinRecord::of(&named(&["same"])).baseline();
    let (server, shelf) = plain("s", &["same", "new"]);
    let shelf = shelf.with_baseline(accepted);
    let catalog = Catalog::new(BTreeMap::from([(server, shelf)]));
    let found = BTreeSet::new();
    let list = |pins| catalog.direct(Choice { otherwise: &DirectTools::All, found: &found, pins });
    let warned = list(Pins::Warn);
    assert_eq!(names(&warned), ["s_same", "s_new"]);
    let new: Value = serde_json::from_str(&warned.tools[1].definition).unwrap();
    assert_eq!(new["description"], "(it is new since its server was first listed)");
    assert_eq!(names(&list(Pins::Block)), ["s_same"]);
}

#[test]
fn direct_tools_are_limited_in_count_and_bytes() {
    let many: Vec<String> = (0..3_000).map(|n| format!("t{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let crowd = list(vec![plain("crowd", &many)], &DirectTools::All);
    assert_eq!((crowd.tools.len(), crowd.left_out), (MOST_TOOLS, 2_000));

    let tool = |name: &str, size: usize| {
        let schema = json!({ "type": "object", "description": "x".repeat(size) });
        json!({ "name": name, "description": "d".repeat(100_000), "inputSchema": schema })
    };
    let huge = raw(&[tool("huge", LARGEST_DEFINITION), tool("fine", 10)]);
    let list_of_huge = list(vec![shelf("s", &huge, ToolPrefix::Server)], &DirectTools::All);
    assert_eq!((names(&list_of_huge), list_of_huge.left_out), (vec!["s_fine"], 1));
    assert!(list_of_huge.tools[0].definition.len() < LONGEST_DESCRIPTION + 1_000);

    let large: Vec<Value> = (0..40).map(|n| tool(&format!("t{n}"), 40_000)).collect();
    let list = list(vec![shelf("s", &raw(&large), ToolPrefix::Server)], &DirectTools::All);
    let bytes: usize = list.tools.iter().map(|tool| tool.definition.len()).sum();
    assert!(bytes <= MOST_BYTES && list.left_out > 0, "{bytes} {}", list.left_out);
}
