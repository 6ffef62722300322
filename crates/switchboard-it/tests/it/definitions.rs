//! A tool that differs from its cached definition: a call runs only if the new definition was
//! checked and approved.

use serde_json::{Value, json};
use switchboard::approval::ApprovalAnswer;
use switchboard::failure::{Code, Failure};
use switchboard_it::harness::World;

const BEFORE: &str = r#"
[[tools]]
name = "save"
input_schema = '{ "type": "object", "properties": { "text": { "type": "string" } } }'
"#;

/// Caches the listing `before`, then calls `demo_save` on a server that lists `after`.
async fn check(
    before: &str,
    after: &str,
    args: Value,
    answers: &[ApprovalAnswer],
) -> (Result<String, Failure>, usize, World) {
    let first = World::of("demo", "save").script("save", before).start();
    first.ask(r#"{ "connect": "demo" }"#).await;
    let home = first.shut_down().await;
    let second = World::of("demo", "save")
        .script("save", after)
        .answers(answers.iter().copied())
        .home(home)
        .start();
    let outcome = second.call("demo_save", args).await;
    let calls = second.fixture("demo").ledger().calls.len();
    (outcome, calls, second)
}

#[tokio::test(start_paused = true)]
async fn compatible_tool_definition_change_still_allows_the_call() {
    let after = r#"
        [[tools]]
        name = "save"
        description = "Saves, and says so."
        input_schema = '{ "type": "object", "properties": { "text": { "type": "string" }, "path": { "type": "string" } } }'
    "#;
    let (outcome, calls, _world) = check(BEFORE, after, json!({ "text": "hi" }), &[]).await;
    assert_eq!((outcome.unwrap().as_str(), calls), ("hi", 1));
}

#[tokio::test(start_paused = true)]
async fn arguments_invalid_for_new_definition_return_tool_changed() {
    let after = r#"
        [[tools]]
        name = "save"
        input_schema = '{ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] }'
    "#;
    let (outcome, calls, world) = check(BEFORE, after, json!({ "text": "hi" }), &[]).await;
    assert_eq!((outcome.unwrap_err().code, calls), (Code::ToolChanged, 0));
    let again = world.ask(r#"{ "tool": "demo_save", "args": { "text": "hi" } }"#).await;
    assert!(again.starts_with("bad_arguments") && again.contains("path: string"), "{again}");
}

#[tokio::test(start_paused = true)]
async fn call_of_a_removed_tool_returns_tool_changed() {
    let after = "[[tools]]\nname = 'other'\n";
    let (outcome, calls, _world) = check(BEFORE, after, json!({}), &[]).await;
    let failure = outcome.unwrap_err();
    assert_eq!((failure.code, calls), (Code::ToolChanged, 0));
    assert!(failure.to_string().contains("no longer has the tool `demo_save`"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn tool_that_became_destructive_requires_approval() {
    let after = format!("{BEFORE}annotations = {{ destructiveHint = true }}\n");
    let (outcome, calls, world) = check(BEFORE, &after, json!({}), &[ApprovalAnswer::No]).await;
    assert_eq!((outcome.unwrap_err().code, calls), (Code::ApprovalDenied, 0));
    assert_eq!(world.host.asked(), ["demo_save {}"]);
}

#[tokio::test(start_paused = true)]
async fn approved_call_fails_if_the_tool_definition_changed() {
    let before = format!("{BEFORE}annotations = {{ destructiveHint = true }}\n");
    let after = format!("{before}description = \"Saves over everything.\"\n");
    let (outcome, calls, world) = check(&before, &after, json!({}), &[ApprovalAnswer::Once]).await;
    assert_eq!((outcome.unwrap_err().code, calls), (Code::ToolChanged, 0));
    assert_eq!(world.host.asked().len(), 1);
}
