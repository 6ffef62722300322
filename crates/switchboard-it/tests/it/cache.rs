//! Cached listings on disk: a restarted gateway answers from them without connecting a server.

use std::fs;
use std::path::PathBuf;

use switchboard_it::harness::{Home, World};

/// A configuration with one server; `fields` is appended to its entry.
fn config(fields: &str) -> String {
    format!(
        r#"{{ "mcpServers": {{ "demo": {{ "command": "fixture-server", "args": ["everything"]{fields} }} }} }}"#
    )
}

/// A home with the cached listing of this configuration.
async fn listed(config: &str) -> Home {
    let world = World::with(config).start();
    world.ask(r#"{ "connect": "demo" }"#).await;
    world.shut_down().await
}

/// Checks the status that a restarted gateway shows before it connects the server.
async fn check(home: Home, config: &str, expected: &str) {
    let world = World::with(config).home(home).start();
    let status = world.ask("{}").await;
    assert_eq!(status.lines().nth(1), Some(expected));
    assert_eq!(world.fixture("demo").ledger().connections, 0);
}

const CACHED: &str = "○ demo (30 tools, cached)";
const MISSED: &str = "○ demo (not connected)";

fn cache_files(home: &Home) -> Vec<PathBuf> {
    let folder = fs::read_dir(home.path().join("switchboard/cache/listings")).unwrap();
    let files = folder.flatten().map(|file| file.path());
    files.filter(|path| path.extension().is_some_and(|end| end == "listing")).collect()
}

#[tokio::test(start_paused = true)]
async fn restarted_gateway_answers_from_the_cached_listing_without_connecting() {
    let home = listed(&config("")).await;
    let world = World::with(&config("")).home(home).start();
    assert!(world.ask(r#"{ "search": "add numbers" }"#).await.starts_with("demo_add("));
    assert!(world.ask(r#"{ "server": "demo" }"#).await.starts_with("demo (30 tools):"));
    assert!(world.ask(r#"{ "describe": "demo_echo" }"#).await.contains("What to return"));
    assert!(world.ask(r#"{ "instructions": "demo" }"#).await.contains("Use echo"));
    assert_eq!(world.fixture("demo").ledger().connections, 0);
    let answer = world.ask(r#"{ "tool": "echo", "args": { "text": "hi" } }"#).await;
    assert_eq!((answer.as_str(), world.fixture("demo").ledger().connections), ("hi", 1));
}

#[tokio::test(start_paused = true)]
async fn damaged_listing_cache_is_ignored_and_rewritten() {
    let home = listed(&config("")).await;
    for damage in [&b""[..], b"{}", &[0xff; 100]] {
        for file in cache_files(&home) {
            fs::write(file, damage).unwrap();
        }
        check(home.clone(), &config(""), MISSED).await;
    }
    for file in cache_files(&home) {
        let mut bytes = fs::read(listed_file(&listed(&config("")).await)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(file, bytes).unwrap();
    }
    check(home.clone(), &config(""), MISSED).await;
    let world = World::with(&config("")).home(home).start();
    world.ask(r#"{ "connect": "demo" }"#).await;
    check(world.shut_down().await, &config(""), CACHED).await;
}

fn listed_file(home: &Home) -> PathBuf {
    cache_files(home).pop().expect("the listing was cached")
}

#[tokio::test(start_paused = true)]
async fn changed_env_or_cwd_invalidates_the_cached_listing() {
    let first = config(r#", "env": { "TOKEN": "one" }"#);
    for (fields, expected) in [
        (r#", "env": { "TOKEN": "two" }"#, MISSED),
        (r#", "env": { "TOKEN": "one" }, "idleTimeout": 1, "toolPrefix": "none""#, CACHED),
        (r#", "env": { "OTHER": "one" }"#, MISSED),
        (r#", "env": { "TOKEN": "one" }, "cwd": "/tmp""#, MISSED),
    ] {
        check(listed(&first).await, &config(fields), expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn cached_listing_is_readable_only_by_its_user() {
    use std::os::unix::fs::PermissionsExt;
    let home = listed(&config("")).await;
    let mode = fs::metadata(listed_file(&home)).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

#[tokio::test(start_paused = true)]
async fn changed_tool_list_is_cached_for_the_next_start() {
    let world = World::with(&config("")).start();
    world.ask(r#"{ "connect": "demo" }"#).await;
    let mut catalog = world.gateway.watch();
    catalog.mark_unchanged();
    world.ask(r#"{ "tool": "demo_change_tools", "args": { "name": "fresh" } }"#).await;
    catalog.changed().await.unwrap();
    check(world.shut_down().await, &config(""), "○ demo (31 tools, cached, 1 new)").await;
}
