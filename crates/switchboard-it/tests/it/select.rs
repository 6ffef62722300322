//! jq filters in `select`: their output, calls whose filter fails, and the isolation of filters
//! from the gateway.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use switchboard_it::client::{Client, text};
use switchboard_it::harness::{World, filtered, stored_id};
use switchboard_it::processes::{
    children, is_alive, peak_memory, processor_time, send_signal, until,
};
use switchboard_it::program::Installed;

use crate::PROGRAMS;

const SCRIPT: &str = r#"
    [[tools]]
    name = "echo"
    behaviour = "echo"
    annotations = { readOnlyHint = true }

    [[tools]]
    name = "count"
    behaviour = "count"

    [[tools]]
    name = "fail"
    behaviour = { kind = "fail", text = "no such issue" }

    [[tools]]
    name = "image"
    behaviour = "image"

    [[tools]]
    name = "issues"
    behaviour = { kind = "structured", duplicate = false, value = { issues = [
        { id = 7, title = "It \"hangs\"" }, { id = 8, title = "It works" } ] } }
"#;

fn installed() -> Installed {
    Installed::with_fixture(PROGRAMS, "kit", SCRIPT)
}

async fn echoed(client: &mut Client, json: &str, select: &str) -> String {
    let call = json!({ "tool": "kit_echo", "args": { "text": json }, "select": select });
    filtered(&client.mcp(call).await)
}

#[tokio::test]
async fn hidden_characters_that_a_filter_decodes_are_counted() {
    let installed = installed();
    let mut client = installed.connect(json!({})).await;
    for (json, select) in [
        (r#"{"a":"b\udb40\udc41\udb40\udc42\udb40\udc43"}"#, ".a"),
        ("{}", "[917569,917570,917571] | implode"),
    ] {
        let call = json!({ "tool": "kit_echo", "args": { "text": json }, "select": select });
        let answer = client.mcp(call).await.to_string();
        assert!(answer.contains("[3 hidden characters in this result]"), "{select}: {answer}");
    }
    client.end().await;
}

#[tokio::test]
async fn filter_applies_to_structured_content_or_json_text() {
    let installed = installed();
    let mut client = installed.connect(json!({})).await;
    let mut seen = String::new();
    for (tool, args, select) in [
        ("issues", json!({}), ".issues[] | \"\\(.id) \\(.title)\""),
        ("issues", json!({}), ".issues | map(.id)"),
        ("issues", json!({}), ".issues[] | select(.title | test(\"hangs\"))"),
        ("issues", json!({}), ".missing"),
        ("issues", json!({}), ".issues[9:][]"),
        ("issues", json!({}), ".issues.title"),
        ("issues", json!({}), ".issues["),
        ("echo", json!({ "text": "{\"n\": 12345678901234567890}" }), ".n"),
        ("echo", json!({ "text": "{\"a\": 1}\n{\"a\": 2}" }), ".a"),
        ("echo", json!({ "text": "so many words" }), ".a"),
        ("fail", json!({}), ".a"),
    ] {
        let call = json!({ "tool": format!("kit_{tool}"), "args": args, "select": select });
        seen.push_str(&format!("--- {tool} {select}\n{}\n", filtered(&client.mcp(call).await)));
    }
    insta::assert_snapshot!(seen, @r#"
    --- issues .issues[] | "\(.id) \(.title)"
    7 It "hangs"
    8 It works
    --- issues .issues | map(.id)
    [7,8]
    --- issues .issues[] | select(.title | test("hangs"))
    {"id":7,"title":"It \"hangs\""}
    --- issues .missing
    null
    [result: ID · 72 B of JSON: an object with: issues · try another select with result]
    --- issues .issues[9:][]
    (select gave nothing)
    [result: ID · 72 B of JSON: an object with: issues · try another select with result]
    --- issues .issues.title
    bad_filter: `select` failed: cannot index [{"id":7,"title":"It \"hangs\""},{"id":8,"title":"It works"}] with "title"
    Kept as result: ID, to be read with result and select, grep or offset
    --- issues .issues[
    bad_filter: `select` is not a jq filter: expected closing bracket at its end
    --- echo .n
    12345678901234567890
    --- echo .a
    1
    2
    --- echo .a
    bad_filter: the result is not JSON, so `select` cannot be used on it
    Kept as result: ID, to be read with result and select, grep or offset
    --- fail .a
    no such issue
    "#);
}

#[tokio::test]
async fn invalid_filter_prevents_call_and_failed_filter_stores_result() {
    let installed = installed();
    let mut client = installed.connect(json!({})).await;
    let count = async |client: &mut Client, select: &str| {
        client.mcp(json!({ "tool": "kit_count", "select": select })).await
    };
    for none in ["(", "env", "nosuch", &"(".repeat(8_000), &"(".repeat(100_000)] {
        let said = count(&mut client, none).await;
        assert!(said.starts_with("bad_filter: `select` "), "{said}");
        assert!(said.len() < 300, "{}", said.len());
    }
    assert_eq!(count(&mut client, ".").await, "1", "an invalid filter made a call");
    let said = count(&mut client, ".a").await;
    let id = stored_id(&said).unwrap().to_owned();
    assert_eq!(
        client.mcp(json!({ "result": id, "select": ". * 10" })).await,
        "20\n[lines 1-1 of 1]"
    );
    assert_eq!(
        client.mcp(json!({ "result": id, "select": "empty" })).await,
        "[nothing of 1 B of JSON: a number]\n[lines 1-1 of 1]"
    );
    let again = client.mcp(json!({ "result": id, "select": ".a" })).await;
    assert!(again.starts_with("bad_filter: ") && again.contains(&id), "{again}");
    assert_eq!(count(&mut client, ".").await, "3", "a stored result was called again");
}

#[tokio::test]
async fn image_is_returned_beside_a_filter_error() {
    let installed = installed();
    for flags in [&[][..], &["--host", "pi"]] {
        let mut client = installed.serve(flags);
        client.initialize("2025-11-25", json!({})).await;
        let args = json!({ "tool": "kit_image", "select": "." });
        let said = client.ask("tools/call", json!({ "name": "mcp", "arguments": args })).await;
        let content = said["result"]["content"].as_array().unwrap();
        let [error, image] = &content[..] else { panic!("{said}") };
        let error = error["text"].as_str().unwrap();
        assert!(error.contains("bad_filter: the result is not JSON"), "{error}");
        assert_eq!(image["type"], "image", "{flags:?}");
        assert_eq!(said["result"]["isError"], true);
    }
}

#[tokio::test]
async fn unstorable_result_is_shown_when_its_filter_fails() {
    let installed = installed();
    // A file is in place of the directory, so that results cannot be stored.
    installed.write("switchboard/cache/results", "in the way");
    let ran = installed.run(["call", "kit_issues", "--select", ".issues.title"]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stdout.contains("It works") && ran.stderr.contains("cannot index"), "{ran:?}");
}

async fn transcripts(installed: &Installed, lines: &[&[&str]]) -> String {
    let mut seen = String::new();
    for line in lines {
        let ran = installed.run(line.iter().copied()).await;
        let told = filtered(&ran.transcript(installed.home()));
        seen.push_str(&format!("$ {}\n{told}\n", line.join(" ")));
    }
    seen
}

#[tokio::test]
async fn command_line_mentions_an_image_when_its_filter_fails() {
    let lines = [
        &["call", "kit_image", "--select", "."][..],
        &["call", "kit_image", "--json", "--select", "."],
    ];
    insta::assert_snapshot!(transcripts(&installed(), &lines).await, @r#"
    $ call kit_image --select .
    exit 2
    --- stdout
    [image image/png, 70 bytes]
    --- stderr
    error: the result is not JSON, so `select` cannot be used on it

    $ call kit_image --json --select .
    exit 2
    --- stdout
    {
      "error": {
        "code": "bad_filter",
        "message": "the result is not JSON, so `select` cannot be used on it",
        "hints": []
      }
    }
    --- stderr
    [image image/png, 70 bytes]
    "#);
}

#[tokio::test]
async fn command_line_prints_filter_output_or_unfiltered_result() {
    let lines = [
        &["call", "kit_issues", "--select", ".issues[].title"][..],
        &["call", "kit_issues", "--select", "empty"],
        &["call", "kit_issues", "--json", "--select", ".issues[0]"],
        &["call", "kit_echo", "text=words", "--select", "."],
        &["call", "kit_issues", "--select", ".issues.title"],
        &["call", "kit_count", "--select", "env.PATH"],
        &["call", "kit_count"],
    ];
    insta::assert_snapshot!(transcripts(&installed(), &lines).await, @r#"
    $ call kit_issues --select .issues[].title
    exit 0
    --- stdout
    It "hangs"
    It works
    --- stderr

    $ call kit_issues --select empty
    exit 0
    --- stdout
    --- stderr

    $ call kit_issues --json --select .issues[0]
    exit 0
    --- stdout
    {
      "content": [
        {
          "type": "text",
          "text": "{\"id\":7,\"title\":\"It \\\"hangs\\\"\"}"
        }
      ],
      "isError": false,
      "server": "kit",
      "tool": "issues"
    }
    --- stderr

    $ call kit_echo text=words --select .
    exit 2
    --- stdout
    words
    --- stderr
    error: the result is not JSON, so `select` cannot be used on it

    $ call kit_issues --select .issues.title
    exit 2
    --- stdout
    {"issues":[{"id":7,"title":"It \"hangs\""},{"id":8,"title":"It works"}]}
    --- stderr
    error: `select` failed: cannot index [{"id":7,"title":"It \"hangs\""},{"id":8,"title":"It works"}] with "title"

    $ call kit_count --select env.PATH
    exit 2
    --- stdout
    --- stderr
    error: `select` is not a jq filter: there is no function `env/0`

    $ call kit_count
    exit 0
    --- stdout
    1
    --- stderr
    "#);
}

#[tokio::test]
async fn filter_runs_in_bounded_time_and_memory() {
    let installed = installed();
    let mut client = installed.connect(json!({})).await;
    assert_eq!(echoed(&mut client, "[1]", ".[0]").await, "1");
    let before = peak_memory(client.pid());
    // For some filters, the load of the machine decides which limit stops them.
    let (slow, hungry, any) = ("`select` exceeded", "`select` recursed too deeply, or", "");
    let hostile = [
        ("range(infinite)", any),
        ("[limit(1e9; repeat(1))] | length", any),
        ("[range(1e9)] | length", any),
        ("def f: f; f", slow),
        ("last(range(infinite))", slow),
        ("def f: 1 + f; f", hungry),
        ("\"x\" * 1000000000", hungry),
        ("reduce range(1e9) as $x (\"ab\"; . + .)", hungry),
    ];
    let mut asked = Vec::new();
    for (select, why) in hostile {
        let call = json!({ "tool": "kit_echo", "args": { "text": "1" }, "select": select });
        asked.push((select, why, client.call(call).await));
    }
    // Other calls are answered while the filters run.
    assert!(client.mcp(json!({ "tool": "kit_echo", "args": { "text": "hi" } })).await == "hi");
    for (select, why, id) in asked {
        let said = text(&client.answer_to(&id).await);
        assert!(said.starts_with("bad_filter: ") && said.contains("`select`"), "{select}: {said}");
        assert!(said.contains(why) && said.contains("Kept as result: "), "{select}: {said}");
    }
    // The parser recurses; a stack overflow may end only the filter's own process.
    for deep in
        [format!("{}1", "-".repeat(8_000)), format!("{}1{}", "(".repeat(4_000), ")".repeat(4_000))]
    {
        echoed(&mut client, "1", &deep).await;
    }
    let grown = peak_memory(client.pid()) - before;
    assert!(grown < 32 << 20, "{grown} bytes");
    assert_eq!(echoed(&mut client, "[1]", ".[0]").await, "1");
}

#[tokio::test]
async fn filter_cannot_read_the_environment() {
    let installed = installed();
    let mut command = installed.command();
    let mut client = Client::start(command.arg("serve").env("HIDDEN", "marker-of-the-environment"));
    client.initialize("2025-11-25", json!({})).await;
    for select in [
        "env",
        "$ENV",
        "env.HIDDEN",
        "$ENV.HIDDEN",
        "[env]",
        "input",
        "[inputs]",
        "input_filename",
        "halt",
        "halt_error",
        "debug",
        "stderr",
        "$__prog_args",
        "import \"/proc/self/environ\" as $e; $e",
        "include \"/proc/self/environ\"; .",
    ] {
        let said = echoed(&mut client, "{}", select).await;
        assert!(said.starts_with("bad_filter: `select` is not a jq filter: "), "{select}: {said}");
        assert!(!said.contains("marker-of"), "{select}: {said}");
    }
    let ended = client.end().await;
    assert!(!ended.stderr.contains("marker-of"), "{}", ended.stderr);
}

#[tokio::test]
async fn filter_process_ends_with_its_gateway() {
    let installed = installed();
    let mut client = installed.connect(json!({})).await;
    assert_eq!(echoed(&mut client, "[1]", ".[0]").await, "1");
    let gateway = client.pid();
    client
        .call(json!({ "tool": "kit_echo", "args": { "text": "1" }, "select": "def f: f; f" }))
        .await;
    let filters = || {
        let running = children(gateway).into_iter();
        running.filter(|pid| name_of(*pid) == "switchboard-select").collect::<Vec<_>>()
    };
    // A process that only parses the filter uses almost no processor time.
    let computes = |pid: &u32| processor_time(*pid) > Some(Duration::from_millis(100));
    until("the filter runs", || filters().iter().any(computes)).await;
    let running = filters();
    send_signal(gateway, Signal::KILL);
    let mut computed = Duration::ZERO;
    until("the filter is gone", || {
        let times = running.iter().filter_map(|pid| processor_time(*pid));
        computed = times.fold(computed, Duration::max);
        !running.iter().any(|pid| is_alive(*pid))
    })
    .await;
    assert!(
        computed < Duration::from_secs(1),
        "the filter ran until its own limit of 2 s: {computed:?}"
    );
}

fn name_of(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let name = line.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

#[tokio::test]
async fn long_json_result_shows_its_head_and_tail() {
    let numbers: Vec<Value> = (0..20_000).map(|id| json!({ "id": id })).collect();
    let (pretty, compact) = (format!("{:#}", json!(numbers)), json!(numbers).to_string());
    let installed = installed();
    for flags in [&[][..], &["--host", "pi"], &["--toolset", "granular"]] {
        let mut client = installed.serve(flags);
        client.initialize("2025-11-25", json!({})).await;
        let args = json!({ "text": pretty });
        let asked = if flags.contains(&"granular") {
            let call = json!({ "connection_id": "kit", "tool_name": "echo", "arguments": args });
            let connect = json!({ "name": "mcp_connect", "arguments": { "id": "kit" } });
            client.ask("tools/call", connect).await;
            json!({ "name": "mcp_call_tool", "arguments": call })
        } else {
            json!({ "name": "mcp", "arguments": { "tool": "kit_echo", "args": args } })
        };
        let shown = text(&client.ask("tools/call", asked).await);
        assert!(shown.len() <= 51_200, "{flags:?}: {}", shown.len());
        let (body, foot) = shown.rsplit_once('\n').unwrap();
        let (_, body) = body.split_once('\n').unwrap();
        let (head, rest) = body.split_once("\n[… ").unwrap();
        let (left_out, tail) = rest.split_once(" …]\n").unwrap();
        let is_granular = flags.contains(&"granular");
        let whole = if is_granular { &pretty } else { &compact };
        assert!(whole.starts_with(head) && whole.ends_with(tail), "{flags:?}: {shown:.300}");
        assert!(foot.contains("read more with result and select"), "{foot}");
        if is_granular {
            continue;
        }
        let offset = if flags.is_empty() { 6 } else { 17 };
        let place = format!(" left out, from within the line at offset {offset}");
        assert!(left_out.ends_with(&place), "{flags:?}: {left_out}");
        let id = stored_id(&shown).unwrap();
        let count = client.mcp(json!({ "result": id, "select": "length" })).await;
        assert_eq!(count, "20000\n[lines 1-1 of 1]");
        let (mut read, mut next) = (String::new(), Some("0".to_owned()));
        while let Some(offset) = next {
            let page = client.mcp(json!({ "result": id, "offset": offset })).await;
            let (body, foot) = page.rsplit_once('\n').unwrap();
            read.push_str(body);
            next = foot.split_once("next offset: ").map(|(_, at)| at.replace(']', ""));
        }
        assert!(read == compact, "{flags:?}: the pages differ from the stored result");
    }
}

/// The `main` of the test program does not begin with `run_if_asked`, so filters have no helper
/// process.
#[tokio::test]
async fn filter_without_helper_process_is_refused_before_the_call() {
    let world = World::of("demo", "everything").start();
    let asked: Value = json!({ "tool": "demo_echo", "args": { "text": "1" }, "select": "." });
    insta::assert_snapshot!(world.ask(&asked.to_string()).await, @r"bad_filter: filters cannot run here: `main` does not begin with `reaper::run_if_asked`");
    assert_eq!(world.fixture("demo").ledger().calls.len(), 0);
}
