//! Notifications to Pi: a changed status, and messages for the user.

use serde_json::{Value, json};
use switchboard_it::client::Client;
use switchboard_it::program::Installed;

use super::{asked, pi, three_servers};
use crate::PROGRAMS;

/// Reads messages until a notification of `method` matches; returns its parameters.
async fn told(client: &mut Client, method: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let frame = client.next().await;
        if frame["method"] == method && wanted(&frame["params"]) {
            return frame["params"].clone();
        }
    }
}

const STATUS: &str = "notifications/switchboard/status";

#[tokio::test]
async fn pi_client_that_requested_status_gets_change_notifications() {
    let installed = three_servers();
    let mut client = pi(&installed, &[]).await;
    let first = client.ask("switchboard/status", json!({})).await["result"].clone();
    assert_eq!(first["connected"], 0);
    asked(&mut client, "connect", json!({ "server": "notes" })).await;
    let up = told(&mut client, STATUS, |status| status["connected"] == 1).await;
    assert_eq!(up["tools"], 5);
    // The notification has the same fields as the response.
    let keys = |status: &Value| status.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&up), keys(&first));
    asked(&mut client, "disconnect", json!({ "server": "notes" })).await;
    told(&mut client, STATUS, |status| status["connected"] == 0).await;

    // A changed configuration file also changes the status.
    let one = json!({ "a": { "command": "a" } });
    let config = json!({ "mcpServers": one, "settings": { "mcpFooterStatus": "compact" } });
    installed.write("switchboard/mcp.json", &config.to_string());
    told(&mut client, STATUS, |status| status["footer"] == "MCP 0/1").await;
}

#[tokio::test]
async fn pi_client_without_status_request_gets_no_notification() {
    let installed = three_servers();
    let mut client = pi(&installed, &[]).await;
    asked(&mut client, "connect", json!({ "server": "notes" })).await;
    asked(&mut client, "disconnect", json!({ "server": "notes" })).await;
    let ended = client.end().await;
    assert!(ended.frames.iter().all(|frame| frame["method"] != STATUS), "{:?}", ended.frames);
}

#[tokio::test]
async fn pi_startup_messages_arrive_as_notifications() {
    let installed = Installed::bare(PROGRAMS);
    let script = installed.write("tools.toml", "[[tools]]\nname = 'echo'\n");
    let server = |id: &str, command: &str| json!({ "id": id, "command": command, "args": [script], "enabled": true });
    let list = json!({ "servers": [server("on", "fixture-server"), server("broken", "no-such")] });
    installed.write(".pi/mcp-servers.json", &list.to_string());
    for name in ["on", "broken"] {
        let trusted = installed.run_on_terminal(["trust", name], "y\n").await;
        assert_eq!(trusted.code, Some(0), "{}", trusted.stderr);
    }
    let client = pi(&installed, &[]).await;
    let said = |client: Client| async move {
        let mut client = client;
        let message = told(&mut client, "notifications/switchboard/notice", |_| true).await;
        (client, message)
    };
    let (client, first) = said(client).await;
    assert_eq!(first, json!({ "level": "info", "text": "Auto-connected: on" }));
    let (client, second) = said(client).await;
    assert_eq!(second["level"], "warning");
    let text = second["text"].as_str().unwrap();
    assert!(text.starts_with("cannot use the server `broken`"), "{text}");

    // A configuration file becomes invalid while `serve` runs.
    installed.write("switchboard/mcp.json", "{ \"mcpServers\": { \"x\": { \"command\": 7 } } }");
    let (client, third) = said(client).await;
    let text = third["text"].as_str().unwrap();
    assert!(text.ends_with("is invalid and ignored"), "{text}");
    let ended = client.end().await;
    assert!(!ended.stderr.contains("Auto-connected"), "{}", ended.stderr);
    // With `notifyOnStartupConnect: false`, the first message is the warning.
    installed
        .write("switchboard/mcp.json", r#"{ "settings": { "notifyOnStartupConnect": false } }"#);
    let (_, first) = said(pi(&installed, &[]).await).await;
    assert_eq!(first["level"], "warning", "{first}");
}
