//! Lifetimes of servers, calls and the cache, and the messages when they end.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};
use switchboard::catalog::disk::{self, Stamp};
use switchboard_it::client::Client;
use switchboard_it::fixture::HttpFixture;
use switchboard_it::harness::{Home, World, pass};
use switchboard_it::program::Installed;
use tokio::time::Instant;

use super::{acting, check, config, one, said};
use crate::PROGRAMS;

const MINUTE: Duration = Duration::from_secs(60);
const ECHO: &str = "[[tools]]\nname = 'echo'\n";
const BROKEN: &str = "[[tools]]\nname = 'echo'\n[faults]\nexit_at_start = { code = 1 }\n";

async fn echo(client: &mut Client) -> String {
    said(client, json!({ "tool": "demo_echo", "args": { "text": "hi" } })).await
}

fn open(world: &World) -> usize {
    world.fixture("demo").ledger().open
}

#[tokio::test(start_paused = true)]
async fn b12_idle_server_stops_but_its_tools_stay_listed() {
    for (fields, minutes) in [
        (json!({}), Some(10)),
        (json!({ "idleTimeout": 3 }), Some(3)),
        (json!({ "idleTimeout": 0 }), None),
    ] {
        let world = one(fields.clone(), "everything").start();
        let mut client = world.client(json!({})).await;
        assert_eq!(echo(&mut client).await, "hi");
        pass(minutes.unwrap_or(24 * 60) * MINUTE - Duration::from_secs(1)).await;
        assert_eq!(open(&world), 1, "{fields}");
        if minutes.is_some() {
            pass(Duration::from_secs(1)).await;
            assert_eq!(open(&world), 0, "{fields}");
            let search = client.mcp(json!({ "search": "two numbers" })).await;
            assert!(search.starts_with("demo_add("), "{search}");
        }
    }
    let world = one(json!({ "requestTimeoutMs": 7_200_000 }), "everything").start();
    let mut client = world.client(json!({})).await;
    let held = client.call(json!({ "tool": "demo_wait" })).await;
    world.fixture("demo").call_started(1).await;
    pass(60 * MINUTE).await;
    assert_eq!(open(&world), 1);
    world.fixture("demo").release();
    assert_eq!(client.answer_to(&held).await["result"]["content"][0]["text"], "released");
    pass(10 * MINUTE).await;
    assert_eq!(open(&world), 0);
}

#[tokio::test(start_paused = true)]
async fn b13_keep_alive_modes_ping_and_reconnect() {
    let pings = |world: &World| {
        let methods = world.fixture("demo").ledger().methods;
        methods.iter().filter(|method| *method == "ping").count()
    };
    let keep = |mode: &str| json!({ "lifecycle": mode });
    let world = one(keep("keep-alive"), "everything").start();
    pass(5 * MINUTE).await;
    assert_eq!((open(&world), pings(&world)), (1, 10), "expected one ping every 30 s");
    world.client(json!({})).await.mcp(json!({ "tool": "demo_crash" })).await;
    pass(5 * MINUTE).await;
    let ledger = world.fixture("demo").ledger();
    assert_eq!((ledger.connections, ledger.open), (2, 1), "the server was not reconnected");

    let world = one(keep("keep-alive"), "broken").script("broken", BROKEN).start();
    let tries = || world.fixture("demo").ledger().connections;
    let mut waits = Vec::new();
    let mut before = (tries(), Duration::ZERO);
    for second in 0..3_600 {
        if tries() > before.0 {
            waits.push(second - before.1.as_secs());
            before = (tries(), Duration::from_secs(second));
        }
        pass(Duration::from_secs(1)).await;
    }
    assert!(waits[0] <= 1 && waits.iter().all(|wait| *wait <= 301), "{waits:?}");
    assert!(waits.last().is_some_and(|wait| *wait >= 149), "{waits:?}");

    let world = one(keep("lazy-keep-alive"), "everything").start();
    pass(MINUTE).await;
    assert_eq!(open(&world), 0, "the server was started before its first use");
    assert_eq!(echo(&mut world.client(json!({})).await).await, "hi");
    pass(60 * MINUTE).await;
    assert_eq!(open(&world), 1);
    assert!(pings(&world) > 100);

    let world = one(keep("eager"), "everything").start();
    world.fixture("demo").until(|ledger| ledger.open == 1).await;
    pass(60 * MINUTE).await;
    assert_eq!((open(&world), pings(&world)), (1, 0), "expected an immediate start and no pings");
}

#[tokio::test(start_paused = true)]
async fn b14_backoff_delays_calls_but_not_explicit_connect() {
    let setup = World::of("demo", "late");
    // The first dial starts the server twice, because its era is not known yet.
    let setup = (0..7).fold(setup, |setup, _| setup.script("late", BROKEN));
    let world = setup.script("late", ECHO).start();
    let mut client = world.client(json!({})).await;
    for _ in 0..5 {
        client.mcp(json!({ "connect": "demo" })).await;
    }
    pass(MINUTE).await;
    check(
        &mut client,
        r#"
        >>> { "tool": "demo_echo" }
        [error]
        connect_failed: cannot use the server `demo`: cannot connect: the server ended while it was starting (it closed its output)

        >>> { "tool": "demo_echo" }
        [error]
        backoff: cannot use the server `demo`: the last attempt failed [TIME] ago, the next one is in [TIME]: the server ended while it was starting (it closed its output)
        Try again in [TIME]
        Try again: mcp({ connect: "demo" })

        >>> {}
        MCP: 0/1 servers, 0 tools
        ✗ demo (failed [TIME] ago: the server ended while it was starting (it closed its output))
        ...
        "#,
    )
    .await;
    assert_eq!(world.fixture("demo").ledger().connections, 7, "a refused call dialled the server");
    check(
        &mut client,
        r#"
        >>> { "connect": "demo" }
        demo (1 tool):
        - demo_echo
        "#,
    )
    .await;
}

/// Makes a cached listing older by this many days.
fn age(file: &Path, days: u64) {
    let bytes = fs::read(file).unwrap();
    let header = String::from_utf8_lossy(bytes.split(|byte| *byte == b'\n').next().unwrap());
    let Some((definition, listed_at)) = header.split(' ').nth(2).zip(header.split(' ').nth(3))
    else {
        return;
    };
    let listed_at: u64 = listed_at.parse().unwrap();
    let (listing, _) = disk::decode(&bytes, definition, listed_at).unwrap();
    let listed_at = listed_at - days * 24 * 60 * 60;
    fs::write(file, disk::encode(&listing, Stamp { definition, listed_at })).unwrap();
}

#[tokio::test(start_paused = true)]
async fn b20_cache_is_bound_to_the_definition_and_expires() {
    let world = one(json!({}), "everything").start();
    let mut client = world.client(json!({})).await;
    client.mcp(json!({ "connect": "demo" })).await;
    let home = world.shut_down().await;
    let line = async |fields: Value, script: &str, home: &Home| {
        let world = one(fields, script).home(home.clone()).start();
        let status = world.client(json!({})).await.mcp(json!({})).await;
        status.lines().nth(1).unwrap_or_default().to_owned()
    };
    for (fields, expected) in [
        (json!({}), "○ demo (30 tools, cached)"),
        (json!({ "toolPrefix": "mcp" }), "○ demo (30 tools, cached)"),
        (json!({ "lifecycle": "lazy", "idleTimeout": 3 }), "○ demo (30 tools, cached)"),
        (json!({ "cwd": "/" }), "○ demo (not connected)"),
        (json!({ "env": { "NAME": "x" } }), "○ demo (not connected)"),
    ] {
        assert_eq!(line(fields.clone(), "everything", &home).await, expected, "{fields}");
    }
    for file in fs::read_dir(home.path().join("switchboard/cache/listings")).unwrap().flatten() {
        age(&file.path(), 8);
    }
    assert_eq!(line(json!({}), "everything", &home).await, "○ demo (not connected)");
}

#[tokio::test(start_paused = true)]
async fn stale_listing_is_used_and_refreshed_after_a_day() {
    // SDKs send a `ttlMs` of 0 if the author sets none.
    let stale = "[server]\nera = 'modern'\nttl_ms = 0\n[[tools]]\nname = 'echo'\n";
    let start = |home: Home| World::of("brief", "brief").script("brief", stale).home(home).start();
    let world = start(Home::new());
    world.client(json!({})).await.mcp(json!({ "connect": "brief" })).await;
    let home = world.shut_down().await;

    let world = start(home);
    let mut client = world.client(json!({})).await;
    let status = client.mcp(json!({})).await;
    assert!(status.contains("○ brief (1 tool, cached)"), "{status}");
    let found = client.mcp(json!({ "search": "echo" })).await;
    assert!(found.contains("brief_echo"), "{found}");
    world.gateway.list_missing_in_background();
    pass(MINUTE).await;
    assert_eq!(world.fixture("brief").ledger().connections, 0);
    let home = world.shut_down().await;

    for file in fs::read_dir(home.path().join("switchboard/cache/listings")).unwrap().flatten() {
        age(&file.path(), 1);
    }
    let world = start(home);
    let status = world.client(json!({})).await.mcp(json!({})).await;
    assert!(status.contains("○ brief (1 tool, cached)"), "{status}");
    world.gateway.list_missing_in_background();
    world.fixture("brief").until(|ledger| ledger.connections == 1).await;
}

#[tokio::test]
async fn b20_concurrent_processes_keep_all_listings() {
    let installed = Installed::bare(PROGRAMS);
    let names: Vec<String> = (0..8).map(|number| format!("server-{number}")).collect();
    let entries =
        names.iter().map(|name| (name.clone(), acting(&installed, "everything", json!({}))));
    installed.write("switchboard/mcp.json", &config(entries.collect(), json!({})));
    let connecting = names.iter().map(|name| installed.run(["connect", name.as_str()]));
    for ran in futures_util::future::join_all(connecting).await {
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let mut client = installed.connect(json!({})).await;
    let status = client.mcp(json!({})).await;
    assert_eq!(status.matches("(30 tools, cached)").count(), 8, "{status}");
    client.end().await;
}

#[tokio::test(start_paused = true)]
async fn b27_abandoned_call_is_cancelled_and_timeout_is_configurable() {
    let world = World::of("demo", "everything").start();
    let mut client = world.client(json!({})).await;
    let waiting = client.call(json!({ "tool": "demo_wait" })).await;
    let call = world.fixture("demo").call_started(1).await;
    let began = Instant::now();
    let params = json!({ "requestId": waiting });
    client
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
        .await;
    let ledger = world.fixture("demo").until(|ledger| !ledger.cancelled.is_empty()).await;
    assert_eq!(ledger.cancelled, [call.id]);
    assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
    check(&mut client, ">>> { \"tool\": \"demo_echo\", \"args\": { \"text\": \"on\" } }\non").await;
    assert_eq!(world.fixture("demo").ledger().connections, 1);

    let limited = async |settings: Value, fields: Value| {
        let entry = json!({ "command": "fixture-server", "args": ["everything"] });
        let mut config = json!({ "settings": settings, "mcpServers": { "demo": entry } });
        let entry = config["mcpServers"]["demo"].as_object_mut().unwrap();
        entry.extend(fields.as_object().unwrap().clone());
        let world = World::with(&config.to_string()).start();
        let mut client = world.client(json!({})).await;
        client.mcp(json!({ "connect": "demo" })).await;
        let began = Instant::now();
        let said = said(&mut client, json!({ "tool": "demo_wait" })).await;
        assert!(said.starts_with("[error]\ntimed_out"), "{said}");
        began.elapsed().as_secs()
    };
    assert_eq!(limited(json!({}), json!({})).await, 60);
    assert_eq!(limited(json!({ "requestTimeoutMs": 7_000 }), json!({})).await, 7);
    let own = json!({ "requestTimeoutMs": 3_000 });
    assert_eq!(limited(json!({ "requestTimeoutMs": 7_000 }), own).await, 3);
}

#[tokio::test]
async fn b29_failed_start_shows_the_server_output() {
    let installed = Installed::bare(PROGRAMS);
    let words = "['one', 'two', 'three', 'four', 'the key is missing']";
    let script = format!("[faults]\nexit_at_start = {{ code = 3, stderr = {words} }}\n");
    installed.write("loud.toml", &script);
    let page = "[[http.canned]]\nstatus = 200\nheaders = { Content-Type = 'text/html' }\n\
                body = '<title>Welcome</title>'\n";
    let shop = HttpFixture::start(page).await;
    let servers = Map::from_iter([
        ("loud".to_owned(), acting(&installed, "loud.toml", json!({}))),
        ("lost".to_owned(), acting(&installed, "everything", json!({ "cwd": "/no/such/place" }))),
        ("shop".to_owned(), json!({ "url": shop.url() })),
    ]);
    installed.write("switchboard/mcp.json", &config(servers, json!({})));
    let mut client = installed.connect(json!({})).await;
    check(
        &mut client,
        r#"
        >>> { "connect": "loud" }
        [error]
        connect_failed: cannot use the server `loud`: cannot connect: the server ended while it was starting (exit code 3)
        Its stderr:
          one
          two
          three
          four
          the key is missing
        The log of `loud` may say more

        >>> { "connect": "lost" }
        [error]
        connect_failed: cannot use the server `lost`: cannot connect: the working directory `/no/such/place` does not exist
        Ask the user to correct `cwd`

        >>> { "connect": "shop" }
        [error]
        connect_failed: cannot use the server `shop`: cannot connect: the URL is not an MCP endpoint: the response was a web page titled "Welcome"
        Ask the user to correct `url`
        "#,
    )
    .await;
    client.end().await;
}
