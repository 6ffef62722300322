//! Which calls require the user's approval, and which calls one approval covers.

use serde_json::json;
use switchboard::Headless;
use switchboard::approval::ApprovalAnswer;
use switchboard::failure::{Code, Hint};
use switchboard::request::Request;
use switchboard_it::harness::{World, call};
use switchboard_it::program::Installed;

use crate::PROGRAMS;

/// Calls the tools in order; `Ok` is a call that reached the server. Then compares the approval
/// questions.
async fn check(
    settings: &str,
    answers: &[ApprovalAnswer],
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
async fn destructive_tool_requires_approval_by_default() {
    check("", &[ApprovalAnswer::Once], &[("demo_count", Ok(())), (DELETE, Ok(()))], &[ASKED]).await;
}

#[tokio::test(start_paused = true)]
async fn one_time_approval_covers_a_single_call() {
    let calls = [(DELETE, Ok(())), (DELETE, Err(Code::ApprovalDenied))];
    check("", &[ApprovalAnswer::Once, ApprovalAnswer::No], &calls, &[ASKED, ASKED]).await;
}

#[tokio::test(start_paused = true)]
async fn session_approval_of_a_tool_covers_only_that_tool() {
    let calls = [(DELETE, Ok(())), (DELETE, Ok(())), ("demo_count", Err(Code::ApprovalRequired))];
    check(r#""approve": "all""#, &[ApprovalAnswer::Tool], &calls, &[ASKED, "demo_count {}"]).await;
}

#[tokio::test(start_paused = true)]
async fn session_approval_of_a_server_covers_its_tools() {
    let calls = [(DELETE, Ok(())), ("demo_count", Ok(()))];
    check(r#""approve": "all""#, &[ApprovalAnswer::Server], &calls, &[ASKED]).await;
}

#[tokio::test(start_paused = true)]
async fn approval_settings_decide_which_calls_require_approval() {
    let unasked = [(DELETE, Ok(())), ("demo_count", Ok(()))];
    check(r#""approve": "none""#, &[], &unasked, &[]).await;
    let writes = [
        ("demo_read_readme", Ok(())),
        ("demo_count", Err(Code::ApprovalDenied)),
        (DELETE, Err(Code::ApprovalDenied)),
    ];
    let asked = ["demo_count {}", ASKED];
    // The tool `read_readme` sends `resources/read`, so the ledger contains no call of it.
    let world = World::with(
        r#"{ "settings": { "approve": "writes" }, "mcpServers": {
            "demo": { "command": "fixture-server", "args": ["everything"] } } }"#,
    )
    .answers([ApprovalAnswer::No, ApprovalAnswer::No])
    .start();
    for (tool, expected) in writes {
        let outcome = world.call(tool, json!({})).await;
        assert_eq!(outcome.map(drop).map_err(|failure| failure.code), expected, "{tool}");
    }
    assert_eq!(world.host.asked(), asked);
    let named = [("demo_count", Ok(())), ("demo_log", Ok(()))];
    check(r#""approveTools": ["cou*"]"#, &[ApprovalAnswer::Once], &named, &["demo_count {}"]).await;
}

#[tokio::test(start_paused = true)]
async fn allow_rule_skips_approval_and_deny_rule_takes_precedence() {
    let calls = [(DELETE, Ok(())), ("demo_count", Err(Code::ApprovalRequired))];
    let allow = r#""approve": "all", "allow": ["demo/delete_*"]"#;
    check(allow, &[], &calls, &["demo_count {}"]).await;
    let deny = r#""approve": "all", "allow": ["*"], "deny": ["demo_delete_*"]"#;
    let calls = [(DELETE, Err(Code::ApprovalDenied)), ("demo_count", Ok(()))];
    check(deny, &[ApprovalAnswer::Server], &calls, &[]).await;
    let granted = r#""approve": "all", "deny": ["demo/delete_everything"]"#;
    let calls = [("demo_count", Ok(())), (DELETE, Err(Code::ApprovalDenied))];
    check(granted, &[ApprovalAnswer::Server], &calls, &["demo_count {}"]).await;
}

/// The methods of a server whose requests must pass the approval gate.
const USES: [&str; 3] = ["tools/call", "resources/read", "prompts/get"];

/// A library request of every kind that must pass the approval gate.
fn uses() -> [Request; 5] {
    let server = || Some("demo".to_owned());
    [
        Request::Call(call("demo_echo", json!({ "text": "hi" }))),
        Request::Call(call("demo_read_readme", json!({}))),
        Request::ReadResource { uri: "file:///readme.md".to_owned(), server: None },
        Request::ReadResource { uri: "note://1".to_owned(), server: server() },
        Request::Prompt { name: "plain".to_owned(), server: None, args: Default::default() },
    ]
}

/// Runs all [`uses`]; returns the number of requests that reached the server.
async fn use_all(settings: &str, expected: Result<(), Code>) -> usize {
    let world = World::with(&format!(
        r#"{{ "settings": {{ {settings} }}, "mcpServers": {{
            "demo": {{ "command": "fixture-server", "args": ["everything"] }} }} }}"#
    ))
    .start();
    world.ask(r#"{ "connect": "demo" }"#).await;
    for request in uses() {
        let name = format!("{request:?}");
        let outcome = world.session.handle(request).await;
        assert_eq!(outcome.map(drop).map_err(|failure| failure.code), expected, "{name}");
    }
    let ledger = world.fixture("demo").ledger();
    ledger.methods.iter().filter(|method| USES.contains(&method.as_str())).count()
}

#[tokio::test(start_paused = true)]
async fn approval_rules_apply_to_tools_resources_and_prompts() {
    assert_eq!(use_all("", Ok(())).await, uses().len());
    assert_eq!(use_all(r#""deny": ["demo/*"]"#, Err(Code::ApprovalDenied)).await, 0);
    assert_eq!(use_all(r#""approve": "all""#, Err(Code::ApprovalRequired)).await, 0);
    let allowed = r#""approve": "all", "allow": ["demo/*"]"#;
    assert_eq!(use_all(allowed, Ok(())).await, uses().len());
}

/// A server whose tools are all denied.
fn denied() -> Installed {
    let config = r#"{
        "settings": { "deny": ["demo/*"], "approve": "all" },
        "mcpServers": { "demo": { "command": "fixture-server", "args": ["everything"] } } }"#;
    Installed::with(PROGRAMS, config)
}

#[tokio::test]
async fn deny_rule_refuses_every_call_despite_yes_option() {
    let installed = denied();
    assert_eq!(installed.run(["connect", "demo"]).await.code, Some(0));
    for line in [
        "call demo_echo text=hi --yes",
        "call demo_read_readme --yes",
        "read file:///readme.md",
        "read note://1 --server demo",
        "prompt plain",
    ] {
        let ran = installed.run(line.split(' ')).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(4), ""), "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains("is denied by the rule `demo/*`"), "{line}: {}", ran.stderr);
    }
    let mut client = installed.connect(json!({ "elicitation": {} })).await;
    for arguments in [
        json!({ "tool": "demo_echo", "args": { "text": "hi" } }),
        json!({ "tool": "demo_read_readme" }),
        json!({ "tool": "demo_echo", "text": "hi" }),
        json!({ "tool": "demo_ecko", "args": { "text": "hi" } }),
        json!({ "search": "echo", "args": { "text": "hi" } }),
    ] {
        let answer = client.mcp(arguments).await;
        assert!(answer.starts_with("approval_denied: "), "{answer}");
    }
    for (method, params) in [
        ("resources/read", json!({ "uri": "file:///readme.md" })),
        ("prompts/get", json!({ "name": "plain" })),
    ] {
        let id = client.request(method, params).await;
        let answer = client.answer_to(&id).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("approval_denied: "), "{answer}");
    }
    assert!(client.user.asked.is_empty());
    client.end().await;
}

#[tokio::test(start_paused = true)]
async fn call_needing_approval_fails_if_user_cannot_be_asked() {
    let world = World::of("demo", "everything").start();
    let session = world.gateway.session(Headless);
    let failure = session.handle(Request::Call(call(DELETE, json!({})))).await.unwrap_err();
    let remedies = [Hint::AskUser, Hint::Allow("demo/delete_everything".to_owned())];
    assert_eq!((failure.code, &failure.hints[..]), (Code::ApprovalRequired, &remedies[..]));
    assert!(world.fixture("demo").ledger().calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn session_approval_does_not_apply_in_another_session() {
    let world = World::of("demo", "everything").answers([ApprovalAnswer::Server]).start();
    world.call(DELETE, json!({})).await.unwrap();
    let other = world.gateway.session(Headless);
    let failure = other.handle(Request::Call(call(DELETE, json!({})))).await.unwrap_err();
    assert_eq!(failure.code, Code::ApprovalRequired);
}

#[tokio::test(start_paused = true)]
async fn invalid_arguments_are_refused_before_the_approval_question() {
    let script = r#"
        [[tools]]
        name = "drop"
        annotations = { destructiveHint = true }
        input_schema = { type = "object", properties = { table = { type = "string" } }, required = ["table"] }
    "#;
    let world =
        World::of("demo", "db").script("db", script).answers([ApprovalAnswer::Once]).start();
    let failure = world.call("demo_drop", json!({})).await.unwrap_err();
    assert_eq!(failure.code, Code::BadArguments);
    assert!(world.host.asked().is_empty());
    world.call("demo_drop", json!({ "table": "users" })).await.unwrap();
    assert_eq!(world.host.asked(), [r#"demo_drop {"table":"users"}"#]);
}

#[tokio::test]
async fn approval_prompt_shows_call_and_refuses_by_default() {
    let config = r#"{ "mcpServers": {
        "demo": { "command": "fixture-server", "args": ["everything"] } } }"#;
    let installed = Installed::with(PROGRAMS, config);
    let line = ["call", "demo_delete_everything", "text=\u{1b}[2Jall"];
    // The names on the terminal are enclosed in colour codes.
    let colours = regex::Regex::new("\u{1b}\\[[0-9;]*[mK]").unwrap();
    for (typed, code) in
        [("y\n", 0), ("Y\n", 0), ("\n", 4), ("n\n", 4), ("yes\n", 4), ("t\n", 4), ("\u{4}", 4)]
    {
        let ran = installed.run_on_terminal(line, typed).await;
        assert_eq!(ran.code, Some(code), "{typed:?}: {ran:?}");
        let shown =
            ["server     demo", "tool       delete_everything", r#""text": "\u001b[2Jall""#];
        let plain = colours.replace_all(&ran.stderr, "");
        for words in shown {
            assert!(plain.contains(words), "{words} in {plain}");
        }
        let hint = "allow it for good with `switchboard allow demo/delete_everything`";
        assert!(plain.contains(hint), "{plain}");
    }
    let denied = r#"{ "settings": { "deny": ["demo/*"] }, "mcpServers": {
        "demo": { "command": "fixture-server", "args": ["everything"] } } }"#;
    installed.write("switchboard/mcp.json", denied);
    let ran = installed.run_on_terminal(line, "y\n").await;
    assert_eq!(ran.code, Some(4));
    assert!(!ran.stderr.contains("Call it?"), "{}", ran.stderr);
}

/// The malformed part of the file may contain a deny rule.
#[tokio::test]
async fn every_call_is_refused_if_rules_cannot_be_parsed() {
    let installed = Installed::bare(PROGRAMS);
    let script = installed.write("tools.toml", "[[tools]]\nname = 'echo'\n");
    let shared = json!({ "mcpServers": { "files": {
        "command": "fixture-server", "args": [script, "--spawn-log", installed.spawn_log()],
    } } });
    installed.write(".config/mcp/mcp.json", &shared.to_string());
    let call = ["call", "files_echo", "text=hi", "--yes"];
    for (own, code) in [
        (r#"{ "settings": { "deny": ["files_echo"] } }"#, 4),
        (r#"{ "settings": { "deny": ["files_echo"] "#, 2),
        (r#"{ "settings": { "deny": "files_echo" } }"#, 2),
        (r#"{ "settings": { "approve": "sometimes" } }"#, 2),
        (r#"{ "settings": { "deny": [] } }"#, 0),
    ] {
        installed.write("switchboard/mcp.json", own);
        let ran = installed.run(call).await;
        assert_eq!(ran.code, Some(code), "{own}: {}", ran.stderr);
        if code == 2 {
            assert!(
                ran.stderr.contains("your allow and deny rules cannot be parsed"),
                "{}",
                ran.stderr
            );
            assert!(ran.stderr.contains("mcp.json"), "the message names the file: {}", ran.stderr);
        }
    }
}
