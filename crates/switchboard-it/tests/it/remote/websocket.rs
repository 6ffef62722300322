//! Servers over WebSocket: calls, loss of the connection, and URLs without a WebSocket.

use std::sync::Arc;

use serde_json::json;
use switchboard::failure::{Code, Failure};
use switchboard::render;
use switchboard_it::fixture::{HttpFixture, WsFixture};
use switchboard_it::harness::World;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::{at_once, served};

/// A gateway with one server, `far`, at this URL; `more` has further fields.
fn world(url: &str, more: &str) -> World {
    World::with(&format!(r#"{{ "mcpServers": {{ "far": {{ "url": "{url}"{more} }} }} }}"#)).start()
}

async fn echo(world: &World) -> Result<String, Failure> {
    world.call("far_echo", json!({ "text": "hello" })).await
}

#[tokio::test]
async fn concurrent_websocket_calls_share_one_connection() {
    let fixture = WsFixture::start("everything").await;
    let world = world(&fixture.url(), "");
    assert_eq!(echo(&world).await.unwrap(), "hello");
    let world = Arc::new(world);
    for (number, answer) in at_once(&world, 200, |n| json!({ "text": n.to_string() })).await {
        assert_eq!(answer.unwrap(), number.to_string());
    }
    assert_eq!(fixture.state().ledger().connections, 1);
    world.gateway.shutdown().await;
    fixture.state().until(|ledger| ledger.open == 0).await;
}

#[tokio::test]
async fn websocket_handshake_carries_token_headers_and_subprotocol() {
    let fixture = WsFixture::start("everything").await;
    let world =
        world(&fixture.url(), r#", "bearerToken": "canary", "headers": { "X-Team": "blue" }"#);
    echo(&world).await.unwrap();
    let handshakes = fixture.handshakes();
    assert_eq!(handshakes.len(), 1);
    let header = |name: &str| handshakes[0].get(name).map(String::as_str);
    assert_eq!(header("authorization"), Some("Bearer canary"));
    assert_eq!(header("x-team"), Some("blue"));
    assert_eq!(header("sec-websocket-protocol"), Some("mcp"));
}

#[tokio::test]
async fn oversized_websocket_message_fails_its_call_and_causes_reconnection() {
    let fixture = WsFixture::start("everything").await;
    let large = world(&fixture.url(), "");
    let answer = large.call("far_big", json!({ "bytes": 10 * 1024 * 1024 })).await.unwrap();
    assert!(answer.contains("result: "), "{}", answer.len());
    large.shut_down().await;

    let config = json!({
        "settings": { "maxFrameBytes": 100_000 },
        "mcpServers": { "far": { "url": fixture.url() } },
    });
    let world = World::with(&config.to_string()).start();
    let failure = world.call("far_big", json!({ "bytes": 300_000 })).await.unwrap_err();
    assert_eq!(failure.code, Code::AnswerTooLarge, "{failure}");
    // The rest of the message cannot be skipped, so the next call uses a new connection.
    assert_eq!(echo(&world).await.unwrap(), "hello");
    assert_eq!(fixture.state().ledger().connections, 3);
}

#[tokio::test]
async fn closed_websocket_fails_its_call_and_is_reconnected() {
    let fixture = WsFixture::start("everything").await;
    let world = world(&fixture.url(), "");
    let failure = world.call("far_crash", json!({})).await.unwrap_err();
    assert_eq!(failure.code, Code::OutcomeUnknown, "{failure}");
    assert_eq!(echo(&world).await.unwrap(), "hello");
    assert_eq!(fixture.state().ledger().connections, 2);
}

#[tokio::test]
async fn websocket_server_crash_fails_the_call_in_flight() {
    let mut fixture = WsFixture::start("everything").await;
    let world = Arc::new(world(&fixture.url(), ""));
    let mut calls = JoinSet::new();
    let calling = Arc::clone(&world);
    calls.spawn(async move { calling.call("far_wait", json!({})).await });
    fixture.state().call_started(1).await;
    fixture.fall().await;
    let failure = calls.join_next().await.unwrap().unwrap().unwrap_err();
    assert_eq!(failure.code, Code::OutcomeUnknown, "{failure}");
    assert_eq!(echo(&world).await.unwrap_err().code, Code::ConnectFailed);
}

#[tokio::test]
async fn websocket_skips_malformed_text_and_closes_on_binary() {
    let script = r#"
[[tools]]
name = "babble"
behaviour = "garbage"

[[tools]]
name = "blob"
behaviour = { kind = "garbage", garbage = "binary" }
"#;
    let fixture = WsFixture::start(script).await;
    let world = world(&fixture.url(), "");
    world.call("far_babble", json!({})).await.unwrap();
    let failure = world.call("far_blob", json!({})).await.unwrap_err();
    assert_eq!(failure.code, Code::OutcomeUnknown, "{failure}");
    world.call("far_babble", json!({})).await.unwrap();
    assert_eq!(fixture.state().ledger().connections, 2);
}

#[tokio::test]
async fn secure_websocket_requires_a_trusted_certificate() {
    let fixture = WsFixture::start_secure("everything").await;
    let trusting = |file: &str| {
        let path = format!("{}/testdata/tls/{file}", env!("CARGO_MANIFEST_DIR"));
        world(&fixture.url(), &format!(r#", "caFile": "{path}", "bearerToken": "canary""#))
    };
    assert_eq!(echo(&trusting("ca.pem")).await.unwrap(), "hello");
    let distrusted = echo(&trusting("other-ca.pem")).await.unwrap_err();
    assert!(distrusted.to_string().contains("invalid peer certificate"), "{distrusted}");
    assert_eq!(fixture.handshakes().len(), 1);
}

#[tokio::test]
async fn websocket_subprotocol_may_be_absent_or_mcp() {
    let silent = WsFixture::start_speaking("everything", None).await;
    assert_eq!(echo(&world(&silent.url(), "")).await.unwrap(), "hello");
    let chat = WsFixture::start_speaking("everything", Some("chat")).await;
    let failure = echo(&world(&chat.url(), "")).await.unwrap_err();
    insta::assert_snapshot!(render::text::failure(&failure), @"
    connect_failed: cannot use the server `far`: cannot connect: the server selected a WebSocket subprotocol other than `mcp`
    Ask the user to correct `url`
    ");
    assert_eq!(chat.state().ledger().methods, [""; 0], "a message was sent");
}

/// A server that answers each connection with these bytes and sends nothing else.
async fn answering(bytes: &'static str) -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 1024];
            let _ = stream.read(&mut head).await;
            let _ = stream.write_all(bytes.as_bytes()).await;
            open.push(stream);
        }
    });
    (url, serving)
}

#[tokio::test]
async fn websocket_connect_failure_explains_the_response() {
    let answers = [
        "status = 401",
        "status = 404\nheaders = { Content-Type = 'text/html' }\nbody = '<html>not here'",
        "status = 200\nheaders = { Content-Type = 'text/html' }\nbody = '<title>Welcome</title>'",
        "status = 302\nheaders = { Location = 'http://elsewhere.example/mcp' }",
        "status = 302\nheaders = { Location = '/other' }",
    ];
    let mut seen = Vec::new();
    for answer in answers {
        let script = format!("{}[[http.canned]]\n{answer}\n", served("json", "everything"));
        let fixture = HttpFixture::start(&script).await;
        let url = fixture.url().replace("http://", "ws://");
        let failure = echo(&world(&url, "")).await.unwrap_err();
        seen.push(render::text::failure(&failure));
        assert_eq!(fixture.asked(), ["GET"], "a redirect was followed, or a request repeated");
    }
    let (url, _serving) = answering(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: nonsense\r\n\r\n",
    )
    .await;
    seen.push(render::text::failure(&echo(&world(&url, "")).await.unwrap_err()));
    insta::assert_snapshot!(seen.join("\n\n"), @r#"
    sign_in_required: cannot use the server `far`: cannot connect: the server answered with HTTP status 401: sign-in required
    Ask the user to give `far` a token that it takes

    connect_failed: cannot use the server `far`: cannot connect: the server answered with HTTP status 404 and a web page

    connect_failed: cannot use the server `far`: cannot connect: the URL is not an MCP endpoint: the response was a web page titled "Welcome"
    Ask the user to correct `url`

    connect_failed: cannot use the server `far`: cannot connect: the server redirects to `http://elsewhere.example`, which is not its configured origin
    Ask the user to correct `url`

    connect_failed: cannot use the server `far`: cannot connect: the server answered with HTTP status 302 and an empty body

    connect_failed: cannot use the server `far`: cannot connect: the server's response to the WebSocket handshake is malformed
    Ask the user to correct `url`
    "#);
}

#[tokio::test]
async fn unanswered_websocket_handshake_times_out() {
    let (url, _serving) = answering("").await;
    let failure = echo(&world(&url, r#", "startTimeoutMs": 1000"#)).await.unwrap_err();
    assert_eq!(failure.code, Code::TimedOut, "{failure}");
    assert!(failure.to_string().contains("cannot connect"), "{failure}");
}
