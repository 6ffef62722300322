//! Servers that request roots as soon as they are connected, for a stateless client.

use serde_json::{Value, json};
use switchboard_it::client::{Client, text};
use switchboard_it::harness::World;
use switchboard_server::HostKind;

const SCRIPT: &str = "
[server]
asks_roots = true
[[tools]]
name = 'known_roots'
behaviour = 'known_roots'
annotations = { readOnlyHint = true }
";

fn call(capabilities: &Value, answer: Option<(&Value, &Value)>) -> Value {
    let mut params = json!({
        "name": "mcp",
        "arguments": { "tool": "kit_known_roots" },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/clientInfo": { "name": "claude-code", "version": "1" },
        },
    });
    if let Some((state, responses)) = answer {
        params["requestState"] = state.clone();
        params["inputResponses"] = responses.clone();
    }
    params
}

/// Calls the tool and answers its roots requests; returns its text and the number of requests.
async fn known(client: &mut Client, capabilities: &Value, roots: &Value) -> (String, usize) {
    let mut answer = client.ask("tools/call", call(capabilities, None)).await["result"].clone();
    let mut questions = 0;
    while answer["resultType"] == "input_required" {
        let asked = answer["inputRequests"].as_object().unwrap();
        let responses = asked.iter().map(|(key, request)| {
            assert_eq!(request["method"], "roots/list");
            (key.clone(), json!({ "roots": roots }))
        });
        let responses = Value::Object(responses.collect());
        questions += 1;
        let next = call(capabilities, Some((&answer["requestState"], &responses)));
        answer = client.ask("tools/call", next).await["result"].clone();
    }
    (text(&json!({ "result": answer })), questions)
}

#[tokio::test(start_paused = true)]
async fn roots_come_from_client_whose_request_connects_the_server() {
    let world = World::of("kit", "kit").script("kit", SCRIPT).start();
    let roots = json!([{ "uri": "file:///mine" }]);
    // The first connection is shared by all sessions. On it, the gateway learns that the server
    // requests roots.
    world.gateway.list_missing(|_, _, _| {}).await;
    let mut client = world.silent_client(HostKind::Any);
    let (said, questions) = known(&mut client, &json!({ "roots": {} }), &roots).await;
    assert_eq!((said.as_str(), questions), (r#"{"roots":[{"uri":"file:///mine"}]}"#, 1));
    // The server requests roots once per connection, not per call.
    let (said, questions) = known(&mut client, &json!({ "roots": {} }), &roots).await;
    assert_eq!((said.as_str(), questions), (r#"{"roots":[{"uri":"file:///mine"}]}"#, 0));
}

#[tokio::test(start_paused = true)]
async fn roots_request_is_refused_if_client_declares_no_roots() {
    let world = World::of("kit", "kit").script("kit", SCRIPT).start();
    world.gateway.list_missing(|_, _, _| {}).await;
    let mut client = world.silent_client(HostKind::Any);
    let (said, questions) = known(&mut client, &json!({}), &json!([])).await;
    assert_eq!((said.as_str(), questions), ("null", 0));
}
