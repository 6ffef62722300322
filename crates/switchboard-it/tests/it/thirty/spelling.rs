//! Tool names: prefixes and spellings.

use serde_json::json;
use switchboard_it::harness::World;

use super::check;

#[tokio::test(start_paused = true)]
async fn b11_prefixed_name_is_found_in_every_spelling() {
    let script = r#"
        [[tools]]
        name = "take-photo"
        [[tools]]
        name = "cam-mcp_zoom"
    "#;
    let modes = [
        ("server", ["cam-mcp_take-photo", "cam-mcp_zoom"]),
        ("short", ["cam_take-photo", "cam_cam-mcp_zoom"]),
        ("none", ["take-photo", "cam-mcp_zoom"]),
        ("mcp", ["mcp__cam-mcp_take-photo", "mcp__cam-mcp_cam-mcp_zoom"]),
    ];
    for (mode, names) in modes {
        let entry = json!({ "command": "fixture-server", "args": ["cam"], "toolPrefix": mode });
        // The entry of the server takes precedence over the setting.
        let settings = json!({ "toolPrefix": if mode == "none" { "mcp" } else { "none" } });
        let config = json!({ "settings": settings, "mcpServers": { "cam-mcp": entry } });
        let world = World::with(&config.to_string()).script("cam", script).start();
        let mut client = world.client(json!({})).await;
        let listed = client.mcp(json!({ "connect": "cam-mcp" })).await;
        let seen: Vec<&str> = listed.lines().filter_map(|line| line.strip_prefix("- ")).collect();
        assert_eq!(seen, names, "{mode}");
        for spelling in
            [names[0], "take-photo", "take_photo", "cam_mcp_take_photo", "cam-mcp_take-photo"]
        {
            let arguments = json!({ "tool": spelling, "args": { "text": "click" } });
            assert_eq!(client.mcp(arguments).await, "click", "{mode} {spelling}");
        }
        let calls = world.fixture("cam-mcp").ledger().calls;
        assert!(calls.iter().all(|call| call.tool == "take-photo"), "{calls:?}");
    }

    let entry = json!({ "command": "fixture-server", "args": ["everything"] });
    let servers = json!({ "one": entry, "two": entry });
    let world = World::with(&json!({ "mcpServers": servers }).to_string()).start();
    let mut client = world.client(json!({})).await;
    for server in ["one", "two"] {
        client.mcp(json!({ "connect": server })).await;
    }
    check(
        &mut client,
        r#"
        >>> { "tool": "echo", "args": { "text": "hi" } }
        [error]
        ambiguous_tool: `echo` matches 2 tools
        Choose one of: one_echo and two_echo

        >>> { "tool": "echo", "server": "two", "args": { "text": "hi" } }
        hi
        "#,
    )
    .await;
    assert_eq!(world.fixture("one").ledger().calls, []);
}
