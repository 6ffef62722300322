//! HTTP over real sockets: sessions, many concurrent clients, limits, and `serve --http`.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard::paths::Paths;
use switchboard::secret::Token;
use switchboard_it::client::text;
use switchboard_it::harness::World;
use switchboard_it::http_client::{Connection, HttpClient, Stream, mcp_call, request};
use switchboard_it::program::Installed;
use switchboard_server::Offer;
use switchboard_server::http::Listening;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::PROGRAMS;
use crate::reaper::shell;

const EVERYTHING: &str =
    r#"{ "mcpServers": { "demo": { "command": "fixture-server", "args": ["everything"] } } }"#;

const CUT_OFF: &str =
    "the session ended before the response; whether the request took effect is unknown";

/// A gateway in this process that serves HTTP. Its only server is `demo`.
pub(crate) struct Served {
    pub(crate) world: World,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    stop: CancellationToken,
    serving: JoinSet<()>,
}

impl Served {
    pub(crate) async fn everything() -> Served {
        Served::of(World::of("demo", "everything").start()).await
    }

    pub(crate) async fn of(world: World) -> Served {
        let token = Token::of(&Paths::of(&world.home().environment())).unwrap();
        let listening = Listening::at("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listening
            .url()
            .strip_prefix("http://")
            .unwrap()
            .strip_suffix("/mcp")
            .unwrap()
            .parse()
            .unwrap();
        let stop = CancellationToken::new();
        let shown = token.expose().to_owned();
        let mut serving = JoinSet::new();
        serving.spawn(listening.serve(world.gateway.clone(), Offer::Proxy, token, stop.clone()));
        Served { world, address, token: shown, stop, serving }
    }

    pub(crate) async fn connect(&self) -> HttpClient {
        self.connect_at("2025-11-25").await
    }

    pub(crate) async fn connect_at(&self, revision: &str) -> HttpClient {
        let mut client = HttpClient::new(self.address, &self.token).await;
        client.initialize(revision, json!({})).await;
        client
    }

    pub(crate) async fn stop(mut self) -> World {
        self.stop.cancel();
        self.serving.join_next().await.unwrap().unwrap();
        self.world
    }
}

pub(crate) fn echo(id: Value, said: &str) -> Value {
    mcp_call(id, json!({ "tool": "demo_echo", "args": { "text": said } }))
}

pub(crate) fn wait(id: Value) -> Value {
    mcp_call(id, json!({ "tool": "demo_wait" }))
}

#[tokio::test]
async fn http_session_is_valid_from_initialize_to_delete() {
    let served = Served::everything().await;
    let mut client = HttpClient::new(served.address, &served.token).await;
    let early = client.post(&request(json!(1), "tools/list", json!({}))).await;
    assert_eq!(early.head.status, 400, "{early:?}");

    let hello = client.initialize("2025-06-18", json!({})).await;
    assert_eq!(hello["protocolVersion"], "2025-06-18");
    let session = client.session.clone().unwrap();
    assert!(session.len() >= 22, "{session}");
    let listed = client.post(&request(json!(1), "tools/list", json!({}))).await;
    assert_eq!(listed.head.header("content-type"), Some("application/json"));
    assert_eq!(listed.json()["result"]["tools"][0]["name"], "mcp");
    assert_eq!(text(&client.post(&echo(json!("a"), "hi")).await.json()), "hi");

    let mut other = served.connect().await;
    assert_ne!(other.session, client.session);
    let mut deleted = client.elsewhere("DELETE", &[], "").await;
    assert_eq!(deleted.response().await.unwrap().head.status, 204);
    for method in ["POST", "GET", "DELETE"] {
        let body = if method == "POST" { echo(json!(2), "hi").to_string() } else { String::new() };
        let mut gone = client.elsewhere(method, &[], &body).await;
        assert_eq!(gone.response().await.unwrap().head.status, 404, "{method}");
    }
    assert_eq!(text(&other.post(&echo(json!(2), "still here")).await.json()), "still here");
}

#[tokio::test]
async fn malformed_http_posts_are_answered_and_the_session_continues() {
    let served = Served::everything().await;
    let mut client = served.connect().await;
    let mut table = String::new();
    for body in [
        "{not json}",
        "",
        "[]",
        r#"[{"jsonrpc":"2.0","id":11,"method":"ping"}]"#,
        "42",
        r#"{"id":12,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":14,"method":"tools/destroy"}"#,
        r#"{"jsonrpc":"2.0","id":"15","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unheard-of"}"#,
        r#"{"jsonrpc":"2.0","id":77,"result":{}}"#,
    ] {
        let bytes = client.bytes("POST", &[], body);
        let mut connection = Connection::to(served.address).await;
        connection.send(&bytes).await;
        let response = connection.response().await.unwrap();
        let line = format!("  {} {}", response.head.status, response.body);
        table.push_str(&format!("{body}\n{}\n", line.trim_end()));
    }
    insta::assert_snapshot!(table, @r#"
    {not json}
      400 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the message is not valid JSON"}}

      400 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the message is not valid JSON"}}
    []
      400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"JSON-RPC batches are not supported"}}
    [{"jsonrpc":"2.0","id":11,"method":"ping"}]
      400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"JSON-RPC batches are not supported"}}
    42
      400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message is not JSON-RPC 2.0"}}
    {"id":12,"method":"ping"}
      400 {"jsonrpc":"2.0","id":12,"error":{"code":-32600,"message":"the message is not JSON-RPC 2.0"}}
    {"jsonrpc":"2.0","id":14,"method":"tools/destroy"}
      200 {"jsonrpc":"2.0","id":14,"error":{"code":-32601,"message":"this method is not supported"}}
    {"jsonrpc":"2.0","id":"15","method":"ping"}
      200 {"jsonrpc":"2.0","id":"15","result":{}}
    {"jsonrpc":"2.0","method":"notifications/unheard-of"}
      202
    {"jsonrpc":"2.0","id":77,"result":{}}
      202
    "#);
    assert_eq!(text(&client.post(&echo(json!(2), "hi")).await.json()), "hi");
}

#[tokio::test]
async fn deleted_session_cancels_only_its_own_calls() {
    let served = Served::everything().await;
    let (going, staying) = (served.connect().await, served.connect().await);
    let gone = going.elsewhere("POST", &[], &wait(json!(1)).to_string()).await;
    served.world.fixture("demo").call_started(1).await;
    let stays = staying.elsewhere("POST", &[], &wait(json!(1)).to_string()).await;
    served.world.fixture("demo").call_started(2).await;
    let unasked = going.listen(None).await;
    let mut deleted = going.elsewhere("DELETE", &[], "").await;
    assert_eq!(deleted.response().await.unwrap().head.status, 204);
    served.world.fixture("demo").until(|ledger| ledger.cancelled.len() == 1).await;
    assert_eq!(gone.answer().await.unwrap()["error"]["message"], CUT_OFF);
    assert_eq!(unasked.answer().await, None);
    served.world.fixture("demo").release();
    assert_eq!(text(&stays.answer().await.unwrap()), "released");
}

#[tokio::test]
async fn event_stream_of_deleted_session_ends_with_error() {
    let served = Served::everything().await;
    let client = served.connect().await;
    let mut running =
        client.elsewhere("POST", &[], &wait(json!(1)).to_string()).await.stream().await;
    assert_eq!(running.head.header("content-type"), Some("text/event-stream"));
    client.elsewhere("DELETE", &[], "").await.response().await.unwrap();
    let (_, last) = running.message().await.unwrap();
    assert_eq!((&last["id"], &last["error"]["message"]), (&json!(1), &json!(CUT_OFF)));
    assert_eq!(running.message().await, None);
}

#[tokio::test]
async fn stored_result_is_unknown_in_another_http_session() {
    let served = Served::everything().await;
    let (mut one, mut other) = (served.connect().await, served.connect().await);
    let capped = one.mcp(json!({ "tool": "demo_big", "args": { "bytes": 100_000 } })).await;
    let id = switchboard_it::harness::stored_id(&capped).unwrap();
    let read = json!({ "result": id, "limit": 1 });
    assert!(!one.mcp(read.clone()).await.starts_with("unknown_result"));
    assert!(other.mcp(read).await.starts_with("unknown_result"));
}

#[tokio::test]
async fn requests_above_the_session_limit_wait_for_running_calls() {
    let served = Served::everything().await;
    let mut client = served.connect().await;
    let mut waiting = JoinSet::new();
    for id in 0..40 {
        let connection = client.elsewhere("POST", &[], &wait(json!(id)).to_string()).await;
        waiting.spawn(connection.answer());
    }
    served.world.fixture("demo").call_started(32).await;
    // `ping` is exempt from the limit of concurrent requests.
    let alive = client.post(&request(json!("ping"), "ping", json!({}))).await;
    assert_eq!(alive.json()["result"], json!({}));
    let mut answered = 0;
    while let Some(answer) = {
        served.world.fixture("demo").release();
        waiting.join_next().await
    } {
        assert_eq!(text(&answer.unwrap().unwrap()), "released");
        answered += 1;
    }
    assert_eq!((answered, served.world.fixture("demo").ledger().peak), (40, 32));
}

/// A server whose one tool returns its text after a delay.
const NONCES: &str = r#"
[[tools]]
name = "later"
behaviour = { kind = "slow", ms = 0 }
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_with_equal_request_ids_get_own_responses() {
    const CLIENTS: u64 = 50;
    const CALLS: u64 = 200;
    let world = World::of("demo", "nonces").script("nonces", NONCES).start();
    world.ask(r#"{ "connect": "demo" }"#).await;
    let served = Served::of(world).await;
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let mut client = served.connect().await;
        clients.spawn(async move {
            let mut right = 0;
            for call in 0..CALLS {
                let nonce = format!("{number}/{call}");
                // The delay differs between calls and is the same in each run.
                let ms = (number * 7 + call * 13) % 5;
                let args = json!({ "text": nonce, "ms": ms });
                let id = if call < CALLS / 2 { json!(1) } else { json!("1") };
                let sent = mcp_call(id.clone(), json!({ "tool": "demo_later", "args": args }));
                let answer = client.post(&sent).await.json();
                right += u64::from(answer["id"] == id && text(&answer) == nonce);
            }
            right
        });
    }
    assert_eq!(clients.join_all().await.iter().sum::<u64>(), CLIENTS * CALLS);
}

#[tokio::test]
async fn slow_request_heads_do_not_block_new_clients() {
    let served = Served::everything().await;
    let mut established = served.connect().await;
    let mut crowd = Vec::new();
    for _ in 0..300 {
        let mut dawdler = Connection::to(served.address).await;
        dawdler.send(b"POST /mcp HTTP/1.1\r\nHost: ").await;
        crowd.push(dawdler);
    }
    assert_eq!(text(&established.post(&echo(json!(1), "there")).await.json()), "there");
    let mut newcomer = served.connect().await;
    assert_eq!(text(&newcomer.post(&echo(json!(1), "here")).await.json()), "here");
    // The oldest slow connection was closed.
    crowd[0].hung_up().await;
}

/// Requests `/healthz` on a new connection.
async fn is_healthy(served: &Served) -> bool {
    let mut connection = Connection::to(served.address).await;
    let head = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", served.address);
    connection.send(head.as_bytes()).await;
    connection.response().await.is_some_and(|response| response.head.status == 200)
}

#[tokio::test]
async fn listening_streams_at_the_limit_do_not_block_requests() {
    let served = Served::everything().await;
    let mut listening = Vec::new();
    for _ in 0..128 {
        let client = served.connect().await;
        let stream = client.listen(None).await;
        listening.push((client.session.clone(), stream));
    }
    let mut newcomer = served.connect().await;
    assert_eq!(text(&newcomer.post(&echo(json!(1), "here")).await.json()), "here");
    assert!(is_healthy(&served).await);
    // The oldest stream was closed, and its session can open another one.
    let (session, first) = &mut listening[0];
    assert_eq!(first.message().await, None);
    newcomer.session = session.take();
    assert_eq!(newcomer.listen(None).await.head.status, 200);
}

#[tokio::test]
async fn requests_above_gateway_limit_get_503_until_calls_finish() {
    let served = Served::everything().await;
    let mut waiting = JoinSet::new();
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(served.connect().await);
    }
    for number in 0..128 {
        let call = wait(json!(number)).to_string();
        let connection = clients[number / 32].elsewhere("POST", &[], &call).await;
        waiting.spawn(connection.answer());
        // Connections that have not sent a request yet would evict each other.
        served.world.fixture("demo").call_started(number + 1).await;
    }
    let ping = request(json!("ping"), "ping", json!({})).to_string();
    for (method, body) in [("POST", ping.as_str()), ("GET", ""), ("DELETE", "")] {
        let mut refused = clients[0].elsewhere(method, &[], body).await;
        let head = refused.response().await.unwrap().head;
        assert_eq!((head.status, head.header("retry-after")), (503, Some("1")), "{method}");
        refused.hung_up().await;
    }
    assert!(is_healthy(&served).await);
    served.world.fixture("demo").release();
    for answer in waiting.join_all().await {
        assert_eq!(text(&answer.unwrap()), "released");
    }
    let mut again = clients[0].elsewhere("POST", &[], &ping).await;
    assert_eq!(again.response().await.unwrap().head.status, 200);
}

#[tokio::test]
async fn oversized_content_length_is_refused_at_once() {
    let served = Served::everything().await;
    let client = served.connect().await;
    let announced = String::from_utf8(client.bytes("POST", &[], "")).unwrap();
    let announced = announced.replace("Content-Length: 0", "Content-Length: 1000000000");
    let mut connection = Connection::to(served.address).await;
    connection.send(announced.as_bytes()).await;
    let refused = connection.response().await.unwrap();
    assert_eq!(refused.head.status, 413);
    assert_eq!(refused.json()["error"]["code"], -32600);
    connection.hung_up().await;
}

#[tokio::test]
async fn oversized_request_body_is_refused_with_413() {
    let config = json!({
        "mcpServers": { "demo": { "command": "fixture-server", "args": ["everything"] } },
        "settings": { "maxFrameBytes": 65536 },
    });
    let served = Served::of(World::with(&config.to_string()).start()).await;
    let mut client = served.connect().await;
    let large = echo(json!(1), &"x".repeat(70_000)).to_string();
    let mut refused = client.elsewhere("POST", &[], &large).await;
    let refused = refused.response().await.unwrap();
    assert_eq!(refused.head.status, 413);
    assert_eq!(refused.json()["error"]["code"], -32600);
    assert_eq!(text(&client.post(&echo(json!(2), "small")).await.json()), "small");
}

#[tokio::test]
async fn stalled_request_body_times_out() {
    let served = Served::everything().await;
    let client = served.connect().await;
    let announced = String::from_utf8(client.bytes("POST", &[], "")).unwrap();
    let announced = announced.replace("Content-Length: 0", "Content-Length: 10");
    let mut connection = Connection::to(served.address).await;
    connection.send(announced.as_bytes()).await;
    // Gives the server time to read the head of the request.
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(31)).await;
    tokio::time::resume();
    assert_eq!(connection.response().await.unwrap().head.status, 408);
    connection.hung_up().await;
}

/// Opens more connections than the process has file descriptors.
#[tokio::test]
async fn http_server_accepts_connections_after_running_out_of_descriptors() {
    let installed = Installed::bare(PROGRAMS);
    let script = format!("ulimit -n 40; exec '{}' serve --http 0", PROGRAMS.switchboard);
    let mut command = shell(&installed, &script);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut line_with = async |part: &str| loop {
        let line = said.next_line().await.unwrap().expect("it runs");
        if line.contains(part) {
            return line;
        }
    };
    let line = line_with("Serving MCP at ").await;
    let address = line.trim_start_matches("Serving MCP at http://").trim_end_matches("/mcp");
    let address: SocketAddr = address.parse().unwrap();
    let mut crowd = Vec::new();
    for _ in 0..60 {
        crowd.push(Connection::to(address).await);
    }
    line_with("cannot accept a connection").await;
    drop(crowd);
    let mut connection = Connection::to(address).await;
    let head = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n");
    connection.send(head.as_bytes()).await;
    assert_eq!(connection.response().await.unwrap().head.status, 200);
}

#[tokio::test]
async fn accepted_requests_are_answered_before_shutdown() {
    let served = Served::everything().await;
    let client = served.connect().await;
    let mut waiting =
        client.elsewhere("POST", &[], &wait(json!(1)).to_string()).await.stream().await;
    served.world.fixture("demo").call_started(1).await;
    let mut unasked = client.listen(None).await;
    served.stop.cancel();
    // The stream for notifications ends, and no new connection is accepted.
    assert_eq!(unasked.message().await, None);
    served.world.fixture("demo").release();
    let (_, answer) = waiting.message().await.unwrap();
    assert_eq!(text(&answer), "released");
    let address = served.address;
    served.stop().await.shut_down().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn first_sigterm_waits_for_calls_and_exits_zero() {
    let installed = Installed::with(PROGRAMS, EVERYTHING);
    let server = installed.serve_http().await;
    let mut client = server.connect(json!({})).await;
    client.mcp(json!({ "connect": "demo" })).await;
    let mut call = mcp_call(json!(1), json!({ "tool": "demo_slow", "args": { "ms": 600 } }));
    call["params"]["_meta"] = json!({ "progressToken": 1 });
    let mut stream = client.elsewhere("POST", &[], &call.to_string()).await.stream().await;
    // The first progress notification shows that the call runs.
    stream.message().await.unwrap();
    server.terminate();
    let mut last = Value::Null;
    while let Some((_, message)) = stream.message().await {
        last = message;
    }
    assert_eq!(text(&last), "took 600 ms");
    let token = server.token.clone();
    let (code, stderr) = server.ended().await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!stderr.contains(&token), "{stderr}");

    // The token belongs to the user and outlives the process.
    assert_eq!(installed.serve_http().await.token, token);
}

/// Starts a call that takes longer than any test, and waits until it runs.
async fn long_call(client: &HttpClient) -> Stream {
    let mut call = mcp_call(json!(1), json!({ "tool": "demo_slow", "args": { "ms": 50_000 } }));
    call["params"]["_meta"] = json!({ "progressToken": 1 });
    let mut running = client.elsewhere("POST", &[], &call.to_string()).await.stream().await;
    running.message().await.unwrap();
    running
}

#[tokio::test]
async fn call_exceeding_the_shutdown_deadline_gets_an_error() {
    let installed = Installed::with(PROGRAMS, EVERYTHING);
    let server = installed.serve_http().await;
    let client = server.connect(json!({})).await;
    let mut running = long_call(&client).await;
    server.terminate();
    let mut last = Value::Null;
    while let Some((_, message)) = running.message().await {
        last = message;
    }
    assert_eq!((&last["id"], &last["error"]["message"]), (&json!(1), &json!(CUT_OFF)));
    assert_eq!(server.ended().await.0, Some(0));
}

#[tokio::test]
async fn second_sigterm_exits_without_waiting_for_calls() {
    let installed = Installed::with(PROGRAMS, EVERYTHING);
    let server = installed.serve_http().await;
    let client = server.connect(json!({})).await;
    let _running = long_call(&client).await;
    let mut unasked = client.listen(None).await;
    server.terminate();
    // The stream for notifications has ended, so the server now waits for the call.
    assert_eq!(unasked.message().await, None);
    server.terminate();
    assert_eq!(server.ended().await.0, Some(130));
}

#[tokio::test]
async fn status_does_not_reveal_the_http_token() {
    let installed = Installed::bare(PROGRAMS);
    let token = installed.serve_http().await.token.clone();
    let piped = installed.run(["status"]).await;
    let json = installed.run(["status", "--json"]).await;
    let shown = installed.run_on_terminal(["status"], "").await;
    let json_shown = installed.run_on_terminal(["status", "--json"], "").await;
    for quiet in [&piped, &json, &shown, &json_shown] {
        assert!(!quiet.stdout.contains(&token) && !quiet.stderr.contains(&token), "{quiet:?}");
    }
}

#[tokio::test]
async fn non_loopback_address_requires_allow_remote() {
    let installed = Installed::bare(PROGRAMS);
    let refused = installed.run(["serve", "--http", "0.0.0.0:0"]).await;
    insta::assert_snapshot!(refused.transcript(installed.home()), @"
    exit 2
    --- stdout
    --- stderr
    error: refusing to listen at `0.0.0.0:0`, which other machines can reach: add `--allow-remote`
    ");
    let without = installed.run(["serve", "--allow-remote"]).await;
    assert_eq!(without.code, Some(2));
}
