//! The command line as a script sees it: exit code, standard output and standard error.

mod ad_hoc;
mod calling;
mod completion;
mod json;
mod mistakes;
mod server_questions;

use regex::Regex;
use switchboard_it::harness::filtered;
use switchboard_it::program::Installed;

use crate::PROGRAMS;

/// A machine on which nothing is configured.
fn fresh() -> Installed {
    Installed::bare(PROGRAMS)
}

/// Three configured servers: one with a few tools, one that cannot start, and one with every kind
/// of tool.
fn configured() -> Installed {
    Installed::with(
        PROGRAMS,
        r#"{
            // A comment and a trailing comma are fine.
            "settings": { "firstListing": false },
            "mcpServers": {
                "all": { "command": "fixture-server", "args": ["everything"] },
                "broken": { "command": "no-such-program-anywhere" },
                "demo": { "command": "fixture-server", "args": ["flaky"] },
            },
        }"#,
    )
}

async fn transcript(installed: &Installed, line: &str) -> String {
    let words: Vec<String> = split(line);
    let ran = installed.run(words.iter().map(String::as_str)).await;
    let text =
        filtered(&ran.transcript(installed.home())).replace("switchboard-dup", "switchboard");
    // The tests of the search check the scores.
    let scores = Regex::new(r#""score": [0-9.]+"#).unwrap();
    scores.replace_all(&text, r#""score": [SCORE]"#).into_owned()
}

/// Splits a command line at white space, except inside single quotes.
fn split(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

#[tokio::test]
async fn search_without_close_match_is_reported_on_stderr() {
    let installed = fresh();
    let told = async |line: &str| installed.run(line.split(' ')).await.stderr;
    assert_eq!(told("search zeppelin").await, "no tool matches `zeppelin`\n");
    assert_eq!(told("search add --offset 50").await, "no more: 1 in all\n");
    let weak = told("search plain yogurt recipe").await;
    assert!(weak.starts_with("no close match; try other words\n"), "{weak}");
}

#[tokio::test]
async fn demo_server_is_available_without_any_configuration() {
    let installed = fresh();
    insta::assert_snapshot!(transcript(&installed, "search add").await, @r#"
    exit 0
    --- stdout
    demo_add(a: number, b: number)
      Add two numbers
    --- stderr
    "#);
    insta::assert_snapshot!(transcript(&installed, "describe demo_add").await, @r#"
    exit 0
    --- stdout
    demo_add(a: number, b: number)

    Add two numbers

    Parameters
    a: number - First number
    b: number - Second number

    server demo
    tool add
    declares {"readOnlyHint":true}
    --- stderr
    "#);
    insta::assert_snapshot!(transcript(&installed, "call demo_add a=2 b=40").await, @r#"
    exit 0
    --- stdout
    42
    --- stderr
    "#);
    insta::assert_snapshot!(transcript(&installed, "status").await, @r#"
    exit 0
    --- stdout
    No servers yet: `switchboard add NAME -- COMMAND` adds one, `switchboard import` uses those of your hosts
    ○ demo (not connected)
    --- stderr
    "#);
}

#[tokio::test]
async fn mistyped_commands_and_arguments_are_refused_with_hints() {
    let installed = fresh();
    insta::assert_snapshot!(transcript(&installed, "call demo_ad a=2 b=40").await, @r#"
    exit 2
    --- stdout
    --- stderr
    error: no tool is named `demo_ad`

    hint: did you mean `demo_add`?
    hint: find it with `switchboard search demo ad`
    "#);
    insta::assert_snapshot!(transcript(&installed, "call demo_add a=two").await, @r#"
    exit 2
    --- stdout
    --- stderr
    error: the arguments do not fit: `b` is required; `a` must be a number, not a string

    hint: it takes:
      a: number - First number
      b: number - Second number
    "#);
    insta::assert_snapshot!(transcript(&installed, "call demo_add --args '{ a: 2'").await, @r#"
    exit 2
    --- stdout
    --- stderr
    error: the value of `--args` is invalid
      caused by: `args` is not valid JSON (line 1, column 3)
    "#);
    insta::assert_snapshot!(transcript(&installed, "call demo_add --args '[1]'").await, @r#"
    exit 2
    --- stdout
    --- stderr
    error: the value of `--args` is invalid
      caused by: `args` must hold a JSON object, not an array
    "#);
    insta::assert_snapshot!(transcript(&installed, "call demo_add --args @nowhere.json").await, @r#"
    exit 2
    --- stdout
    --- stderr
    error: cannot read `[HOME]/nowhere.json`
      caused by: No such file or directory (os error 2)
    "#);
    insta::assert_snapshot!(transcript(&installed, "tools demos").await, @r#"
    exit 2
    --- stdout
    --- stderr
    error: no server is named `demos`

    hint: did you mean `demo`?
    hint: see the servers with `switchboard status`
    "#);
    insta::assert_snapshot!(transcript(&installed, "serach add").await, @r#"
    exit 2
    --- stdout
    --- stderr
    error: unrecognized subcommand 'serach'

      tip: some similar subcommands exist: 'serve', 'search'

    Usage: switchboard [OPTIONS] [COMMAND]

    For more information, try '--help'.
    "#);
}

#[tokio::test]
async fn call_args_option_reads_a_file_or_standard_input() {
    let installed = fresh();
    installed.write("args.json", r#"{ "a": 2, "b": 40 }"#);
    insta::assert_snapshot!(transcript(&installed, "call demo_add --args @args.json b=41").await, @r#"
    exit 0
    --- stdout
    43
    --- stderr
    "#);
    let ran = installed.run_with_input(["call", "demo_add", "--args", "-"], r#"{"a":1,"b":1}"#);
    insta::assert_snapshot!(ran.await.transcript(installed.home()), @r#"
    exit 0
    --- stdout
    2
    --- stderr
    "#);
}

#[tokio::test]
async fn configuration_may_have_comments_and_trailing_commas() {
    let installed = configured();
    insta::assert_snapshot!(transcript(&installed, "config check").await, @r#"
    exit 0
    --- stdout
    --- stderr
    checked 1 file with 3 servers: no problem
    "#);
    insta::assert_snapshot!(transcript(&installed, "call demo_echo text=hi").await, @r#"
    exit 0
    --- stdout
    hi
    --- stderr
    "#);
}

#[tokio::test]
async fn configuration_parse_error_names_file_and_position() {
    let installed = Installed::with(PROGRAMS, "{\n  \"mcpServers\": {\n    \"demo\": ]\n  }\n}\n");
    insta::assert_snapshot!(transcript(&installed, "config check").await, @r#"
    exit 2
    --- stdout
    error: [HOME]/switchboard/mcp.json:3:13: unexpected close bracket
    --- stderr
    checked 1 file with 0 servers: 1 problem
    "#);
    insta::assert_snapshot!(transcript(&installed, "config check --json").await, @r#"
    exit 2
    --- stdout
    {
      "diagnostics": [
        {
          "level": "error",
          "path": "[HOME]/switchboard/mcp.json",
          "line": 3,
          "column": 13,
          "message": "unexpected close bracket"
        }
      ]
    }
    --- stderr
    "#);
    insta::assert_snapshot!(transcript(&installed, "status").await, @r#"
    exit 2
    --- stdout
    0 servers, 0 tools
    --- stderr
    error: [HOME]/switchboard/mcp.json:3:13: unexpected close bracket
    "#);
    insta::assert_snapshot!(transcript(&installed, "search add").await, @r#"
    exit 2
    --- stdout
    --- stderr
    error: [HOME]/switchboard/mcp.json:3:13: unexpected close bracket
    no tool matches `add`
    "#);
    insta::assert_snapshot!(transcript(&installed, "call demo_add a=1 b=2").await, @r#"
    exit 2
    --- stdout
    --- stderr
    error: [HOME]/switchboard/mcp.json:3:13: unexpected close bracket
    error: no tool is named `demo_add`

    hint: list all errors with `switchboard config check`
    "#);
}

#[tokio::test]
async fn file_named_by_config_option_must_exist() {
    let installed = fresh();
    insta::assert_snapshot!(transcript(&installed, "--config nowhere.json status").await, @r#"
    exit 2
    --- stdout
    --- stderr
    error: the configuration file `[HOME]/nowhere.json` does not exist

    hint: see the files that are read with `switchboard config path`
    "#);
    installed.write("other.json", r#"{ "mcpServers": {} }"#);
    insta::assert_snapshot!(transcript(&installed, "--config other.json config check").await, @r#"
    exit 0
    --- stdout
    --- stderr
    checked 1 file with 0 servers: no problem
    "#);
}

#[tokio::test]
async fn pending_project_server_is_not_started() {
    let installed = configured();
    let log = installed.spawn_log();
    installed.write(
        ".mcp.json",
        &serde_json::json!({ "mcpServers": { "theirs": {
            "command": "fixture-server", "args": ["flaky", "--spawn-log", log],
        } } })
        .to_string(),
    );
    insta::assert_snapshot!(transcript(&installed, "status").await, @r#"
    exit 0
    --- stdout
    4 servers, 0 tools: 1 pending
    ○ all (not connected)
    ○ broken (not connected)
    ○ demo (not connected)
    ⚠ theirs (pending: the user has to trust it)
    --- stderr
    `switchboard trust` shows the servers that this project defines
    "#);
    insta::assert_snapshot!(transcript(&installed, "call theirs_echo text=hi").await, @r#"
    exit 4
    --- stdout
    --- stderr
    error: the server `theirs` comes from this project and was not approved

    hint: look at its definition and approve it with `switchboard trust theirs`
    "#);
    insta::assert_snapshot!(transcript(&installed, "connect theirs").await, @r#"
    exit 4
    --- stdout
    --- stderr
    error: the server `theirs` comes from this project and was not approved

    hint: look at its definition and approve it with `switchboard trust theirs`
    "#);
    for command in ["trust theirs", "trust", "trust --yes"] {
        let refused = transcript(&installed, command).await;
        insta::allow_duplicates! {
            insta::assert_snapshot!(refused, @r#"
            exit 4
            --- stdout
            --- stderr
            theirs from [HOME]/.mcp.json:1:16
              transport    stdio
              command      "fixture-server"
              args         "flaky" "--spawn-log" "[HOME]/spawns"
              not covered  other files of the project that its programs load by themselves
              starts       "fixture-server" "flaky" "--spawn-log" "[HOME]/spawns"
            error: servers must be approved on a terminal, one by one, after reading the definition
            "#);
        }
    }
    for command in ["search reverse", "tools"] {
        let ran = installed.run(command.split(' ')).await;
        let told = "1 server pending: theirs (`switchboard trust` shows what they run)";
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
        let ran = installed.run(command.split(' ').chain(["--json"])).await;
        let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(answer["pending"], serde_json::json!(["theirs"]));
    }
    assert_eq!(installed.spawned(), Vec::<u32>::new());
}

#[tokio::test]
async fn destructive_call_without_terminal_requires_yes_option() {
    let installed = configured();
    insta::assert_snapshot!(transcript(&installed, "call all_delete_everything text=x").await, @r#"
    exit 4
    --- stdout
    --- stderr
    error: `all_delete_everything` needs the user's approval
      caused by: the user cannot be asked

    hint: approve it on a terminal, or in advance with `--yes`
    hint: allow it for good with `switchboard allow all/delete_everything`
    "#);
    insta::assert_snapshot!(transcript(&installed, "call all_delete_everything text=x --yes").await, @r#"
    exit 0
    --- stdout
    x
    --- stderr
    "#);
}

#[tokio::test]
async fn tool_error_and_server_error_differ_in_exit_code() {
    let installed = configured();
    insta::assert_snapshot!(transcript(&installed, "call all_fail").await, @r#"
    exit 1
    --- stdout
    --- stderr
    error: the disk is full
    "#);
    insta::assert_snapshot!(transcript(&installed, "call all_protocol-error").await, @r"
    exit 5
    --- stdout
    --- stderr
    error: the server answered with an error
      caused by: error -32001: not today
    ");
    insta::assert_snapshot!(transcript(&installed, "call demo_crash").await, @r#"
    exit 5
    --- stdout
    --- stderr
    error: the server ended before it answered (exit code 70)

    hint: end of its standard error:
      panic: out of ideas
      at fixture.rs:1
    hint: read its log with `switchboard logs demo`
    hint: it may have taken effect: check before you call it again
    "#);
    insta::assert_snapshot!(transcript(&installed, "connect broken").await, @r#"
    exit 5
    --- stdout
    --- stderr
    error: cannot use the server `broken`
      caused by: cannot connect
      caused by: the program `no-such-program-anywhere` was not found

    hint: check that `no-such-program-anywhere` is installed and can be run
    "#);
    let logs = transcript(&installed, "logs demo").await;
    let time = Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ").unwrap();
    insta::assert_snapshot!(time.replace_all(&logs, "[TIME]"), @r#"
    exit 0
    --- stdout
    [TIME] panic: out of ideas
    [TIME]   at fixture.rs:1
    --- stderr
    "#);
}

#[tokio::test]
async fn malformed_file_of_the_config_option_stops_the_command() {
    let installed = Installed::bare(PROGRAMS);
    let broken = installed.write("broken.json", "{ \"mcpServers\": { \"a\" } }");
    let broken = broken.to_string_lossy().into_owned();
    for command in ["tools", "status"] {
        let ran = installed.run(["--config", &broken, command]).await;
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("broken.json`, line 1, column 23"), "{}", ran.stderr);
    }
}
