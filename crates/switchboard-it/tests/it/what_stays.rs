//! Log levels and subscriptions of a client also apply to later connections.

use serde_json::{Value, json};
use switchboard::log_level::LogLevel;
use switchboard::relay::Lookup;
use switchboard::request::Request;
use switchboard::{Gateway, Session};
use switchboard_it::fixture::Ledger;
use switchboard_it::harness::{World, call};
use switchboard_it::host::ScriptedHost;

const README: &str = "file:///readme.md";

/// A session whose calls use the connection that its subscriptions use.
fn private_session(gateway: &Gateway) -> (Session, ScriptedHost) {
    let host = ScriptedHost::default();
    (gateway.private_session(host.clone()), host)
}

async fn crash(session: &Session) {
    session.handle(Request::Call(call("kit_crash", json!({})))).await.unwrap_err();
}

fn subscriptions(ledger: &Ledger) -> usize {
    ledger.methods.iter().filter(|method| *method == "resources/subscribe").count()
}

#[tokio::test(start_paused = true)]
async fn log_level_applies_to_later_and_renewed_connections() {
    let world = World::of("kit", "everything").start();
    let session = &world.session;
    session.set_log_level(LogLevel::Error, &session.caller()).await;
    assert_eq!(
        world.fixture("kit").ledger().connections,
        0,
        "setting the log level started the server"
    );
    for connections in 1..=2 {
        world.call("kit_count", json!({})).await.unwrap();
        let ledger = world.fixture("kit").ledger();
        assert_eq!(ledger.levels, vec![json!("error"); connections]);
        crash(session).await;
    }
}

#[tokio::test(start_paused = true)]
async fn shared_connection_uses_the_most_verbose_log_level() {
    let world = World::of("kit", "everything").start();
    let curious = world.gateway.session(ScriptedHost::default());
    let told = async |session: &Session, level| {
        session.set_log_level(level, &session.caller()).await;
        world.fixture("kit").ledger().levels.last().cloned().unwrap_or(Value::Null)
    };
    world.call("kit_count", json!({})).await.unwrap();
    assert_eq!(told(&world.session, LogLevel::Error).await, "error");
    assert_eq!(told(&curious, LogLevel::Debug).await, "debug");
    assert_eq!(told(&world.session, LogLevel::Warning).await, "debug");
    drop(curious);
    assert_eq!(told(&world.session, LogLevel::Warning).await, "warning");
}

#[tokio::test(start_paused = true)]
async fn subscription_is_renewed_on_the_next_connection() {
    let world = World::of("kit", "everything").start();
    world.call("kit_count", json!({})).await.unwrap();
    let (session, host) = private_session(&world.gateway);
    session.subscribe(README).await.unwrap();
    crash(&session).await;
    world.fixture("kit").until(|ledger| subscriptions(ledger) == 2).await;
    session.handle(Request::Call(call("kit_update_resource", json!({})))).await.unwrap();
    assert!(host.told()[0].contains("notifications/resources/updated"), "{:?}", host.told());
}

#[tokio::test(start_paused = true)]
async fn transparent_session_renews_log_level_and_subscriptions_after_crash() {
    let world = World::of("kit", "everything").start();
    let (session, _host) = private_session(&world.gateway);
    let (kit, _hello) = session.open("kit").await.unwrap();
    let said = async |lookup, params: Value| {
        let params = params.as_object().cloned().unwrap();
        session.look_up(&kit, lookup, params.into(), &session.caller()).await.unwrap()
    };
    said(Lookup::LogLevel, json!({ "level": "error" })).await;
    said(Lookup::Subscribe, json!({ "uri": README })).await;
    crash(&session).await;
    let ledger = world.fixture("kit").until(|ledger| subscriptions(ledger) == 2).await;
    assert_eq!(ledger.levels, ["error", "error"]);
    said(Lookup::Unsubscribe, json!({ "uri": README })).await;
    crash(&session).await;
    said(Lookup::Prompts, json!({})).await;
    let ledger = world.fixture("kit").ledger();
    assert_eq!((ledger.connections, subscriptions(&ledger)), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn subscription_moves_to_connection_of_the_changed_definition() {
    let world = World::of("kit", "everything").start();
    world.call("kit_count", json!({})).await.unwrap();
    let (session, _host) = private_session(&world.gateway);
    session.subscribe(README).await.unwrap();
    world.apply(
        r#"{ "mcpServers": { "kit": {
            "command": "fixture-server", "args": ["everything"], "requestTimeoutMs": 5000
        } } }"#,
    );
    world.fixture("kit").until(|ledger| subscriptions(ledger) == 2).await;
    // The subscription does not keep the old connection open.
    world.fixture("kit").until(|ledger| ledger.open == 1).await;
}

#[tokio::test(start_paused = true)]
async fn lost_subscription_is_reported_to_its_client() {
    let gone = "[faults]\nexit_at_start = {}";
    let here = "[[tools]]\nname = 'crash'\nbehaviour = 'crash'\n\n[[resources]]\nuri = 'file:///readme.md'\nname = 'readme'\ntext = 'hi'";
    for (end, why) in
        [(End::Crash, "cannot use the server `kit`"), (End::Disconnect, "disconnected")]
    {
        let world = World::of("kit", "going").script("going", here).script("going", gone).start();
        let (session, host) = private_session(&world.gateway);
        session.handle(Request::Connect { server: "kit".to_owned() }).await.unwrap();
        session.subscribe(README).await.unwrap();
        match end {
            End::Crash => crash(&session).await,
            End::Disconnect => {
                let disconnect = Request::Disconnect { server: "kit".to_owned() };
                session.handle(disconnect).await.map(drop).unwrap();
            }
        }
        let told = host.until_told().await;
        assert!(told.contains("notifications/message"), "{told}");
        assert!(told.contains("the subscription to `file:///readme.md` ended"), "{told}");
        assert!(told.contains(why), "{told}");
        assert_eq!(subscriptions(&world.fixture("kit").ledger()), 1);
    }
}

#[derive(Clone, Copy)]
enum End {
    Crash,
    Disconnect,
}
