//! A catalog with oversized definitions: every reply from it stays within its budget.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Budget, DESCRIBE, FAILURE, INSTRUCTIONS, LISTS, LONG_SEARCH, SEARCH, STATUS, TOOLS};
use crate::catalog::pin::DriftCount;
use crate::catalog::{
    Catalog, Listing, ListingPolicy, Prompt, RawListing, Resolution, Resource, Shelf, Standing,
};
use crate::config::values::{Lifecycle, ToolPrefix};
use crate::connection::ToolsFrom;
use crate::failure::{Code, Failure, Hint, Subject};
use crate::name::ServerName;
use crate::pi;
use crate::render::{granular, text};
use crate::reply::{Overview, PastFailure, Reply, ServerLine, ServerStatus, TrustLevel};
use crate::request::{Matching, PageRequest, SearchRequest, Signatures};
use crate::schema;

const SERVERS: usize = 5;
const TOOLS_EACH: usize = 2_000;

/// Text with three tokens per character.
const DEAR: &str = "\u{3400}\u{4db0}\u{a123}\u{3abc}\u{a3f0}\u{4001}";

#[track_caller]
fn check(budget: Budget, text: &str) {
    assert!(text.len() <= budget.bytes, "{} bytes of {}", text.len(), budget.bytes);
    let tokens = bpe_openai::o200k_base().count(text);
    assert!(tokens <= budget.tokens, "{tokens} tokens of {}", budget.tokens);
    assert!(!text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{text}");
}

fn catalog() -> Catalog {
    let mut shelves = BTreeMap::new();
    for server in 0..SERVERS {
        let name = match server {
            0 => "plain".to_owned(),
            1 => DEAR.repeat(14),
            _ => format!("{}{server}", "x".repeat(250)),
        };
        let name = ServerName::new(&name).unwrap();
        let tools = (0..TOOLS_EACH).map(tool).collect();
        let raw = RawListing { tools, ..RawListing::default() };
        let policy = ListingPolicy { max_tools: TOOLS_EACH, ..ListingPolicy::default() };
        let listing = Listing::build(name.clone(), &raw, &policy);
        let shelf = Shelf::new(ToolPrefix::default(), Standing::Active);
        shelves.insert(name, shelf.with_listing(Arc::new(listing)));
    }
    for unlisted in 0..200 {
        let name = ServerName::new(&format!("{}{unlisted}", "語".repeat(80))).unwrap();
        shelves.insert(name, Shelf::new(ToolPrefix::default(), Standing::Active));
    }
    Catalog::new(shelves)
}

/// An oversized tool that a search for `tool` finds. The oversized part depends on `number`. Only
/// few tools have the largest definitions, to keep the test fast.
fn tool(number: usize) -> Box<RawValue> {
    let mut name = format!("tool{number}");
    // The test would take a minute if all descriptions had 90 repetitions, and would find nothing
    // more.
    let long = if number < 200 { 90 } else { 6 };
    let mut description = format!("A flood of words {}", DEAR.repeat(long));
    let input = match number {
        0 => {
            description = format!("flood {}", "of many words ".repeat(35_000));
            json!({"type": "object"})
        }
        1 => {
            description = format!("flood {}", "1 MB ".repeat(200_000));
            json!({"type": "object"})
        }
        2 | 3 => {
            let options: Vec<String> = (0..5_000).map(|n| format!("{DEAR}{n}")).collect();
            json!({"required": ["mode"], "properties": {
                "mode": {"enum": options, "description": DEAR.repeat(5_000)}
            }})
        }
        4 => nested(50),
        5 => {
            let properties: serde_json::Map<String, Value> = (0..1_500)
                .map(|n| (format!("{DEAR}{n}"), json!({"description": DEAR.repeat(9)})))
                .collect();
            let required: Vec<&String> = properties.keys().collect();
            json!({"required": required, "properties": properties})
        }
        6 => json!({"anyOf": vec![json!({"$ref": "#"}); 500], "description": DEAR.repeat(5_000)}),
        _ => match number % 4 {
            0 => json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {
                "properties": {"again": {"$ref": "#"}, "b": {"$ref": "#/$defs/a"}}
            }}}),
            1 => {
                name = format!("tool_{}{number}", "n".repeat(235));
                json!({"required": ["a\u{202e}b"], "properties": {"a\u{202e}b": {
                    "type": "string", "description": "\u{1b}[2J}{}q]Z!#%".repeat(40),
                    "default": DEAR.repeat(50)
                }}})
            }
            2 => nested(long / 10 + 1),
            _ => json!({"properties": {DEAR.repeat(30): {"const": DEAR.repeat(30)}}}),
        },
    };
    let annotations =
        json!({"readOnlyHint": true, "title": DEAR.repeat(long), "own": DEAR.repeat(long)});
    let definition = json!({
        "name": name,
        "title": DEAR.repeat(long),
        "description": description,
        "inputSchema": input,
        "outputSchema": nested(long / 10),
        "annotations": annotations,
    });
    RawValue::from_string(definition.to_string()).unwrap()
}

fn nested(levels: usize) -> Value {
    let mut schema = json!({"type": "string", "description": DEAR});
    for level in 0..levels {
        schema = json!({"required": ["a"], "properties": {
            "a": schema, format!("{DEAR}{level}"): {"type": "number", "description": DEAR.repeat(5)}
        }});
    }
    schema
}

#[test]
fn replies_from_a_huge_catalog_stay_within_size_limit() {
    let catalog = catalog();
    assert_eq!(catalog.tool_count(), SERVERS * (TOOLS_EACH - 1), "the tool of 1 MB is left out");
    searches(&catalog);
    lists(&catalog);
    described(&catalog);
    let miss = catalog.resolve(&"tol7".repeat(200), None).map(|_| ()).unwrap_err();
    let hints =
        [Hint::DidYouMean(vec![DEAR.repeat(10); 9]), Hint::NotListedYet(catalog.not_listed_yet())];
    failure(
        hints
            .into_iter()
            .fold(Failure::new(Code::UnknownTool, Subject::Request, miss), Failure::hint),
    );
}

fn searches(catalog: &Catalog) {
    for (query, matching) in [("flood tool", Matching::Words), ("flood|tool", Matching::Pattern)] {
        for signatures in [Signatures::Shown, Signatures::Hidden] {
            for (offset, limit, budget) in [
                (0, 12, SEARCH),
                (0, 100, LONG_SEARCH),
                (5_000, 12, SEARCH),
                (9_950, 100, LONG_SEARCH),
            ] {
                let request = SearchRequest {
                    matching,
                    signatures,
                    page: PageRequest { offset, limit },
                    ..SearchRequest::words(query)
                };
                let page = catalog.search(&request).unwrap();
                assert!(page.total > 9_000 && !page.hits.is_empty());
                check(budget, &granular::found(&page));
                check(Budget::of(budget.bytes + 4_000), &pi::text::found(&page));
                check(budget, &text::reply(&Reply::Found(page)));
            }
        }
    }
}

fn lists(catalog: &Catalog) {
    let servers: Vec<ServerName> = catalog.shelves().map(|(name, _)| name.clone()).collect();
    for limit in [12, 100] {
        let unlisted = servers.iter().find(|name| catalog.listing(name).is_none());
        let listed = servers.iter().filter(|name| catalog.listing(name).is_some());
        for server in [None].into_iter().chain(listed.chain(unlisted).map(Some)) {
            let page = catalog.page(server, PageRequest { offset: 0, limit });
            let from = || ToolsFrom { id: servers[0].clone(), tools: page.tools.clone() };
            let all: Vec<ToolsFrom> = (0..30).map(|_| from()).collect();
            check(TOOLS, &granular::tools(&all));
            check(Budget::of(TOOLS.bytes + 4_000), &pi::text::tools(&page));
            check(TOOLS, &text::reply(&Reply::Tools(page)));
        }
    }
    let lines = servers.iter().cycle().take(1_000).map(|name| ServerLine {
        denied: 0,
        name: name.clone(),
        status: ServerStatus::Failed,
        tools: Some(2_000),
        resources: 0,
        lifecycle: Lifecycle::Lazy,
        trust: TrustLevel::User,
        failure: Some(PastFailure { ago: Duration::from_secs(1), cause: DEAR.repeat(900) }),
        underway: None,
        description: Some(DEAR.repeat(900)),
        note: Some(DEAR.repeat(900)),
        drift: DriftCount::default(),
    });
    let places = vec![DEAR.repeat(900); 500];
    let overview = Overview {
        servers: lines.collect(),
        tools: 10_000,
        connected: 0,
        stale: places.clone(),
        mistakes: places,
    };
    check(STATUS, &text::reply(&Reply::Status(overview)));
    let resource = Resource {
        uri: DEAR.repeat(900),
        name: DEAR.repeat(900),
        description: Some(DEAR.repeat(900)),
        mime_type: None,
        raw: "{}".into(),
    };
    let prompt = Prompt {
        name: DEAR.repeat(900),
        description: Some(DEAR.repeat(900)),
        arguments: Vec::new(),
        hidden: None,
        original: None,
        raw: "{}".into(),
    };
    let server = servers[0].clone();
    check(LISTS, &text::reply(&Reply::Resources(vec![(server.clone(), resource); 5_000])));
    check(LISTS, &text::reply(&Reply::Prompts(vec![(server.clone(), prompt); 5_000])));
    let instructions = Reply::Instructions { server, text: DEAR.repeat(100_000) };
    check(INSTRUCTIONS, &text::reply(&instructions));
}

fn described(catalog: &Catalog) {
    let error = catalog.resolve("nothing", None).map(|_| ()).unwrap_err();
    for tool in catalog.tools().filter(|tool| tool.server.as_str() == "plain").take(20) {
        let Ok(Resolution::Tool(resolved)) = catalog.resolve(&tool.shown, None) else {
            panic!("{} is not found", tool.shown)
        };
        check(DESCRIBE, &text::reply(&Reply::Described(Box::new(resolved.describe()))));
        let expected = schema::expected(&resolved.entry.input_value());
        let wrong = Failure::new(Code::BadArguments, Subject::Request, error.clone());
        failure(wrong.hint(Hint::Expected(expected)));
    }
}

fn failure(failure: Failure) {
    check(FAILURE, &text::failure(&failure));
}
