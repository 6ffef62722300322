//! The thirty behaviours that users of the earlier MCP adapter for Pi rely on, tested through the
//! tools that a host sees.

mod calling;
mod configuration;
mod finding;
mod host;
mod lifecycle;
mod remote;
mod sign_in;
mod spelling;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use switchboard_it::client::{Client, text};
use switchboard_it::harness::{Setup, World, filtered};
use switchboard_it::program::Installed;
use switchboard_it::scenario::{Step, Story, fits};

/// Calls `mcp` with each line `>>> {…}` in turn. The expected text follows, after `[error]` if the
/// result is an error; a line `...` matches any number of lines.
async fn check(client: &mut Client, dialogue: &str) {
    let margin = dialogue.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let margin = margin.len() - margin.trim_start().len();
    let lines = dialogue.lines().map(|line| line.get(margin..).unwrap_or_default());
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let mut told = Story::parse(&format!("# told\nfaces: stdio\n{text}")).unwrap();
    let mut right = true;
    for step in &mut told.steps {
        let Step::Ask { arguments, answer } = step else { panic!("not a call of mcp: {step:?}") };
        let seen = said(client, serde_json::from_str(arguments).unwrap()).await;
        if !fits(answer, &seen) {
            right = false;
            *answer = seen;
        }
    }
    assert!(right, "the dialogue differs:\n{}", told.text());
}

/// The response of `mcp`, without the parts that differ from run to run.
async fn said(client: &mut Client, arguments: Value) -> String {
    let id = client.call(arguments).await;
    let answer = client.answer_to(&id).await;
    let flag = if answer["result"]["isError"] == true { "[error]\n" } else { "" };
    format!("{flag}{}", filtered(text(&answer).trim()))
}

/// An entry for the fixture server with this script, which logs its start.
fn acting(installed: &Installed, script: &str, more: Value) -> Value {
    let args = json!([script, "--spawn-log", installed.spawn_log()]);
    let mut entry = json!({ "command": "fixture-server", "args": args });
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    entry
}

/// A configuration whose servers are not listed before they are used.
fn config(servers: Map<String, Value>, settings: Value) -> String {
    let mut all = json!({ "firstListing": false });
    all.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    json!({ "mcpServers": servers, "settings": all }).to_string()
}

/// One in-process server, `demo`, with these fields and this script.
fn one(fields: Value, script: &str) -> Setup {
    let mut entry = json!({ "command": "fixture-server", "args": [script] });
    entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    World::with(&json!({ "mcpServers": { "demo": entry } }).to_string())
}

/// The names in a response to `tools/list`.
fn names(answer: &Value) -> Vec<String> {
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// The names of the tests of the thirty behaviours, read from the source files.
fn written() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/thirty");
    let files = fs::read_dir(folder).unwrap().map(|file| fs::read_to_string(file.unwrap().path()));
    let source: String = files.map(Result::unwrap).collect();
    let functions = source.lines().filter_map(|line| line.strip_prefix("async fn "));
    let tests = functions.filter(|name| name.starts_with('b') && name[1..3].parse::<u8>().is_ok());
    tests.filter_map(|name| name.split('(').next()).map(str::to_owned).collect()
}

#[test]
fn pi_guide_names_every_test_of_thirty_behaviours() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/coming-from-pi.md");
    let page = fs::read_to_string(page).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ")).skip(1);
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split('|').map(str::trim).collect()).collect();
    let mut named = BTreeSet::new();
    for (row, number) in rows.iter().zip(1..) {
        assert_eq!(row[1], number.to_string());
        assert!(["same", "better", "different"].contains(&row[3]), "{row:?}");
        assert!(row[3] == "same" || !row[4].is_empty(), "{row:?}");
        for test in row[5].split(", ").map(|test| test.trim_matches('`').to_owned()) {
            assert!(test.starts_with(&format!("b{number:02}_")), "{row:?}");
            named.insert(test);
        }
    }
    assert_eq!(rows.len(), 30);
    assert_eq!(named, written());
}
