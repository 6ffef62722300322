//! Behaviour that needs real processes: start, crash, shutdown, memory, environment.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use switchboard_it::client::{Client, text};
use switchboard_it::harness::stored_id;
use switchboard_it::processes::{children, is_alive, peak_memory, send_signal, until, until_gone};
use switchboard_it::program::Installed;
use tokio::task::JoinSet;

use crate::PROGRAMS;

const MIB: u64 = 1024 * 1024;

const ECHO: &str = "[[tools]]\nname = 'echo'\n";

/// Like [`ECHO`], but the server ignores the end of its input and SIGTERM.
const STUBBORN: &str =
    "[faults]\nignore_eof = true\nignore_sigterm = true\n[[tools]]\nname = 'echo'\n";

/// Like [`ECHO`], with a child process that keeps the server's pipes open and ignores signals.
const PARENT: &str = "[faults]\ngrandchild = true\n[[tools]]\nname = 'echo'\n";

fn echo(words: &str) -> Value {
    json!({ "tool": "demo_echo", "args": { "text": words } })
}

#[tokio::test]
async fn hundred_concurrent_first_calls_start_one_process() {
    let installed = Installed::with_fixture(PROGRAMS, "demo", ECHO);
    let mut client = installed.connect(json!({})).await;
    let mut ids = Vec::new();
    for n in 0..100 {
        ids.push(client.call(echo(&n.to_string())).await);
    }
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(text(&client.answer_to(id).await), n.to_string());
    }
    assert_eq!(installed.spawned().len(), 1);
}

const FLAKY: &str = "
[[tools]]
name = 'echo'
[[tools]]
name = 'wait'
behaviour = 'wait'
[[tools]]
name = 'crash'
description = 'Ends the server.'
behaviour = { kind = 'crash', code = 70, stderr = ['panic: out of ideas', 'at line 1'] }
";

#[tokio::test]
async fn crashed_server_is_restarted_by_the_next_call() {
    let installed = Installed::with_fixture(PROGRAMS, "demo", FLAKY);
    let mut client = installed.connect(json!({})).await;
    let mut fastest = Duration::MAX;
    for crashes in 1..=3 {
        assert_eq!(client.mcp(echo("here")).await, "here");
        assert_eq!(installed.spawned().len(), crashes);
        let started = Instant::now();
        let failure = client.mcp(json!({ "tool": "demo_crash" })).await;
        fastest = fastest.min(started.elapsed());
        for part in ["outcome_unknown", "exit code 70", "panic: out of ideas", "at line 1"] {
            assert!(failure.contains(part), "{part} is not in {failure}");
        }
        let found = client.mcp(json!({ "search": "ends the server" })).await;
        assert!(found.starts_with("demo_crash()"), "{found}");
    }
    // Only the fastest of three attempts is checked, so that other load on the machine does not
    // fail the test.
    assert!(fastest < Duration::from_millis(200), "the failure took {fastest:?}");
}

#[tokio::test]
async fn failure_names_the_signal_that_killed_the_server() {
    let installed = Installed::with_fixture(PROGRAMS, "demo", FLAKY);
    let mut client = installed.connect(json!({})).await;
    for (signal, name) in [(Signal::KILL, "signal 9"), (Signal::ABORT, "signal 6")] {
        assert_eq!(client.mcp(echo("here")).await, "here");
        let waiting = client.call(json!({ "tool": "demo_wait" })).await;
        // This response comes after the server received `wait` on the same pipe.
        assert_eq!(client.mcp(echo("there")).await, "there");
        send_signal(*installed.spawned().last().unwrap(), signal);
        let failure = text(&client.answer_to(&waiting).await);
        assert!(failure.contains(name), "{failure}");
    }
    assert_eq!(client.mcp(echo("back")).await, "back");
}

/// How a host ends the gateway.
#[derive(Debug, Clone, Copy)]
enum Farewell {
    EndOfInput,
    Signal(Signal),
}

async fn check_shutdown(script: &'static str, trigger: Farewell) {
    let installed = Installed::with_fixture(PROGRAMS, "demo", script);
    let mut client = installed.connect(json!({})).await;
    assert_eq!(client.mcp(echo("here")).await, "here");
    let spawned = installed.spawned();
    assert!(!spawned.is_empty() && spawned.iter().all(|pid| is_alive(*pid)));
    let ended = match trigger {
        Farewell::EndOfInput => client.end().await,
        Farewell::Signal(signal) => {
            send_signal(client.pid(), signal);
            client.ended().await
        }
    };
    assert_eq!(ended.code, Some(0), "{trigger:?}");
    // A killed process may take a moment to disappear.
    until_gone(&spawned).await;
}

#[tokio::test]
async fn no_process_survives_any_kind_of_shutdown() {
    let mut checks = JoinSet::new();
    for script in [ECHO, STUBBORN, PARENT] {
        for trigger in [
            Farewell::EndOfInput,
            Farewell::Signal(Signal::INT),
            Farewell::Signal(Signal::TERM),
            Farewell::Signal(Signal::HUP),
        ] {
            checks.spawn(check_shutdown(script, trigger));
        }
    }
    while let Some(checked) = checks.join_next().await {
        checked.unwrap();
    }
}

/// The number of descriptors of a process that refer to its standard input. The task that reads the
/// input has its own descriptor.
fn input_handles(pid: u32) -> usize {
    let handles = format!("/proc/{pid}/fd");
    let target = |name: &std::path::Path| std::fs::read_link(name).ok();
    let input = target(&std::path::Path::new(&handles).join("0"));
    let all = std::fs::read_dir(&handles).into_iter().flatten().flatten();
    all.filter(|handle| target(&handle.path()) == input).count()
}

/// The input has ended and a call still runs: a signal ends the gateway without waiting for the
/// call.
#[tokio::test]
async fn sigterm_after_end_of_input_interrupts_running_calls() {
    let installed = Installed::with_fixture(PROGRAMS, "demo", FLAKY);
    let mut client = installed.connect(json!({})).await;
    client.mcp(json!({ "connect": "demo" })).await;
    client.call(json!({ "tool": "demo_wait" })).await;
    let pid = client.pid();
    let ending = tokio::spawn(client.end());
    until("the input is read to its end", || input_handles(pid) == 1).await;
    let asked = Instant::now();
    send_signal(pid, Signal::TERM);
    let ended = ending.await.unwrap();
    assert_eq!(ended.code, Some(0));
    assert!(asked.elapsed() < Duration::from_secs(20), "the gateway waited for the running call");
    until_gone(&installed.spawned()).await;
}

#[tokio::test]
async fn interrupted_command_leaves_no_process() {
    let installed = Installed::with_fixture(PROGRAMS, "demo", FLAKY);
    assert_eq!(installed.run(["connect", "demo"]).await.code, Some(0));
    let command = Client::start(installed.command().args(["call", "demo_wait"]));
    until("the server was started for the call", || installed.spawned().len() == 2).await;
    send_signal(command.pid(), Signal::INT);
    assert_eq!(command.ended().await.code, Some(130));
    until_gone(&installed.spawned()).await;
}

/// The keeper, not the command, waits for the server to end.
#[tokio::test]
async fn command_ends_before_a_server_that_ignores_eof() {
    let mut outlived = false;
    // Three tries, because on a stalled machine the server may end before the check.
    for _ in 0..3 {
        let installed = Installed::with_fixture(PROGRAMS, "demo", STUBBORN);
        assert_eq!(installed.run(["connect", "demo"]).await.code, Some(0));
        let spawned = installed.spawned();
        outlived |= spawned.iter().any(|pid| is_alive(*pid));
        until_gone(&spawned).await;
    }
    assert!(outlived, "the command waited for its server");
}

#[tokio::test]
async fn restarted_gateway_lists_and_searches_without_server_process() {
    let installed = Installed::with_fixture(PROGRAMS, "demo", FLAKY);
    let mut client = installed.connect(json!({})).await;
    assert_eq!(client.mcp(echo("once")).await, "once");
    client.end().await;
    assert_eq!(installed.spawned().len(), 1);

    let mut client = installed.connect(json!({})).await;
    for arguments in [
        json!({}),
        json!({ "server": "demo" }),
        json!({ "search": "ends the server" }),
        json!({ "describe": "demo_crash" }),
    ] {
        let said = client.mcp(arguments).await;
        assert!(said.contains("demo"), "{said}");
        assert_eq!(children(client.pid()), Vec::<u32>::new());
    }
    client.end().await;
    for command in [&["status"][..], &["tools"], &["search", "ends"], &["describe", "demo_crash"]] {
        let ran = installed.run(command.iter().copied()).await;
        assert!(ran.code == Some(0) && ran.stdout.contains("demo"), "{ran:?}");
    }
    assert_eq!(installed.spawned().len(), 1, "a server was started again");
}

#[tokio::test]
async fn server_gets_exact_arguments_and_minimal_environment() {
    let odd = [
        "$(touch pwned)",
        "; touch pwned",
        "`touch pwned`",
        "a b",
        "*",
        "a~",
        "\"q\"",
        "'",
        "\\n",
        "a\nb",
        "|",
        "&",
        ">pwned",
        "$HOME",
        "ünï",
        "",
    ];
    let args: Vec<&str> = odd.into_iter().chain(["everything"]).collect();
    let config = json!({ "mcpServers": { "demo": {
        "command": "fixture-server", "args": args, "env": { "API_KEY": "from the entry" },
    } } });
    let installed = Installed::with(PROGRAMS, &config.to_string());
    let mut command = installed.command();
    command.arg("serve").envs([
        ("LANG", "C.UTF-8"),
        ("LC_ALL", "C.UTF-8"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("NODE_OPTIONS", "--require ./pwned.js"),
        ("LD_PRELOAD_PATH", "/nowhere"),
        ("SHELL", "() { :; }; touch pwned"),
    ]);
    let mut client = Client::start(&mut command);
    client.initialize("2025-11-25", json!({})).await;
    let seen: Value =
        serde_json::from_str(&client.mcp(json!({ "tool": "demo_env" })).await).unwrap();

    let argv: Vec<&str> =
        seen["argv"].as_array().unwrap()[1..].iter().filter_map(Value::as_str).collect();
    assert_eq!(argv, args);
    let mut names: Vec<&str> =
        seen["env"].as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["API_KEY", "HOME", "LANG", "LC_ALL", "PATH"]);
    assert_eq!(seen["env"]["API_KEY"], "from the entry");
    assert!(!installed.home().join("pwned").exists());
}

/// The response, and the growth of the gateway's peak memory during the request.
async fn growth(client: &mut Client, arguments: Value) -> (String, u64) {
    assert_eq!(client.mcp(echo("warm")).await, "warm");
    let before = peak_memory(client.pid());
    let said = client.mcp(arguments).await;
    (said, peak_memory(client.pid()) - before)
}

async fn check_huge_line(arguments: Value) {
    let installed =
        Installed::with_fixture(PROGRAMS, "demo", include_str!("../../scripts/big.toml"));
    let mut client = installed.connect(json!({})).await;
    let (said, grown) = growth(&mut client, arguments.clone()).await;
    assert!(said.starts_with("answer_too_large: "), "{arguments}: {said}");
    assert!(said.contains("16777216 bytes") && said.contains("`maxFrameBytes`"), "{said}");
    assert!(grown < 32 * MIB, "{arguments}: memory grew by {grown} bytes");
    assert_eq!(client.mcp(echo("still here")).await, "still here");
    assert_eq!(client.end().await.code, Some(0));
    until_gone(&installed.spawned()).await;
}

#[tokio::test]
async fn huge_line_fails_its_call_in_bounded_memory() {
    check_huge_line(json!({ "tool": "demo_huge_line", "args": { "bytes": 200 * MIB } })).await;
}

#[tokio::test]
async fn endless_line_fails_its_call_in_bounded_memory() {
    check_huge_line(json!({ "tool": "demo_huge_line", "args": { "bytes": u64::MAX >> 11 } })).await;
}

#[tokio::test]
async fn ten_mebibyte_result_is_truncated_and_readable_by_id() {
    let installed =
        Installed::with_fixture(PROGRAMS, "demo", include_str!("../../scripts/big.toml"));
    let mut client = installed.connect(json!({})).await;
    let call = json!({ "tool": "demo_big", "args": { "bytes": 10 * MIB } });
    let (said, grown) = growth(&mut client, call).await;
    assert!(said.len() <= 50 * 1024, "{} bytes", said.len());
    assert!(grown <= 64 * MIB, "memory grew by {grown} bytes");
    assert!(said.contains("]\nline 1 of a long answer\n"), "{said:.100}");
    let id = stored_id(&said).unwrap().to_owned();
    let page = client.mcp(json!({ "result": id, "offset": 250_000, "limit": 2 })).await;
    assert!(
        page.starts_with("line 250001 of a long answer\nline 250002 of a long answer\n"),
        "{page}"
    );
    let found = client.mcp(json!({ "result": id, "grep": "line 77777 " })).await;
    assert!(found.starts_with("77777: line 77777 of a long answer\n"), "{found}");
    assert_eq!(client.end().await.code, Some(0));
}

#[tokio::test]
async fn stderr_flood_does_not_block_the_server() {
    let script = format!("{ECHO}[faults]\nstderr_flood_bytes = {}\n", 8 * MIB);
    let installed = Installed::with_fixture(PROGRAMS, "demo", &script);
    let mut client = installed.connect(json!({})).await;
    assert_eq!(client.mcp(echo("through")).await, "through");
    client.end().await;
    let logs = installed.home().join("switchboard/state/logs");
    let size: u64 =
        std::fs::read_dir(logs).unwrap().map(|log| log.unwrap().metadata().unwrap().len()).sum();
    assert!(size < 3 * MIB, "the logs hold {size} bytes");
}

#[tokio::test]
async fn stopped_server_can_still_write_its_last_output() {
    let installed = Installed::bare(PROGRAMS);
    let said = installed.home().join("said");
    let script = format!("fixture-server everything; echo bye && touch '{}'", said.display());
    let entry = json!({ "command": "sh", "args": ["-c", script] });
    let config = json!({ "mcpServers": { "demo": entry } });
    installed.write("switchboard/mcp.json", &config.to_string());
    let ran = installed.run(["connect", "demo"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(said.exists(), "its stdout was closed before it ended");
}

#[tokio::test]
async fn command_ends_before_a_server_that_failed_to_start() {
    let stuck = STUBBORN.replace("[faults]", "[faults]\nnever_answer = 'initialize'");
    let installed = Installed::with_fixture(PROGRAMS, "demo", &stuck);
    let ran = installed.run(["call", "demo_echo", "--timeout", "1s"]).await;
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    let started = installed.spawned();
    assert!(started.iter().any(|pid| is_alive(*pid)), "the keeper ends the server later");
    until_gone(&started).await;
}
