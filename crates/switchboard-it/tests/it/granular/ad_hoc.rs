//! Ad hoc connections: the user approves each one, and nothing of it remains after the session.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use switchboard::connection::{ConnectError, ConnectParams, ConnectionRequest};
use switchboard::failure::Code;
use switchboard::{Headless, Session};
use switchboard_it::harness::World;
use switchboard_it::processes::until;
use switchboard_it::program::Installed;

use super::{Story, installed};
use crate::PROGRAMS;

/// Connects a shell command that creates a canary file; returns the answer with the approval
/// question, and whether the command ran.
async fn with_a_canary(settings: Value, capabilities: Value, answer: Value) -> (String, bool) {
    let installed = installed();
    installed.write("switchboard/mcp.json", &json!({ "settings": settings }).to_string());
    let canary = installed.home().join("canary");
    let mut story = Story::of(&installed, capabilities).await;
    story.client.user.answers.push_back(answer);
    let url = format!("sh -c 'touch {}'", canary.display());
    let said = story.ask("mcp_connect", json!({ "id": "shell", "url": url })).await;
    let asked = story.client.user.asked.first().map(|asked| asked["message"].to_string());
    story.client.end().await;
    (format!("{said}\n{}", asked.unwrap_or_default()), canary.exists())
}

#[tokio::test]
async fn ad_hoc_command_starts_only_if_approved_or_allowed() {
    let yes = json!({ "action": "accept", "content": { "decision": "connect" } });
    let able = || json!({ "elicitation": {} });
    let ask = || json!({});
    for (settings, capabilities, answer, code) in [
        (ask(), json!({}), yes.clone(), "approval_required"),
        (ask(), able(), json!({ "action": "decline" }), "approval_required"),
        (ask(), able(), json!({ "action": "cancel" }), "approval_required"),
        (ask(), able(), json!({ "action": "accept" }), "approval_denied"),
        (
            ask(),
            able(),
            json!({ "action": "accept", "content": { "decision": "once" } }),
            "approval_denied",
        ),
        (json!({ "adHocConnections": "off" }), able(), yes.clone(), "approval_denied"),
    ] {
        let (said, started) = with_a_canary(settings, capabilities, answer.clone()).await;
        assert!(said.starts_with(&format!("(error) Connection failed: {code}: ")), "{said}");
        assert!(!started, "{answer}");
    }
    // With an approval, the same command creates the canary.
    let (said, started) = with_a_canary(ask(), able(), yes).await;
    assert!(started, "{said}");
    assert!(said.contains(r#"\"sh\" \"-c\" \"touch "#), "{said}");
    let allowed = json!({ "adHocConnections": "allow" });
    let (said, started) = with_a_canary(allowed, json!({}), Value::Null).await;
    assert!(started, "{said}");
}

#[tokio::test]
async fn project_cannot_allow_ad_hoc_connections() {
    let installed = installed();
    let settings = json!({ "settings": { "adHocConnections": "allow" }, "mcpServers": {} });
    installed.write(".mcp.json", &settings.to_string());
    let mut story = Story::of(&installed, json!({})).await;
    let said = story.ask("mcp_connect", json!({ "id": "x", "url": "npx -y server" })).await;
    assert!(said.starts_with("(error) Connection failed: approval_required: "), "{said}");
    assert!(!installed.home().join("started").exists());
}

#[tokio::test]
async fn connect_approval_shows_every_character_of_command_or_url() {
    let mut story = Story::begin(&installed(), 0).await;
    let url = "sh -c 'a\u{202e}b' \u{200b}c";
    story.ask("mcp_connect", json!({ "id": "x", "url": url })).await;
    story.ask("mcp_connect", json!({ "id": "x", "url": "http://ex\u{200b}ample.com/" })).await;
    let asked: Vec<&str> =
        story.client.user.asked.iter().map(|asked| asked["message"].as_str().unwrap()).collect();
    insta::assert_snapshot!(asked.join("\n---\n"), @r#"
    Connect the server `x`, which is in none of your configuration files?

    This program would be started, with your rights:
    "sh" "-c" "a\u{202e}b" "\u{200b}c"
    ---
    Connect the server `x`, which is in none of your configuration files?

    It would be reached at:
    "http://ex\u{200b}ample.com/"
    "#);
}

#[tokio::test]
async fn ad_hoc_connection_named_like_configured_server_is_refused() {
    let installed = installed();
    let config = json!({ "mcpServers": { "github": { "command": "nowhere" } } });
    installed.write("switchboard/mcp.json", &config.to_string());
    let mut story = Story::of(&installed, json!({ "elicitation": {} })).await;
    for id in ["GitHub", "GITHUB", "github_", "g1thub", "github-mcp"] {
        let said = story.ask("mcp_connect", json!({ "id": id, "url": "npx -y server" })).await;
        assert!(said.contains("github") && said.starts_with("(error) "), "{id}: {said}");
    }
    assert_eq!(story.client.user.asked.len(), 0);
}

#[tokio::test]
async fn eleventh_ad_hoc_connection_is_refused() {
    let mut story = Story::begin(&installed(), 12).await;
    let connect = |number: usize| json!({ "id": format!("c{number}"), "url": "npx -y server" });
    for number in 1..=10 {
        let said = story.ask("mcp_connect", connect(number)).await;
        assert!(said.starts_with("Successfully connected"), "{number}: {said}");
    }
    let said = story.ask("mcp_connect", connect(11)).await;
    assert_eq!(said, "(error) Connection failed: Maximum connections (10) reached");
    // The user was not asked about the refused connection.
    assert_eq!(story.client.user.asked.len(), 10);
    story.ask("mcp_disconnect", json!({ "id": "c3" })).await;
    let said = story.ask("mcp_connect", connect(11)).await;
    assert!(said.starts_with("Successfully connected"), "{said}");
}

/// All files in a directory and its subdirectories.
fn files(directory: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.path() {
            path if path.is_dir() => files(&path),
            path => BTreeSet::from([path]),
        })
        .collect()
}

#[tokio::test]
async fn ended_session_leaves_no_ad_hoc_process_or_file() {
    let installed = Installed::bare(PROGRAMS);
    let log = installed.spawn_log().display().to_string();
    let loud = "[faults]\nstderr_flood_bytes = 100000\n[[tools]]\nname = 'echo'\n";
    let loud = installed.write("loud.toml", loud).display().to_string();
    let mut story = Story::begin(&installed, 1).await;
    let url = format!("fixture-server {loud} --spawn-log {log}");
    let said = story.ask("mcp_connect", json!({ "id": "guest", "url": url })).await;
    assert!(said.starts_with("Successfully connected"), "{said}");
    let server = *installed.spawned().first().unwrap();
    story.client.end().await;
    until("the server has ended", || !Path::new(&format!("/proc/{server}")).exists()).await;
    let left = files(&installed.home().join("switchboard"));
    let named = left.iter().filter(|path| {
        path.to_string_lossy().contains("guest")
            || fs::read_to_string(path).is_ok_and(|text| text.contains("guest"))
    });
    assert_eq!(named.collect::<Vec<_>>(), Vec::<&PathBuf>::new(), "{left:?}");
}

fn wanted(id: &str) -> ConnectionRequest {
    let address = format!("{} everything", PROGRAMS.fixture_server);
    ConnectionRequest::read(ConnectParams { id, address: &address, ..ConnectParams::default() })
        .unwrap()
}

async fn connect(session: &Session, id: &str) -> Result<usize, ConnectError> {
    let connected = session.connect_to(&wanted(id), &session.caller()).await;
    connected.map(|connected| connected.tools.len())
}

#[tokio::test]
async fn ad_hoc_connection_belongs_to_one_session() {
    let allowed = r#"{
        "settings": { "adHocConnections": "allow" },
        "mcpServers": { "kit": { "command": "fixture-server", "args": ["everything"] } }
    }"#;
    let world = World::with(allowed).start();
    let (one, two) = (world.gateway.session(Headless), world.gateway.session(Headless));
    assert!(connect(&one, "guest").await.unwrap() > 0);
    assert!(one.catalog().tools().any(|item| &*item.shown == "guest_echo"));
    assert!(!two.catalog().tools().any(|item| &*item.shown == "guest_echo"));
    assert_eq!(two.connection("guest").unwrap_err().code, Code::UnknownServer);
    // Another session may use the same connection id.
    assert!(connect(&two, "guest").await.is_ok());
    // The name of a configured server cannot be the id of a connection.
    assert!(matches!(connect(&one, "kit").await, Err(ConnectError::Exists(_))));
    // The connection survives a change of the configuration.
    world.apply(r#"{ "mcpServers": {} }"#);
    assert!(one.connection("guest").is_ok());
    drop(one);
    assert!(two.connection("guest").is_ok());
    world.shut_down().await;
}
