//! Calls: name resolution, arguments, results, failures, cancellation and retries.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard::failure::Code;
use switchboard::request::Request;
use switchboard_it::harness::{World, call, pass};
use tokio::time::Instant;

/// One server with every kind of tool, and a request timeout of two seconds.
fn everything() -> World {
    World::with(
        r#"{ "mcpServers": { "demo": {
            "command": "fixture-server", "args": ["everything"], "requestTimeoutMs": 2000 } } }"#,
    )
    .start()
}

async fn check(world: &World, request: Value, expected: &str) {
    assert_eq!(world.ask(&request.to_string()).await, expected, "{request}");
}

#[tokio::test(start_paused = true)]
async fn every_spelling_of_a_tool_name_finds_the_tool() {
    let world = everything();
    world.ask(r#"{ "connect": "demo" }"#).await;
    for name in ["demo_echo", "echo", "Demo_Echo", "demo-echo", "ECHO", "mcp__demo_echo"] {
        check(&world, json!({ "tool": name, "args": { "text": "hi" } }), "hi").await;
    }
    for name in ["demo_resource-link", "RESOURCE_LINK", "resource-link"] {
        let linked = "[Resource Link: linked]\nURI: fixture://linked";
        check(&world, json!({ "tool": name }), linked).await;
    }
    check(&world, json!({ "tool": "read_readme" }), "# Everything").await;
    check(&world, json!({ "tool": "demo_get_readme" }), "# Everything").await;
}

#[tokio::test(start_paused = true)]
async fn ambiguous_tool_name_is_resolved_by_prefix_or_server() {
    let world = World::with(
        r#"{ "mcpServers": {
            "left": { "command": "fixture-server", "args": ["everything"] },
            "right": { "command": "fixture-server", "args": ["everything"] } } }"#,
    )
    .start();
    for server in ["left", "right"] {
        world.ask(&json!({ "connect": server }).to_string()).await;
    }
    check(
        &world,
        json!({ "tool": "echo", "args": { "text": "hi" } }),
        "ambiguous_tool: `echo` matches 2 tools\nChoose one of: left_echo and right_echo",
    )
    .await;
    check(&world, json!({ "tool": "right_echo", "args": { "text": "hi" } }), "hi").await;
    check(&world, json!({ "tool": "echo", "server": "Left", "args": { "text": "hi" } }), "hi")
        .await;
    assert_eq!(world.fixture("left").ledger().calls.len(), 1);
    assert_eq!(world.fixture("right").ledger().calls.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn unknown_tool_error_suggests_the_nearest_names() {
    let world = everything();
    world.ask(r#"{ "connect": "demo" }"#).await;
    let missed = world.ask(r#"{ "tool": "demo_ad" }"#).await;
    assert!(
        missed.starts_with("unknown_tool: no tool is named `demo_ad`\nDid you mean: demo_add and"),
        "{missed}"
    );
}

#[tokio::test(start_paused = true)]
async fn prefixed_tool_name_in_a_call_connects_its_server() {
    let world = everything();
    let missed = world.ask(r#"{ "tool": "echo" }"#).await;
    assert!(missed.contains("1 server not listed yet: demo"), "{missed}");
    assert_eq!(world.fixture("demo").ledger().connections, 0);
    check(&world, json!({ "tool": "DEMO-echo", "args": { "text": "hi" } }), "hi").await;
    let missed = world.ask(r#"{ "tool": "demo_nothing" }"#).await;
    assert!(missed.starts_with("unknown_tool"), "{missed}");
}

#[tokio::test(start_paused = true)]
async fn stringified_arguments_are_repaired_before_the_call() {
    let world = everything();
    for args in [
        json!({ "a": 2, "b": 40 }),
        json!(r#"{ "a": 2, "b": 40 }"#),
        json!({ "a": "2", "b": "40" }),
        json!(r#"{ "a": "2", "b": 40.0 }"#),
    ] {
        check(&world, json!({ "tool": "demo_add", "args": args }), "42").await;
    }
    let seen = world.fixture("demo").ledger().calls[2].arguments.clone();
    assert_eq!(seen, json!({ "a": 2, "b": 40 }), "the server gets numbers");
}

#[tokio::test(start_paused = true)]
async fn invalid_arguments_are_refused_with_the_expected_parameters() {
    let world = everything();
    let refused = world.ask(r#"{ "tool": "demo_add", "args": { "a": "two" } }"#).await;
    insta::assert_snapshot!(refused, @r"
    bad_arguments: the arguments do not fit: `b` is required; `a` must be a number, not a string
    Expected parameters:
    a: number
    b: number
    ");
    assert!(world.fixture("demo").ledger().calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn tool_error_is_returned_as_the_result() {
    let world = everything();
    check(&world, json!({ "tool": "demo_fail" }), "the disk is full").await;
}

#[tokio::test(start_paused = true)]
async fn protocol_error_fails_the_call_with_its_message() {
    let world = everything();
    let failure = world.call("demo_protocol-error", json!({})).await.unwrap_err();
    assert_eq!(failure.code, Code::ServerError);
    assert!(failure.to_string().contains("not today"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn timed_out_call_is_cancelled_on_the_server() {
    let world = everything();
    let began = Instant::now();
    let failure = world.call("demo_wait", json!({})).await.unwrap_err();
    assert_eq!(failure.code, Code::TimedOut);
    assert_eq!(began.elapsed().as_secs(), 2);
    let id = world.fixture("demo").call_started(1).await.id;
    let ledger = world.fixture("demo").until(|ledger| !ledger.cancelled.is_empty()).await;
    assert_eq!(ledger.cancelled, [id]);
    check(&world, json!({ "tool": "demo_echo", "args": { "text": "hi" } }), "hi").await;
    assert_eq!(world.fixture("demo").ledger().connections, 1, "the connection stays");
}

#[tokio::test(start_paused = true)]
async fn progress_extends_the_call_timeout() {
    let world = everything();
    check(&world, json!({ "tool": "demo_slow", "args": { "ms": 5000 } }), "took 5000 ms").await;
    let (steps, mut seen) = tokio::sync::mpsc::channel(16);
    let request = Request::Call(call("demo_slow", json!({ "ms": 5000 })));
    let caller = world.session.caller().with_progress(Some(steps));
    world.session.handle_as(request, caller).await.unwrap();
    let mut done = Vec::new();
    while let Some(step) = seen.recv().await {
        done.push(serde_json::from_str::<Value>(step.as_str()).unwrap()["progress"].clone());
    }
    assert_eq!(done, [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn dropped_call_is_cancelled_on_the_server() {
    let world = everything();
    let request = Request::Call(call("demo_wait", json!({})));
    tokio::select! {
        _ = world.session.handle(request) => panic!("the call is never released"),
        _ = world.fixture("demo").call_started(1) => {}
    }
    let ledger = world.fixture("demo").until(|ledger| !ledger.cancelled.is_empty()).await;
    assert_eq!(ledger.cancelled, [ledger.calls[0].id.clone()]);
    world.fixture("demo").until(|ledger| ledger.running == 0).await;
}

#[tokio::test(start_paused = true)]
async fn crash_during_a_call_reports_whether_retry_is_safe() {
    let script = "
        [[tools]]
        name = 'write'
        behaviour = 'crash'
        [[tools]]
        name = 'read'
        annotations = { readOnlyHint = true }
        behaviour = 'crash'
        [[tools]]
        name = 'echo'";
    let world = World::of("demo", "crashing").script("crashing", script).start();
    let crashed = async |tool: &str, code: Code| {
        let began = Instant::now();
        let failure = world.call(tool, json!({})).await.unwrap_err();
        assert_eq!(failure.code, code);
        assert!(began.elapsed() < Duration::from_millis(400), "{:?}", began.elapsed());
    };
    crashed("demo_write", Code::OutcomeUnknown).await;
    assert_eq!(world.call("demo_echo", json!({ "text": "hi" })).await.unwrap(), "hi");
    crashed("demo_read", Code::ConnectionLost).await;
    // One connection for the first call, one after its crash, and one for the retry of the
    // read-only call.
    assert_eq!(world.fixture("demo").ledger().connections, 3);
}

#[tokio::test(start_paused = true)]
async fn only_read_only_call_is_retried_after_connection_loss() {
    let with = |behaviour: &str| {
        format!(
            "[[tools]]
            name = 'write'
            behaviour = '{behaviour}'
            [[tools]]
            name = 'read'
            annotations = {{ readOnlyHint = true }}
            behaviour = '{behaviour}'"
        )
    };
    let check = async |tool: &str, expected: Result<&str, Code>, calls: usize| {
        let world = World::of("demo", "once")
            .script("once", &with("crash"))
            .script("once", &with("echo"))
            .start();
        let outcome = world.call(tool, json!({ "text": "hi" })).await;
        let outcome = outcome.as_deref().map_err(|failure| failure.code);
        assert_eq!(outcome, expected, "{tool}");
        assert_eq!(world.fixture("demo").ledger().calls.len(), calls, "{tool}");
    };
    check("demo_read", Ok("hi"), 2).await;
    check("demo_write", Err(Code::OutcomeUnknown), 1).await;
}

#[tokio::test(start_paused = true)]
async fn calls_succeed_despite_malformed_or_stray_server_messages() {
    for faults in [
        "duplicate_answers = true",
        "wrong_ids = 'other'",
        "wrong_ids = 'next'",
        "wrong_ids = 'string'",
        "wrong_ids = 'float'",
        "wrong_ids = 'null'",
        "wrong_ids = 'missing'",
        "garbage_at_start = 'banner'",
        "garbage_at_start = 'binary'",
        "garbage_at_start = 'blank'",
        "garbage_between = true",
        "notification_storm = 1000",
        "framing = 'crlf'",
        "framing = 'byte_by_byte'",
    ] {
        let script = format!("[[tools]]\nname = 'echo'\n[faults]\n{faults}\n");
        let world = World::of("demo", "odd").script("odd", &script).start();
        for text in ["one", "two"] {
            let answer = world.call("demo_echo", json!({ "text": text })).await;
            assert_eq!(answer.unwrap(), text, "{faults}");
        }
    }
    check(&everything(), json!({ "tool": "demo_garbage" }), "after the garbage").await;
}

#[tokio::test(start_paused = true)]
async fn calls_run_concurrently_on_one_connection() {
    let world = everything();
    let calls = async {
        tokio::join!(world.call("demo_wait", json!({})), world.call("demo_wait", json!({})))
    };
    let release = async {
        world.fixture("demo").until(|ledger| ledger.running == 2).await;
        world.call("demo_release", json!({})).await.unwrap();
    };
    let ((first, second), ()) = tokio::join!(calls, release);
    assert_eq!((first.unwrap().as_str(), second.unwrap().as_str()), ("released", "released"));
    pass(Duration::from_secs(1)).await;
    assert_eq!(world.fixture("demo").ledger().connections, 1);
}

/// Small allocations are much cheaper than large ones, and every call allocates a future.
#[tokio::test]
async fn call_future_stays_below_two_kilobytes() {
    let world = everything();
    let call = world.session.handle(Request::Call(call("demo_echo", json!({ "text": "hi" }))));
    let size = size_of_val(&call);
    assert!(size <= 2_048, "{size} bytes");
}

#[tokio::test(start_paused = true)]
async fn exact_prefix_selects_one_of_similarly_named_servers() {
    let config = r#"{ "mcpServers": {
        "a-b": { "command": "fixture-server", "args": ["one"] },
        "a_b": { "command": "fixture-server", "args": ["one"] },
        "a": { "command": "fixture-server", "args": ["other"] }
    } }"#;
    let world = World::with(config)
        .script("one", "[[tools]]\nname = 'hello'")
        .script("other", "[[tools]]\nname = 'b_hello'")
        .start();
    for server in ["a-b", "a_b", "a"] {
        world.ask(&format!(r#"{{ "connect": "{server}" }}"#)).await;
    }
    let failure = world.call("A_B_HELLO", json!({})).await.unwrap_err();
    assert_eq!(failure.code, Code::AmbiguousTool, "{failure}");
    world.call("a_b_hello", json!({})).await.unwrap();
    for (server, calls) in [("a-b", 0), ("a_b", 1), ("a", 0)] {
        assert_eq!(world.fixture(server).ledger().calls.len(), calls, "{server}");
    }
}
