//! When servers are started, kept running, stopped and reconnected. The clock of each test is
//! paused.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use switchboard::failure::{Code, Failure, Hint};
use switchboard::request::Request;
use switchboard_it::harness::{Setup, World, call, pass};
use tokio::task::JoinSet;
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);

/// A setup with one server, `demo`, that has these additional fields in its entry.
fn world_where(fields: &str, script: &str) -> Setup {
    World::with(&format!(
        r#"{{ "mcpServers": {{ "demo": {{ "command": "fixture-server", "args": ["{script}"], {fields} }} }} }}"#
    ))
}

const ECHO: &str = "[[tools]]\nname = 'echo'\n";
const BROKEN: &str = "[[tools]]\nname = 'echo'\n[faults]\nexit_at_start = { code = 1 }\n";
const STUCK: &str = "[[tools]]\nname = 'echo'\n[faults]\nnever_answer = 'initialize'\n";

async fn echo(world: &World) -> Result<String, Failure> {
    world.call("demo_echo", json!({ "text": "hi" })).await
}

async fn code_of_echo(world: &World) -> Code {
    echo(world).await.unwrap_err().code
}

/// The line of the status about the server `demo`.
async fn line(world: &World) -> String {
    let status = world.ask("{}").await;
    status.lines().nth(1).unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn lazy_server_connects_on_the_first_call() {
    let world = World::of("demo", "everything").start();
    pass(MINUTE).await;
    assert_eq!(world.fixture("demo").ledger().connections, 0);
    assert_eq!(echo(&world).await.unwrap(), "hi");
    assert_eq!(world.fixture("demo").ledger().connections, 1);
}

#[tokio::test(start_paused = true)]
async fn concurrent_first_calls_share_one_connection() {
    let world = Arc::new(World::of("demo", "slow").start());
    let mut calls = JoinSet::new();
    for n in 0..100 {
        let world = Arc::clone(&world);
        calls.spawn(async move {
            let answer = world.call("demo_echo", json!({ "text": n.to_string() })).await;
            assert_eq!(answer.unwrap(), n.to_string());
        });
    }
    calls.join_all().await;
    assert_eq!(world.fixture("demo").ledger().connections, 1);
}

#[tokio::test(start_paused = true)]
async fn at_most_sixteen_servers_connect_at_once() {
    let names: Vec<String> = (0..20).map(|number| format!("s{number}")).collect();
    let entry = json!({ "command": "fixture-server", "args": ["late"] });
    let servers: serde_json::Map<String, serde_json::Value> =
        names.iter().map(|name| (name.clone(), entry.clone())).collect();
    let late = format!("{ECHO}[faults]\nstart_delay_ms = 1000\n");
    let config = json!({ "mcpServers": servers }).to_string();
    let world = World::with(&config).script("late", &late).start();
    let connections = |name: &String| world.fixture(name).ledger().connections;
    let begun = || names.iter().map(connections).sum::<usize>();
    let looking = async {
        pass(Duration::from_millis(500)).await;
        begun()
    };
    let ((), early) = tokio::join!(world.gateway.list_missing(|_, _, _| {}), looking);
    assert_eq!((early, begun()), (16, 20));
}

#[tokio::test(start_paused = true)]
async fn idle_server_stops_after_ten_minutes_but_stays_listed() {
    let world = World::of("demo", "everything").start();
    echo(&world).await.unwrap();
    pass(10 * MINUTE - Duration::from_secs(1)).await;
    assert_eq!(world.fixture("demo").ledger().open, 1);
    pass(Duration::from_secs(1)).await;
    assert_eq!(world.fixture("demo").ledger().open, 0);
    assert_eq!(line(&world).await, "○ demo (30 tools, cached)");
    assert_eq!(echo(&world).await.unwrap(), "hi");
    assert_eq!(world.fixture("demo").ledger().connections, 2);
}

#[tokio::test(start_paused = true)]
async fn idle_timeout_setting_decides_when_a_server_stops() {
    let world = world_where(r#""idleTimeout": 1"#, "everything").start();
    echo(&world).await.unwrap();
    pass(MINUTE).await;
    assert_eq!(world.fixture("demo").ledger().open, 0);
    let world = world_where(r#""idleTimeout": 0"#, "everything").start();
    echo(&world).await.unwrap();
    pass(24 * 60 * MINUTE).await;
    assert_eq!(world.fixture("demo").ledger().open, 1);
}

#[tokio::test(start_paused = true)]
async fn running_call_keeps_the_server_running_past_idle_timeout() {
    let world = world_where(r#""requestTimeoutMs": 7200000"#, "everything").start();
    let held = world.call("demo_wait", json!({}));
    let watcher = async {
        world.fixture("demo").call_started(1).await;
        pass(60 * MINUTE).await;
        assert_eq!(world.fixture("demo").ledger().open, 1);
        world.fixture("demo").release();
    };
    let (answer, ()) = tokio::join!(held, watcher);
    assert_eq!(answer.unwrap(), "released");
    pass(10 * MINUTE).await;
    assert_eq!(world.fixture("demo").ledger().open, 0);
}

#[tokio::test(start_paused = true)]
async fn eager_server_connects_at_start_without_an_idle_timeout() {
    let world = world_where(r#""lifecycle": "eager""#, "everything").start();
    world.fixture("demo").until(|ledger| ledger.open == 1).await;
    pass(24 * 60 * MINUTE).await;
    assert_eq!(world.fixture("demo").ledger().open, 1);
    assert_eq!(line(&world).await, "✓ demo (30 tools)");
}

#[tokio::test(start_paused = true)]
async fn keep_alive_server_is_pinged_every_half_minute() {
    let world = world_where(r#""lifecycle": "keep-alive""#, "everything").start();
    pass(5 * MINUTE).await;
    let ledger = world.fixture("demo").ledger();
    assert_eq!(ledger.connections, 1);
    assert_eq!(ledger.methods.iter().filter(|method| *method == "ping").count(), 10);
}

#[tokio::test(start_paused = true)]
async fn keep_alive_server_without_ping_support_stays_connected() {
    let script = format!("{ECHO}[faults]\nno_ping = 'unknown'\n");
    let world = world_where(r#""lifecycle": "keep-alive""#, "odd").script("odd", &script).start();
    pass(5 * MINUTE).await;
    assert_eq!(world.fixture("demo").ledger().connections, 1);
}

#[tokio::test(start_paused = true)]
async fn keep_alive_server_that_ignores_pings_is_reconnected() {
    let silent = format!("{ECHO}[faults]\nno_ping = 'silent'\n");
    let world = world_where(r#""lifecycle": "keep-alive""#, "silent")
        .script("silent", &silent)
        .script("silent", ECHO)
        .start();
    pass(5 * MINUTE).await;
    let ledger = world.fixture("demo").ledger();
    assert_eq!((ledger.connections, ledger.open), (2, 1));
    assert_eq!(line(&world).await, "✓ demo (1 tool)");
}

#[tokio::test(start_paused = true)]
async fn crashed_keep_alive_server_is_reconnected_without_a_call() {
    let world = world_where(r#""lifecycle": "keep-alive""#, "everything").start();
    let lost = world.call("demo_crash", json!({})).await.unwrap_err();
    assert_eq!(lost.code, Code::OutcomeUnknown);
    pass(Duration::from_secs(1)).await;
    let ledger = world.fixture("demo").ledger();
    assert_eq!((ledger.connections, ledger.open), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn lazy_keep_alive_server_runs_from_first_use_on() {
    let world = world_where(r#""lifecycle": "lazy-keep-alive""#, "everything").start();
    pass(MINUTE).await;
    assert_eq!(world.fixture("demo").ledger().connections, 0);
    echo(&world).await.unwrap();
    pass(60 * MINUTE).await;
    let ledger = world.fixture("demo").ledger();
    assert_eq!((ledger.connections, ledger.open), (1, 1));
}

/// Connects explicitly, which skips the backoff, until calls fail at once with `backoff`.
async fn fail_often(world: &World) {
    for _ in 0..6 {
        world.ask(r#"{ "connect": "demo" }"#).await;
    }
}

#[tokio::test(start_paused = true)]
async fn call_during_backoff_reports_failure_age_and_retry_time() {
    let world = World::of("demo", "broken").script("broken", BROKEN).start();
    fail_often(&world).await;
    let before = world.fixture("demo").ledger().connections;
    pass(Duration::from_millis(100)).await;
    let refused = echo(&world).await.unwrap_err();
    assert_eq!(refused.code, Code::Backoff);
    assert!(refused.to_string().contains("the last attempt failed 101 ms ago"), "{refused}");
    let Some(Hint::RetryAfter(wait)) = refused.hints.first() else { panic!("{refused:?}") };
    assert!((7..16).contains(&wait.as_secs()), "{wait:?}");
    assert_eq!(world.fixture("demo").ledger().connections, before, "a refused call does not dial");
    pass(*wait).await;
    assert_eq!(
        code_of_echo(&world).await,
        Code::ConnectFailed,
        "the call after the wait dials again"
    );
    assert_eq!(world.fixture("demo").ledger().connections, before + 1);
}

#[tokio::test(start_paused = true)]
async fn call_waits_for_a_short_retry_interval_and_succeeds() {
    // The first dial starts the server twice, because its era is unknown.
    let late = World::of("demo", "late").script("late", BROKEN).script("late", BROKEN);
    let world = late.script("late", BROKEN).script("late", ECHO).start();
    assert_eq!(code_of_echo(&world).await, Code::ConnectFailed);
    assert_eq!(code_of_echo(&world).await, Code::ConnectFailed);
    let began = Instant::now();
    assert_eq!(echo(&world).await.unwrap(), "hi");
    assert!((500..=1_100).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn explicit_connect_ignores_backoff() {
    let setup = World::of("demo", "late");
    // The first dial starts the server twice, because its era is unknown.
    let setup = (0..7).fold(setup, |setup, _| setup.script("late", BROKEN));
    let world = setup.script("late", ECHO).start();
    fail_often(&world).await;
    assert_eq!(code_of_echo(&world).await, Code::Backoff);
    let connected = world.ask(r#"{ "connect": "demo" }"#).await;
    assert_eq!(connected, "demo (1 tool):\n- demo_echo");
    assert_eq!(line(&world).await, "✓ demo (1 tool)");
}

#[tokio::test(start_paused = true)]
async fn crash_loop_opens_the_circuit_breaker_with_a_reason() {
    let world = World::of("demo", "broken").script("broken", BROKEN).start();
    let mut last = echo(&world).await.unwrap_err();
    for _ in 0..100 {
        if last.code == Code::CrashLoop {
            break;
        }
        if let Some(Hint::RetryAfter(wait)) = last.hints.first() {
            pass(*wait).await;
        }
        last = echo(&world).await.unwrap_err();
    }
    assert_eq!(last.code, Code::CrashLoop);
    assert!(last.to_string().contains("went down 8 times in three minutes"), "{last}");
    // One connection more than failures, because the first dial starts the server twice: its era is
    // unknown.
    assert_eq!(world.fixture("demo").ledger().connections, 9);
    assert!(world.ask(r#"{ "connect": "demo" }"#).await.starts_with("connect_failed"));
    assert_eq!(
        world.fixture("demo").ledger().connections,
        10,
        "an explicit connect dials all the same"
    );
}

#[tokio::test(start_paused = true)]
async fn disconnect_cancels_a_stuck_connection_attempt() {
    let world = World::of("demo", "stuck").script("stuck", STUCK).start();
    let began = Instant::now();
    let disconnect = async {
        world.fixture("demo").until(|ledger| !ledger.initializes.is_empty()).await;
        let request = Request::Disconnect { server: "demo".to_owned() };
        world.session.handle(request).await.unwrap();
    };
    let (refused, ()) = tokio::join!(echo(&world), disconnect);
    assert_eq!(refused.unwrap_err().code, Code::Disconnected);
    assert!(began.elapsed() < Duration::from_secs(1));
    world.fixture("demo").until(|ledger| ledger.open == 0).await;
    assert_eq!(line(&world).await, "○ demo (not connected)");
}

#[tokio::test(start_paused = true)]
async fn disconnect_ends_calls_in_flight_at_once() {
    let world = World::of("demo", "everything").start();
    let began = Instant::now();
    let disconnect = async {
        world.fixture("demo").call_started(1).await;
        let request = Request::Disconnect { server: "demo".to_owned() };
        world.session.handle(request).await.unwrap();
    };
    let (lost, ()) = tokio::join!(world.call("demo_wait", json!({})), disconnect);
    assert_eq!(lost.unwrap_err().code, Code::OutcomeUnknown);
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(line(&world).await, "○ demo (30 tools, cached)");
}

#[tokio::test(start_paused = true)]
async fn start_timeout_ends_a_stuck_start() {
    let world = world_where(r#""startTimeoutMs": 2000"#, "stuck").script("stuck", STUCK).start();
    let began = Instant::now();
    let failure = echo(&world).await.unwrap_err();
    assert_eq!(failure.code, Code::TimedOut);
    assert_eq!(began.elapsed().as_secs(), 2);
    world.fixture("demo").until(|ledger| ledger.open == 0).await;
}

#[tokio::test(start_paused = true)]
async fn stuck_server_delays_only_the_first_call() {
    let setup = world_where(r#""startTimeoutMs": 20000"#, "stuck");
    let world = setup.script("stuck", STUCK).start();
    assert_eq!(code_of_echo(&world).await, Code::TimedOut);
    let began = Instant::now();
    assert_eq!(code_of_echo(&world).await, Code::Backoff);
    assert_eq!(began.elapsed(), Duration::ZERO);
    let unknown = world.ask(r#"{ "tool": "no_such_tool" }"#).await;
    assert!(unknown.contains("no tool is named"), "{unknown}");
    assert!(!unknown.contains("connect"), "it would wait again: {unknown}");
}

#[tokio::test(start_paused = true)]
async fn tools_stay_listed_after_a_crash_and_during_backoff() {
    let crashing = format!("{ECHO}[[tools]]\nname = 'crash'\nbehaviour = 'crash'\n");
    let world = World::of("demo", "crashing")
        .script("crashing", &crashing)
        .script("crashing", BROKEN)
        .start();
    assert_eq!(world.call("demo_crash", json!({})).await.unwrap_err().code, Code::OutcomeUnknown);
    let listed = "- demo_echo\n- demo_crash";
    assert!(world.ask(r#"{ "server": "demo" }"#).await.contains(listed));
    fail_often(&world).await;
    assert_eq!(code_of_echo(&world).await, Code::Backoff);
    assert!(world.ask(r#"{ "search": "crash" }"#).await.contains("demo_crash"));
    assert!(line(&world).await.starts_with("✗ demo (2 tools, failed "), "{}", line(&world).await);
}

#[tokio::test(start_paused = true)]
async fn next_call_after_a_crash_reconnects_at_once() {
    let world = World::of("demo", "everything").start();
    world.call("demo_crash", json!({})).await.unwrap_err();
    assert_eq!(echo(&world).await.unwrap(), "hi");
    assert_eq!(world.fixture("demo").ledger().connections, 2);
}

#[tokio::test(start_paused = true)]
async fn status_forgets_a_failure_after_a_successful_call() {
    let world = World::of("demo", "everything").start();
    world.call("demo_crash", json!({})).await.unwrap_err();
    assert!(line(&world).await.starts_with("✗ demo (30 tools, failed"), "{}", line(&world).await);
    echo(&world).await.unwrap();
    world.session.handle(Request::Disconnect { server: "demo".to_owned() }).await.unwrap();
    assert_eq!(line(&world).await, "○ demo (30 tools, cached)");
}

#[tokio::test(start_paused = true)]
async fn server_exiting_after_listing_is_restarted_by_next_call() {
    let short = format!("{ECHO}[faults]\nclose_stdout_after = 2\n");
    let world = World::of("demo", "short").script("short", &short).script("short", ECHO).start();
    // The connection may close before or after the listing; no later call may use it.
    let _first = echo(&world).await;
    pass(MINUTE).await;
    assert_eq!(echo(&world).await.unwrap(), "hi");
}

#[tokio::test(start_paused = true)]
async fn shutdown_closes_connections_and_refuses_later_calls() {
    let world = World::of("demo", "everything").start();
    echo(&world).await.unwrap();
    world.gateway.shutdown().await;
    assert_eq!(world.fixture("demo").ledger().open, 0);
    assert_eq!(code_of_echo(&world).await, Code::ShuttingDown);
}

#[tokio::test(start_paused = true)]
async fn abandoned_call_does_not_keep_the_server_running() {
    let world = World::of("demo", "slow").start();
    let request = Request::Call(call("demo_echo", json!({})));
    let given_up = tokio::time::timeout(Duration::from_millis(50), world.session.handle(request));
    assert!(given_up.await.is_err(), "the server takes longer to start");
    pass(11 * MINUTE).await;
    let ledger = world.fixture("demo").ledger();
    assert_eq!((ledger.connections, ledger.open), (1, 0), "connected, then stopped for being idle");
}
