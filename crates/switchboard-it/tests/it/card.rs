//! The definition of `mcp` does not change during a session, whatever the servers do, so that the
//! prompt cache of the model stays valid.

use serde_json::{Value, json};
use switchboard::tool_card;
use switchboard_it::client::Client;
use switchboard_it::program::Installed;

use crate::PROGRAMS;
use crate::reload::status_with;

const TOOLS: &str = "
[[tools]]
name = 'echo'
[[tools]]
name = 'grow'
behaviour = 'change_tools'
[[tools]]
name = 'crash'
behaviour = 'crash'
";

/// The raw result of `tools/list`.
async fn listed(client: &mut Client) -> String {
    let id = client.request("tools/list", json!({})).await;
    let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":");
    loop {
        if let Some(result) = client.line().await.strip_prefix(&answer) {
            return result.to_owned();
        }
    }
}

#[tokio::test]
async fn mcp_definition_stays_identical_while_servers_change() {
    let installed = Installed::bare(PROGRAMS);
    let script = installed.write("tools.toml", TOOLS);
    let save = |servers: &[&str], more: Value| {
        let entry = json!({ "command": "fixture-server", "args": [script] });
        let entries = servers.iter().map(|name| ((*name).to_owned(), entry.clone()));
        let mut entries: serde_json::Map<String, Value> = entries.collect();
        entries.extend(more.as_object().unwrap().clone());
        let config = json!({ "mcpServers": entries, "settings": { "firstListing": false } });
        installed.write("switchboard/mcp.json", &config.to_string());
    };
    let broken = json!({ "broken": { "command": "no-such-program-anywhere" } });
    save(&["a", "b"], broken.clone());
    let card = format!("{{\"tools\":[{}]}}}}\n", tool_card::definition());
    let mut client = installed.connect(json!({})).await;
    let same = async |client: &mut Client, when: &str| {
        assert_eq!(listed(client).await, card, "{when}");
    };

    same(&mut client, "before anything").await;
    client.mcp(json!({ "tool": "a_echo", "args": { "text": "hi" } })).await;
    same(&mut client, "a server connected").await;
    let failed = client.mcp(json!({ "connect": "broken" })).await;
    assert!(failed.contains("broken"), "{failed}");
    same(&mut client, "a server failed").await;
    client.mcp(json!({ "tool": "a_grow", "args": { "name": "late" } })).await;
    status_with(&mut client, "a (4 tools").await;
    same(&mut client, "a server changed its list").await;
    let crashed = client.mcp(json!({ "tool": "a_crash" })).await;
    assert!(crashed.starts_with("outcome_unknown"), "{crashed}");
    same(&mut client, "a server crashed").await;
    client.mcp(json!({ "tool": "a_echo", "args": { "text": "again" } })).await;
    status_with(&mut client, "a (3 tools").await;
    same(&mut client, "a server came back with its first list").await;
    save(&["a", "b", "c"], broken);
    status_with(&mut client, " c (").await;
    same(&mut client, "a server was added").await;
    save(&["c"], json!({ "a": { "command": "fixture-server", "disabled": true } }));
    status_with(&mut client, "a (disabled)").await;
    same(&mut client, "servers were removed and disabled").await;
    client.mcp(json!({ "search": "echo" })).await;
    client.mcp(json!({ "connect": "c" })).await;
    same(&mut client, "another server was connected").await;

    let mut beside = installed.connect(json!({})).await;
    same(&mut beside, "in another process").await;
    beside.end().await;
    client.end().await;
    let mut later = installed.connect(json!({})).await;
    same(&mut later, "after a restart").await;
    later.end().await;
}
