//! Every kind of failure of the library, as the text that a model gets.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use switchboard::approval::ApprovalAnswer;
use switchboard::failure::{Code, Failure};
use switchboard::request::{Request, ResultView};
use switchboard::{explain, render, request};
use switchboard_it::client::text;
use switchboard_it::faces::Typed;
use switchboard_it::harness::{World, call, filtered, pass, stored_id};
use switchboard_it::program::Installed;

use crate::PROGRAMS;

/// A configuration with one server for each failure, and with servers that work.
const CONFIG: &str = r#"{
    "settings": { "maxFrameBytes": 100000, "firstListing": false },
    "mcpServers": {
        "demo": { "command": "fixture-server", "args": ["everything"], "requestTimeoutMs": 1000 },
        "twin": { "command": "fixture-server", "args": ["one"] },
        "big": { "command": "fixture-server", "args": ["big"] },
        "plain": { "command": "fixture-server", "args": ["one"] },
        "broken": { "command": "fixture-server", "args": ["broken"] },
        "stuck": { "command": "fixture-server", "args": ["stuck"], "startTimeoutMs": 1000 },
        "alien": { "command": "fixture-server", "args": ["alien"] },
        "circle": { "command": "fixture-server", "args": ["circle"] },
        "missing": { "command": "no-such-program-anywhere" },
        "unset": { "command": "${NO_SUCH_VARIABLE}" },
        "off": { "command": "fixture-server", "args": ["one"], "disabled": true },
    },
}"#;

const ONE: &str = "[[tools]]\nname = 'echo'\n[[tools]]\nname = 'lose'\nbehaviour = 'crash'\nannotations = { readOnlyHint = true }\n";

const SCRIPTS: [(&str, &str); 5] = [
    ("one", ONE),
    ("broken", "[faults]\nexit_at_start = { code = 1 }\n"),
    ("stuck", "[faults]\nnever_answer = 'initialize'\n"),
    ("alien", "[faults]\nwrong_protocol_version = true\n"),
    ("circle", "[[tools]]\nname = 'echo'\n[faults]\ncursor = 'same'\n"),
];

/// This call is refused at once: after [`FAILURES`] failures, the server backs off for more than 5
/// s.
const BACKING_OFF: &str = r#"{ "tool": "broken_echo" }"#;
const FAILURES: usize = 6;

/// Requests that all fail if they are sent in this order.
const REQUESTS: [&str; 27] = [
    r#"{ "serach": "x" }"#,
    r#"{ "tool": "demo_add", "a": 1 }"#,
    r#"{ "select": ".x" }"#,
    r#"{ "tool": "demo_add", "args": { "a": 1, "b": 2 }, "select": "(" }"#,
    r#"{ "tool": "demo_ecko" }"#,
    r#"{ "tool": "echo" }"#,
    r#"{ "server": "demos" }"#,
    r#"{ "tool": "demo_add", "args": { "a": true } }"#,
    r#"{ "search": "(", "regex": true }"#,
    r#"{ "result": "nothing" }"#,
    r#"{ "server": "off" }"#,
    r#"{ "instructions": "twin" }"#,
    r#"{ "instructions": "plain" }"#,
    r#"{ "tool": "demo_delete_everything" }"#,
    r#"{ "tool": "demo_delete_everything" }"#,
    r#"{ "tool": "demo_protocol-error" }"#,
    r#"{ "tool": "demo_wait" }"#,
    r#"{ "tool": "demo_crash" }"#,
    r#"{ "tool": "twin_lose" }"#,
    r#"{ "tool": "big_huge_line", "args": { "bytes": 1000000 } }"#,
    r#"{ "connect": "broken" }"#,
    BACKING_OFF,
    r#"{ "connect": "stuck" }"#,
    r#"{ "connect": "alien" }"#,
    r#"{ "connect": "circle" }"#,
    r#"{ "connect": "missing" }"#,
    r#"{ "connect": "unset" }"#,
];

fn world() -> World {
    let setup = World::with(CONFIG).answers([ApprovalAnswer::No]);
    let scripted = SCRIPTS.iter().fold(setup, |setup, (name, text)| setup.script(name, text));
    scripted.start()
}

/// Sends [`REQUESTS`] in order; each must fail.
async fn provoke(world: &World) -> Vec<(String, Failure)> {
    let mut seen = Vec::new();
    for server in ["demo", "twin"] {
        world.ask(&json!({ "connect": server }).to_string()).await;
    }
    for request in REQUESTS {
        if request == BACKING_OFF {
            for _ in 1..FAILURES {
                world.ask(r#"{ "connect": "broken" }"#).await;
            }
        }
        let parsed = request::parse(serde_json::from_str(request).unwrap());
        let failure = match parsed {
            Ok(parsed) => world.session.handle(parsed.request).await.expect_err(request),
            Err(error) => explain::request_error(error),
        };
        seen.push((request.to_owned(), failure));
    }
    seen
}

/// Causes the failures that need several requests, or a request that `mcp` does not offer.
async fn provoke_the_rest(world: &World) -> Vec<(String, Failure)> {
    let handle = async |request| world.session.handle(request).await.expect_err("a failure");
    let mut seen = Vec::new();
    let uri = "file:///nowhere".to_owned();
    seen.push(("read", handle(Request::ReadResource { uri, server: None }).await));
    let prompt =
        Request::Prompt { name: "nothing".to_owned(), server: None, args: Default::default() };
    seen.push(("prompt", handle(prompt).await));

    let disconnect = async {
        let fixture = world.fixture("stuck");
        let before = fixture.ledger().initializes.len();
        fixture.until(|ledger| ledger.initializes.len() > before).await;
        let request = Request::Disconnect { server: "stuck".to_owned() };
        world.session.handle(request).await.unwrap();
    };
    let connect = handle(Request::Connect { server: "stuck".to_owned() });
    seen.push(("disconnect during a connect", tokio::join!(connect, disconnect).0));

    for _ in FAILURES..=8 {
        handle(Request::Connect { server: "broken".to_owned() }).await;
    }
    seen.push((
        "broken again and again",
        handle(Request::Call(call("broken_echo", json!({})))).await,
    ));

    let shown = world.call("demo_big", json!({ "bytes": 60_000 })).await.unwrap();
    let results = world.home().path().join("switchboard/cache/results");
    std::fs::remove_dir_all(results).unwrap();
    let id = stored_id(&shown).unwrap().to_owned();
    seen.push((
        "a stored result that vanished",
        handle(Request::Result { id, view: ResultView::default() }).await,
    ));

    world.gateway.shutdown().await;
    seen.push(("after the shutdown", handle(Request::Call(call("twin_echo", json!({})))).await));
    seen.into_iter().map(|(what, failure)| (what.to_owned(), failure)).collect()
}

/// Codes that other files test, because they need a real project, program or URL.
const ELSEWHERE: [Code; 6] = [
    Code::TrustRequired,
    Code::SignInRequired,
    Code::ToolChanged,
    Code::ToolBlocked,
    Code::NotReadOnly,
    Code::Starting,
];

#[tokio::test(start_paused = true)]
async fn every_failure_in_the_library_matches_its_snapshot() {
    let world = world();
    let mut seen = provoke(&world).await;
    pass(Duration::from_secs(1)).await;
    seen.extend(provoke_the_rest(&world).await);

    let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut table = String::new();
    for (request, failure) in &seen {
        *codes.entry(failure.code.as_str()).or_default() += 1;
        let text = render::text::failure(failure);
        table.push_str(&format!("=== {request}\n{}\n\n", filtered(&text)));
    }
    let unseen: Vec<Code> = Code::ALL
        .iter()
        .copied()
        .filter(|code| !codes.contains_key(code.as_str()) && !ELSEWHERE.contains(code))
        .collect();
    assert_eq!(unseen, [], "codes without a test");
    insta::assert_snapshot!(table);
}

/// An installation with the servers of [`CONFIG`] as programs.
fn installed() -> Installed {
    let installed = Installed::with(PROGRAMS, CONFIG);
    for (name, script) in SCRIPTS {
        installed.write(name, script);
    }
    installed
}

#[tokio::test]
async fn every_failure_over_stdio_matches_its_snapshot() {
    let installed = installed();
    let mut client = installed.connect(json!({})).await;
    for server in ["demo", "twin"] {
        client.mcp(json!({ "connect": server })).await;
    }
    let mut table = String::new();
    for request in REQUESTS {
        if request == BACKING_OFF {
            for _ in 1..FAILURES {
                client.mcp(json!({ "connect": "broken" })).await;
            }
        }
        let id = client.call(serde_json::from_str(request).unwrap()).await;
        let answer = client.answer_to(&id).await;
        assert_eq!(answer["result"]["isError"], true, "{request}");
        table.push_str(&format!("=== {request}\n{}\n\n", filtered(&text(&answer))));
    }
    insta::assert_snapshot!(table);
}

#[tokio::test]
async fn every_failure_on_the_command_line_matches_its_snapshot() {
    let installed = installed();
    for server in ["demo", "twin"] {
        assert_eq!(installed.run(["connect", server]).await.code, Some(0));
    }
    let mut table = String::new();
    for request in REQUESTS {
        // Skips requests without a corresponding command.
        let Some(typed) = Typed::of(&serde_json::from_str(request).unwrap()) else { continue };
        let ran = installed.run(typed.words.iter().map(String::as_str)).await;
        assert!(ran.code > Some(0) && ran.stdout.is_empty(), "{request}: {ran:?}");
        let line = typed.words.join(" ");
        table.push_str(&format!("$ {line}\n{}\n", filtered(&ran.transcript(installed.home()))));
    }
    insta::assert_snapshot!(table);
}
