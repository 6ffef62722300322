//! URLs without a working MCP server: the failure describes the response, and the request is not
//! repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use switchboard::failure::Code;
use switchboard::render;
use switchboard_it::fixture::HttpFixture;
use switchboard_it::harness::{World, filtered};
use switchboard_it::program::Installed;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::{served, world};
use crate::PROGRAMS;

/// A server that sends this response to every request.
fn canned(answer: &str) -> String {
    format!("{}[[http.canned]]\n{answer}\n", served("json", "everything"))
}

#[tokio::test]
async fn connection_failure_explains_what_the_url_returned() {
    let answers = [
        "status = 401\nheaders = { WWW-Authenticate = 'Bearer' }",
        "status = 403",
        "status = 200\nheaders = { Content-Type = 'text/html' }\nbody = '<title>Welcome</title>'",
        "status = 404\nheaders = { Content-Type = 'text/html' }\nbody = '<html>not here'",
        "status = 200\nheaders = { Content-Type = 'application/json' }\nbody = '{\"hello\":1}'",
        "status = 200\nheaders = { Content-Type = 'application/json' }\nbody = '{\"jsonrpc\":\"2.0\",\"id\":987654,\"result\":{}}'",
        "status = 200\nheaders = { Content-Type = 'application/json' }\nbody = '{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"what\"}}'",
        "status = 500\nbody = 'it broke'",
        "status = 400\nbody = '{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"no\"}}'",
        "status = 502",
        "status = 503\nheaders = { Retry-After = '120' }",
        "status = 429",
        "status = 307\nheaders = { Location = 'http://elsewhere.example/mcp' }",
        "status = 307\nheaders = { Location = '/mcp' }",
    ];
    let mut seen = Vec::new();
    for answer in answers {
        let fixture = HttpFixture::start(&canned(answer)).await;
        let world = world(&fixture, "");
        let failure = world.call("far_echo", json!({ "text": "x" })).await.unwrap_err();
        let text = render::text::failure(&failure).replace(&fixture.url(), "[URL]");
        seen.push(filtered(&text));
    }
    insta::assert_snapshot!(seen.join("\n\n"), @r#"
    sign_in_required: cannot use the server `far`: cannot connect: the server answered with HTTP status 401: sign-in required: not signed in yet
    Begin a sign-in: mcp({ action: "auth-start", server: "far" }), or ask the user to run: switchboard auth far

    sign_in_required: cannot use the server `far`: cannot connect: the server answered with HTTP status 403: sign-in required: not signed in yet
    Begin a sign-in: mcp({ action: "auth-start", server: "far" }), or ask the user to run: switchboard auth far

    connect_failed: cannot use the server `far`: cannot connect: the URL is not an MCP endpoint: the response was a web page titled "Welcome"
    Ask the user to correct `url`

    connect_failed: cannot use the server `far`: cannot connect: the server answered with HTTP status 404 and a web page

    connect_failed: cannot use the server `far`: cannot connect: the URL is not an MCP endpoint: the response was JSON that is not an MCP message: {"hello":1}
    Ask the user to correct `url`

    connect_failed: cannot use the server `far`: cannot connect: the server answered with the id of another request, which is a bug of the server

    connect_failed: cannot use the server `far`: cannot connect: the server answered `initialize` with an error: error -32700: what

    connect_failed: cannot use the server `far`: cannot connect: the server answered with HTTP status 500 and text: it broke

    connect_failed: cannot use the server `far`: cannot connect: the server answered `initialize` with an error: error -32600: no

    connect_failed: cannot use the server `far`: cannot connect: the server answered with HTTP status 502 and an empty body

    connect_failed: cannot use the server `far`: cannot connect: the server is temporarily unavailable (HTTP status 503)
    Try again in [TIME]

    connect_failed: cannot use the server `far`: cannot connect: the server is temporarily unavailable (HTTP status 429)

    connect_failed: cannot use the server `far`: cannot connect: the server redirects to `http://elsewhere.example`, which is not its configured origin
    Ask the user to correct `url`

    connect_failed: cannot use the server `far`: cannot connect: the server redirected the request too often
    Ask the user to correct `url`
    "#);
}

#[tokio::test]
async fn responses_with_ids_of_no_request_are_skipped() {
    for form in ["json", "events"] {
        for id in ["other", "next", "string", "float", "null", "missing"] {
            let script = format!("[[tools]]\nname = 'echo'\n[faults]\nwrong_ids = '{id}'\n");
            let script = served(form, &script);
            let fixture = HttpFixture::start(&script).await;
            let answer = world(&fixture, "").call("far_echo", json!({ "text": "hi" })).await;
            assert_eq!(answer.unwrap(), "hi", "{form} {id}");
        }
    }
}

#[tokio::test]
async fn unreachable_url_failure_explains_the_reason() {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let closed = fixture.url();
    drop(fixture);
    let mut seen = Vec::new();
    for url in [closed.as_str(), "http://no..host/mcp", "http://[::1/mcp"] {
        let config = json!({ "mcpServers": { "far": { "url": url } } }).to_string();
        let world = World::with(&config).start();
        let failure = world.call("far_echo", json!({ "text": "x" })).await.unwrap_err();
        let text = failure.to_string().replace(closed.trim_end_matches("/mcp"), "[ORIGIN]");
        seen.push(format!("{}: {text}", failure.code));
    }
    insta::assert_snapshot!(seen.join("\n"), @r#"
    connect_failed: cannot use the server `far`: cannot connect: no connection to `[ORIGIN]`: connection refused
    connect_failed: cannot use the server `far`: cannot connect: no connection to `http://no..host`: cannot resolve the hostname `no..host`
    config: cannot use the server `far`: cannot connect: the `url` of the server's entry is not valid
    "#);
}

#[tokio::test]
async fn sse_fallback_follows_only_status_404_405_406_415() {
    for status in [400, 401, 403, 404, 405, 406, 409, 410, 415, 422, 429, 500, 501, 502, 503] {
        for kind in ["http", "streamable-http"] {
            let script = canned(&format!("status = {status}\nto = 'initialize'"));
            let fixture = HttpFixture::start(&script).await;
            let world = world(&fixture, &format!(r#", "type": "{kind}""#));
            world.call("far_echo", json!({ "text": "x" })).await.unwrap_err();
            let tried = fixture.asked() == ["server/discover", "initialize", "GET"];
            let expected = kind == "http" && [404, 405, 406, 415].contains(&status);
            assert_eq!(tried, expected, "{status} {kind}: {:?}", fixture.asked());
        }
    }
}

#[tokio::test]
async fn redirect_or_sse_endpoint_at_another_origin_is_refused() {
    let elsewhere = HttpFixture::start(&served("json", "everything")).await;
    let token = r#", "bearerToken": "canary", "headers": { "X-One": "canary" }"#;
    for status in [301, 302, 303, 307, 308] {
        let to = elsewhere.url();
        let script = canned(&format!("status = {status}\nheaders = {{ Location = '{to}' }}"));
        let fixture = HttpFixture::start(&script).await;
        world(&fixture, token).call("far_echo", json!({ "text": "x" })).await.unwrap_err();
    }
    let endpoint = format!("endpoint = '{}'\n", elsewhere.url());
    let script = format!("{}{endpoint}", served("legacy", "everything"));
    let fixture = HttpFixture::start(&script).await;
    world(&fixture, token).call("far_echo", json!({ "text": "x" })).await.unwrap_err();
    assert_eq!(elsewhere.requests(), []);
}

#[tokio::test]
async fn same_origin_redirect_is_followed_and_remembered() {
    let script = canned("status = 307\npath = '/mcp'\nheaders = { Location = '/mcp/' }");
    let fixture = HttpFixture::start(&script).await;
    let world = world(&fixture, r#", "bearerToken": "canary""#);
    assert_eq!(world.call("far_echo", json!({ "text": "on" })).await.unwrap(), "on");
    let requests = fixture.requests();
    assert_eq!(requests.iter().filter(|request| request.path == "/mcp").count(), 1);
    assert!(requests.iter().all(|it| it.header("authorization") == Some("Bearer canary")));
}

#[tokio::test]
async fn refused_token_is_reported_as_sign_in_required() {
    let script = format!(
        "{}required = {{ authorization = 'Bearer right' }}\n",
        served("json", "everything")
    );
    let fixture = HttpFixture::start(&script).await;
    let entry = json!({ "url": fixture.url(), "bearerToken": "wrong canary" });
    let config = json!({ "mcpServers": { "far": entry } }).to_string();
    let ran = Installed::with(PROGRAMS, &config).run(["call", "far_echo", "text=x"]).await;
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("bearerTokenEnv"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("canary"), "{}", ran.stderr);
    let ran = Installed::with(PROGRAMS, &config).run(["doctor", "--connect", "--json"]).await;
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &found["findings"][0]["code"]), (Some(1), &json!("sign_in_required")));
    let world = World::with(&config).start();
    for _ in 0..2 {
        let failure = world.call("far_echo", json!({ "text": "x" })).await.unwrap_err();
        assert_eq!(failure.code, Code::SignInRequired, "{failure}");
    }
    let status = world.ask("{}").await;
    assert!(status.contains("⚠ far (needs sign-in)"), "{status}");
}

/// The number of pings that the server sends in one response stream.
const PINGS: usize = 5_000;

/// Serves one connection: sends thousands of pings before the result of a call, and never
/// acknowledges a response to a ping.
async fn ping_by_the_thousand(stream: TcpStream, unanswered: Arc<AtomicUsize>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let id = &message["id"];
        let result = |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
        let tools = json!([{ "name": "echo", "inputSchema": { "type": "object" } }]);
        let (kind, body) = match message["method"].as_str() {
            Some("initialize") => {
                let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                    "serverInfo": { "name": "far", "version": "1" } });
                ("200 OK\r\nContent-Type: application/json", result(hello).to_string())
            }
            Some("tools/list") => {
                let body = result(json!({ "tools": tools })).to_string();
                ("200 OK\r\nContent-Type: application/json", body)
            }
            Some("tools/call") => {
                let ping = |n| json!({ "jsonrpc": "2.0", "id": n, "method": "ping" });
                let pings = (0..PINGS).map(|n| format!("data: {}\n\n", ping(n)));
                let content = json!({ "content": [{ "type": "text", "text": "done" }] });
                let body = pings.collect::<String>() + &format!("data: {}\n\n", result(content));
                ("200 OK\r\nContent-Type: text/event-stream", body)
            }
            Some(_) => ("202 Accepted", String::new()),
            None if head.starts_with("POST") => {
                unanswered.fetch_add(1, Ordering::Relaxed);
                return std::future::pending().await;
            }
            None => ("405 Method Not Allowed", String::new()),
        };
        let answer = format!("HTTP/1.1 {kind}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.ok()?;
    }
}

#[tokio::test]
async fn ping_flood_opens_a_bounded_number_of_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let unanswered = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&unanswered);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(ping_by_the_thousand(stream, Arc::clone(&counted)));
        }
    });
    let config = json!({ "mcpServers": { "far": { "url": url } } });
    let world = World::with(&config.to_string()).start();
    for _ in 0..4 {
        assert_eq!(world.call("far_echo", json!({})).await.unwrap(), "done");
    }
    let answers = unanswered.load(Ordering::Relaxed);
    assert!((1..=64).contains(&answers), "{answers}");
}
