//! Excluded tools and resources are absent from every list, search, description and call.

use serde_json::{Value, json};
use switchboard::catalog::Resource;
use switchboard::failure::Code;
use switchboard::reply::Reply;
use switchboard::request::Request;
use switchboard_it::harness::World;
use switchboard_it::program::Installed;

use crate::PROGRAMS;

const SCRIPT: &str = r#"
[[tools]]
name = "echo"
description = "Returns the text."
[[tools]]
name = "drop_table"
description = "Returns the text, too."
[[resources]]
uri = "file:///notes"
name = "notes"
text = "text of the notes"
[[resources]]
uri = "file:///secrets"
name = "secrets"
text = "text of the secrets"
"#;

/// One line for each request that shows or uses tools: the shown names, or the error code.
async fn surfaces(fields: &str) -> String {
    let config = format!(
        r#"{{ "mcpServers": {{ "demo-mcp": {{
            "command": "fixture-server", "args": ["demo"]{fields} }} }} }}"#
    );
    let world = World::with(&config).script("demo", SCRIPT).start();
    world.ask(r#"{ "connect": "demo-mcp" }"#).await;
    let status = world.ask("{}").await;
    let status: Vec<&str> = status.lines().take(2).collect();
    let mut rows = vec![("status", status.join("; "))];
    rows.push(("list", names(&world.ask(r#"{ "server": "demo-mcp" }"#).await)));
    rows.push((
        "search",
        names(&world.ask(r#"{ "search": "text", "includeSchemas": false }"#).await),
    ));
    for tool in ["echo", "drop_table", "read_secrets"] {
        let described = world.ask(&json!({ "describe": tool }).to_string()).await;
        rows.push(("describe", head(&described)));
        let called = world.ask(&json!({ "tool": tool, "args": {} }).to_string()).await;
        rows.push(("call", head(&called)));
    }
    let handle = async |request| world.session.handle(request).await;
    let resources = match handle(Request::Resources { server: None }).await {
        Ok(Reply::Resources(rows)) => {
            let uri = |(_, resource): &(_, Resource)| resource.uri.clone();
            rows.iter().map(uri).collect::<Vec<_>>().join(" ")
        }
        other => format!("{other:?}"),
    };
    rows.push(("resources", resources));
    for server in [None, Some("demo-mcp".to_owned())] {
        let uri = "file:///secrets".to_owned();
        let read = handle(Request::ReadResource { uri, server }).await;
        let read = read.map(|_| "read".to_owned());
        rows.push(("read", read.unwrap_or_else(|failure| failure.code.to_string())));
    }
    rows.iter().map(|(surface, shown)| format!("{surface:>9}  {shown}\n")).collect()
}

/// The names in the lines of a list.
fn names(answer: &str) -> String {
    let lines = answer.lines().filter_map(|line| line.strip_prefix("- "));
    let names = lines.filter_map(|line| line.split(':').next());
    let names: Vec<&str> = names.collect();
    if names.is_empty() { head(answer) } else { names.join(" ") }
}

/// The start of an answer, up to the first colon or line end.
fn head(answer: &str) -> String {
    answer.split([':', '\n']).next().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn excluded_tools_are_absent_from_lists_search_and_calls() {
    let mut table = String::new();
    for fields in [
        "",
        r#", "disabled": true"#,
        r#", "enabled": false"#,
        r#", "includeTools": ["echo", "demo_read_*"]"#,
        r#", "excludeTools": ["mcp__demo-mcp_drop_*", "read_secrets"]"#,
        r#", "exposeResources": false, "excludeTools": ["*secrets"]"#,
        r#", "toolPrefix": "short""#,
        r#", "toolPrefix": "none""#,
        r#", "toolPrefix": "mcp""#,
    ] {
        table.push_str(&format!(
            "{}\n{}\n",
            fields.trim_start_matches(", "),
            surfaces(fields).await
        ));
    }
    insta::assert_snapshot!(table);
}

#[tokio::test(start_paused = true)]
async fn excluded_resource_of_an_unlisted_server_is_not_read() {
    let config = r#"{ "mcpServers": { "demo": { "command": "fixture-server", "args": ["demo"],
        "excludeTools": ["*secrets"] } } }"#;
    let world = World::with(config).script("demo", SCRIPT).start();
    let request = Request::ReadResource {
        uri: "file:///secrets".to_owned(),
        server: Some("demo".to_owned()),
    };
    let failure = world.session.handle(request).await.unwrap_err();
    assert_eq!(failure.code, Code::UnknownResource);
    let methods = world.fixture("demo").ledger().methods;
    assert!(!methods.contains(&"resources/read".to_owned()), "{methods:?}");
}

#[tokio::test]
async fn command_line_hides_excluded_tools_and_disabled_servers() {
    let installed = Installed::bare(PROGRAMS);
    installed.write("demo.toml", SCRIPT);
    let entry = |fields: &str| {
        format!(r#"{{ "command": "fixture-server", "args": ["demo.toml"]{fields} }}"#)
    };
    let config = format!(
        r#"{{ "mcpServers": {{ "off": {}, "some": {} }} }}"#,
        entry(r#", "disabled": true"#),
        entry(r#", "excludeTools": ["drop_*", "*secrets"], "toolPrefix": "none""#),
    );
    installed.write("switchboard/mcp.json", &config);
    let shown = async |line: &str| {
        let ran = installed.run(line.split(' ')).await;
        let value: Value = serde_json::from_str(&ran.stdout).unwrap();
        let rows = value.as_object().and_then(|fields| fields.values().next().cloned());
        let rows = rows.unwrap_or_default();
        let rows = rows.as_array().into_iter().flatten();
        let names = rows.map(|row| row["name"].as_str().unwrap_or_default().to_owned());
        let code = value["error"]["code"].as_str().unwrap_or_default();
        format!("{} {}{code}", ran.code.unwrap(), names.collect::<Vec<_>>().join(" "))
    };
    for (line, expected) in [
        ("tools --json", "0 echo read_notes"),
        ("tools some --json", "0 echo read_notes"),
        ("resources --json", "0 notes"),
        ("status --json", "0 off some"),
        ("tools off --json", "2 server_disabled"),
        ("resources off --json", "2 server_disabled"),
        ("prompts off --json", "2 server_disabled"),
        ("instructions off --json", "2 server_disabled"),
        ("connect off --json", "2 server_disabled"),
        ("describe off_echo --json", "2 server_disabled"),
        ("call off_echo --json", "2 server_disabled"),
        ("call drop_table --json", "2 unknown_tool"),
        ("describe some_drop_table --json", "2 unknown_tool"),
        ("call read_secrets --json", "2 unknown_tool"),
        ("read file:///secrets --json", "2 unknown_resource"),
        ("read file:///secrets --server some --json", "2 unknown_resource"),
        ("search text --server off --json", "2 server_disabled"),
    ] {
        assert_eq!(shown(line).await, expected, "{line}");
    }
}
