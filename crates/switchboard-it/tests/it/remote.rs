//! Servers at a URL: calls, notifications, cancellation and shutdown over each HTTP transport.

mod headers;
mod programs;
mod recovery;
mod tls;
mod trouble;
mod websocket;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use serde_json::{Value, json};
use switchboard::Gateway;
use switchboard::dial::names::Names;
use switchboard::dial::spawn::Promise;
use switchboard::failure::{Code, Failure};
use switchboard_it::fixture::{FixtureState, HttpFixture, Script, act};
use switchboard_it::harness::{Home, World};
use switchboard_it::program::Installed;
use tokio::net::UnixListener;
use tokio::task::JoinSet;

use crate::PROGRAMS;

/// The fixture script, with responses in this form: `json`, `events` or `legacy`.
pub(crate) fn served(form: &str, script: &str) -> String {
    let everything = match script {
        "everything" => include_str!("../../scripts/everything.toml"),
        script => script,
    };
    format!("{everything}\n[http]\nform = '{form}'\n")
}

/// A gateway with one server, `far`, at the URL of the fixture; `more` has further fields of its
/// entry.
pub(crate) fn world(fixture: &HttpFixture, more: &str) -> World {
    let url = fixture.url();
    let entry = format!(r#"{{ "url": "{url}"{more} }}"#);
    World::with(&format!(
        r#"{{ "settings": {{ "maxFrameBytes": 100000 }}, "mcpServers": {{ "far": {entry} }} }}"#
    ))
    .start()
}

/// Makes `count` concurrent calls of `far_echo`; returns each result with the number of its call.
pub(crate) async fn at_once(
    world: &Arc<World>,
    count: usize,
    args: impl Fn(usize) -> Value,
) -> Vec<(usize, Result<String, Failure>)> {
    let calls: JoinSet<(usize, Result<String, Failure>)> = (0..count)
        .map(|number| (number, Arc::clone(world), args(number)))
        .map(|(number, world, args)| async move { (number, world.call("far_echo", args).await) })
        .collect();
    calls.join_all().await
}

#[tokio::test]
async fn call_reaches_a_remote_server_over_every_transport() {
    for (form, kind) in [
        ("json", ""),
        ("events", ""),
        ("legacy", ""),
        ("legacy", "sse"),
        ("events", "streamable-http"),
    ] {
        let fixture = HttpFixture::start(&served(form, "everything")).await;
        let more = match kind {
            "" => String::new(),
            kind => format!(r#", "type": "{kind}""#),
        };
        let world = world(&fixture, &more);
        let answer = world.call("far_echo", json!({ "text": "hello" })).await.unwrap();
        assert_eq!(answer, "hello", "{form} {kind}");
        assert_eq!(fixture.state().ledger().initializes.len(), 1, "{form} {kind}");
        world.shut_down().await;
    }
}

/// Resolves every hostname to the loopback address.
struct Here;

impl Names for Here {
    fn addresses<'a>(&'a self, _: &'a str) -> Promise<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async { Ok(vec![(Ipv4Addr::LOCALHOST, 0).into()]) })
    }
}

#[tokio::test]
async fn embedder_hostname_resolver_is_used_for_servers() {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let home = Home::new();
    let gateway = Gateway::builder(home.environment()).names(Here).build();
    let world = World::of_gateway(gateway, home);
    let url = fixture.url().replace("127.0.0.1", "far.example");
    world.apply(&json!({ "mcpServers": { "far": { "url": url } } }).to_string());
    assert_eq!(world.call("far_echo", json!({ "text": "hello" })).await.unwrap(), "hello");
    world.shut_down().await;
}

#[tokio::test]
async fn http_requests_carry_session_id_and_revision() {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let world = world(&fixture, "");
    world.call("far_echo", json!({ "text": "hello" })).await.unwrap();
    // The stream for unsolicited messages is opened concurrently.
    fixture.until(|seen| seen.iter().any(|request| request.method == "GET")).await;
    world.shut_down().await;
    let mut seen: Vec<String> = fixture
        .requests()
        .iter()
        .map(|request| {
            let header = |name| request.header(name).unwrap_or("-");
            let (session, revision) = (header("mcp-session-id"), header("mcp-protocol-version"));
            format!("{} | {} | {session} | {revision}", request.what(), header("accept"))
        })
        .collect();
    // List requests run concurrently with the stream, so their order varies.
    seen[3..].sort();
    insta::assert_snapshot!(seen.join("\n"), @r#"
    server/discover | application/json, text/event-stream | - | 2026-07-28
    initialize | application/json, text/event-stream | - | -
    notifications/initialized | application/json, text/event-stream | session-1 | 2025-11-25
    DELETE | text/event-stream | session-1 | 2025-11-25
    GET | text/event-stream | session-1 | 2025-11-25
    prompts/list | application/json, text/event-stream | session-1 | 2025-11-25
    resources/list | application/json, text/event-stream | session-1 | 2025-11-25
    resources/templates/list | application/json, text/event-stream | session-1 | 2025-11-25
    tools/call | application/json, text/event-stream | session-1 | 2025-11-25
    tools/list | application/json, text/event-stream | session-1 | 2025-11-25
    tools/list | application/json, text/event-stream | session-1 | 2025-11-25
    tools/list | application/json, text/event-stream | session-1 | 2025-11-25
    "#);
}

#[tokio::test]
async fn no_session_header_is_sent_without_a_session() {
    let script = format!("{}sessions = false\nlistening = false\n", served("json", "everything"));
    let fixture = HttpFixture::start(&script).await;
    let world = world(&fixture, "");
    assert_eq!(world.call("far_echo", json!({ "text": "hello" })).await.unwrap(), "hello");
    world.shut_down().await;
    assert!(fixture.requests().iter().all(|request| request.header("mcp-session-id").is_none()));
    assert!(!fixture.asked().contains(&"DELETE".to_owned()));
}

#[tokio::test]
async fn concurrent_remote_calls_get_their_own_responses() {
    for form in ["json", "events", "legacy"] {
        let fixture = HttpFixture::start(&served(form, "everything")).await;
        let world = world(&fixture, "");
        world.call("far_echo", json!({ "text": "first" })).await.unwrap();
        let world = Arc::new(world);
        for (number, answer) in
            at_once(&world, 200, |number| json!({ "text": number.to_string() })).await
        {
            assert_eq!(answer.unwrap(), number.to_string(), "{form}");
        }
    }
}

#[tokio::test]
async fn oversized_remote_response_fails_only_its_call() {
    for form in ["json", "events"] {
        let fixture = HttpFixture::start(&served(form, "everything")).await;
        let world = world(&fixture, "");
        let failure = world.call("far_big", json!({ "bytes": 300_000 })).await.unwrap_err();
        assert_eq!(failure.code, Code::AnswerTooLarge, "{form}: {failure}");
        assert_eq!(world.call("far_echo", json!({ "text": "on" })).await.unwrap(), "on");
        assert_eq!(fixture.state().ledger().initializes.len(), 1);
        world.shut_down().await;
    }
}

#[tokio::test]
async fn abandoned_remote_call_is_cancelled_but_connection_stays_open() {
    for form in ["json", "events", "legacy"] {
        let fixture = HttpFixture::start(&served(form, "everything")).await;
        let world = world(&fixture, "");
        let waiting = world.call("far_wait", json!({}));
        tokio::select! {
            outcome = waiting => panic!("{form}: the call has a result: {outcome:?}"),
            _ = fixture.state().call_started(1) => {}
        }
        let ledger = fixture.state().until(|ledger| ledger.running == 0).await;
        assert_eq!(ledger.cancelled, [ledger.calls[0].id.clone()], "{form}");
        assert_eq!(world.call("far_echo", json!({ "text": "on" })).await.unwrap(), "on");
        world.shut_down().await;
    }
}

#[tokio::test]
async fn unix_socket_server_is_reconnected_after_stream_end() {
    let home = Home::new();
    let listener = UnixListener::bind(home.path().join("server.sock")).unwrap();
    let config = r#"{ "mcpServers": { "far": { "socket": "server.sock" }, "gone": { "socket": "~/gone" } } }"#;
    let world = World::with(config).home(home).start();
    let state = FixtureState::default();
    let serving = async {
        loop {
            let (reader, writer) = listener.accept().await.unwrap().0.into_split();
            let script = Arc::new(Script::load("everything").unwrap());
            act(script, state.clone(), reader, writer, tokio::io::sink()).await;
        }
    };
    let calling = async {
        assert_eq!(world.call("far_echo", json!({ "text": "hello" })).await.unwrap(), "hello");
        let lost = world.call("far_crash", json!({})).await.unwrap_err();
        assert_eq!(lost.code, Code::OutcomeUnknown, "{lost}");
        assert_eq!(world.call("far_echo", json!({ "text": "again" })).await.unwrap(), "again");
        let failure = world.call("gone_echo", json!({})).await.unwrap_err();
        assert_eq!(failure.code, Code::ConnectFailed, "{failure}");
    };
    tokio::select! {
        () = serving => unreachable!(),
        () = calling => {}
    }
    assert_eq!(state.ledger().connections, 2);
}

#[tokio::test]
async fn command_line_call_reaches_a_remote_server() {
    let fixture = HttpFixture::start(&served("events", "everything")).await;
    let config = json!({ "mcpServers": { "far": { "url": fixture.url() } } });
    let installed = Installed::with(PROGRAMS, &config.to_string());
    let ran = installed.run(["call", "far_echo", "text=hello"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello\n"), "{}", ran.stderr);
    assert_eq!(fixture.asked().last().map(String::as_str), Some("DELETE"));
}
