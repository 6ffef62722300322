//! The first server-to-client request of a server, on a connection that several sessions share.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard::host::Topic;
use switchboard::render;
use switchboard::request::Request;
use switchboard::{Gateway, Session};
use switchboard_it::harness::{World, call, pass};
use switchboard_it::host::{ScriptedHost, SlowHost};

const ASKING: &str = r#"
    [[tools]]
    name = "look"
    annotations = { readOnlyHint = true }
    behaviour = "ask_roots"

    [[tools]]
    name = "change"
    behaviour = "ask_roots"

    [[tools]]
    name = "wait"
    behaviour = "wait"
"#;

const ASKING_AT_THE_START: &str = r#"
    [server]
    asks_roots = true

    [[tools]]
    name = "roots"
    behaviour = "known_roots"
"#;

fn world(script: &str) -> World {
    World::of("kit", "asking").script("asking", script).start()
}

fn roots(of: &str) -> Value {
    json!({ "roots": [{ "uri": format!("file:///{of}") }] })
}

fn session(gateway: &Gateway, of: &str) -> Session {
    let host = ScriptedHost::default();
    host.will_reply(Topic::Roots, roots(of));
    gateway.session(host)
}

async fn ask(session: &Session, tool: &str) -> String {
    match session.handle(Request::Call(call(tool, json!({})))).await {
        Ok(reply) => render::text::reply(&reply),
        Err(failure) => render::text::failure(&failure),
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_calls_get_the_roots_of_their_session() {
    let world = world(ASKING);
    let (one, two) = (session(&world.gateway, "one"), session(&world.gateway, "two"));
    let (first, second) = tokio::join!(ask(&one, "kit_look"), ask(&two, "kit_look"));
    assert!(first.contains("file:///one"), "{first}");
    assert!(second.contains("file:///two"), "{second}");
    // The connection that both sessions shared is closed.
    world.fixture("kit").until(|ledger| ledger.connections == 3 && ledger.open == 2).await;
}

#[tokio::test(start_paused = true)]
async fn ambiguous_server_request_fails_write_calls_until_repeated() {
    let world = world(ASKING);
    let (one, two) = (session(&world.gateway, "one"), session(&world.gateway, "two"));
    for expected in [["repeat the call"; 2], ["file:///one", "file:///two"]] {
        let answers = tokio::join!(ask(&one, "kit_change"), ask(&two, "kit_change"));
        for (answer, expected) in [answers.0, answers.1].iter().zip(expected) {
            assert!(answer.contains(expected), "{answer}");
        }
    }
    assert_eq!(world.fixture("kit").ledger().calls.len(), 4, "no call was made twice");
}

#[tokio::test(start_paused = true)]
async fn ambiguous_server_request_waits_until_one_session_remains() {
    let world = world(ASKING);
    let (one, two) = (session(&world.gateway, "one"), session(&world.gateway, "two"));
    let release = async {
        world.fixture("kit").call_started(2).await;
        pass(Duration::from_millis(100)).await;
        world.fixture("kit").release();
    };
    let (waited, asked, ()) = tokio::join!(ask(&one, "kit_wait"), ask(&two, "kit_change"), release);
    assert_eq!(waited, "released");
    assert!(asked.contains("file:///two"), "{asked}");
    assert_eq!(world.fixture("kit").ledger().connections, 1);
}

#[tokio::test(start_paused = true)]
async fn roots_request_of_abandoned_call_reaches_no_other_session() {
    let world = world(ASKING);
    let one = session(&world.gateway, "one");
    let host = ScriptedHost::default();
    host.will_reply(Topic::Roots, roots("two"));
    let two = world.gateway.session(host.clone());
    let give_up = async {
        let both_run = async {
            world.fixture("kit").call_started(2).await;
            pass(Duration::from_millis(100)).await;
        };
        tokio::select! {
            answer = ask(&one, "kit_change") => panic!("{answer}"),
            () = both_run => {}
        }
        pass(Duration::from_millis(100)).await;
        world.fixture("kit").release();
    };
    let (waited, ()) = tokio::join!(ask(&two, "kit_wait"), give_up);
    assert_eq!(waited, "released");
    assert_eq!(host.asked(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn server_requesting_roots_at_start_is_connected_per_session() {
    let world = world(ASKING_AT_THE_START);
    let (one, two) = (session(&world.gateway, "one"), session(&world.gateway, "two"));
    let (first, second) = tokio::join!(ask(&one, "kit_roots"), ask(&two, "kit_roots"));
    assert!(first.contains("file:///one"), "{first}");
    assert!(second.contains("file:///two"), "{second}");
    let ledger = world.fixture("kit").until(|ledger| ledger.open == 2).await;
    // A ping follows each roots response, to confirm that the server has read it.
    assert_eq!(ledger.methods.iter().filter(|method| *method == "ping").count(), 2);
}

#[tokio::test(start_paused = true)]
async fn first_call_waits_a_bounded_time_for_roots() {
    for (thinks, expected) in [(Some(Duration::from_millis(300)), "file:///slow"), (None, "null")] {
        let world = world(ASKING_AT_THE_START);
        let session = world.gateway.session(SlowHost { thinks, reply: roots("slow") });
        let answer = ask(&session, "kit_roots").await;
        assert!(answer.contains(expected), "{answer}");
    }
}
