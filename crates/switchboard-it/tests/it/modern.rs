//! Stateless servers: era detection, capabilities of the caller, and notifications.

mod dialogue;
mod far;

use std::time::Duration;

use serde_json::{Value, json};
use switchboard::failure::Code;
use switchboard::host::Topic;
use switchboard::log_level::LogLevel;
use switchboard::request::{CallRequest, Request};
use switchboard::{Session, render};
use switchboard_it::fixture::{FixtureState, Ledger};
use switchboard_it::harness::{Home, World};
use switchboard_it::host::ScriptedHost;

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The script of a server with one tool, of this era and with these faults.
fn script(era: &str, faults: &str) -> String {
    format!(
        "[server]\nera = '{era}'\n[server.capabilities]\nlist_changed = false\n\
         [faults]\n{faults}\n[[tools]]\nname = 'echo'\n"
    )
}

pub(crate) async fn call(session: &Session, tool: &str, args: Value) -> String {
    let args = args.as_object().cloned().unwrap_or_default();
    let call = CallRequest::new(tool, None, args.into());
    match session.handle(Request::Call(call)).await {
        Ok(reply) => render::text::reply(&reply),
        Err(failure) => render::text::failure(&failure),
    }
}

/// Connects and calls the server; returns the methods that it received before `tools/list`, the
/// number of connections, and the home.
async fn greeted(script: &str, home: Home) -> (String, usize, Home) {
    let world = World::of("kit", "one").script("one", script).home(home).start();
    assert_eq!(world.call("kit_echo", json!({ "text": "hello" })).await.unwrap(), "hello");
    let ledger = world.fixture("kit").ledger();
    let before = ledger.methods.iter().take_while(|method| *method != "tools/list");
    let greeting = before.cloned().collect::<Vec<_>>().join(" ");
    (greeting, ledger.connections, world.shut_down().await)
}

#[tokio::test(start_paused = true)]
async fn server_era_is_detected_once_and_remembered() {
    let handshake = "initialize notifications/initialized";
    let (found_out, discovered) = (format!("server/discover {handshake}"), "server/discover");
    let both = format!("server/discover {handshake}");
    let given_up = format!("{both} notifications/cancelled");
    let slow = "start_delay_ms = 12000";
    for (era, faults, first, again) in [
        ("legacy", "", found_out.as_str(), handshake),
        ("modern", "", discovered, discovered),
        ("dual", "", discovered, discovered),
        ("dual", "pins = true", discovered, discovered),
        // The gateway sends `server/discover` and `initialize` before the slow server reads.
        ("legacy", slow, &both, handshake),
        ("modern", slow, "server/discover initialize", discovered),
        ("dual", &format!("{slow}\npins = true"), "server/discover initialize", discovered),
        ("legacy", "ignore_unknown = true", &given_up, handshake),
    ] {
        let what = format!("{era} {faults}");
        let script = script(era, faults);
        let (greeting, connections, home) = greeted(&script, Home::new()).await;
        assert_eq!((greeting.as_str(), connections), (first, 1), "{what}");
        let (greeting, connections, _home) = greeted(&script, home).await;
        assert_eq!((greeting.as_str(), connections), (again, 1), "{what}, again");
    }
}

/// A server that exits when it receives `server/discover`: failure F10 in `docs/safety.md`.
#[tokio::test]
async fn server_that_exits_on_discover_is_restarted_only_once() {
    let script = script("legacy", "exit_on_discover = { code = 3 }");
    let (greeting, connections, home) = greeted(&script, Home::new()).await;
    let expected = "server/discover initialize notifications/initialized";
    assert_eq!((greeting.as_str(), connections), (expected, 2));
    let (greeting, connections, _home) = greeted(&script, home).await;
    assert_eq!((greeting.as_str(), connections), ("initialize notifications/initialized", 1));
}

#[tokio::test]
async fn protocol_version_setting_decides_the_first_handshake() {
    let handshake = "initialize notifications/initialized";
    for (said, era, expected) in [
        ("legacy", "dual", handshake.to_owned()),
        ("2026-07-28", "dual", "server/discover".to_owned()),
        ("2026-07-28", "legacy", format!("server/discover {handshake}")),
        ("legacy", "modern", "initialize server/discover".to_owned()),
    ] {
        let config = json!({ "mcpServers": { "kit": {
            "command": "fixture-server", "args": ["one"], "protocolVersion": said,
        } } });
        let world = World::with(&config.to_string()).script("one", &script(era, "")).start();
        assert_eq!(world.call("kit_echo", json!({ "text": "hello" })).await.unwrap(), "hello");
        let methods = world.fixture("kit").ledger().methods;
        let before = methods.iter().take_while(|method| *method != "tools/list");
        assert_eq!(before.cloned().collect::<Vec<_>>().join(" "), expected, "{said} {era}");
    }
}

/// The gateway sends `server/discover` and `initialize` before the server reads. The server exits
/// at `initialize`.
#[tokio::test(start_paused = true)]
async fn slow_modern_server_that_exits_on_initialize_is_restarted() {
    let script = script("modern", "start_delay_ms = 12000\nexit_on = 'initialize'");
    let (greeting, connections, home) = greeted(&script, Home::new()).await;
    assert_eq!((greeting.as_str(), connections), ("server/discover initialize server/discover", 2));
    let (greeting, connections, _home) = greeted(&script, home).await;
    assert_eq!((greeting.as_str(), connections), ("server/discover", 1));
}

#[tokio::test]
async fn changed_era_of_a_server_is_detected_again() {
    let exits = "exit_on_discover = { code = 3 }";
    let handshake = "initialize notifications/initialized";
    let found_out = format!("server/discover {handshake}");
    for (old, new, faults, greeting, connections) in [
        ("legacy", "modern", "", "initialize server/discover", 1),
        ("legacy", "modern", "pins = true", "initialize server/discover", 2),
        ("modern", "legacy", "", found_out.as_str(), 1),
        ("modern", "legacy", exits, &found_out, 2),
    ] {
        let (_, _, home) = greeted(&script(old, ""), Home::new()).await;
        let (greeted, made, _home) = greeted(&script(new, faults), home).await;
        let what = format!("{old} to {new} {faults}");
        assert_eq!((greeted.as_str(), made), (greeting, connections), "{what}");
    }
}

#[tokio::test]
async fn server_that_becomes_stateless_is_shared_between_sessions_again() {
    let legacy = include_str!("../../scripts/everything.toml");
    let modern = legacy.replace("[server]\n", "[server]\nera = 'modern'\n");
    let mut home = Home::new();
    // In the second run, the gateway still expects server-to-client requests.
    for (script, connections) in [(legacy, 2), (&*modern, 2), (&*modern, 1)] {
        let world = World::of("kit", "same").script("same", script).home(home).start();
        world.ask(r#"{ "connect": "kit" }"#).await;
        for _ in 0..2 {
            let host = ScriptedHost::default();
            host.will_reply(Topic::Roots, json!({ "roots": [] }));
            let session = world.gateway.session(host);
            assert_eq!(call(&session, "kit_ask_roots", json!({})).await, r#"{"roots":[]}"#);
        }
        assert_eq!(world.fixture("kit").ledger().connections, connections);
        home = world.shut_down().await;
    }
}

/// The protocol fields in `_meta` describe one connection. A server could take forwarded fields of
/// the client for those of the gateway.
#[tokio::test]
async fn protocol_fields_in_client_meta_are_replaced_when_forwarding() {
    let said = json!({
        "io.modelcontextprotocol/protocolVersion": "1999-12-31",
        "io.modelcontextprotocol/clientCapabilities": { "sampling": {} },
        "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "7" },
        "io.modelcontextprotocol/logLevel": "debug",
        "trace": "abc",
    });
    let mut received = Vec::new();
    for era in ["legacy", "modern"] {
        let script = format!("{}behaviour = 'verbatim'\n", script(era, ""));
        let world = World::of("kit", "one").script("one", &script).start();
        let session = world.gateway.session(ScriptedHost::default());
        let meta = said.as_object().cloned().unwrap_or_default();
        let caller = session.caller().with_meta(meta.into());
        let call = CallRequest::new("kit_echo", None, Default::default());
        let reply = session.handle_as(Request::Call(call), caller).await.unwrap();
        let written: Value = serde_json::from_str(&render::text::reply(&reply)).unwrap();
        let mut meta = written["_meta"].as_object().cloned().unwrap_or_default();
        meta.remove("progressToken");
        received.push(Value::Object(meta));
    }
    let modern = json!({
        "trace": "abc",
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "7" },
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/logLevel": "debug",
    });
    assert_eq!(received, [json!({ "trace": "abc" }), modern]);
}

/// The probe with `server/discover` does not extend the start timeout and does not change the
/// failure.
#[tokio::test(start_paused = true)]
async fn unresponsive_server_fails_within_the_start_timeout() {
    let config = r#"{ "mcpServers": { "kit": {
        "command": "fixture-server", "args": ["one"], "startTimeoutMs": 20000
    } } }"#;
    let faults = "ignore_unknown = true\nnever_answer = 'initialize'";
    let world = World::with(config).script("one", &script("legacy", faults)).start();
    let begun = tokio::time::Instant::now();
    let failure = world.call("kit_echo", json!({})).await.unwrap_err();
    assert_eq!(failure.code, Code::TimedOut, "{failure}");
    assert_eq!(begun.elapsed().as_secs(), 20);
    let chain = failure.chain().join(": ");
    assert!(chain.contains("did not answer `initialize` within 20 s"), "{chain}");
}

/// The `_meta` of each call, in order.
fn metas(state: &FixtureState) -> Vec<Value> {
    let ledger = state.ledger();
    ledger.metas.into_iter().filter(|(method, _)| method == "tools/call").map(|it| it.1).collect()
}

#[tokio::test]
async fn stateless_call_carries_the_capabilities_of_its_client() {
    let world = World::of("kit", "everything@modern").start();
    let hosts = [ScriptedHost::default(), ScriptedHost::default()];
    hosts[0].will_reply(Topic::Roots, json!({ "roots": [] }));
    hosts[1].will_reply(Topic::Elicitation, json!({ "action": "decline" }));
    for host in hosts {
        let session = world.gateway.session(host);
        call(&session, "kit_echo", json!({ "text": "x" })).await;
    }
    let [one, other] = &metas(world.fixture("kit"))[..] else { panic!("two calls were made") };
    assert_eq!(one[CAPABILITIES], json!({ "roots": {} }));
    assert_eq!(other[CAPABILITIES], json!({ "elicitation": {} }));
    assert_eq!(one["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(one["io.modelcontextprotocol/clientInfo"]["name"], "switchboard");
    assert!(one["progressToken"].is_u64());
    assert_eq!(world.fixture("kit").ledger().connections, 1);
    // For its own requests, the gateway declares every capability that a client may have.
    let ledger = world.fixture("kit").ledger();
    let (_, listing) = ledger.metas.iter().find(|(method, _)| method == "tools/list").unwrap();
    let offered: Vec<&String> = listing[CAPABILITIES].as_object().unwrap().keys().collect();
    assert_eq!(offered, ["roots", "sampling", "elicitation"]);
}

#[tokio::test]
async fn stateless_calls_carry_their_session_log_level() {
    let world = World::of("kit", "everything@modern").start();
    let host = ScriptedHost::default();
    let session = world.gateway.session(host.clone());
    assert_eq!(call(&session, "kit_log", json!({})).await, "the client requested no log messages");
    session.set_log_level(LogLevel::Info, &session.caller()).await;
    assert_eq!(call(&session, "kit_log", json!({})).await, "logged");
    let levels: Vec<Value> =
        metas(world.fixture("kit")).iter().map(|m| m[LOG_LEVEL].clone()).collect();
    assert_eq!(levels, [Value::Null, json!("info")]);
    assert!(host.told()[0].starts_with("kit notifications/message "), "{:?}", host.told());
    assert_eq!(world.fixture("kit").ledger().levels, Vec::<Value>::new());
}

#[tokio::test]
async fn stateless_tool_change_updates_the_catalog() {
    let world = World::of("kit", "everything@modern").start();
    let mut catalogs = world.gateway.watch();
    world.call("kit_change_tools", json!({ "name": "later" })).await.unwrap();
    let listed = catalogs
        .wait_for(|catalog| catalog.tools().any(|item| item.entry.name.as_str() == "later"));
    assert!(listed.await.is_ok());
    let methods = world.fixture("kit").ledger().methods;
    assert_eq!(methods.iter().filter(|method| *method == "subscriptions/listen").count(), 1);
    // The gateway sends no methods of session-based revisions.
    for gone in ["initialize", "notifications/initialized", "ping", "logging/setLevel"] {
        assert!(!methods.contains(&gone.to_owned()), "{gone}");
    }
}

#[tokio::test]
async fn resource_subscription_ends_with_its_last_subscriber() {
    let world = World::of("kit", "everything@modern").start();
    let host = ScriptedHost::default();
    let session = world.gateway.private_session(host.clone());
    session.open("kit").await.unwrap();
    session.subscribe("file:///readme.md").await.unwrap();
    call(&session, "kit_update_resource", json!({})).await;
    let told = host.until_told().await;
    assert_eq!(told, r#"kit notifications/resources/updated {"uri":"file:///readme.md"}"#);
    session.unsubscribe("file:///readme.md", &session.caller()).await.unwrap();
    let ledger = world.fixture("kit").until(|ledger| !ledger.cancelled.is_empty()).await;
    call(&session, "kit_update_resource", json!({})).await;
    assert_eq!(host.told().len(), 1);
    let subscribes = |method: &&String| method.ends_with("subscribe");
    assert_eq!(ledger.methods.iter().filter(subscribes).count(), 0);
}

/// There are two subscriptions: the gateway's to lists, and a session's to a resource.
#[tokio::test(start_paused = true)]
async fn ended_subscription_is_renewed_without_missing_changes() {
    let everything = include_str!("../../scripts/everything.toml");
    let ends = "[faults]\nended_listens = 3\n";
    let script = everything.replace("[server]\n", "[server]\nera = 'modern'\n") + ends;
    let world = World::of("kit", "ends").script("ends", &script).start();
    let host = ScriptedHost::default();
    let session = world.gateway.private_session(host.clone());
    session.open("kit").await.unwrap();
    session.subscribe("file:///readme.md").await.unwrap();
    let of = |method: &'static str| {
        move |ledger: &Ledger| ledger.methods.iter().filter(|it| *it == method).count()
    };
    let listened = of("subscriptions/listen");
    let ledger = world.fixture("kit").until(|ledger| listened(ledger) == 5).await;
    let pages = of("prompts/list")(&ledger);
    assert!(pages > 1, "the lists are read again, because they may have changed");
    call(&session, "kit_update_resource", json!({})).await;
    assert!(host.until_told().await.contains("notifications/resources/updated"));
    assert_eq!(world.fixture("kit").ledger().connections, 1);
}

#[tokio::test]
async fn request_sent_by_a_stateless_server_is_refused() {
    let asks = script("modern", "") + "behaviour = 'ask_anyway'\n";
    let world = World::of("kit", "asks").script("asks", &asks).start();
    for _ in 0..2 {
        let host = ScriptedHost::default();
        host.will_reply(Topic::Roots, json!({ "roots": [] }));
        let session = world.gateway.session(host.clone());
        let answer = call(&session, "kit_echo", json!({})).await;
        assert!(answer.contains("this client does not support this method"), "{answer}");
        assert_eq!(host.asked(), Vec::<String>::new());
    }
    assert_eq!(world.fixture("kit").ledger().connections, 1);
}

/// The stateless revision has no `ping`; `server/discover` replaces it.
#[tokio::test(start_paused = true)]
async fn keep_alive_check_of_stateless_servers_uses_discover() {
    let config = r#"{ "mcpServers": { "kit": {
        "command": "fixture-server", "args": ["one"], "lifecycle": "keep-alive"
    } } }"#;
    let world = World::with(config).script("one", &script("modern", "")).start();
    let asked = |ledger: &Ledger| {
        ledger.methods.iter().filter(|method| *method == "server/discover").count() > 2
    };
    tokio::time::timeout(Duration::from_secs(3_600), world.fixture("kit").until(asked))
        .await
        .unwrap();
    assert_eq!(world.fixture("kit").ledger().connections, 1);
}
