//! Pi's list of servers, `.pi/mcp-servers.json`, while `serve` runs.

use serde_json::json;
use switchboard_it::client::Client;
use switchboard_it::program::Installed;
use switchboard_it::terminal;

use crate::PROGRAMS;

#[tokio::test]
async fn serve_connects_and_announces_enabled_pi_list_entries() {
    let installed = Installed::bare(PROGRAMS);
    let script = installed.write("tools.toml", "[[tools]]\nname = 'echo'\n");
    let server = |id: &str, command: &str, enabled: bool| json!({ "id": id, "command": command, "args": [script], "enabled": enabled });
    let list = json!({ "servers": [
        server("on", "fixture-server", true),
        server("broken", "no-such-program", true),
        server("waits", "fixture-server", true),
        server("off", "fixture-server", false),
    ] });
    installed.write("project/.pi/mcp-servers.json", &list.to_string());
    let project = installed.home().join("project");
    let command = |words: &[&str]| {
        let mut command = installed.command();
        command.current_dir(&project).args(words);
        command
    };
    let trusted = terminal::run(&mut command(&["trust", "on", "broken", "off"]), "y\ny\ny\n").await;
    assert_eq!(trusted.code, Some(0), "{}", trusted.screen);

    let mut client = Client::start(&mut command(&["serve"]));
    client.initialize("2025-11-25", json!({})).await;
    // Waits for the last message at start.
    client.has_said("was not approved\n").await;
    let status = client.mcp(json!({})).await;
    assert!(status.contains("✓ on (1 tool"), "{status}");
    assert!(status.contains("○ off"), "{status}");
    let ended = client.end().await;
    // Compares standard error without log lines.
    let said = ended.stderr.lines().filter(|line| !line.contains(" WARN "));
    insta::assert_snapshot!(said.collect::<Vec<_>>().join("\n"), @r"
    Auto-connected: on
    warning: cannot use the server `broken`: cannot connect: the program `no-such-program` was not found
    warning: the server `waits` comes from this project and was not approved
    ");
}
