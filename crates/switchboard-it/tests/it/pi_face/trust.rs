//! Trusting a project's servers in a dialog of Pi: only the definition that was shown is approved.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use switchboard_it::client::Client;
use switchboard_it::program::Installed;

use super::asked;
use crate::PROGRAMS;

/// A project with a server; the user's file turns off the first listing.
fn project() -> (Installed, PathBuf) {
    let installed =
        Installed::with(PROGRAMS, r#"{ "mcpServers": {}, "settings": { "firstListing": false } }"#);
    let script = installed.write("tools.toml", "[[tools]]\nname = 'echo'\n");
    let project = installed.home().join("project");
    fs::create_dir(&project).unwrap();
    write(&project, &[("local", json!({ "command": "fixture-server", "args": [script] }))]);
    (installed, project)
}

fn write(project: &Path, servers: &[(&str, Value)]) {
    let servers: Value = servers.iter().cloned().collect();
    fs::write(project.join(".mcp.json"), json!({ "mcpServers": servers }).to_string()).unwrap();
}

async fn pi_in(installed: &Installed, project: &Path) -> Client {
    let mut command = installed.command();
    let mut client = Client::start(command.current_dir(project).args(["serve", "--host", "pi"]));
    client.initialize("2025-11-25", json!({})).await;
    client
}

async fn pending(client: &mut Client) -> Vec<Value> {
    let answer = client.ask("switchboard/pending", json!({})).await;
    answer["result"]["pending"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

async fn trust(client: &mut Client, server: &str, hash: &Value) -> String {
    asked(client, "trust", json!({ "server": server, "hash": hash })).await
}

fn approvals(installed: &Installed) -> String {
    fs::read_to_string(installed.home().join("switchboard/state/trust.json")).unwrap_or_default()
}

#[tokio::test]
async fn server_whose_definition_pi_has_shown_can_be_trusted() {
    let (installed, project) = project();
    let mut client = pi_in(&installed, &project).await;
    let status = client.ask("switchboard/status", json!({})).await;
    assert_eq!(status["result"]["pending"], json!(["local"]));
    let refused = asked(&mut client, "connect", json!({ "server": "local" })).await;
    assert!(refused.ends_with("approve it with `/mcp trust local`"), "{refused}");

    let shown = pending(&mut client).await;
    let [local] = &shown[..] else { panic!("{shown:?}") };
    assert_eq!((&local["server"], &local["changed"]), (&json!("local"), &json!(false)));
    // The command line shows the same text.
    let mut command = installed.command();
    let output = command.current_dir(&project).args(["trust", "local"]).output().await.unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.starts_with(local["text"].as_str().unwrap()), "{printed}");

    let said = trust(&mut client, "local", &local["hash"]).await;
    assert_eq!(said, "`local` is trusted, as long as its definition stays the same");
    let connected = asked(&mut client, "connect", json!({ "server": "local" })).await;
    assert_eq!(connected, "✓ local: connected, 1 tool");
    assert_eq!(pending(&mut client).await, Vec::<Value>::new());

    // A second approval finds nothing pending.
    let again = trust(&mut client, "local", &local["hash"]).await;
    assert!(again.starts_with("-32602 `local` is not pending"), "{again}");
}

#[tokio::test]
async fn server_whose_definition_pi_has_not_shown_stays_pending() {
    let (installed, project) = project();
    let two = |args: &str| {
        write(
            &project,
            &[
                ("one", json!({ "command": "fixture-server", "args": [args] })),
                ("two", json!({ "command": "fixture-server", "args": [args] })),
            ],
        );
    };
    two("first");
    // The definition was shown only to another client.
    let mut other = pi_in(&installed, &project).await;
    let elsewhere = pending(&mut other).await;
    let mut client = pi_in(&installed, &project).await;
    let not_shown = "-32602 not approved: this definition of `one` was not shown\nhint: look at \
                     its definition and approve it with `/mcp trust one`";
    assert_eq!(trust(&mut client, "one", &elsewhere[0]["hash"]).await, not_shown);
    assert_eq!(trust(&mut client, "one", &json!("0".repeat(64))).await, not_shown);
    assert_eq!(trust(&mut client, "one", &json!("")).await, not_shown);

    let shown = pending(&mut client).await;
    assert_eq!(shown, elsewhere);
    // The hash of another server does not approve `one`.
    assert_eq!(trust(&mut client, "one", &shown[1]["hash"]).await, not_shown);
    let unknown = trust(&mut client, "three\u{1b}[2J", &shown[0]["hash"]).await;
    assert!(unknown.starts_with("-32602 `three` is not pending"), "{unknown}");

    // The definition changed since it was shown.
    two("second");
    let changed = trust(&mut client, "one", &shown[0]["hash"]).await;
    assert!(
        changed.starts_with("-32602 not approved: `one` has changed since it was shown"),
        "{changed}"
    );
    for params in [json!({}), json!({ "server": "one" }), json!({ "server": "one", "hash": 7 })] {
        let answer = client.ask("switchboard/trust", params).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    assert_eq!(approvals(&installed), "", "nothing was written");
}

#[tokio::test]
async fn trust_granted_in_pi_is_bound_to_one_project() {
    let (installed, project) = project();
    let mut client = pi_in(&installed, &project).await;
    let shown = pending(&mut client).await;
    trust(&mut client, "local", &shown[0]["hash"]).await;
    assert!(approvals(&installed).contains(shown[0]["hash"].as_str().unwrap()));

    let copy = installed.home().join("copy");
    fs::create_dir(&copy).unwrap();
    fs::copy(project.join(".mcp.json"), copy.join(".mcp.json")).unwrap();
    let mut there = pi_in(&installed, &copy).await;
    let here = pending(&mut there).await;
    assert_eq!(here.len(), 1, "the same definition is pending in the other project");
    let refused = trust(&mut there, "local", &shown[0]["hash"]).await;
    assert!(
        refused.starts_with("-32602 not approved: this definition of `local` was not shown"),
        "{refused}"
    );
}

#[tokio::test]
async fn pi_trust_prompt_shows_hidden_characters_and_marks_changes() {
    let (installed, project) = project();
    let mut client = pi_in(&installed, &project).await;
    let shown = pending(&mut client).await;
    trust(&mut client, "local", &shown[0]["hash"]).await;
    let hostile = "\u{1b}]0;x\u{7}\u{202e}\u{200b}\r\n";
    let entry = json!({
        "command": format!("fixture-server{hostile}"),
        "args": ["x".repeat(8_000)],
        "env": { "KEY": "${HOME}" },
    });
    write(&project, &[("local", entry)]);
    let shown = pending(&mut client).await;
    assert_eq!(shown[0]["changed"], true);
    let text = shown[0]["text"].as_str().unwrap();
    assert!(text.contains("changed since you approved it"), "{text}");
    assert!(text.contains(r"\u{1b}]0;x\u{7}\u{202e}\u{200b}\r\n"), "{text}");
    assert!(text.contains(&"x".repeat(8_000)), "it is shown in full");
    let plain = |c: char| c == '\n' || !c.is_control() && !matches!(c, '\u{202e}' | '\u{200b}');
    assert!(text.chars().all(plain), "{text:?}");
    assert!(text.len() < 64 * 1024, "{} bytes", text.len());
    // A definition too long to be shown is rejected.
    let huge = json!({ "command": "fixture-server", "args": ["x".repeat(30_000)] });
    write(&project, &[("local", huge)]);
    assert_eq!(pending(&mut client).await, Vec::<Value>::new());
}
