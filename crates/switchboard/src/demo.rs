//! The built-in demo server, for searching, describing and calling before any server is configured.

use std::pin::Pin;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_wire::envelope::{INVALID_PARAMS, METHOD_NOT_FOUND, Malformed};
use switchboard_wire::era::Revision;
use switchboard_wire::peer::{self, PeerLimits};
use switchboard_wire::pipe::End;
use switchboard_wire::{Handler, Notification, Peer, Raw, Responder, RpcError};
use tokio_util::task::TaskTracker;

use crate::dial::in_process::InProcess;

const NOTES: &str = "demo://notes";
const LONGEST_COUNT: u64 = 60;

/// The `demo` server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demo;

impl InProcess for Demo {
    fn serve(&self, end: End) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let (_, reader, writer) = peer::open(end.reader, end.writer, PeerLimits::default());
            let mut requests = Requests { running: TaskTracker::new() };
            tokio::select! {
                _ = reader.run(&mut requests) => {}
                _ = writer.run() => {}
            }
        })
    }
}

struct Requests {
    running: TaskTracker,
}

impl Handler for Requests {
    fn request(&mut self, method: String, params: Option<Raw>, responder: Responder) {
        self.running.spawn(async move {
            let params: Value = params.and_then(|raw| raw.parse().ok()).unwrap_or_default();
            match answer(&method, &params, responder.peer()).await {
                Ok(result) => {
                    let text = result.to_string();
                    responder.result(|out| out.push_str(&text)).await;
                }
                Err(error) => responder.error(&error).await,
            }
        });
    }

    fn notification(&mut self, _: Notification) {}

    fn malformed(&mut self, _: &Malformed, _: &Peer) {}
}

async fn answer(method: &str, params: &Value, peer: &Peer) -> Result<Value, RpcError> {
    match method {
        "initialize" => {
            let requested = params["protocolVersion"].as_str().unwrap_or_default();
            Ok(json!({
                "protocolVersion": Revision::negotiate(requested).as_str(),
                "capabilities": { "tools": {}, "resources": {}, "prompts": {} },
                "serverInfo": { "name": "demo", "version": env!("CARGO_PKG_VERSION") },
                "instructions": "A server to try things with. Nothing it does leaves this process.",
            }))
        }
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({ "tools": tools() })),
        "tools/call" => call(params, peer).await,
        "resources/list" => Ok(json!({ "resources": [{
            "uri": NOTES,
            "name": "notes",
            "description": "What the demo server is for",
            "mimeType": "text/plain",
        }] })),
        "resources/read" if params["uri"] == NOTES => Ok(json!({ "contents": [{
            "uri": NOTES,
            "mimeType": "text/plain",
            "text": "The demo server stands in until a server of your own is configured.",
        }] })),
        "prompts/list" => Ok(json!({ "prompts": [{
            "name": "greet",
            "description": "A friendly greeting",
            "arguments": [{ "name": "name", "description": "Who is greeted", "required": true }],
        }] })),
        "prompts/get" if params["name"] == "greet" => {
            let name = params["arguments"]["name"].as_str().unwrap_or("you");
            let text = format!("Write a friendly greeting for {name}.");
            let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
            Ok(json!({ "messages": [message] }))
        }
        "resources/read" | "prompts/get" => {
            Err(RpcError::new(INVALID_PARAMS, "there is no such resource or prompt"))
        }
        _ => Err(RpcError::new(METHOD_NOT_FOUND, "the demo server does not know this method")),
    }
}

fn tools() -> Value {
    let number = |about: &str| json!({ "type": "number", "description": about });
    json!([
        {
            "name": "add",
            "description": "Add two numbers",
            "inputSchema": {
                "type": "object",
                "properties": { "a": number("First number"), "b": number("Second number") },
                "required": ["a", "b"],
            },
            "annotations": { "readOnlyHint": true },
        },
        {
            "name": "echo",
            "description": "Give a text back, as it is or in capitals",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "text": { "type": "string", "description": "The text" },
                    "style": {
                        "type": "string",
                        "enum": ["plain", "capitals"],
                        "default": "plain",
                        "description": "How to give it back",
                    },
                },
                "required": ["text"],
            },
            "annotations": { "readOnlyHint": true },
        },
        {
            "name": "count",
            "description": "Count slowly, a step a second, and report progress",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "to": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": LONGEST_COUNT,
                        "default": 5,
                        "description": "Where to stop",
                    },
                },
            },
            "annotations": { "readOnlyHint": true },
        },
        {
            "name": "lines",
            "description": "Many numbered lines, to see how a large result is cut and read on",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "count": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 100_000,
                        "default": 5_000,
                        "description": "How many",
                    },
                },
            },
            "annotations": { "readOnlyHint": true },
        },
        {
            "name": "forget",
            "description": "Declares that it destroys something, so it asks first; it does nothing",
            "inputSchema": { "type": "object", "properties": {} },
            "annotations": { "destructiveHint": true },
        },
    ])
}

async fn call(params: &Value, peer: &Peer) -> Result<Value, RpcError> {
    let arguments = &params["arguments"];
    let said = match params["name"].as_str().unwrap_or_default() {
        "add" => sum(&arguments["a"], &arguments["b"]),
        "echo" => {
            let text = arguments["text"].as_str().unwrap_or_default();
            match arguments["style"].as_str() {
                Some("capitals") => text.to_uppercase(),
                _ => text.to_owned(),
            }
        }
        "count" => {
            let to = arguments["to"].as_u64().unwrap_or(5).min(LONGEST_COUNT);
            count(to, &params["_meta"]["progressToken"], peer).await;
            format!("Counted to {to}")
        }
        "lines" => {
            let count = arguments["count"].as_u64().unwrap_or(5_000).min(100_000);
            (1..=count).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n")
        }
        "forget" => "Nothing was destroyed".to_owned(),
        _ => return Err(RpcError::new(INVALID_PARAMS, "the demo server has no such tool")),
    };
    Ok(json!({ "content": [{ "type": "text", "text": said }] }))
}

/// Adds integers without conversion to floating point, where possible.
fn sum(a: &Value, b: &Value) -> String {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64())
        && let Some(sum) = a.checked_add(b)
    {
        return sum.to_string();
    }
    (a.as_f64().unwrap_or(0.0) + b.as_f64().unwrap_or(0.0)).to_string()
}

async fn count(to: u64, token: &Value, peer: &Peer) {
    for step in 1..=to {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if !token.is_null() {
            let progress = json!({ "progressToken": token, "progress": step, "total": to });
            peer.try_notify("notifications/progress", &progress.to_string());
        }
    }
}
