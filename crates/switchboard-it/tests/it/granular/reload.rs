//! `mcp_reload_config`, which reads Pi's list of servers again.

use std::fs;

use serde_json::{Value, json};
use switchboard_it::program::Installed;
use switchboard_it::terminal;

use super::{Story, command, installed};

const LIST: &str = ".pi/mcp-servers.json";

fn write(installed: &Installed, servers: &Value) {
    installed.write(LIST, &json!({ "servers": servers }).to_string());
}

fn entry(id: &str, enabled: bool) -> Value {
    json!({ "id": id, "url": format!("files {id}"), "enabled": enabled })
}

async fn trust(installed: &Installed, servers: &[&str]) {
    let mut trust = command(installed);
    let answers = "y\n".repeat(servers.len());
    let ran = terminal::run(trust.arg("trust").args(servers), &answers).await;
    assert_eq!(ran.code, Some(0), "{}", ran.screen);
}

#[tokio::test]
async fn reload_connects_enabled_entries_and_names_pending_ones() {
    let installed = installed();
    write(&installed, &json!([entry("server-a", true), entry("server-b", true)]));
    trust(&installed, &["server-a", "server-b"]).await;
    let mut story = Story::begin(&installed, 0).await;
    story.client.has_said("Auto-connected: server-a, server-b\n").await;
    story.tell("mcp_reload_config", json!({})).await;
    story.tell("mcp_reload_config", json!({ "disconnect_existing": true })).await;
    let theirs = json!([entry("server-a", true), entry("server-b", true), entry("theirs", true)]);
    write(&installed, &theirs);
    story.tell("mcp_reload_config", json!({})).await;
    insta::assert_snapshot!(story.told(), @r"
    mcp_reload_config:
    Reloaded MCP config from .pi/mcp-servers.json
    Connected: server-a, server-b

    mcp_reload_config:
    Disconnected 2 existing connection(s)
    Reloaded MCP config from .pi/mcp-servers.json
    Connected: server-a, server-b

    mcp_reload_config:
    Reloaded MCP config from .pi/mcp-servers.json
    Connected: server-a, server-b
    Pending: theirs (ask the user to run: switchboard trust)
    ");
    let started = fs::read_to_string(installed.home().join("started")).unwrap();
    assert!(!started.contains("theirs"), "{started}");
    assert_eq!(started.lines().count(), 4, "{started}");
}

#[tokio::test]
async fn every_mistake_in_pi_server_list_has_its_message() {
    let installed = installed();
    let mut story = Story::begin(&installed, 0).await;
    for (list, expected) in [
        ("{ \"servers\": [", "Failed to parse MCP config file: "),
        (r#"{ "servers": {} }"#, "Invalid MCP config: "),
        (
            r#"{ "servers": [{ "id": "x", "url": "a" }, { "id": "x", "url": "b" }] }"#,
            "Invalid MCP config: servers[1]: duplicate id 'x' (.pi/mcp-servers.json:",
        ),
        (
            r#"{ "servers": [{ "id": "a b", "url": "a" }] }"#,
            "Invalid MCP config: servers[0].id: must contain only alphanumeric characters, \
             underscores and hyphens (.pi/mcp-servers.json:",
        ),
    ] {
        installed.write(LIST, list);
        let said = story.ask("mcp_reload_config", json!({})).await;
        assert!(said.starts_with(&format!("(error) Error: {expected}")), "{said}");
    }
}
