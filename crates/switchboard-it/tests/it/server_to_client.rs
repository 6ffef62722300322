//! What servers ask of their clients and tell them reaches the session that it belongs to.

use std::future::{pending, ready};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard::approval::{Answer, Question};
use switchboard::host::{Abilities, Asked, CannotAsk, Host, ServerQuestion, Topic};
use switchboard::render;
use switchboard::request::{CallRequest, Request};
use switchboard::{Gateway, Session};
use switchboard_it::harness::World;
use switchboard_it::host::ScriptedHost;
use switchboard_it::program::Installed;
use switchboard_wire::{Raw, RpcError};

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
    let call = CallRequest { tool: tool.to_owned(), server: None, args: Default::default() };
    match session.handle(Request::Call(call)).await {
        Ok(reply) => render::text::reply(&reply),
        Err(failure) => render::text::failure(&failure),
    }
}

#[tokio::test]
async fn each_session_answers_for_itself_over_a_connection_of_its_own() {
    let world = World::of("kit", "everything").start();
    let (one, asked_one) = session(&world.gateway, Some(roots("one")));
    let (two, asked_two) = session(&world.gateway, Some(roots("two")));
    // Nobody knows yet that this server asks; the only caller is the one who is meant.
    assert!(call(&one, "kit_ask_roots").await.contains("file:///one"));
    let (first, second) = tokio::join!(call(&one, "kit_ask_roots"), call(&two, "kit_ask_roots"));
    assert!(first.contains("file:///one"), "{first}");
    assert!(second.contains("file:///two"), "{second}");
    assert_eq!(asked_one.asked().len(), 2);
    assert_eq!(asked_two.asked().len(), 1);
    // One that all share, and one for each session.
    assert_eq!(world.fixture("kit").ledger().connections, 3);
    // Told to each is what its own client can do.
    let initializes = world.fixture("kit").ledger().initializes;
    assert_eq!(initializes[1]["capabilities"], json!({ "roots": {} }));
    drop(one);
    world.fixture("kit").until(|ledger| ledger.open == 2).await;
    drop(two);
    world.fixture("kit").until(|ledger| ledger.open == 1).await;
}

#[tokio::test]
async fn what_a_server_asks_for_is_remembered_with_its_lists() {
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
async fn what_a_client_does_not_offer_is_refused_to_the_server() {
    let world = World::of("kit", "everything").start();
    let (able, asked) = session(&world.gateway, Some(roots("one")));
    let answer = call(&able, "kit_ask_sampling").await;
    assert!(answer.contains("this client does not offer sampling"), "{answer}");
    let answer = call(&able, "kit_ask_elicitation").await;
    assert!(answer.contains("this client does not offer elicitation"), "{answer}");
    assert_eq!(asked.asked(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_as_long_as_its_user_thinks() {
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
    let session = world.gateway.session(SlowUser);
    let answer = call(&session, "kit_ask").await;
    assert!(answer.contains("accept"), "{answer}");
}

/// Needs five minutes to say yes.
struct SlowUser;

impl Host for SlowUser {
    fn approve<'a>(&'a self, _: &'a Question) -> Asked<'a, Result<Answer, CannotAsk>> {
        Box::pin(ready(Err(CannotAsk::NobodyThere)))
    }

    fn abilities(&self) -> Abilities {
        Abilities::all()
    }

    fn answer<'a>(&'a self, _: ServerQuestion<'a>) -> Asked<'a, Result<Raw, RpcError>> {
        Box::pin(async {
            let _later = tokio::time::timeout(Duration::from_secs(300), pending::<()>()).await;
            Ok(Raw::from_json(json!({ "action": "accept", "content": {} }).to_string()))
        })
    }
}

#[tokio::test]
async fn log_lines_reach_the_session_whose_call_they_belong_to() {
    let world = World::of("kit", "everything").start();
    let (one, heard_one) = session(&world.gateway, None);
    let (_two, heard_two) = session(&world.gateway, None);
    call(&one, "kit_log").await;
    let told = heard_one.told();
    assert!(told[0].starts_with("kit notifications/message "), "{told:?}");
    assert_eq!(heard_two.told(), Vec::<String>::new());
}

#[tokio::test]
async fn questions_of_a_server_reach_the_client_and_its_answers_the_server() {
    let config = r#"{ "mcpServers": {
        "kit": { "command": "fixture-server", "args": ["everything"] }
    } }"#;
    let installed = Installed::with(PROGRAMS, config);
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
    client.end().await;
}
