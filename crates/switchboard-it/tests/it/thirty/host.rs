//! Features that the host takes part in: direct tools, approvals, prompts and elicitation.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use switchboard_it::client::{Client, text};
use switchboard_it::harness::World;
use switchboard_it::program::Installed;
use switchboard_server::HostKind;

use super::{acting, check, config, names, one, said};
use crate::PROGRAMS;

const TOOLS: &str = r#"
[[tools]]
name = "zoom"
description = "Shows more."
input_schema = '{ "type": "object", "properties": { "by": { "type": "number" } }, "required": ["by"] }'

[[tools]]
name = "grow"
behaviour = { kind = "change_lists", name = "late" }

[[tools]]
name = "mcp"

[[tools]]
name = "mcp__x"

[[resources]]
uri = "file:///map"
name = "map"
text = "here"

[[prompts]]
name = "greet"
messages = []
"#;

/// An installation with these servers, each with [`TOOLS`] and a cached listing.
async fn installed(servers: &[(&str, Value)], settings: Value) -> Installed {
    let installed = Installed::bare(PROGRAMS);
    installed.write("tools.toml", TOOLS);
    let entries = servers
        .iter()
        .map(|(name, more)| ((*name).to_owned(), acting(&installed, "tools.toml", more.clone())));
    installed.write("switchboard/mcp.json", &config(entries.collect(), settings));
    for (server, _) in servers {
        assert_eq!(installed.run(["connect", server]).await.code, Some(0));
    }
    installed
}

async fn listed(client: &mut Client) -> Vec<String> {
    names(&client.ask("tools/list", json!({})).await)
}

/// Waits for the notification that a list changed.
async fn is_told(client: &mut Client, list: &str) {
    let method = format!("notifications/{list}/list_changed");
    while client.next().await["method"] != method.as_str() {}
}

#[tokio::test]
async fn b25_direct_tools_have_own_schemas_and_follow_changes() {
    let servers = [
        ("all", json!({ "directTools": true })),
        (
            "bare",
            json!({ "directTools": true, "toolPrefix": "none", "excludeTools": ["grow", "zoom", "read_*"] }),
        ),
        ("one", json!({ "directTools": ["zoom"] })),
        ("rest", json!({})),
        ("seek", json!({ "directTools": "search" })),
    ];
    let installed = installed(&servers, json!({})).await;
    let before = installed.spawned();
    let mut client = installed.connect(json!({})).await;
    let answer = client.ask("tools/list", json!({})).await;
    // A tool named `mcp` is left out, because the gateway's tool has that name; `mcp__x` is listed.
    let first = [
        "mcp",
        "all_zoom",
        "all_grow",
        "all_mcp",
        "all_mcp__x",
        "all_read_map",
        "mcp__x",
        "one_zoom",
    ];
    assert_eq!(names(&answer), first);
    let schema = json!({
        "type": "object", "properties": { "by": { "type": "number" } }, "required": ["by"],
    });
    assert_eq!(answer["result"]["tools"][1]["inputSchema"], schema);
    assert_eq!(installed.spawned(), before, "a server was started");
    client.mcp(json!({ "search": "zoom", "server": "seek" })).await;
    is_told(&mut client, "tools").await;
    assert_eq!(listed(&mut client).await.last().unwrap(), "seek_zoom");
    let params = json!({ "name": "all_zoom", "arguments": { "by": 2 } });
    assert_eq!(text(&client.ask("tools/call", params).await), r#"{"by":2}"#);
    client.ask("tools/call", json!({ "name": "all_grow", "arguments": {} })).await;
    is_told(&mut client, "tools").await;
    assert!(listed(&mut client).await.contains(&"all_late".to_owned()));
    client.end().await;

    // The environment variable takes precedence over the files.
    for (list, expected) in [
        (
            "rest/zoom, one",
            &["mcp", "one_zoom", "one_grow", "one_mcp", "one_mcp__x", "one_read_map", "rest_zoom"]
                [..],
        ),
        ("__none__", &["mcp"]),
    ] {
        let mut client =
            Client::start(installed.command().env("MCP_DIRECT_TOOLS", list).arg("serve"));
        client.initialize("2025-11-25", json!({})).await;
        assert_eq!(listed(&mut client).await, expected, "{list}");
        client.end().await;
    }
}

#[tokio::test]
async fn b25_many_direct_tools_cause_a_warning() {
    let installed = Installed::bare(PROGRAMS);
    let check = async |settings: Value, warned: bool| {
        let entry = acting(&installed, "hundred-tools", json!({}));
        let servers = Map::from_iter([("forge".to_owned(), entry)]);
        installed.write("switchboard/mcp.json", &config(servers, settings.clone()));
        installed.run(["connect", "forge"]).await;
        let said = installed.connect(json!({})).await.end().await.stderr;
        assert_eq!(
            said.contains("100 tools are listed beside `mcp`"),
            warned,
            "{settings}: {said}"
        );
    };
    check(json!({ "directTools": true }), true).await;
    check(json!({ "directTools": true, "warnOnLargeDirectTools": false }), false).await;
    check(json!({}), false).await;
}

#[tokio::test(start_paused = true)]
async fn b26_changed_list_is_known_without_reconnecting() {
    let world = World::of("demo", "tools").script("tools", TOOLS).start();
    let mut client = world.client(json!({})).await;
    client.mcp(json!({ "connect": "demo" })).await;
    for list in ["prompts", "resources"] {
        client.ask(&format!("{list}/list"), json!({})).await;
    }
    client.mcp(json!({ "tool": "demo_grow" })).await;
    let mut told = BTreeSet::new();
    while told.len() < 2 {
        told.extend(client.next().await["method"].as_str().map(str::to_owned));
    }
    let changed = ["prompts", "resources"].map(|list| format!("notifications/{list}/list_changed"));
    assert_eq!(told, BTreeSet::from(changed));
    for list in ["prompts", "resources"] {
        let answer = client.ask(&format!("{list}/list"), json!({})).await;
        let name = answer["result"][list][1]["name"].as_str().unwrap();
        assert_eq!(name.strip_prefix("demo_").unwrap_or(name), "late", "{answer}");
    }
    // The changed lists are fetched one by one.
    let found = ["demo_late", "demo_read_late"];
    while {
        let page = client.mcp(json!({ "search": "late" })).await;
        !found.iter().all(|name| page.contains(&format!("{name}(")))
    } {}
    assert_eq!(world.fixture("demo").ledger().connections, 1);
}

fn accepted(decision: &str) -> Value {
    json!({ "action": "accept", "content": { "decision": decision } })
}

#[tokio::test(start_paused = true)]
async fn b28_approval_gate_applies_to_every_way_to_call() {
    let gated = || {
        let entry = json!({
            "command": "fixture-server", "args": ["tools"], "approveTools": ["zoom", "read_*"],
            "directTools": true,
        });
        let free = json!({ "command": "fixture-server", "args": ["tools"], "approveTools": false });
        let settings = json!({ "approveTools": ["*_grow"] });
        let config = json!({ "settings": settings, "mcpServers": { "demo": entry, "free": free } });
        World::with(&config.to_string()).script("tools", TOOLS).start()
    };
    let zoom = json!({ "tool": "demo_zoom", "args": { "by": 1 } });
    let direct = json!({ "name": "demo_zoom", "arguments": { "by": 1 } });
    let read = json!({ "tool": "demo_read_map" });

    // The client does not support elicitation.
    let world = gated();
    let mut client = world.client(json!({})).await;
    for arguments in [&zoom, &read] {
        let refused = said(&mut client, arguments.clone()).await;
        assert!(refused.starts_with("[error]\napproval_required"), "{refused}");
    }
    let refused = client.ask("tools/call", direct.clone()).await;
    assert!(text(&refused).starts_with("approval_required"), "{refused}");
    assert_eq!(world.fixture("demo").ledger().calls, []);
    // The entry of a server takes precedence over the setting.
    assert_eq!(said(&mut client, json!({ "tool": "free_grow" })).await, "added late");

    for (answers, asked) in
        [(&["once", "once", "once"][..], 3), (&["session", "once"], 2), (&["server"], 1)]
    {
        let world = gated();
        let mut client = world.client(json!({ "elicitation": {} })).await;
        client.user.answers.extend(answers.iter().map(|answer| accepted(answer)));
        assert_eq!(said(&mut client, zoom.clone()).await, r#"{"by":1}"#);
        assert_eq!(text(&client.ask("tools/call", direct.clone()).await), r#"{"by":1}"#);
        assert_eq!(said(&mut client, read.clone()).await, "here", "{answers:?}");
        assert_eq!(client.user.asked.len(), asked, "{answers:?}");
    }
    let world = gated();
    let mut client = world.client(json!({ "elicitation": {} })).await;
    client.user.answers.push_back(accepted("no"));
    let denied = said(&mut client, zoom).await;
    assert!(denied.starts_with("[error]\napproval_denied"), "{denied}");
    let question = client.user.asked[0]["message"].as_str().unwrap();
    assert_eq!(question, "Allow `zoom` of `demo`?\nby: 1");
    assert_eq!(world.fixture("demo").ledger().calls, []);
}

#[tokio::test(start_paused = true)]
async fn b30_prompts_instructions_and_elicitations_reach_capable_clients() {
    let world = one(json!({}), "everything").start();
    let mut client = world.client(json!({})).await;
    client.mcp(json!({ "connect": "demo" })).await;
    let prompts = client.ask("prompts/list", json!({})).await;
    assert_eq!(prompts["result"]["prompts"][0]["name"], "demo_greet", "{prompts}");
    let get = |arguments: Value| json!({ "name": "demo_greet", "arguments": arguments });
    let filled = client.ask("prompts/get", get(json!({ "who": "Ada" }))).await;
    assert_eq!(filled["result"]["messages"][0]["content"]["text"], "Say hello to Ada.");
    let missing = client.ask("prompts/get", get(json!({}))).await;
    assert!(missing["error"]["message"].as_str().unwrap().contains("who"), "{missing}");
    let mut pi = world.client_of(HostKind::Pi, json!({})).await;
    for (line, expected) in [
        ("Ada", "Say hello to Ada."),
        ("who='Ada Lovelace'", "Say hello to Ada Lovelace."),
        ("", "Missing required argument: who.\nUsage: /mcp__demo__greet <who>"),
    ] {
        let typed = json!({ "server": "demo", "prompt": "greet", "line": line });
        let told = pi.ask("switchboard/prompt", typed).await;
        let text = told["result"]["text"].as_str().or(told["error"]["message"].as_str());
        assert_eq!(text, Some(expected), "{told}");
    }
    check(
        &mut client,
        r#"
        >>> { "server": "demo", "limit": 1 }
        demo (30 tools):
        - demo_echo: Returns the text that it is given.
        next page: offset 1
        its instructions: mcp({ instructions: "demo" })

        >>> { "instructions": "demo" }
        Instructions of demo:

        Use echo to try things out.

        >>> { "tool": "demo_ask_elicitation" }
        [error]
        {"code":-32601,"message":"this client does not offer elicitation"}

        >>> { "tool": "demo_ask_url" }
        [error]
        {"code":-32601,"message":"this client does not offer elicitation"}

        >>> { "tool": "demo_ask_sampling" }
        [error]
        {"code":-32601,"message":"this client does not offer sampling"}
        "#,
    )
    .await;
    let able = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {} });
    let mut client = world.client(able).await;
    let said = json!({ "role": "assistant", "content": { "type": "text", "text": "Paris" }, "model": "m" });
    for (tool, answer) in [
        ("demo_ask_elicitation", json!({ "action": "accept", "content": { "name": "Ada" } })),
        ("demo_ask_url", json!({ "action": "decline" })),
        ("demo_ask_sampling", said),
    ] {
        client.user.answers.push_back(answer.clone());
        let told = client.mcp(json!({ "tool": tool })).await;
        assert_eq!(serde_json::from_str::<Value>(&told).ok(), Some(answer), "{tool}: {told}");
    }
}
