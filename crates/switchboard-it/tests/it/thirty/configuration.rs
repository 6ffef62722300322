//! Precedence of configuration files, credentials of endpoints, and excluded tools.

use std::fs;

use serde_json::{Map, Value, json};
use switchboard_it::authority::{Authority, Setup};
use switchboard_it::client::Client;
use switchboard_it::fixture::HttpFixture;
use switchboard_it::program::Installed;

use super::sign_in::link_in;
use super::{acting, check, config, names, said};
use crate::PROGRAMS;

/// All files with servers, lowest precedence first; the files of a project are last.
const FILES: [&str; 8] = [
    ".config/mcp/mcp.json",
    ".agents/mcp.json",
    ".agents/mcp/mcp.json",
    ".pi/agent/mcp.json",
    "switchboard/mcp.json",
    ".mcp.json",
    ".pi/mcp.json",
    ".switchboard/mcp.json",
];
const OF_THE_USER: usize = 5;

#[tokio::test]
async fn b04_later_files_override_and_malformed_files_are_skipped() {
    let installed = Installed::bare(PROGRAMS);
    // The file of lowest precedence has the command, comments and trailing commas. Each other file
    // sets one field.
    let args = json!(["everything"]);
    let lowest = format!(
        "{{ // The team's tools.\n \"mcp-servers\": {{ \"kit\": {{ \"command\": \"fixture-server\", \"args\": {args},\n \"env\": {{ \"LAYER\": \"0\" }}, }}, }}, }}"
    );
    installed.write(FILES[0], &lowest);
    for (number, file) in FILES.iter().enumerate().skip(1) {
        let entry = json!({ "env": { "LAYER": number.to_string() } });
        installed.write(file, &json!({ "mcpServers": { "kit": entry } }).to_string());
    }
    for (number, file) in FILES.iter().enumerate().rev() {
        if number >= OF_THE_USER {
            let trusted = installed.run_on_terminal(["trust"], "y\n").await;
            assert_eq!(trusted.code, Some(0), "{trusted:?}");
        }
        let mut client = installed.connect(json!({})).await;
        let seen: Value =
            serde_json::from_str(&client.mcp(json!({ "tool": "kit_env" })).await).unwrap();
        assert_eq!(seen["env"]["LAYER"], number.to_string(), "{file}");
        client.end().await;
        if number > 0 {
            fs::remove_file(installed.home().join(file)).unwrap();
        }
    }

    // This malformed file is shared and never had rules. A malformed file of the user's own would
    // stop every call.
    installed.write(FILES[1], "{ \"mcpServers\": { \"lost\": ] }");
    let mut client = installed.connect(json!({})).await;
    check(
        &mut client,
        r#"
        >>> { "tool": "kit_echo", "args": { "text": "still here" } }
        still here
        "#,
    )
    .await;
    let ended = client.end().await;
    assert!(ended.stderr.contains(".agents/mcp.json:1:27: "), "{}", ended.stderr);
}

#[tokio::test]
async fn b05_changed_url_inherits_no_credentials() {
    let near = HttpFixture::start("everything").await;
    let secrets = [
        json!({ "headers": { "X-Secret": "canary" } }),
        json!({ "bearerToken": "canary" }),
        json!({ "bearerTokenEnv": "SECRET" }),
        json!({ "auth": { "type": "api-key", "key": "canary" } }),
    ];
    for (number, secret) in secrets.into_iter().enumerate() {
        let installed = Installed::bare(PROGRAMS);
        let mut below = secret.clone();
        below["url"] = json!("https://elsewhere.example/mcp");
        installed.write(FILES[3], &json!({ "mcpServers": { "far": below } }).to_string());
        let above = json!({ "mcpServers": { "far": { "url": near.url() } } });
        installed.write(FILES[4], &above.to_string());
        let before = near.requests().len();
        let mut command = installed.command();
        let mut client = Client::start(command.env("SECRET", "canary").arg("serve"));
        client.initialize("2025-11-25", json!({})).await;
        assert_eq!(
            said(&mut client, json!({ "tool": "far_count" })).await,
            (number + 1).to_string()
        );
        client.end().await;
        let requests = near.requests();
        let sent = requests.iter().skip(before).flat_map(|request| request.headers.values());
        assert!(sent.clone().count() > 4);
        assert!(!sent.into_iter().any(|value| value.contains("canary")), "{secret}");
    }

    // A `command` that replaces the `url` inherits no credentials either.
    let installed = Installed::bare(PROGRAMS);
    let below = json!({ "url": near.url(), "headers": { "X": "canary" }, "oauth": { "clientId": "known" } });
    installed.write(FILES[3], &json!({ "mcpServers": { "kit": below } }).to_string());
    let above = json!({ "command": "fixture-server", "args": ["everything"] });
    installed.write(FILES[4], &json!({ "mcpServers": { "kit": above } }).to_string());
    let shown = installed.run(["config", "show", "--json"]).await;
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let kit = shown["servers"]["kit"].as_object().unwrap();
    for gone in ["url", "headers", "oauth"] {
        assert_eq!(kit.get(gone), None, "{kit:?}");
    }

    // A client id is not inherited by another authorization server.
    let authority = Authority::start(Setup::default()).await;
    let installed = Installed::bare(PROGRAMS);
    let below = json!({ "url": near.url(), "oauth": { "clientId": "known" } });
    installed.write(FILES[3], &json!({ "mcpServers": { "far": below } }).to_string());
    let above = json!({ "mcpServers": { "far": { "url": authority.mcp_url() } } });
    installed.write(FILES[4], &above.to_string());
    let mut client = installed.connect(json!({})).await;
    let begun = client.mcp(json!({ "action": "auth-start", "server": "far" })).await;
    assert!(!link_in(&begun).contains("client_id=known"), "{begun}");
    client.end().await;
}

#[tokio::test]
async fn b22_filtered_tools_and_disabled_servers_are_unusable() {
    let installed = Installed::bare(PROGRAMS);
    installed.write(
        "tools.toml",
        "[[tools]]\nname = 'read_row'\n[[tools]]\nname = 'drop_row'\n[[tools]]\nname = 'drop_table'\n",
    );
    let entry = |more: Value| acting(&installed, "tools.toml", more);
    let servers = Map::from_iter([
        (
            "some".to_owned(),
            entry(json!({ "includeTools": ["*_row"], "excludeTools": ["some_drop_*"] })),
        ),
        ("less".to_owned(), entry(json!({ "excludeTools": ["mcp__less_drop_?able"] }))),
        ("off".to_owned(), entry(json!({ "disabled": true, "lifecycle": "eager" }))),
    ]);
    installed.write("switchboard/mcp.json", &config(servers, json!({ "directTools": true })));
    for server in ["some", "less"] {
        assert_eq!(installed.run(["connect", server]).await.code, Some(0));
    }
    let before = installed.spawned();
    let mut client = installed.connect(json!({})).await;
    let listed = client.ask("tools/list", json!({})).await;
    assert_eq!(names(&listed), ["mcp", "less_read_row", "less_drop_row", "some_read_row"]);
    check(
        &mut client,
        r#"
        >>> {}
        MCP: 0/2 servers, 3 tools (1 disabled)
        ○ less (2 tools, cached)
        ⊘ off (disabled)
        ○ some (1 tool, cached)
        ...

        >>> { "server": "some" }
        some (1 tool):
        - some_read_row

        >>> { "search": "drop", "includeSchemas": false }
        - less_drop_row

        >>> { "describe": "some_drop_row" }
        [error]
        unknown_tool: no tool is named `some_drop_row`
        ...

        >>> { "tool": "drop_table", "server": "some" }
        [error]
        unknown_tool: no tool is named `drop_table`
        ...

        >>> { "server": "off" }
        [error]
        server_disabled: the server `off` is disabled
        Ask the user to enable `off`

        >>> { "connect": "off" }
        [error]
        server_disabled: the server `off` is disabled
        ...

        >>> { "tool": "off_read_row" }
        [error]
        server_disabled: the server `off` is disabled
        ...
        "#,
    )
    .await;
    assert_eq!(installed.spawned(), before);
    client.end().await;
}
