//! Servers that exit, hang or send malformed messages, one fault at a time.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Signal;
use serde_json::json;
use switchboard::dial::spawn::{ProcessGroups, Program, Promise, Spawner, Started};
use switchboard::failure::Code;
use switchboard::load::{LoadOptions, load};
use switchboard::paths::Paths;
use switchboard::{Gateway, render};
use switchboard_it::harness::{Home, World, pass};
use switchboard_it::processes::{is_alive, send_signal, until_gone};
use switchboard_it::program::Installed;

use crate::PROGRAMS;

const ECHO: &str = "[[tools]]\nname = 'echo'\n";

#[tokio::test(start_paused = true)]
async fn start_fault_fails_the_call_but_reconnect_succeeds() {
    for (fault, code) in [
        ("exit_on = 'initialize'", Code::ConnectFailed),
        ("exit_on = 'notifications/initialized'", Code::ConnectFailed),
        ("exit_on = 'tools/list'", Code::ConnectFailed),
        ("never_answer = 'initialize'", Code::TimedOut),
        ("never_answer = 'tools/list'", Code::TimedOut),
        ("framing = 'content_length'", Code::TimedOut),
    ] {
        let faulty = format!("{ECHO}[faults]\n{fault}\n");
        let world = World::of("demo", "odd").script("odd", &faulty).script("odd", ECHO).start();
        let failure = world.call("demo_echo", json!({ "text": "hi" })).await.unwrap_err();
        assert_eq!(failure.code, code, "{fault}: {failure}");
        let connected = world.ask(r#"{ "connect": "demo" }"#).await;
        assert!(connected.starts_with("demo (1 tool)"), "{fault}: {connected}");
        assert_eq!(world.call("demo_echo", json!({ "text": "hi" })).await.unwrap(), "hi");
        world.fixture("demo").until(|ledger| ledger.open == 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn late_response_to_timed_out_call_is_dropped() {
    let config = r#"{ "mcpServers": { "demo": {
        "command": "fixture-server", "args": ["late"], "requestTimeoutMs": 1000
    } } }"#;
    let script = format!(
        "{ECHO}[[tools]]\nname = 'wait'\nbehaviour = 'wait'\n[faults]\nanswer_cancelled = true\n"
    );
    let world = World::with(config).script("late", &script).start();
    let failure = world.call("demo_wait", json!({})).await.unwrap_err();
    assert_eq!(failure.code, Code::TimedOut);
    world.fixture("demo").until(|ledger| ledger.cancelled.len() == 1).await;
    pass(Duration::from_secs(1)).await;
    for text in ["one", "two"] {
        assert_eq!(world.call("demo_echo", json!({ "text": text })).await.unwrap(), text);
    }
    assert_eq!(world.fixture("demo").ledger().connections, 1);
}

#[tokio::test(start_paused = true)]
async fn partial_response_fails_but_missing_newline_is_tolerated() {
    for (after, expected) in [("half", Err(Code::OutcomeUnknown)), ("all_but_newline", Ok("hi"))] {
        let script = format!(
            "{ECHO}[[tools]]\nname = 'leave'\nbehaviour = {{ kind = 'abandon', after = '{after}' }}\n"
        );
        let world = World::of("demo", "leaving").script("leaving", &script).start();
        let outcome = world.call("demo_leave", json!({ "text": "hi" })).await;
        let outcome = outcome.as_deref().map_err(|failure| failure.code);
        assert_eq!(outcome, expected, "{after}");
        assert_eq!(world.call("demo_echo", json!({ "text": "on" })).await.unwrap(), "on");
    }
}

#[tokio::test(start_paused = true)]
async fn malformed_response_affects_only_its_call() {
    for rest in [
        r#""error":"not today""#,
        r#""error":null"#,
        r#""error":{}"#,
        r#""error":{"code":"E1","message":7}"#,
        r#""error":{"code":1e400,"message":"much"}"#,
        r#""error":{"code":-32000,"message":"m"},"result":{}"#,
        r#""result":null"#,
        r#""result":[]"#,
        r#""result":"text""#,
        r#""result":{"content":{}}"#,
        r#""result":{"content":[null,1,"x",[]]}"#,
        r#""result":{"content":[{"type":"image","data":"&&&","mimeType":7}]}"#,
        r#""nothing":1"#,
    ] {
        let script = format!(
            "{ECHO}[[tools]]\nname = 'odd'\nbehaviour = {{ kind = 'raw', rest = '{rest}' }}\n"
        );
        let world = World::of("demo", "odd").script("odd", &script).start();
        let asked = tokio::time::Instant::now();
        // Some of these responses are valid results, and some are not.
        let outcome = world.call("demo_odd", json!({})).await;
        assert!(asked.elapsed() < Duration::from_secs(5), "{rest}: {outcome:?}");
        assert_eq!(world.call("demo_echo", json!({ "text": "on" })).await.unwrap(), "on");
        assert_eq!(world.fixture("demo").ledger().connections, 1, "{rest}");
    }
}

#[tokio::test(start_paused = true)]
async fn hostile_schema_affects_its_tool_only() {
    let deep = (0..50).fold("{}".to_owned(), |inner, _| {
        format!(r#"{{"type":"object","properties":{{"a":{inner}}}}}"#)
            .replace("\"a\":{}", "\"a\":true")
    });
    let laugh: String = (1..30).fold(r##""l0":{"type":"string"}"##.to_owned(), |defs, level| {
        let below = format!(r##"{{"$ref":"#/$defs/l{}"}}"##, level - 1);
        format!(r#"{defs},"l{level}":{{"type":"object","properties":{{"a":{below},"b":{below}}}}}"#)
    });
    let laugh = format!(r##"{{"type":"object","$ref":"#/$defs/l29","$defs":{{{laugh}}}}}"##);
    let cycle = r##"{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##;
    for schema in [deep.as_str(), &laugh, cycle] {
        let script = format!("{ECHO}[[tools]]\nname = 'odd'\ninput_schema = '{schema}'\n");
        let world = World::of("demo", "odd").script("odd", &script).start();
        assert_eq!(world.call("demo_echo", json!({ "text": "on" })).await.unwrap(), "on");
        let described = world.ask(r#"{ "describe": "demo_odd" }"#).await;
        assert!(described.len() < 16 * 1024, "{} bytes: {described:.200}", described.len());
        // The call may succeed or fail, but it must end.
        let _decided = world.call("demo_odd", json!({ "a": {} })).await;
    }
}

#[tokio::test(start_paused = true)]
async fn calls_fail_quickly_when_a_server_stops_reading() {
    // The server reads the three messages of the handshake, but no call.
    let deaf = format!("{ECHO}[faults]\nstop_reading_after = 3\n");
    let world = World::of("demo", "deaf").script("deaf", &deaf).script("deaf", ECHO).start();
    world.ask(r#"{ "connect": "demo" }"#).await;
    let begun = tokio::time::Instant::now();
    // The text does not fit into the buffer of the pipe.
    let text = "x".repeat(200_000);
    let failure = world.call("demo_echo", json!({ "text": text })).await.unwrap_err();
    assert_eq!(failure.code, Code::OutcomeUnknown, "{failure}");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_eq!(world.call("demo_echo", json!({ "text": "hi" })).await.unwrap(), "hi");
    assert_eq!(world.fixture("demo").ledger().connections, 2);
}

/// Like [`ECHO`], with a tool that makes the server crash.
const CRASHING: &str = "[[tools]]\nname = 'echo'\n[[tools]]\nname = 'crash'\nbehaviour = 'crash'\n";

#[tokio::test]
async fn server_exit_is_detected_while_its_child_holds_pipes() {
    let script = format!("{CRASHING}[faults]\ngrandchild = true\n");
    let installed = Installed::with_fixture(PROGRAMS, "demo", &script);
    let mut client = installed.connect(json!({})).await;
    let up = json!({ "tool": "demo_echo", "args": { "text": "up" } });
    assert_eq!(client.mcp(up.clone()).await, "up");
    let [server, grandchild] = *installed.spawned() else { panic!("a server and its child") };
    assert!(is_alive(grandchild));
    let said = client.mcp(json!({ "tool": "demo_crash" })).await;
    assert!(said.starts_with("outcome_unknown"), "{said}");
    until_gone(&[server, grandchild]).await;
    assert_eq!(client.mcp(up).await, "up");
    client.end().await;
    until_gone(&installed.spawned()).await;
}

#[tokio::test]
async fn server_that_closes_its_stdin_is_restarted() {
    // The server closes its standard input after the three messages of the handshake and the first
    // call.
    let script = format!("{ECHO}[faults]\nclose_stdin_after = 4\n");
    let installed = Installed::with_fixture(PROGRAMS, "demo", &script);
    let mut client = installed.connect(json!({})).await;
    for round in 1..=3 {
        let call = json!({ "tool": "demo_echo", "args": { "text": "hi" } });
        assert_eq!(client.mcp(call.clone()).await, "hi");
        assert_eq!(installed.spawned().len(), round);
        // The server may have received the call.
        let said = client.mcp(call).await;
        assert!(said.starts_with("outcome_unknown"), "{said}");
    }
    client.end().await;
    until_gone(&installed.spawned()).await;
}

#[tokio::test]
async fn sigstopped_server_is_killed_at_shutdown() {
    let installed = Installed::with_fixture(PROGRAMS, "demo", ECHO);
    let mut client = installed.connect(json!({})).await;
    let up = json!({ "tool": "demo_echo", "args": { "text": "up" } });
    assert_eq!(client.mcp(up).await, "up");
    send_signal(installed.spawned()[0], Signal::STOP);
    assert_eq!(client.end().await.code, Some(0));
    until_gone(&installed.spawned()).await;
}

/// A spawner whose first starts fail with `EAGAIN`, `refusals` times.
struct Crowded {
    refusals: AtomicUsize,
}

impl Spawner for Crowded {
    fn start<'a>(&'a self, program: &'a Program) -> Promise<'a, io::Result<Started>> {
        let one_less = |left: usize| left.checked_sub(1);
        let refused =
            self.refusals.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok();
        match refused {
            true => Box::pin(async { Err(Errno::AGAIN.into()) }),
            false => ProcessGroups.start(program),
        }
    }
}

#[tokio::test]
async fn spawn_failure_from_process_limit_is_reported_and_retried() {
    let home = Home::new();
    let script = home.path().join("demo.toml");
    fs::write(&script, ECHO).unwrap();
    let entry = json!({ "command": PROGRAMS.fixture_server, "args": [script] });
    fs::create_dir(home.path().join("switchboard")).unwrap();
    let config = json!({ "mcpServers": { "demo": entry } }).to_string();
    fs::write(home.path().join("switchboard/mcp.json"), config).unwrap();
    let environment = home.environment();
    let options = LoadOptions { project: home.path().to_owned(), ..LoadOptions::default() };
    let config = load(&environment, &Paths::of(&environment), &options).unwrap().config;
    let crowded = Crowded { refusals: AtomicUsize::new(1) };
    let gateway = Gateway::builder(environment).config(config).spawner(crowded).build();
    let world = World::of_gateway(gateway, home);

    let failure = world.call("demo_echo", json!({ "text": "hi" })).await.unwrap_err();
    assert_eq!(failure.code, Code::ConnectFailed);
    let said = render::text::failure(&failure);
    assert!(said.contains("cannot start") && said.contains("temporarily unavailable"), "{said}");
    let connected = world.ask(r#"{ "connect": "demo" }"#).await;
    assert!(connected.starts_with("demo (1 tool)"), "{connected}");
    assert_eq!(world.call("demo_echo", json!({ "text": "hi" })).await.unwrap(), "hi");
    world.shut_down().await;
}
