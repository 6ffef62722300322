//! Misbehaving clients: they do not read responses, or disconnect during a message, a call or a
//! stream.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};
use switchboard_it::client::text;
use switchboard_it::http_client::mcp_call;
use switchboard_it::processes::{peak_memory, send_signal, until, until_gone};
use switchboard_it::program::Installed;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin};

use crate::PROGRAMS;
use crate::http_face::{Served, echo, wait};

const SCRIPT: &str = "[[tools]]\nname = 'echo'\n[[tools]]\nname = 'wait'\nbehaviour = 'wait'\n";

/// Starts `serve` and sends `initialize`, without reading its output.
async fn unheard(installed: &Installed) -> (Child, ChildStdin) {
    let mut command = installed.command();
    command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "chaos", "version": "1" },
    });
    let hello =
        json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params });
    stdin.write_all(format!("{hello}\n").as_bytes()).await.unwrap();
    (child, stdin)
}

fn call_of(id: usize, size: usize) -> String {
    let args = json!({ "text": "x".repeat(size) });
    format!("{}\n", mcp_call(json!(id), json!({ "tool": "demo_echo", "args": args })))
}

#[tokio::test]
async fn slow_client_gets_every_response_within_bounded_memory() {
    const CALLS: usize = 400;
    let installed = Installed::with_fixture(PROGRAMS, "demo", SCRIPT);
    let (mut child, mut stdin) = unheard(&installed).await;
    let pid = child.id().unwrap();
    let sending = tokio::spawn(async move {
        for id in 0..CALLS {
            stdin.write_all(call_of(id, 19_000).as_bytes()).await.unwrap();
        }
        stdin
    });
    until("the first calls are answered", || !installed.spawned().is_empty()).await;
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen = vec![0; CALLS];
    while seen.contains(&0) {
        let line = lines.next_line().await.unwrap().expect("a response to each call");
        let frame: Value = serde_json::from_str(&line).unwrap();
        if let Some(id) = frame["id"].as_u64() {
            assert_eq!(text(&frame).len(), 19_000);
            seen[usize::try_from(id).unwrap()] += 1;
        }
    }
    assert_eq!(seen, [1; CALLS]);
    let peak = peak_memory(pid);
    assert!(peak < 96 * 1024 * 1024, "{peak} bytes");
    drop(sending.await.unwrap());
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn client_that_disconnects_inside_a_line_leaves_no_process() {
    let installed = Installed::with_fixture(PROGRAMS, "demo", SCRIPT);
    let mut client = installed.connect(json!({})).await;
    client.mcp(json!({ "tool": "demo_echo", "args": { "text": "up" } })).await;
    client.send_bytes(br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","par"#).await;
    let ended = client.end().await;
    assert_eq!(ended.code, Some(0));
    let answers: Vec<(&Value, &Value)> =
        ended.frames.iter().map(|frame| (&frame["id"], &frame["error"]["code"])).collect();
    assert_eq!(answers, [(&Value::Null, &json!(-32700))]);
    until_gone(&installed.spawned()).await;
}

#[tokio::test]
async fn every_malformed_line_gets_a_parse_error() {
    const LINES: usize = 2_000;
    let installed = Installed::with_fixture(PROGRAMS, "demo", SCRIPT);
    let mut client = installed.connect(json!({})).await;
    client.send_bytes("{\"jsonrpc\": oops}\n".repeat(LINES).as_bytes()).await;
    assert_eq!(client.mcp(json!({ "tool": "demo_echo", "args": { "text": "hi" } })).await, "hi");
    let peak = peak_memory(client.pid());
    assert!(peak < 96 * 1024 * 1024, "{peak} bytes");
    let refusals = client.end().await.frames;
    let malformed = |frame: &&Value| frame["id"].is_null() && frame["error"]["code"] == -32700;
    assert_eq!(refusals.iter().filter(malformed).count(), LINES);
}

#[tokio::test]
async fn closing_all_pipes_during_a_call_ends_all_processes() {
    let installed = Installed::with_fixture(PROGRAMS, "demo", SCRIPT);
    let (mut child, mut stdin) = unheard(&installed).await;
    stdin.write_all(call_of(1, 10).as_bytes()).await.unwrap();
    until("the server runs", || !installed.spawned().is_empty()).await;
    drop(child.stdout.take());
    stdin.write_all(call_of(2, 10).as_bytes()).await.unwrap();
    drop(stdin);
    assert!(child.wait().await.unwrap().code().is_some());
    until_gone(&installed.spawned()).await;
}

#[tokio::test]
async fn sigterm_ends_a_gateway_whose_client_never_reads() {
    let installed = Installed::with_fixture(PROGRAMS, "demo", SCRIPT);
    let (mut child, mut stdin) = unheard(&installed).await;
    // The responses do not fit into the buffer of the pipe.
    for id in 0..8 {
        stdin.write_all(call_of(id, 40_000).as_bytes()).await.unwrap();
    }
    until("the server runs", || !installed.spawned().is_empty()).await;
    let pid = child.id().unwrap();
    send_signal(pid, Signal::TERM);
    // A second SIGTERM ends the gateway without waiting for the deadline of the first.
    send_signal(pid, Signal::TERM);
    child.wait().await.unwrap();
    until_gone(&installed.spawned()).await;
}

#[tokio::test]
async fn client_that_drops_response_streams_can_still_call() {
    let served = Served::everything().await;
    let mut client = served.connect().await;
    let mut other = served.connect().await;
    let mut waiting = Vec::new();
    for id in 0..20 {
        waiting.push(client.elsewhere("POST", &[], &wait(json!(id)).to_string()).await);
    }
    served.world.fixture("demo").call_started(20).await;
    for connection in waiting {
        let mut stream = connection.stream().await;
        stream.event().await.unwrap();
        drop(stream);
        assert_eq!(text(&other.post(&echo(json!(1), "hi")).await.json()), "hi");
    }
    assert_eq!(served.world.fixture("demo").ledger().running, 20);
    served.world.fixture("demo").release();
    assert_eq!(text(&client.post(&echo(json!("again"), "hi")).await.json()), "hi");
}
