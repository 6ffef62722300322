//! Recovery from lost sessions, busy servers and broken responses; each request is retried once.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard::failure::{Code, Failure, Hint};
use switchboard_it::fixture::{HttpFixture, SeenRequest};
use switchboard_it::harness::World;
use tokio::task::JoinSet;

use super::{at_once, served, world};

#[tokio::test]
async fn lost_session_is_reopened_once_for_concurrent_calls() {
    for form in ["json", "events"] {
        let fixture = HttpFixture::start(&served(form, "everything")).await;
        let world = Arc::new(world(&fixture, ""));
        world.call("far_echo", json!({ "text": "x" })).await.unwrap();
        fixture.forget_sessions();
        for (number, answer) in
            at_once(&world, 100, |number| json!({ "text": number.to_string() })).await
        {
            assert_eq!(answer.unwrap(), number.to_string(), "{form}");
        }
        let ledger = fixture.state().ledger();
        assert_eq!(ledger.initializes.len(), 2, "{form}");
        assert_eq!(ledger.calls.len(), 101, "{form}: a call was made twice");
    }
}

#[tokio::test]
async fn calls_succeed_although_the_server_repeatedly_forgets_the_session() {
    let script = format!("{}forget_after = 12\n", served("json", "everything"));
    let fixture = HttpFixture::start(&script).await;
    let world = world(&fixture, "");
    for number in 0..90 {
        let answer = world.call("far_echo", json!({ "text": number.to_string() })).await;
        assert_eq!(answer.unwrap(), number.to_string());
    }
    assert!(fixture.state().ledger().initializes.len() > 8);
    assert_eq!(fixture.state().ledger().calls.len(), 90);
}

#[tokio::test]
async fn status_404_with_error_response_does_not_end_session() {
    let body = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no"}}"#;
    let canned = format!("[[http.canned]]\nto = 'tools/call'\nstatus = 404\nbody = '{body}'\n");
    let fixture = HttpFixture::start(&(served("json", "everything") + &canned)).await;
    let world = world(&fixture, "");
    let failure = world.call("far_echo", json!({ "text": "x" })).await.unwrap_err();
    assert_eq!(failure.code, Code::ServerError, "{failure}");
    assert_eq!(fixture.state().ledger().initializes.len(), 1);
}

#[tokio::test]
async fn calls_wait_for_a_restarting_server() {
    let mut fixture = HttpFixture::start(&served("json", "everything")).await;
    let world = Arc::new(world(&fixture, ""));
    world.call("far_echo", json!({ "text": "x" })).await.unwrap();
    fixture.fall().await;
    let calling = at_once(&world, 100, |number| json!({ "text": number.to_string() }));
    let (answers, ()) = tokio::join!(calling, async {
        // Waits until the connections of some calls were refused.
        for _ in 0..2_000 {
            tokio::task::yield_now().await;
        }
        fixture.rise().await;
    });
    for (number, answer) in answers {
        assert_eq!(answer.unwrap(), number.to_string());
    }
    assert_eq!(fixture.state().ledger().initializes.len(), 2);
}

#[tokio::test]
async fn running_read_only_calls_survive_a_server_restart() {
    let script = served(
        "json",
        "[[tools]]\nname = 'echo'\nbehaviour = { kind = 'slow', ms = 100 }\nannotations = { readOnlyHint = true }\n",
    );
    let mut fixture = HttpFixture::start(&script).await;
    let world = Arc::new(world(&fixture, ""));
    world.call("far_echo", json!({})).await.unwrap();
    let calling = at_once(&world, 100, |_| json!({}));
    let (answers, ()) = tokio::join!(calling, async {
        fixture.state().until(|ledger| ledger.running >= 20).await;
        fixture.fall().await;
        fixture.rise().await;
    });
    for (number, answer) in answers {
        assert_eq!(answer.as_deref().ok(), Some("took 100 ms"), "{number}: {answer:?}");
    }
    assert_eq!(fixture.state().ledger().initializes.len(), 2);
}

#[tokio::test]
async fn call_to_unreachable_server_reports_connection_refused() {
    let mut fixture = HttpFixture::start(&served("json", "everything")).await;
    let world = world(&fixture, "");
    world.call("far_echo", json!({ "text": "x" })).await.unwrap();
    fixture.fall().await;
    let failure = world.call("far_add", json!({ "a": 1, "b": 2 })).await.unwrap_err();
    assert_eq!(failure.code, Code::ConnectFailed, "{failure}");
    assert!(failure.to_string().contains("connection refused"), "{failure}");
    fixture.rise().await;
    world.ask(r#"{ "connect": "far" }"#).await;
    assert_eq!(world.call("far_echo", json!({ "text": "on" })).await.unwrap(), "on");
}

/// A server that answers the first calls with this status and `Retry-After`.
async fn busy(status: u16, retry_after: &str, times: usize) -> HttpFixture {
    let canned = format!(
        "[[http.canned]]\nto = 'tools/call'\ntimes = {times}\nstatus = {status}\nheaders = {{ Retry-After = '{retry_after}' }}\n"
    );
    HttpFixture::start(&(served("json", "everything") + &canned)).await
}

#[tokio::test]
async fn call_waits_for_a_short_retry_after() {
    for status in [429, 503] {
        let fixture = busy(status, "1", 1).await;
        let world = Arc::new(world(&fixture, ""));
        let before = std::time::Instant::now();
        for (number, answer) in
            at_once(&world, 5, |number| json!({ "text": number.to_string() })).await
        {
            assert_eq!(answer.unwrap(), number.to_string(), "{status}");
        }
        assert!(before.elapsed().as_millis() >= 1_000, "{status}");
    }
}

#[tokio::test]
async fn call_fails_at_once_with_long_retry_after() {
    // 30 s are less than the timeout of the call, but the call does not wait for them either.
    for (retry_after, least) in
        [("30", 10), ("3600", 3_000), ("Fri, 31 Dec 9999 23:59:59 GMT", 3_000)]
    {
        let fixture = busy(429, retry_after, 1).await;
        let world = world(&fixture, "");
        for _ in 0..2 {
            let failure = world.call("far_echo", json!({ "text": "x" })).await.unwrap_err();
            assert_eq!(failure.code, Code::Backoff, "{failure}");
            let wait = failure.hints.iter().find_map(|hint| match hint {
                Hint::RetryAfter(wait) => Some(wait.as_secs()),
                _ => None,
            });
            assert!(wait.unwrap() > least, "{failure:?}");
        }
        // The second call sent no request.
        assert_eq!(fixture.asked().iter().filter(|what| *what == "tools/call").count(), 1);
    }
    let fixture = busy(503, "soon", 1).await;
    let failure = world(&fixture, "").call("far_echo", json!({ "text": "x" })).await.unwrap_err();
    assert_eq!(failure.code, Code::Backoff, "{failure}");
}

#[tokio::test]
async fn retries_of_calls_to_permanently_busy_server_are_limited() {
    let fixture = busy(429, "0", 1_000).await;
    let world = Arc::new(world(&fixture, ""));
    for (_, answer) in at_once(&world, 50, |_| json!({ "text": "x" })).await {
        assert_eq!(answer.unwrap_err().code, Code::Backoff);
    }
    let sent = fixture.asked().iter().filter(|what| *what == "tools/call").count();
    assert!((55..=75).contains(&sent), "{sent}");
}

/// Advances the clock while the gateway and its server exchange messages.
async fn later(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn silent_remote_keep_alive_server_is_reconnected() {
    for (fault, connections) in [("", 1), ("[faults]\nno_ping = 'silent'\n", 2)] {
        let script = format!("[[tools]]\nname = 'echo'\n{fault}");
        let fixture = HttpFixture::start(&served("json", &script)).await;
        let world = world(&fixture, r#", "lifecycle": "keep-alive""#);
        world.call("far_echo", json!({ "text": "x" })).await.unwrap();
        later(31).await;
        fixture.until(|seen| seen.iter().any(|request| request.what() == "ping")).await;
        later(6).await;
        fixture.state().until(|ledger| ledger.initializes.len() == connections).await;
        world.call("far_echo", json!({ "text": "x" })).await.unwrap();
        assert_eq!(fixture.state().ledger().initializes.len(), connections);
    }
}

#[tokio::test]
async fn broken_idle_connection_fails_no_call() {
    let script = format!("{}retry_ms = 1\n", served("json", "everything"));
    let mut fixture = HttpFixture::start(&script).await;
    let world = world(&fixture, "");
    let listened =
        |seen: &[SeenRequest]| seen.iter().filter(|request| request.method == "GET").count();
    for time in 1..=3 {
        // `count` is not read-only, so it is never sent twice.
        assert_eq!(world.call("far_count", json!({})).await.unwrap(), time.to_string());
        fixture.until(|seen| listened(seen) > 0).await;
        let before = listened(&fixture.requests());
        fixture.hang_up().await;
        // A new GET shows that the client has noticed the broken connections.
        fixture.until(|seen| listened(seen) > before).await;
    }
    assert_eq!(fixture.state().ledger().initializes.len(), 1);
}

#[tokio::test]
async fn busy_server_is_not_connected_before_retry_after() {
    let canned = "[[http.canned]]\nstatus = 503\nheaders = { Retry-After = '600' }\n";
    let fixture = HttpFixture::start(&(served("json", "everything") + canned)).await;
    let world = world(&fixture, "");
    for _ in 0..3 {
        world.ask(r#"{ "connect": "far" }"#).await;
    }
    assert_eq!(fixture.asked(), ["server/discover"]);
}

/// A tool that sends two progress notifications before its result.
const STEPS: &str = "
[[tools]]
name = 'steps'
behaviour = { kind = 'slow', ms = 1, progress = 2 }
";

/// Makes one call for each number of bytes after which its response is cut; returns the results.
async fn cut(
    world: &Arc<World>,
    bytes: std::ops::Range<usize>,
) -> Vec<(usize, Result<String, Failure>)> {
    let cuts: JoinSet<_> = bytes
        .map(|cut| (cut, Arc::clone(world), json!({ "cut": cut })))
        .map(|(cut, world, args)| async move { (cut, world.call("far_steps", args).await) })
        .collect();
    let mut outcomes = cuts.join_all().await;
    outcomes.sort_by_key(|(cut, _)| *cut);
    outcomes
}

#[tokio::test]
async fn call_with_truncated_response_resumes_or_reports_unknown_outcome() {
    for (ids, most) in [("event_ids = true\nretry_ms = 1\n", 40), ("", 700)] {
        let script = format!("{}cut_calls = true\n{ids}", served("events", STEPS));
        let fixture = HttpFixture::start(&script).await;
        let world = Arc::new(world(&fixture, ""));
        let mut failed = 0;
        for start in (0..700).step_by(50) {
            for (cut, outcome) in cut(&world, start..start + 50).await {
                match outcome {
                    Ok(answer) => assert_eq!(answer, "took 1 ms", "cut after {cut} bytes"),
                    Err(failure) => {
                        assert_eq!(
                            failure.code,
                            Code::OutcomeUnknown,
                            "cut after {cut}: {failure}"
                        );
                        failed += 1;
                    }
                }
            }
        }
        assert!(failed > 0 && failed <= most, "{failed} failed");
        assert_eq!(fixture.state().ledger().calls.len(), 700, "each call was made once");
    }
}

#[tokio::test]
async fn sse_transport_reconnects_after_its_stream_ends() {
    let mut fixture = HttpFixture::start(&served("legacy", "everything")).await;
    let world = world(&fixture, "");
    world.call("far_echo", json!({ "text": "x" })).await.unwrap();
    fixture.fall().await;
    fixture.rise().await;
    fixture.state().until(|ledger| ledger.open == 0).await;
    let answer: Result<String, Value> = world
        .call("far_echo", json!({ "text": "on" }))
        .await
        .map_err(|failure| json!(failure.to_string()));
    assert_eq!(answer, Ok("on".to_owned()));
    assert_eq!(fixture.state().ledger().initializes.len(), 2);
}
