//! Hosts that allow calls by `readOnlyHint`: `mcp` calls only read-only tools, and `mcp_write`
//! calls all tools.

mod property;

use serde_json::{Value, json};
use switchboard::host_profile::HostProfile;
use switchboard_it::client::{Client, text};
use switchboard_it::harness::World;
use switchboard_server::HostKind;

const GARDEN: &str = "
[[tools]]
name = 'look'
description = 'Looks at the garden.'
annotations = { readOnlyHint = true }
[[tools]]
name = 'water'
description = 'Waters the garden.'
[[tools]]
name = 'claim'
description = 'Claims to read the garden and destroys it.'
annotations = { readOnlyHint = true, destructiveHint = true }
[[resources]]
uri = 'plan://beds'
name = 'beds'
text = 'three beds'
";

fn garden() -> World {
    World::of("garden", "garden").script("garden", GARDEN).start()
}

pub(crate) fn host(name: &str) -> HostKind {
    HostKind::Named(HostProfile::named(name))
}

/// The text of the result of a call to `mcp` or `mcp_write`, and whether the result is an error.
pub(crate) async fn used(client: &mut Client, tool: &str, arguments: Value) -> (String, bool) {
    let answer = client.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await;
    (text(&answer), answer["result"]["isError"] == true)
}

async fn tools(client: &mut Client) -> Vec<Value> {
    let listed = client.ask("tools/list", json!({})).await;
    listed["result"]["tools"].as_array().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn mcp_write_is_listed_only_for_hosts_checking_annotations() {
    let world = garden();
    for (name, shown) in [
        ("claude-code", &["mcp", "mcp_write"][..]),
        ("codex", &["mcp", "mcp_write"]),
        ("gemini-cli", &["mcp", "mcp_write"]),
        ("copilot-cli", &["mcp", "mcp_write"]),
        ("opencode", &["mcp"]),
        ("qwen-code", &["mcp"]),
        ("cline", &["mcp"]),
        ("vibe", &["mcp"]),
        ("emacs", &["mcp"]),
    ] {
        let mut client = world.client_of(host(name), json!({})).await;
        let tools = tools(&mut client).await;
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, shown, "{name}");
        let read_only = tools[0]["annotations"]["readOnlyHint"] == true;
        assert_eq!(read_only, shown.len() == 2, "{name}");
        if shown.len() == 1 {
            let refused =
                client.ask("tools/call", json!({ "name": "mcp_write", "arguments": {} })).await;
            assert!(refused["error"].is_object(), "{name}: {refused}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn refusal_of_write_through_mcp_mentions_mcp_write() {
    let world = garden();
    let mut client = world.client_of(host("codex"), json!({})).await;
    let look = json!({ "tool": "garden_look", "args": {} });
    assert!(!used(&mut client, "mcp", look.clone()).await.1);
    assert!(!used(&mut client, "mcp_write", look).await.1);
    let (text, is_error) = used(&mut client, "mcp", json!({ "tool": "garden_water" })).await;
    assert!(is_error);
    assert_eq!(
        text,
        "not_read_only: `garden_water` does not declare itself read-only, and `mcp` calls only \
         tools that do\nCall it with mcp_write({ tool: \"garden_water\", args: {…} })"
    );
    let (text, _) = used(&mut client, "mcp", json!({ "tool": "garden_claim" })).await;
    assert!(text.starts_with("not_read_only: "), "a claim that contradicts itself: {text}");
    assert!(!used(&mut client, "mcp_write", json!({ "tool": "garden_water" })).await.1);
    let calls = world.fixture("garden").ledger().calls;
    let calls: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(calls, ["look", "look", "water"]);
    let (text, _) = used(&mut client, "mcp", json!({ "tool": "garden_read_beds" })).await;
    assert_eq!(text, "three beds", "reading a resource changes nothing");
}

#[tokio::test(start_paused = true)]
async fn mcp_marks_tools_that_require_mcp_write() {
    let world = garden();
    let mut client = world.client_of(host("codex"), json!({})).await;
    let (listed, _) = used(&mut client, "mcp", json!({ "server": "garden" })).await;
    assert!(listed.contains("- garden_water (mcp_write): "), "{listed}");
    assert!(listed.contains("- garden_look: "), "{listed}");
    let (found, _) = used(&mut client, "mcp", json!({ "search": "water the garden" })).await;
    assert!(found.contains("garden_water() (mcp_write)"), "{found}");
    let (described, _) = used(&mut client, "mcp", json!({ "describe": "garden_water" })).await;
    assert!(described.contains("\ncall it with mcp_write\n"), "{described}");
    let mut other = world.client_of(host("opencode"), json!({})).await;
    let (found, _) = used(&mut other, "mcp", json!({ "search": "water the garden" })).await;
    assert!(!found.contains("mcp_write"), "{found}");
}

#[tokio::test(start_paused = true)]
async fn sign_in_through_read_only_mcp_is_refused() {
    let world = garden();
    let mut client = world.client_of(host("codex"), json!({})).await;
    let start = json!({ "action": "auth-start", "server": "garden" });
    let (text, is_error) = used(&mut client, "mcp", start.clone()).await;
    assert!(
        is_error && text.starts_with("not_read_only: `mcp` accepts only read-only requests here"),
        "{text}"
    );
    let (text, _) = used(&mut client, "mcp_write", start).await;
    assert!(!text.starts_with("not_read_only"), "{text}");
}

/// The `clientInfo` of the first request makes `mcp` read-only. `mcp` stays read-only, whatever
/// `clientInfo` a later request has.
#[tokio::test(start_paused = true)]
async fn mcp_stays_read_only_whatever_client_info_follows() {
    let world = garden();
    let mut client = world.silent_client(HostKind::Any);
    let meta = |name: Option<&str>| {
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        if let Some(name) = name {
            meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": name, "version": "1" });
        }
        meta
    };
    let listed = client.ask("tools/list", json!({ "_meta": meta(Some("claude-code")) })).await;
    assert_eq!(listed["result"]["tools"][0]["annotations"]["readOnlyHint"], true);
    for later in [None, Some("opencode"), Some("claude-code")] {
        let call = json!({ "name": "mcp", "arguments": { "tool": "garden_water" },
                           "_meta": meta(later) });
        let answer = client.ask("tools/call", call).await;
        assert!(text(&answer).starts_with("not_read_only: "), "{later:?}: {answer}");
    }
    assert_eq!(world.fixture("garden").ledger().calls.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn toolset_proxy_shows_one_tool_to_every_host() {
    let world = garden();
    let mut client = world.client_shown(switchboard_server::Offer::Proxy, host("codex")).await;
    assert_eq!(tools(&mut client).await.len(), 1);
    assert!(!used(&mut client, "mcp", json!({ "tool": "garden_water" })).await.1);
}

/// The host may have allowed the call because the tool was listed as read-only.
#[tokio::test(start_paused = true)]
async fn direct_tool_listed_read_only_is_refused_if_changed() {
    let look = |hints: &str| format!("[[tools]]\nname = 'look'\nannotations = {{ {hints} }}\n");
    let config = r#"{ "mcpServers": { "kit": { "command": "fixture-server", "args": ["kit"],
        "directTools": true } } }"#;
    let world = World::with(config)
        .script("kit", &look("readOnlyHint = true"))
        .script("kit", &look("title = 'Looks'"))
        .start();
    world.gateway.list_missing(|_, _, _| {}).await;
    let mut client = world.client_of(host("codex"), json!({})).await;
    let tools = tools(&mut client).await;
    assert_eq!(tools[2]["annotations"]["readOnlyHint"], true, "{tools:?}");
    client.ask("tools/call", json!({ "name": "kit_look", "arguments": {} })).await;
    assert_eq!(world.fixture("kit").ledger().calls.len(), 1);
    // On the next connection, the server lists another definition.
    let disconnected = switchboard::request::Request::Disconnect { server: "kit".to_owned() };
    world.session.handle(disconnected).await.unwrap();
    let (text, is_error) = used(&mut client, "kit_look", json!({})).await;
    assert!(is_error && text.starts_with("tool_changed: "), "{text}");
    assert!(text.contains("was listed as read-only"), "{text}");
    assert_eq!(world.fixture("kit").ledger().calls.len(), 1);
}
