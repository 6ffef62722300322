//! Reading the lists of servers into the catalog.

use std::time::Duration;

use serde_json::json;
use switchboard::failure::{Code, Failure};
use switchboard::name::ServerName;
use switchboard_it::harness::{Home, World, pass};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn changed_tool_list_is_read_again_at_once() {
    let world = World::of("demo", "everything").start();
    world.call("demo_echo", json!({ "text": "hi" })).await.unwrap();
    let mut catalog = world.gateway.watch();
    catalog.mark_unchanged();
    world.call("demo_change_tools", json!({ "name": "fresh" })).await.unwrap();
    catalog.changed().await.unwrap();
    assert_eq!(world.call("demo_fresh", json!({ "text": "new" })).await.unwrap(), "new");
    assert!(world.ask(r#"{ "search": "fresh" }"#).await.contains("demo_fresh"));
}

/// Listing these tools takes many pages, and calls can change the list meanwhile.
const MANY_PAGES: &str = "
    generate = 50
    page_size = 1
    [[tools]]
    name = 'change'
    behaviour = 'change_tools'
";

fn pages(world: &World) -> usize {
    let methods = world.fixture("demo").ledger().methods;
    methods.iter().filter(|method| *method == "tools/list").count()
}

#[tokio::test(start_paused = true)]
async fn list_changed_during_first_listing_is_reread_once() {
    let script = format!("{MANY_PAGES}[faults]\nlist_changed_storm = 1000\n");
    let world = World::of("demo", "storm").script("storm", &script).start();
    world.ask(r#"{ "server": "demo" }"#).await;
    pass(Duration::from_secs(1)).await;
    assert_eq!(pages(&world), 2 * 51);
}

#[tokio::test(start_paused = true)]
async fn burst_of_list_changes_causes_few_listings() {
    let world = World::of("demo", "storm").script("storm", MANY_PAGES).start();
    world.ask(r#"{ "server": "demo" }"#).await;
    for n in 0..20 {
        world.call("demo_change", json!({ "name": format!("new{n}") })).await.unwrap();
    }
    pass(Duration::from_secs(1)).await;
    assert!(
        world.ask("{}").await.contains("✓ demo (71 tools, 20 new)"),
        "the catalog has the last list"
    );
    // Twenty listings would be about 1,200 pages.
    assert!(pages(&world) < 12 * 71, "{} pages", pages(&world));
}

#[tokio::test(start_paused = true)]
async fn every_page_of_a_tool_list_is_read() {
    let world = World::of("demo", "hundred-tools").start();
    let connected = world.ask(r#"{ "connect": "demo" }"#).await;
    assert!(connected.starts_with("demo (100 tools):"), "{connected}");
    assert!(connected.ends_with("next page: offset 40"), "{connected}");
    let last = world.ask(r#"{ "server": "demo", "offset": 96 }"#).await;
    assert_eq!(last.lines().count(), 5, "{last}");
}

#[tokio::test(start_paused = true)]
async fn listing_with_a_repeating_cursor_fails() {
    // A repeated cursor is detected at once, before the limit of 100 pages.
    for (cursor, code, requests) in [
        ("same", Some(Code::ConnectFailed), 10),
        ("aba", Some(Code::ConnectFailed), 10),
        ("infinite", Some(Code::ConnectFailed), 110),
        ("empty", None, 10),
    ] {
        let script = format!(
            "page_size = 1\n[[tools]]\nname = 'echo'\n[[tools]]\nname = 'add'\n[faults]\ncursor = '{cursor}'\n"
        );
        let world = World::of("demo", "circle").script("circle", &script).start();
        let outcome = world.call("demo_echo", json!({ "text": "hi" })).await;
        assert_eq!(outcome.err().map(|failure| failure.code), code, "{cursor}");
        assert!(world.fixture("demo").ledger().methods.len() <= requests, "{cursor}");
    }
}

#[tokio::test(start_paused = true)]
async fn malformed_tool_is_skipped_and_valid_tools_are_listed() {
    for fault in ["no_input_schema", "input_schema_not_object", "no_name", "not_an_object"] {
        let script = format!("[[tools]]\nname = 'echo'\n[faults]\nmalformed_tool = '{fault}'\n");
        let world = World::of("demo", "odd").script("odd", &script).start();
        let listed = world.ask(r#"{ "connect": "demo" }"#).await;
        assert!(
            listed.starts_with("demo (1 tool):\n- demo_echo\nleft out: 1"),
            "{fault}: {listed}"
        );
        assert_eq!(world.call("demo_echo", json!({ "text": "hi" })).await.unwrap(), "hi");
        let status = world.ask("{}").await;
        assert!(status.contains("✓ demo (1 tool, 1 left out)"), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn server_without_tools_capability_is_not_asked_for_tools() {
    let script = "[server]\ncapabilities = { tools = false }\n";
    let world = World::of("demo", "bare").script("bare", script).start();
    let connected = world.ask(r#"{ "connect": "demo" }"#).await;
    assert_eq!(connected, "demo (0 tools):\nit offers no tools");
    assert!(world.ask("{}").await.contains("✓ demo (0 tools, it offers no tools)"));
    let methods = world.fixture("demo").ledger().methods;
    assert_eq!(methods, ["server/discover", "initialize", "notifications/initialized"]);
}

#[tokio::test(start_paused = true)]
async fn expose_resources_false_hides_tools_that_read_resources() {
    let world = World::of("demo", "resources-only").start();
    assert_eq!(world.call("demo_read_guide", json!({})).await.unwrap(), "# Guide");
    assert!(!world.fixture("demo").ledger().methods.contains(&"tools/list".to_owned()));
    let hidden = World::with(
        r#"{ "mcpServers": { "demo": {
            "command": "fixture-server", "args": ["resources-only"], "exposeResources": false } } }"#,
    )
    .start();
    let connected = hidden.ask(r#"{ "connect": "demo" }"#).await;
    assert_eq!(connected, "demo (0 tools):\nit offers no tools");
}

#[tokio::test(start_paused = true)]
async fn tool_filters_limit_listed_and_callable_tools() {
    let world = World::with(
        r#"{ "mcpServers": { "demo": {
            "command": "fixture-server", "args": ["everything"],
            "includeTools": ["e*", "add"], "excludeTools": ["env"] } } }"#,
    )
    .start();
    let listed = world.ask(r#"{ "connect": "demo" }"#).await;
    assert!(listed.starts_with("demo (2 tools):\n- demo_echo"), "{listed}");
    assert_eq!(world.call("demo_env", json!({})).await.unwrap_err().code, Code::UnknownTool);
    assert!(world.fixture("demo").ledger().calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn tool_prefix_setting_decides_shown_tool_names() {
    for (prefix, shown) in [
        ("server", "git-mcp_echo"),
        ("short", "git_echo"),
        ("none", "echo"),
        ("mcp", "mcp__git-mcp_echo"),
    ] {
        let world = World::with(&format!(
            r#"{{ "mcpServers": {{ "git-mcp": {{
                "command": "fixture-server", "args": ["one"], "toolPrefix": "{prefix}" }} }} }}"#
        ))
        .script("one", "[[tools]]\nname = 'echo'\n")
        .start();
        let listed = world.ask(r#"{ "connect": "git-mcp" }"#).await;
        let name = listed.lines().nth(1).unwrap_or_default().trim_start_matches("- ").to_owned();
        assert_eq!(name, shown, "{prefix}");
        assert_eq!(world.call(&name, json!({ "text": "hi" })).await.unwrap(), "hi");
    }
}

#[tokio::test(start_paused = true)]
async fn list_missing_lists_every_server_without_a_listing() {
    let world = World::with(
        r#"{ "mcpServers": {
            "good": { "command": "fixture-server", "args": ["slow"] },
            "bad": { "command": "fixture-server", "args": ["broken"] },
            "off": { "command": "fixture-server", "args": ["slow"], "disabled": true } } }"#,
    )
    .script("broken", "[faults]\nexit_at_start = { code = 1 }\n")
    .start();
    let mut seen = Vec::new();
    world
        .gateway
        .list_missing(|server, failure, _| {
            seen.push((server.to_string(), failure.map(|failure| failure.code)));
        })
        .await;
    seen.sort_by(|left, right| left.0.cmp(&right.0));
    assert_eq!(seen, [("bad".to_owned(), Some(Code::ConnectFailed)), ("good".to_owned(), None)]);
    assert!(world.ask("{}").await.starts_with("MCP: 1/2 servers, 4 tools (1 disabled)"));
}

/// Lists all servers as a command does; returns the outcomes, the number of connections and the
/// status.
async fn listed_by_a_command(home: &Home) -> (Vec<(String, Option<Code>)>, usize, String) {
    let world = World::with(
        r#"{ "mcpServers": {
            "good": { "command": "fixture-server", "args": ["slow"] },
            "bad": { "command": "fixture-server", "args": ["broken"] },
            "hangs": { "command": "fixture-server", "args": ["stuck"] } } }"#,
    )
    .script("broken", "[faults]\nexit_at_start = { code = 1 }\n")
    .script("stuck", "[faults]\nnever_answer = 'initialize'\n")
    .home(home.clone())
    .start();
    let began = Instant::now();
    let mut seen = Vec::new();
    let report = |server: &ServerName, failure: Option<&Failure>, _| {
        seen.push((server.to_string(), failure.map(|failure| failure.code)));
    };
    world.gateway.list_missing_briefly(report).await;
    assert!(began.elapsed() <= Duration::from_secs(3), "{:?}", began.elapsed());
    let connections =
        ["good", "bad", "hangs"].map(|server| world.fixture(server).ledger().connections);
    let status = world.ask("{}").await;
    world.shut_down().await;
    seen.sort_by(|left, right| left.0.cmp(&right.0));
    (seen, connections.iter().sum(), status)
}

#[tokio::test(start_paused = true)]
async fn only_first_command_waits_three_seconds_for_hanging_server() {
    let home = Home::new();
    let (seen, connections, _) = listed_by_a_command(&home).await;
    let named = |server: &str, code| (server.to_owned(), Some(code));
    let expected = [
        named("bad", Code::ConnectFailed),
        ("good".to_owned(), None),
        named("hangs", Code::Starting),
    ];
    assert_eq!(seen, expected);
    assert!(connections >= 3, "{connections}");

    let (seen, connections, status) = listed_by_a_command(&home).await;
    assert_eq!(seen, [named("bad", Code::ConnectFailed), named("hangs", Code::Starting)]);
    assert_eq!(connections, 0, "no server is connected again");
    assert!(status.contains("✗ bad (failed"), "{status}");
    assert!(status.contains("○ good (4 tools, cached)"), "{status}");
    assert!(status.contains("○ hangs (not connected, it was still starting"), "{status}");
}

#[tokio::test(start_paused = true)]
async fn successful_connection_clears_the_remembered_failure() {
    let home = Home::new();
    let start = |script: &str| {
        let world = World::of("late", "late").script("late", script);
        world.home(home.clone()).start()
    };
    let world = start("[faults]\nexit_at_start = { code = 1 }\n");
    world.gateway.list_missing_briefly(|_, _, _| {}).await;
    world.shut_down().await;
    let world = start("[[tools]]\nname = 'echo'\n");
    assert!(world.ask("{}").await.contains("✗ late (failed"));
    world.ask(r#"{ "connect": "late" }"#).await;
    world.shut_down().await;
    let world = start("[[tools]]\nname = 'echo'\n");
    let status = world.ask("{}").await;
    assert!(status.contains("○ late (1 tool, cached)"), "{status}");
}

/// The list changes every ten milliseconds. The previous listing may have ended before the next
/// change.
#[tokio::test(start_paused = true)]
async fn constantly_changing_server_is_relisted_with_growing_pauses() {
    let world = World::of("demo", "everything").start();
    // Each listing sends one `prompts/list`, but the number of pages of tools grows with every
    // change.
    let walks = || {
        let methods = world.fixture("demo").ledger().methods;
        methods.iter().filter(|method| *method == "prompts/list").count()
    };
    world.call("demo_change_tools", json!({ "name": "first" })).await.unwrap();
    let before = walks();
    for n in 0..100 {
        let name = format!("new{n}");
        world.call("demo_change_tools", json!({ "name": name })).await.unwrap();
        pass(Duration::from_millis(10)).await;
    }
    let storm = walks() - before;
    assert!((2..=8).contains(&storm), "{storm} walks in a second");
    world.ask(r#"{ "connect": "demo" }"#).await;
    assert_eq!(walks() - before, storm + 1, "an explicit refresh skips the pause");
}

#[tokio::test(start_paused = true)]
async fn first_search_lists_starting_and_failed_servers() {
    let config = r#"{ "mcpServers": {
        "broken": { "command": "fixture-server", "args": ["broken"] },
        "good": { "command": "fixture-server", "args": ["good"] },
        "stuck": { "command": "fixture-server", "args": ["stuck"] } } }"#;
    let world = World::with(config)
        .script("broken", "[faults]\nexit_on = 'initialize'\n")
        .script("good", "[[tools]]\nname = 'paint'\n")
        .script("stuck", "[faults]\nnever_answer = 'tools/list'\n[[tools]]\nname = 'late'\n")
        .start();
    world.gateway.list_missing_in_background();
    let answer = world.ask(r#"{ "search": "paint" }"#).await;
    assert!(answer.starts_with("good_paint("), "{answer}");
    let starting = "1 server still starting: stuck (search again in a few seconds)\n";
    assert!(answer.contains(starting), "{answer}");
    assert!(answer.contains("1 server failed: broken (the server ended while it was"), "{answer}");
    assert!(!answer.contains("connects and lists"), "{answer}");
}
