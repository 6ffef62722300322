//! Server-to-client requests and notifications reach the session that they belong to.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard::failure::Code;
use switchboard::host::Topic;
use switchboard::render;
use switchboard::request::{CallRequest, Request};
use switchboard::{Gateway, Session};
use switchboard_it::client::Client;
use switchboard_it::harness::World;
use switchboard_it::host::{ScriptedHost, SlowHost};
use switchboard_it::program::Installed;

use crate::PROGRAMS;

fn roots(of: &str) -> Value {
    json!({ "roots": [{ "uri": format!("file:///{of}") }] })
}

fn session(gateway: &Gateway, roots: Option<Value>) -> (Session, ScriptedHost) {
    let host = ScriptedHost::default();
    if let Some(roots) = roots {
        host.will_reply(Topic::Roots, roots);
    }
    (gateway.session(host.clone()), host)
}

async fn call(session: &Session, tool: &str) -> String {
    let call = CallRequest::new(tool, None, Default::default());
    match session.handle(Request::Call(call)).await {
        Ok(reply) => render::text::reply(&reply),
        Err(failure) => render::text::failure(&failure),
    }
}

#[tokio::test]
async fn sessions_answer_server_requests_over_their_own_connections() {
    let world = World::of("kit", "everything").start();
    let (one, asked_one) = session(&world.gateway, Some(roots("one")));
    let (two, asked_two) = session(&world.gateway, Some(roots("two")));
    // The gateway does not know yet that this server sends requests, so they go to the only caller.
    assert!(call(&one, "kit_ask_roots").await.contains("file:///one"));
    let (first, second) = tokio::join!(call(&one, "kit_ask_roots"), call(&two, "kit_ask_roots"));
    assert!(first.contains("file:///one"), "{first}");
    assert!(second.contains("file:///two"), "{second}");
    assert_eq!(asked_one.asked().len(), 2);
    assert_eq!(asked_two.asked().len(), 1);
    // Three connections: a shared one before the gateway knew of the requests, and one for each
    // session.
    assert_eq!(world.fixture("kit").ledger().connections, 3);
    world.fixture("kit").until(|ledger| ledger.open == 2).await;
    // Each connection declares the capabilities of its own client.
    let initializes = world.fixture("kit").ledger().initializes;
    assert_eq!(initializes[1]["capabilities"], json!({ "roots": {} }));
    drop(one);
    world.fixture("kit").until(|ledger| ledger.open == 1).await;
    drop(two);
    world.fixture("kit").until(|ledger| ledger.open == 0).await;
}

#[tokio::test]
async fn kinds_of_server_to_client_requests_are_cached() {
    let world = World::of("kit", "everything").start();
    let (one, _) = session(&world.gateway, Some(roots("one")));
    call(&one, "kit_ask_roots").await;
    drop(one);
    let home = world.shut_down().await;
    let world = World::of("kit", "everything").home(home).start();
    let (two, _) = session(&world.gateway, Some(roots("two")));
    assert!(call(&two, "kit_ask_roots").await.contains("file:///two"));
    let initializes = world.fixture("kit").ledger().initializes;
    assert_eq!(initializes.len(), 1);
    assert_eq!(initializes[0]["capabilities"], json!({ "roots": {} }));
}

#[tokio::test]
async fn server_request_for_an_undeclared_capability_is_refused() {
    let world = World::of("kit", "everything").start();
    let (able, asked) = session(&world.gateway, Some(roots("one")));
    let answer = call(&able, "kit_ask_sampling").await;
    assert!(answer.contains("this client does not offer sampling"), "{answer}");
    let answer = call(&able, "kit_ask_elicitation").await;
    assert!(answer.contains("this client does not offer elicitation"), "{answer}");
    assert_eq!(asked.asked(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn call_timeout_excludes_the_elicitation_answer_time() {
    let script = r#"
        [[tools]]
        name = "ask"
        behaviour = "ask_elicitation"
    "#;
    let world = World::with(
        r#"{ "mcpServers": { "kit": {
            "command": "fixture-server", "args": ["asking"], "requestTimeoutMs": 1000
        } } }"#,
    )
    .script("asking", script)
    .start();
    let reply = json!({ "action": "accept", "content": {} });
    let slow = SlowHost { thinks: Some(Duration::from_secs(300)), reply };
    let session = world.gateway.session(slow);
    let answer = call(&session, "kit_ask").await;
    assert!(answer.contains("accept"), "{answer}");
}

#[tokio::test]
async fn log_messages_reach_the_session_of_their_call() {
    let world = World::of("kit", "everything").start();
    let (one, heard_one) = session(&world.gateway, None);
    let (_two, heard_two) = session(&world.gateway, None);
    call(&one, "kit_log").await;
    let told = heard_one.told();
    assert!(told[0].starts_with("kit notifications/message "), "{told:?}");
    assert_eq!(heard_two.told(), Vec::<String>::new());
}

#[tokio::test]
async fn server_requests_and_client_responses_are_forwarded() {
    let installed = everything();
    let able = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
    let mut client = installed.connect(able).await;
    let answers = [
        ("kit_ask_elicitation", json!({ "action": "accept", "content": { "name": "Ada" } })),
        ("kit_ask_url", json!({ "action": "decline" })),
        (
            "kit_ask_sampling",
            json!({
                "role": "assistant",
                "content": { "type": "text", "text": "Paris" },
                "model": "tester",
            }),
        ),
        ("kit_ask_roots", roots("home")),
    ];
    for (tool, answer) in answers {
        client.user.answers.push_back(answer.clone());
        let text = client.mcp(json!({ "tool": tool })).await;
        let told: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        assert_eq!(told, answer, "{tool}: {text}");
    }
    let asked = &client.user.asked;
    assert!(asked[0]["message"].as_str().unwrap().starts_with("The server `kit` asks: "));
    assert_eq!(asked[1]["url"], "https://example.com/sign-in");
    assert_eq!(asked[2]["messages"][0]["role"], "user");
    let askers: Vec<&Value> =
        asked.iter().take(3).map(|q| &q["_meta"]["switchboard/server"]).collect();
    assert_eq!(askers, ["kit", "kit", "kit"]);
    client.end().await;
}

fn everything() -> Installed {
    let config = r#"{
        "settings": { "firstListing": false },
        "mcpServers": { "kit": { "command": "fixture-server", "args": ["everything"] } }
    }"#;
    Installed::with(PROGRAMS, config)
}

#[tokio::test]
async fn completion_and_resource_templates_reach_the_client() {
    let installed = everything();
    let mut client = installed.connect(json!({})).await;
    client.mcp(json!({ "connect": "kit" })).await;
    let templates = client.ask("resources/templates/list", json!({})).await;
    assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "note://{id}");
    let note = client.ask("resources/read", json!({ "uri": "note://10" })).await;
    assert_eq!(note["result"]["contents"][0]["text"], "note 10", "{note}");
    for (of, argument, expected) in [
        (
            json!({ "type": "ref/prompt", "name": "greet" }),
            json!({ "name": "who", "value": "A" }),
            json!(["Ada", "Alan"]),
        ),
        (
            json!({ "type": "ref/resource", "uri": "note://{id}" }),
            json!({ "name": "id", "value": "1" }),
            json!(["1", "10"]),
        ),
    ] {
        let params = json!({ "ref": of, "argument": argument });
        let answer = client.ask("completion/complete", params).await;
        assert_eq!(answer["result"]["completion"]["values"], expected, "{answer}");
    }
    let params = json!({ "ref": { "type": "ref/prompt", "name": "none" }, "argument": {} });
    let answer = client.ask("completion/complete", params).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    client.end().await;
}

#[tokio::test]
async fn log_messages_name_their_server_and_respect_the_level() {
    let installed = everything();
    let mut client = installed.connect(json!({})).await;
    let logged = async |client: &mut Client| {
        let id = client.call(json!({ "tool": "kit_log" })).await;
        let mut loggers = Vec::new();
        loop {
            let frame = client.next().await;
            if frame["id"] == id {
                return loggers;
            }
            if frame["method"] == "notifications/message" {
                loggers.push(frame["params"]["logger"].as_str().unwrap().to_owned());
            }
        }
    };
    let heard = logged(&mut client).await;
    assert!(heard[0].starts_with("kit"), "{heard:?}");
    let answer = client.ask("logging/setLevel", json!({ "level": "error" })).await;
    assert_eq!(answer["result"], json!({}));
    assert_eq!(logged(&mut client).await, Vec::<String>::new());
    let answer = client.ask("logging/setLevel", json!({ "level": "loud" })).await;
    assert_eq!(answer["error"]["code"], -32602);
    client.end().await;
}

#[tokio::test]
async fn subscription_keeps_connection_open_until_its_session_ends() {
    let world = World::of("kit", "everything").start();
    let (one, heard) = session(&world.gateway, None);
    call(&one, "kit_count").await;
    let caller = one.caller();
    one.subscribe("file:///readme.md").await.unwrap();
    let ledger = world.fixture("kit").ledger();
    assert_eq!(ledger.connections, 2);
    assert_eq!(ledger.methods.last().unwrap(), "resources/subscribe");
    one.unsubscribe("file:///readme.md", &caller).await.unwrap();
    assert_eq!(world.fixture("kit").ledger().methods.last().unwrap(), "resources/unsubscribe");
    let refused = one.subscribe("file:///nowhere").await.unwrap_err();
    assert_eq!(refused.code, Code::UnknownResource);
    call(&one, "kit_update_resource").await;
    assert!(heard.told()[0].contains("notifications/resources/updated"), "{:?}", heard.told());
    let before = world.fixture("kit").ledger().open;
    drop(one);
    world.fixture("kit").until(|ledger| ledger.open < before).await;
}

#[tokio::test]
async fn client_that_listed_prompts_or_resources_gets_change_notifications() {
    let installed = everything();
    let mut client = installed.connect(json!({})).await;
    assert_eq!(client.ask("prompts/list", json!({})).await["result"], json!({ "prompts": [] }));
    client.ask("resources/list", json!({})).await;
    client.mcp(json!({ "connect": "kit" })).await;
    let mut news = Vec::new();
    while news.len() < 2 {
        let frame = client.next().await;
        news.extend(frame["method"].as_str().map(str::to_owned));
    }
    news.sort();
    let expected = ["notifications/prompts/list_changed", "notifications/resources/list_changed"];
    assert_eq!(news, expected);
    client.end().await;
}

#[tokio::test]
async fn disabled_sampling_and_elicitation_are_not_declared() {
    let config = r#"{
        "settings": { "sampling": false, "elicitation": false },
        "mcpServers": { "kit": { "command": "fixture-server", "args": ["everything"] } }
    }"#;
    let world = World::with(config).start();
    let host = ScriptedHost::default();
    for topic in Topic::ALL {
        host.will_reply(topic, json!({}));
    }
    let session = world.gateway.session(host.clone());
    for tool in ["kit_ask_sampling", "kit_ask_elicitation"] {
        let answer = call(&session, tool).await;
        assert!(answer.contains("this client does not offer"), "{answer}");
    }
    assert_eq!(host.asked(), Vec::<String>::new());
    let initializes = world.fixture("kit").ledger().initializes;
    let declared = initializes[0]["capabilities"].as_object().unwrap();
    assert_eq!(declared.keys().collect::<Vec<_>>(), ["roots"]);
}
