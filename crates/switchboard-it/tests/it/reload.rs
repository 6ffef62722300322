//! Configuration changes while the gateway runs.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit};
use serde_json::json;
use switchboard::load::{LoadOptions, load};
use switchboard::paths::Paths;
use switchboard::trust::TrustStore;
use switchboard::{Gateway, Headless, Session};
use switchboard_it::client::Client;
use switchboard_it::harness::{Home, World, pass};
use switchboard_it::processes::until_gone;
use switchboard_it::program::Installed;

use crate::PROGRAMS;

const TOOLS: &str = "
[[tools]]
name = 'echo'
[[tools]]
name = 'wait'
behaviour = 'wait'
[[tools]]
name = 'pid'
behaviour = 'pid'
";

/// A configuration with two servers: `a` has these additional fields, and `b` never changes.
fn two(a: &str) -> String {
    format!(
        r#"{{ "mcpServers": {{
            "a": {{ "command": "fixture-server", "args": ["tools"] {a} }},
            "b": {{ "command": "fixture-server", "args": ["tools"] }} }} }}"#
    )
}

/// A gateway in which both servers are connected and a call to `a` is in flight.
async fn busy() -> (Arc<World>, tokio::task::JoinHandle<String>) {
    let world = Arc::new(World::with(&two("")).script("tools", TOOLS).start());
    for server in ["a", "b"] {
        let echoed = world.call(&format!("{server}_echo"), json!({ "text": "hi" })).await;
        assert_eq!(echoed.unwrap(), "hi");
    }
    let calling = Arc::clone(&world);
    let waiting = tokio::spawn(async move { calling.ask(r#"{ "tool": "a_wait" }"#).await });
    world.fixture("a").call_started(2).await;
    (world, waiting)
}

#[tokio::test(start_paused = true)]
async fn changed_server_restarts_after_its_calls_in_flight() {
    let (world, waiting) = busy().await;
    let card = format!("{:?}", switchboard::tool_card::definition());
    world.apply(&two(r#", "requestTimeoutMs": 30000"#));
    let calling = Arc::clone(&world);
    let next = tokio::spawn(async move { calling.call("a_echo", json!({ "text": "new" })).await });
    pass(Duration::from_secs(5)).await;
    assert!(!next.is_finished(), "a second connection was opened");
    assert_eq!(world.fixture("a").ledger().connections, 1);
    assert!(world.ask("{}").await.contains("○ a (3 tools, connecting)"));
    world.fixture("a").release();
    assert_eq!(waiting.await.unwrap(), "released");
    assert_eq!(next.await.unwrap().unwrap(), "new");
    let (a, b) = (world.fixture("a").ledger(), world.fixture("b").ledger());
    assert_eq!((a.connections, a.open, b.connections, b.open), (2, 1, 1, 1));
    assert_eq!(card, format!("{:?}", switchboard::tool_card::definition()));
}

#[tokio::test(start_paused = true)]
async fn disabled_server_finishes_its_calls_and_refuses_new_ones() {
    let (world, waiting) = busy().await;
    world.apply(&two(r#", "disabled": true"#));
    let refused = world.ask(r#"{ "tool": "a_echo", "args": { "text": "hi" } }"#).await;
    assert!(refused.starts_with("server_disabled"), "{refused}");
    assert_eq!(
        world.fixture("a").ledger().open,
        1,
        "the connection was closed during its last call"
    );
    world.fixture("a").release();
    assert_eq!(waiting.await.unwrap(), "released");
    world.fixture("a").until(|ledger| ledger.open == 0).await;
    assert_eq!(world.fixture("b").ledger().connections, 1);
    // The server can be enabled again.
    world.apply(&two(""));
    assert_eq!(world.call("a_echo", json!({ "text": "back" })).await.unwrap(), "back");
}

#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait_for_a_disabled_server() {
    let (world, waiting) = busy().await;
    world.apply(&two(r#", "disabled": true"#));
    world.gateway.shutdown().await;
    assert_eq!(world.fixture("a").ledger().open, 0);
    waiting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn changed_rule_applies_without_closing_the_connection() {
    let (world, _waiting) = busy().await;
    let catalogs = world.gateway.watch();
    world.apply(&two(r#", "approveTools": ["echo"]"#));
    assert!(!catalogs.has_changed().unwrap(), "a new catalog was published");
    let refused = world.ask(r#"{ "tool": "a_echo", "args": { "text": "hi" } }"#).await;
    assert!(refused.starts_with("approval_required"), "the new rule does not apply: {refused}");
    assert_eq!(world.fixture("a").ledger().connections, 1);
}

/// A gateway that watches the configuration files of a project. It starts none of its servers.
struct Followed {
    home: Home,
    gateway: Gateway,
    session: Session,
}

const QUIET: &str = r#""settings": { "firstListing": false }"#;

impl Followed {
    fn start(config: &str) -> Followed {
        let home = Home::new();
        fs::create_dir_all(home.path().join("switchboard")).unwrap();
        fs::write(home.path().join("switchboard/mcp.json"), config).unwrap();
        let environment = home.environment();
        let options = LoadOptions { project: environment.cwd.clone(), ..LoadOptions::default() };
        let loaded = load(&environment, &Paths::of(&environment), &options).unwrap();
        let gateway = Gateway::builder(environment).config(loaded.config).demo_if_empty().build();
        gateway.follow(options, loaded.good);
        let session = gateway.session(Headless);
        Followed { home, gateway, session }
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.home.path().join(file), text).unwrap();
    }

    /// The lines of the status about servers and files, after they have changed.
    async fn next(&self) -> Vec<String> {
        let before = self.lines().await;
        loop {
            pass(Duration::from_secs(1)).await;
            let now = self.lines().await;
            if now != before {
                return now;
            }
        }
    }

    async fn lines(&self) -> Vec<String> {
        let reply = self.session.handle(switchboard::request::Request::Status).await.unwrap();
        let text = switchboard::render::text::reply(&reply);
        let home = self.home.path().to_string_lossy().into_owned();
        let lines = text.lines().skip(1).take_while(|line| !line.is_empty());
        lines.map(|line| line.replace(&home, "[HOME]")).collect()
    }
}

fn user(servers: &str) -> String {
    format!(r#"{{ {QUIET}, "mcpServers": {{ {servers} }} }}"#)
}

const ONE: &str = r#""one": { "command": "x" }"#;
const TWO: &str = r#""two": { "command": "y" }"#;

#[tokio::test(start_paused = true)]
async fn running_gateway_applies_a_saved_configuration_file() {
    let followed = Followed::start(&user(""));
    assert_eq!(followed.lines().await, ["○ demo (not connected)"]);
    followed.write("switchboard/mcp.json", &user(ONE));
    assert_eq!(followed.next().await, ["○ one (not connected)"]);
    followed.write("switchboard/mcp.json", &user(&format!("{ONE}, {TWO}")));
    assert_eq!(followed.next().await, ["○ one (not connected)", "○ two (not connected)"]);
    fs::remove_file(followed.home.path().join("switchboard/mcp.json")).unwrap();
    // `firstListing: false` was removed with the file, so the new server is listed at once.
    assert_eq!(followed.next().await, ["✓ demo (6 tools)"]);
    followed.gateway.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn malformed_configuration_file_leaves_last_good_version_in_use() {
    let followed = Followed::start(&user(ONE));
    followed.write("switchboard/mcp.json", "{ \"mcpServers\":\n {");
    let stale = "⚠ cannot parse [HOME]/switchboard/mcp.json:2:2: last good version in use";
    assert_eq!(followed.next().await, ["○ one (not connected)", stale]);
    followed.write(".mcp.json", r#"{ "mcpServers": { "theirs": { "command": "z" } } }"#);
    let pending = "⚠ theirs (pending: the user has to trust it)";
    assert_eq!(followed.next().await, ["○ one (not connected)", pending, stale]);
    followed.write("switchboard/mcp.json", &user(TWO));
    assert_eq!(followed.next().await, [pending, "○ two (not connected)"]);
}

#[tokio::test(start_paused = true)]
async fn invalid_entries_of_a_reloaded_file_are_reported() {
    let followed = Followed::start(&user(ONE));
    let broken = user(&format!("{ONE},\n \"bad\": {{ \"command\": 5 }}"));
    followed.write("switchboard/mcp.json", &broken);
    let wrong = "⚠ [HOME]/switchboard/mcp.json:2:22 is invalid and ignored";
    assert_eq!(followed.next().await, ["○ one (not connected)", wrong]);
    followed.write("switchboard/mcp.json", &user(&format!("{ONE}, {TWO}")));
    assert_eq!(followed.next().await, ["○ one (not connected)", "○ two (not connected)"]);
}

#[tokio::test(start_paused = true)]
async fn trust_and_untrust_by_another_process_take_effect() {
    let followed = Followed::start(&user(ONE));
    followed.write(".mcp.json", r#"{ "mcpServers": { "theirs": { "command": "z" } } }"#);
    let pending = "⚠ theirs (pending: the user has to trust it)";
    assert_eq!(followed.next().await, ["○ one (not connected)", pending]);
    let environment = followed.home.environment();
    let (paths, project): (_, PathBuf) = (Paths::of(&environment), environment.cwd.clone());
    let options = LoadOptions { project: project.clone(), ..LoadOptions::default() };
    let loaded = load(&environment, &paths, &options).unwrap();
    let store = TrustStore::at(paths.trust());
    store.approve(&loaded.config.pending[0].hash, "theirs", &project).unwrap();
    assert_eq!(followed.next().await, ["○ one (not connected)", "○ theirs (not connected)"]);
    store.revoke("theirs", &project).unwrap();
    assert_eq!(followed.next().await, ["○ one (not connected)", pending]);
}

#[tokio::test(start_paused = true)]
async fn dropped_gateway_stops_watching_files() {
    let followed = Followed::start(&user(ONE));
    let mut catalogs = followed.gateway.watch();
    drop(followed);
    assert!(catalogs.changed().await.is_err(), "the watch channel stays open");
}

/// Here the gateway and its servers are real processes.
#[tokio::test]
async fn serve_applies_saved_configuration_without_restart() {
    let installed = Installed::bare(PROGRAMS);
    let script = installed.write("tools.toml", TOOLS);
    let server = |fields: &str| {
        format!(
            r#"{{ "command": "fixture-server", "args": [{script:?}, "--spawn-log", {:?}] {fields} }}"#,
            installed.spawn_log()
        )
    };
    let save = |servers: &str| {
        installed.write("switchboard/mcp.json", &format!(r#"{{ "mcpServers": {{ {servers} }} }}"#))
    };
    save(&format!(r#""a": {}, "b": {}"#, server(""), server("")));
    let mut client = installed.connect(json!({})).await;
    let card = client.ask("tools/list", json!({})).await["result"].clone();
    let mut pids = Vec::new();
    for tool in ["a_pid", "b_pid"] {
        pids.push(client.mcp(json!({ "tool": tool })).await.parse::<u32>().unwrap());
    }
    save(&format!(r#""b": {}, "c": {}"#, server(""), server("")));
    status_with(&mut client, "c (3 tools").await;
    assert!(!client.mcp(json!({})).await.contains(" a ("));
    let lost = client.mcp(json!({ "tool": "a_echo", "args": { "text": "hi" } })).await;
    assert!(lost.starts_with("unknown_tool"), "{lost}");
    until_gone(&pids[..1]).await;
    assert_eq!(client.mcp(json!({ "tool": "b_pid" })).await, pids[1].to_string());
    assert_eq!(client.ask("tools/list", json!({})).await["result"], card);
    save(&format!(r#""b": {}, "c": {}, "d": {{ "command": 5 }}"#, server(""), server("")));
    status_with(&mut client, "is invalid and ignored").await;
    installed.write("switchboard/mcp.json", "{ half");
    let status = status_with(&mut client, "last good version in use").await;
    assert!(status.contains(" b (") && status.contains(" c ("), "{status}");
    let ended = client.end().await;
    assert_eq!(ended.code, Some(0));
    assert!(ended.stderr.contains("cannot parse the file"), "{}", ended.stderr);
    assert!(ended.stderr.contains("`mcpServers.d.command` must be"), "{}", ended.stderr);
}

#[tokio::test]
async fn removed_server_that_ignores_sigterm_is_killed() {
    let installed = Installed::bare(PROGRAMS);
    let faults = "[faults]\nignore_eof = true\nignore_sigterm = true\n";
    let script = installed.write("stubborn.toml", &format!("{faults}{TOOLS}"));
    let save = |name: &str| {
        let args = json!([script, "--spawn-log", installed.spawn_log()]);
        let servers = json!({ name: { "command": "fixture-server", "args": args } });
        let config = json!({ "mcpServers": servers }).to_string();
        installed.write("switchboard/mcp.json", &config);
    };
    save("old");
    let mut client = installed.connect(json!({})).await;
    let pid = client.mcp(json!({ "tool": "old_pid" })).await.parse().unwrap();
    save("new");
    status_with(&mut client, "new (").await;
    until_gone(&[pid]).await;
    client.end().await;
}

/// Without free descriptors no file can be opened, but the configuration has not changed.
#[tokio::test]
async fn gateway_out_of_file_descriptors_keeps_its_rules() {
    let installed = Installed::bare(PROGRAMS);
    let script = installed.write("tools.toml", TOOLS);
    let save = |names: &[&str]| {
        let entry = json!({ "command": "fixture-server", "args": [script] });
        let servers = names.iter().map(|name| ((*name).to_owned(), entry.clone()));
        let servers = serde_json::Map::from_iter(servers);
        let config = json!({ "mcpServers": servers, "settings": { "deny": ["a/pid"] } });
        installed.write("switchboard/mcp.json", &config.to_string());
    };
    save(&["a"]);
    let mut client = installed.connect(json!({})).await;
    let pid = Pid::from_raw(i32::try_from(client.pid()).unwrap());
    let limit = |current| {
        let before = rustix::process::getrlimit(Resource::Nofile);
        let limit = Rlimit { current, ..before };
        rustix::process::prlimit(pid, Resource::Nofile, limit).unwrap();
    };
    let echo = json!({ "tool": "a_echo", "args": { "text": "hi" } });
    assert_eq!(client.mcp(echo.clone()).await, "hi");
    limit(Some(0));
    save(&["a", "b"]);
    client.has_said("cannot open any file").await;
    assert_eq!(client.mcp(echo.clone()).await, "hi");
    let denied = client.mcp(json!({ "tool": "a_pid" })).await;
    assert!(denied.starts_with("approval_denied"), "{denied}");
    limit(rustix::process::getrlimit(Resource::Nofile).current);
    status_with(&mut client, " b (").await;
    assert_eq!(client.mcp(echo).await, "hi");
    let denied = client.mcp(json!({ "tool": "a_pid" })).await;
    assert!(denied.starts_with("approval_denied"), "{denied}");
    client.end().await;
}

/// Requests the status until it contains `part`.
pub(crate) async fn status_with(client: &mut Client, part: &str) -> String {
    let mut status = String::new();
    let asking = async {
        while !status.contains(part) {
            status = client.mcp(json!({})).await;
        }
    };
    let told = tokio::time::timeout(Duration::from_secs(40), asking).await;
    assert!(told.is_ok(), "the status never contains {part}: {status}");
    status
}
