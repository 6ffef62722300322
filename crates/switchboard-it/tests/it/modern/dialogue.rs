//! The client of a call answers the input requests of a stateless server, within limits.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard::host::Topic;
use switchboard_it::harness::World;
use switchboard_it::host::{ScriptedHost, SlowHost};
use switchboard_it::program::Installed;
use tokio::task::JoinSet;

use super::call;
use crate::PROGRAMS;

const ASKS: &str = r#"
    [server]
    era = "modern"
    [[tools]]
    name = "thrice"
    behaviour = { kind = "ask_rounds", rounds = 3 }
    [[tools]]
    name = "eight"
    behaviour = { kind = "ask_rounds", rounds = 8, state = 65000 }
    [[tools]]
    name = "nine"
    behaviour = { kind = "ask_rounds", rounds = 9 }
    [[tools]]
    name = "heavy"
    behaviour = { kind = "ask_rounds", rounds = 1, state = 66000 }
    [[tools]]
    name = "ask"
    behaviour = "ask_elicitation"
    [[tools]]
    name = "words"
    behaviour = "ask_sampling"
"#;

#[tokio::test]
async fn input_requests_are_answered_until_complete_or_over_limit() {
    let world = World::of("kit", "asks").script("asks", ASKS).start();
    let host = ScriptedHost::default();
    host.will_reply(Topic::Roots, json!({ "roots": [] }));
    let session = world.gateway.session(host.clone());
    for (tool, expected, asked, made) in [
        ("kit_thrice", "asked 3 times", 3, 4),
        ("kit_eight", "asked 8 times", 8, 9),
        ("kit_nine", "the server requested input more than 8 times", 8, 9),
        ("kit_heavy", "the server's `requestState` is larger than 65536 bytes", 0, 1),
    ] {
        let before = (host.asked().len(), world.fixture("kit").ledger().calls.len());
        let answer = call(&session, tool, json!({})).await;
        assert!(answer.contains(expected), "{tool}: {answer}");
        let calls = world.fixture("kit").ledger().calls;
        assert_eq!(
            (host.asked().len() - before.0, calls.len() - before.1),
            (asked, made),
            "{tool}"
        );
        let mut ids: Vec<String> = calls.iter().map(|call| call.id.to_string()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), calls.len(), "each request has its own id");
    }
    assert_eq!(world.fixture("kit").ledger().connections, 1);
}

#[tokio::test]
async fn input_request_for_unavailable_capability_fails_the_call() {
    let config = r#"{
        "settings": { "sampling": false },
        "mcpServers": { "kit": { "command": "fixture-server", "args": ["asks"] } }
    }"#;
    let world = World::with(config).script("asks", ASKS).start();
    let host = ScriptedHost::default();
    host.will_reply(Topic::Sampling, json!({}));
    let session = world.gateway.session(host.clone());
    // The server sees the missing capability and answers with an error of its own.
    for (tool, needed) in [("kit_ask", "elicitation"), ("kit_words", "sampling")] {
        let answer = call(&session, tool, json!({})).await;
        assert!(answer.contains(&format!("error -32021: {needed} is needed")), "{answer}");
    }
    // A server that requests input despite the missing capability gets no response.
    let answer = call(&session, "kit_thrice", json!({})).await;
    let expected = "the server did not finish the call: the server requested roots, which this client \
                    does not offer";
    assert!(answer.contains(expected), "{answer}");
    assert_eq!(host.asked(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn call_timeout_excludes_the_answer_time_of_the_user() {
    let config = r#"{ "mcpServers": { "kit": {
        "command": "fixture-server", "args": ["asks"], "requestTimeoutMs": 1000
    } } }"#;
    let world = World::with(config).script("asks", ASKS).start();
    let reply = json!({ "action": "accept", "content": {} });
    let slow = SlowHost { thinks: Some(Duration::from_secs(300)), reply };
    let answer = call(&world.gateway.session(slow), "kit_ask", json!({})).await;
    assert!(answer.contains("accept"), "{answer}");
    let never = SlowHost { thinks: None, reply: Value::Null };
    let begun = tokio::time::Instant::now();
    let answer = call(&world.gateway.session(never), "kit_ask", json!({})).await;
    assert!(
        answer.contains("the server requested elicitation, and the client did not answer in time"),
        "{answer}"
    );
    assert_eq!(begun.elapsed().as_secs(), 600);
}

#[tokio::test]
async fn concurrent_input_requests_reach_their_own_clients() {
    let world = World::of("kit", "asks").script("asks", ASKS).start();
    let world = Arc::new(world);
    let calls: JoinSet<()> = (0..20)
        .map(|number| (number, Arc::clone(&world)))
        .map(|(number, world)| async move {
            let host = ScriptedHost::default();
            let reply = json!({ "action": "accept", "content": { "number": number } });
            host.will_reply(Topic::Elicitation, reply.clone());
            let answer = call(&world.gateway.session(host), "kit_ask", json!({})).await;
            assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), reply);
        })
        .collect();
    calls.join_all().await;
    assert_eq!(world.fixture("kit").ledger().connections, 1);
}

/// A session-based client in front of a stateless server.
#[tokio::test]
async fn session_based_client_answers_a_stateless_server() {
    let config = r#"{
        "settings": { "firstListing": false },
        "mcpServers": { "kit": { "command": "fixture-server", "args": ["everything@modern"] } }
    }"#;
    let installed = Installed::with(PROGRAMS, config);
    let able = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
    let mut client = installed.connect(able).await;
    let words = json!({ "type": "text", "text": "Paris" });
    let roots = json!({ "roots": [{ "uri": "file:///home" }] });
    for (tool, answer) in [
        ("kit_ask_elicitation", json!({ "action": "accept", "content": { "name": "Ada" } })),
        ("kit_ask_url", json!({ "action": "decline" })),
        ("kit_ask_sampling", json!({ "role": "assistant", "content": words, "model": "tester" })),
        ("kit_ask_roots", roots),
    ] {
        client.user.answers.push_back(answer.clone());
        let text = client.mcp(json!({ "tool": tool })).await;
        let told: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        assert_eq!(told, answer, "{tool}: {text}");
    }
    let asked = &client.user.asked;
    assert!(asked[0]["message"].as_str().unwrap().starts_with("The server `kit` asks: "));
    assert_eq!(asked.len(), 4);
    client.end().await;
}
