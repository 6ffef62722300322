//! Which calls wait for the user's word, and how far one word goes.

use serde_json::json;
use switchboard::Headless;
use switchboard::approval::Answer;
use switchboard::failure::{Code, Hint};
use switchboard::request::Request;
use switchboard_it::harness::{World, call};

/// Calls the tools in order; `Ok` is a call that reached the server. Then compares the questions.
async fn check(
    settings: &str,
    answers: &[Answer],
    calls: &[(&str, Result<(), Code>)],
    asked: &[&str],
) {
    let world = World::with(&format!(
        r#"{{ "settings": {{ {settings} }}, "mcpServers": {{
            "demo": {{ "command": "fixture-server", "args": ["everything"] }} }} }}"#
    ))
    .answers(answers.iter().copied())
    .start();
    for (tool, expected) in calls {
        let outcome = world.call(tool, json!({})).await;
        assert_eq!(outcome.map(drop).map_err(|failure| failure.code), *expected, "{tool}");
    }
    let reached = calls.iter().filter(|(_, outcome)| outcome.is_ok()).count();
    assert_eq!(world.fixture("demo").ledger().calls.len(), reached);
    assert_eq!(world.host.asked(), asked);
}

const DELETE: &str = "demo_delete_everything";
const ASKED: &str = "demo_delete_everything {}";

#[tokio::test(start_paused = true)]
async fn a_destructive_tool_asks_and_others_do_not() {
    check("", &[Answer::Once], &[("demo_count", Ok(())), (DELETE, Ok(()))], &[ASKED]).await;
}

#[tokio::test(start_paused = true)]
async fn once_means_once() {
    let calls = [(DELETE, Ok(())), (DELETE, Err(Code::ApprovalDenied))];
    check("", &[Answer::Once, Answer::No], &calls, &[ASKED, ASKED]).await;
}

#[tokio::test(start_paused = true)]
async fn a_yes_for_the_session_is_not_asked_again_for_that_tool() {
    let calls = [(DELETE, Ok(())), (DELETE, Ok(())), ("demo_count", Err(Code::ApprovalRequired))];
    check(r#""approve": "all""#, &[Answer::Tool], &calls, &[ASKED, "demo_count {}"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_yes_for_the_server_covers_its_tools() {
    let calls = [(DELETE, Ok(())), ("demo_count", Ok(()))];
    check(r#""approve": "all""#, &[Answer::Server], &calls, &[ASKED]).await;
}

#[tokio::test(start_paused = true)]
async fn what_asks_is_a_setting() {
    let unasked = [(DELETE, Ok(())), ("demo_count", Ok(()))];
    check(r#""approve": "none""#, &[], &unasked, &[]).await;
    let writes = [
        ("demo_read_readme", Ok(())),
        ("demo_count", Err(Code::ApprovalDenied)),
        (DELETE, Err(Code::ApprovalDenied)),
    ];
    let asked = ["demo_count {}", ASKED];
    // A resource is read over another method, so it is no call.
    let world = World::with(
        r#"{ "settings": { "approve": "writes" }, "mcpServers": {
            "demo": { "command": "fixture-server", "args": ["everything"] } } }"#,
    )
    .answers([Answer::No, Answer::No])
    .start();
    for (tool, expected) in writes {
        let outcome = world.call(tool, json!({})).await;
        assert_eq!(outcome.map(drop).map_err(|failure| failure.code), expected, "{tool}");
    }
    assert_eq!(world.host.asked(), asked);
    let named = [("demo_count", Ok(())), ("demo_log", Ok(()))];
    check(r#""approveTools": ["cou*"]"#, &[Answer::Once], &named, &["demo_count {}"]).await;
}

#[tokio::test(start_paused = true)]
async fn where_nobody_can_be_asked_the_call_is_refused_with_the_remedy() {
    let world = World::of("demo", "everything").start();
    let session = world.gateway.session(Headless);
    let failure = session.handle(Request::Call(call(DELETE, json!({})))).await.unwrap_err();
    assert_eq!((failure.code, &failure.hints[..]), (Code::ApprovalRequired, &[Hint::AskUser][..]));
    assert!(world.fixture("demo").ledger().calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_yes_of_one_session_is_none_of_another() {
    let world = World::of("demo", "everything").answers([Answer::Server]).start();
    world.call(DELETE, json!({})).await.unwrap();
    let other = world.gateway.session(Headless);
    let failure = other.handle(Request::Call(call(DELETE, json!({})))).await.unwrap_err();
    assert_eq!(failure.code, Code::ApprovalRequired);
}

#[tokio::test(start_paused = true)]
async fn wrong_arguments_are_refused_before_anyone_is_asked() {
    let script = r#"
        [[tools]]
        name = "drop"
        annotations = { destructiveHint = true }
        input_schema = { type = "object", properties = { table = { type = "string" } }, required = ["table"] }
    "#;
    let world = World::of("demo", "db").script("db", script).answers([Answer::Once]).start();
    let failure = world.call("demo_drop", json!({})).await.unwrap_err();
    assert_eq!(failure.code, Code::BadArguments);
    assert!(world.host.asked().is_empty());
    world.call("demo_drop", json!({ "table": "users" })).await.unwrap();
    assert_eq!(world.host.asked(), [r#"demo_drop {"table":"users"}"#]);
}
