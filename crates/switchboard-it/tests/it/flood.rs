//! A client that sends many requests and reads no responses: memory is bounded, and no response is
//! lost.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_it::harness::{World, pass};
use switchboard_server::stdio::serve_over;
use switchboard_server::{HostKind, Offer};
use switchboard_wire::pipe::{self, End};
use switchboard_wire::stdio::{Input, Output};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

const SCRIPT: &str = r#"
[[tools]]
name = "much"
behaviour = { kind = "big", bytes = 20000 }
[[tools]]
name = "huge"
behaviour = { kind = "big", bytes = 1000000 }
[[tools]]
name = "ask"
behaviour = { kind = "ask_elicitation" }
[[tools]]
name = "never"
behaviour = { kind = "wait" }
[[tools]]
name = "tell"
behaviour = { kind = "log", text = "told" }
"#;

fn world() -> World {
    let config = r#"{ "settings": { "approve": "none", "outputGuard": false },
        "mcpServers": { "kit": { "command": "fixture-server", "args": ["kit"] } } }"#;
    World::with(config).script("kit", SCRIPT).start()
}

/// Connects a client that gets this offer of tools; returns the client's end of the connection.
fn connect(world: &World, offer: Offer) -> End {
    let (ours, theirs) = pipe::pair();
    let streams: (Input, Output) = (Box::new(theirs.reader), Box::new(theirs.writer));
    let gateway = world.gateway.clone();
    tokio::spawn(serve_over(streams, gateway, (offer, HostKind::Any), CancellationToken::new()));
    ours
}

fn frame(id: u64, method: &str, params: Value) -> String {
    format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

fn initialize() -> String {
    let client = json!({ "name": "flood", "version": "1" });
    let can = json!({ "elicitation": {} });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": can, "clientInfo": client });
    frame(0, "initialize", params)
}

/// Writes frames without reading until a write blocks; returns the number of written frames.
async fn write_until_stuck(end: &mut End, frames: impl Iterator<Item = String>) -> u64 {
    let mut taken = 0;
    for frame in frames {
        // The paused clock advances only when no task is ready.
        let write = end.writer.write_all(frame.as_bytes());
        if tokio::time::timeout(Duration::from_secs(5), write).await.is_err() {
            break;
        }
        taken += 1;
    }
    taken
}

#[tokio::test(start_paused = true)]
async fn unread_responses_are_bounded_for_each_client() {
    let calls: [(&str, Offer, Value); 6] = [
        ("tools/call", Offer::Proxy, json!({ "name": "mcp", "arguments": { "tool": "kit_much" } })),
        ("tools/call", Offer::Direct, json!({ "name": "kit_much", "arguments": {} })),
        ("tools/call", Offer::Mirror("kit".into()), json!({ "name": "much", "arguments": {} })),
        ("tools/call", Offer::Proxy, json!({ "name": "mcp", "arguments": { "server": "kit" } })),
        ("tools/list", Offer::Direct, json!({})),
        ("unknown/method", Offer::Proxy, json!({ "filler": "x".repeat(1_000) })),
    ];
    for (method, offer, params) in calls {
        let world = world();
        world.ask(r#"{ "connect": "kit" }"#).await;
        let mut end = connect(&world, offer.clone());
        end.writer.write_all(initialize().as_bytes()).await.unwrap();
        let requests = (1..=9_000).map(|id| frame(id, method, params.clone()));
        let taken = write_until_stuck(&mut end, requests).await;
        let made = world.fixture("kit").ledger().calls.len();
        assert!(made <= 800, "{method} {offer:?}: {made} calls were made");
        let is_large = params.to_string().contains("much");
        assert!(!is_large || taken < 9_000, "{method} {offer:?}: {taken} requests were taken");
        // A client that reads later gets every response.
        end.writer.shutdown().await.unwrap();
        let mut lines = BufReader::new(end.reader).lines();
        let mut answered = 0;
        while let Some(line) = lines.next_line().await.unwrap() {
            // The lines are not parsed, because there are many.
            answered += u64::from(line.contains("\"id\":") && !line.contains("\"id\":0"));
        }
        assert!(answered >= taken.saturating_sub(1), "{method} {offer:?}: {answered} of {taken}");
    }
}

#[tokio::test(start_paused = true)]
async fn reading_pauses_while_large_requests_are_in_flight() {
    let world = world();
    world.ask(r#"{ "connect": "kit" }"#).await;
    let mut end = connect(&world, Offer::Proxy);
    end.writer.write_all(initialize().as_bytes()).await.unwrap();
    let requests = |bytes: usize| {
        (1..=60_u64).map(move |id| {
            let args = json!({ "filler": "x".repeat(bytes) });
            let call = json!({ "tool": "kit_never", "args": args });
            frame(id, "tools/call", json!({ "name": "mcp", "arguments": call }))
        })
    };
    let taken = write_until_stuck(&mut end, requests(4_000_000)).await;
    assert!((8..=12).contains(&taken), "{taken} requests of 4 MB were taken");
    let mut end = connect(&world, Offer::Proxy);
    end.writer.write_all(initialize().as_bytes()).await.unwrap();
    assert_eq!(write_until_stuck(&mut end, requests(40_000)).await, 60);
}

/// The gateway does not know the size of the first responses in advance.
#[tokio::test(start_paused = true)]
async fn call_burst_is_throttled_until_response_sizes_are_known() {
    for (earlier, idle) in [(0, 0), (3, 0), (100, 200)] {
        let world = world();
        world.ask(r#"{ "connect": "kit" }"#).await;
        let mut end = connect(&world, Offer::Proxy);
        end.writer.write_all(initialize().as_bytes()).await.unwrap();
        let mut lines = BufReader::new(end.reader).lines();
        // Earlier small responses do not predict the size of the next ones.
        for id in 1..=earlier {
            let params = json!({ "name": "mcp", "arguments": {} });
            end.writer.write_all(frame(id, "tools/call", params).as_bytes()).await.unwrap();
        }
        for _ in 0..=earlier {
            lines.next_line().await.unwrap().unwrap();
        }
        pass(Duration::from_millis(idle)).await;
        for id in 200..230 {
            let params = json!({ "name": "mcp", "arguments": { "tool": "kit_huge" } });
            end.writer.write_all(frame(id, "tools/call", params).as_bytes()).await.unwrap();
        }
        pass(Duration::from_secs(60)).await;
        let made = world.fixture("kit").ledger().calls.len();
        assert!((1..=20).contains(&made), "{made} calls were made");
        let mut answered = 0;
        while answered < 30 {
            let line = lines.next_line().await.unwrap().unwrap();
            answered += usize::from(line.contains("\"result\""));
        }
        assert_eq!(world.fixture("kit").ledger().calls.len(), 30);
    }
}

#[tokio::test(start_paused = true)]
async fn client_with_unread_notifications_is_not_read_further() {
    let world = world();
    let mut end = connect(&world, Offer::Mirror("kit".into()));
    end.writer.write_all(initialize().as_bytes()).await.unwrap();
    let call = json!({ "name": "tell", "arguments": {} });
    let requests = (1..=20_000).map(|id| frame(id, "tools/call", call.clone()));
    let taken = write_until_stuck(&mut end, requests).await;
    assert!(taken < 20_000, "{taken}");
}

#[tokio::test(start_paused = true)]
async fn many_calls_in_flight_still_allow_server_requests() {
    let world = world();
    let end = connect(&world, Offer::Mirror("kit".into()));
    let (mut writer, reader) = (end.writer, end.reader);
    writer.write_all(initialize().as_bytes()).await.unwrap();
    let count = 400;
    for id in 1..=count {
        let call = json!({ "name": "ask", "arguments": {} });
        writer.write_all(frame(id, "tools/call", call).as_bytes()).await.unwrap();
    }
    let mut lines = BufReader::new(reader).lines();
    let mut answered = 0;
    while answered < count {
        let line = lines.next_line().await.unwrap().expect("a line");
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["method"] == "elicitation/create" {
            let result =
                json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "action": "decline" } });
            writer.write_all(format!("{result}\n").as_bytes()).await.unwrap();
        } else if message["id"].as_u64().is_some_and(|id| id > 0) {
            answered += 1;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn calls_during_open_approval_questions_are_bounded() {
    let config = r#"{ "settings": { "approve": "all" },
        "mcpServers": { "kit": { "command": "fixture-server", "args": ["kit"] } } }"#;
    let world = World::with(config).script("kit", SCRIPT).start();
    world.ask(r#"{ "connect": "kit" }"#).await;
    let end = connect(&world, Offer::Proxy);
    let (mut writer, reader) = (end.writer, end.reader);
    writer.write_all(initialize().as_bytes()).await.unwrap();
    let writing = tokio::spawn(async move {
        let call = json!({ "name": "mcp", "arguments": { "tool": "kit_much" } });
        for id in 1..=2_000 {
            writer.write_all(frame(id, "tools/call", call.clone()).as_bytes()).await.unwrap();
        }
        writer
    });
    // No question is answered.
    let mut lines = BufReader::new(reader).lines();
    let mut refused = 0;
    while refused < 1_000 {
        let line = lines.next_line().await.unwrap().expect("a line");
        refused += u32::from(line.contains("too many requests wait"));
    }
    drop(writing.await.unwrap());
    assert!(world.fixture("kit").ledger().calls.is_empty());
}
