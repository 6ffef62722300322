//! Ad hoc servers, which only the command line defines.

use std::path::{Path, PathBuf};

use serde_json::Value;
use switchboard_it::program::Installed;

use super::{fresh, transcript};
use crate::PROGRAMS;

const STDIO: &str = "--stdio 'fixture-server everything'";

/// All files in a directory and its subdirectories.
fn files(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(below).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(files(&path)),
            path => found.push(path),
        }
    }
    found
}

#[tokio::test]
async fn ad_hoc_server_needs_no_configuration_and_writes_nothing() {
    let installed = fresh();
    let told = async |line: &str| transcript(&installed, &format!("{line} {STDIO}")).await;
    insta::assert_snapshot!(told("call echo text=hi").await, @r"
    exit 0
    --- stdout
    hi
    --- stderr
    ");
    insta::assert_snapshot!(told("describe add").await, @r#"
    exit 0
    --- stdout
    add(a: number, b: number)

    Adds two numbers.

    Parameters
    a: number
    b: number

    server ad-hoc
    tool add
    declares {"readOnlyHint":true}
    --- stderr
    "#);
    insta::assert_snapshot!(told("read file:///readme.md").await, @r"
    exit 0
    --- stdout
    # Everything
    --- stderr
    ");
    insta::assert_snapshot!(told("prompt greet who=Ada").await, @r"
    exit 0
    --- stdout
    Say hello to Ada.
    --- stderr
    ");
    insta::assert_snapshot!(told("search --limit 1 two numbers").await, @r#"
    exit 0
    --- stdout
    add(a: number, b: number)
      Adds two numbers.
    --- stderr
    "#);
    let tools = told("tools").await;
    assert!(tools.contains("\necho"), "{tools}");
    assert!(told("resources").await.contains("file:///readme.md"));
    assert!(told("prompts").await.contains("greet"));
    let left = files(&installed.home().join("switchboard"));
    assert_eq!(left, Vec::<PathBuf>::new());
}

#[tokio::test]
async fn tools_as_json_have_signature_schema_and_annotations() {
    let installed = fresh();
    let ran = installed.run(["tools", "--stdio", "fixture-server everything", "--json"]).await;
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    insta::assert_snapshot!(format!("{:#}", answer["tools"][0]), @r#"
    {
      "name": "echo",
      "server": "ad-hoc",
      "tool": "echo",
      "description": "Returns the text that it is given.",
      "title": "Echo",
      "signature": "echo(text: string)",
      "inputSchema": {
        "type": "object",
        "properties": {
          "text": {
            "type": "string",
            "description": "What to return"
          }
        },
        "required": [
          "text"
        ]
      },
      "outputSchema": null,
      "annotations": {
        "readOnlyHint": true,
        "idempotentHint": true
      }
    }
    "#);
}

#[tokio::test]
async fn deny_and_approve_rules_apply_to_ad_hoc_servers() {
    let installed = Installed::with(
        PROGRAMS,
        r#"{ "settings": { "approve": "writes", "deny": ["*_echo"], "adHocConnections": "off" } }"#,
    );
    let told = async |line: &str| transcript(&installed, &format!("{line} {STDIO}")).await;
    insta::assert_snapshot!(told("call echo text=hi").await, @r#"
    exit 4
    --- stdout
    --- stderr
    error: `echo` is denied by the rule `*_echo`

    hint: to allow the call, remove the rule with `switchboard deny --remove '*_echo'`
    "#);
    insta::assert_snapshot!(told("call delete_everything").await, @r#"
    exit 4
    --- stdout
    --- stderr
    error: `delete_everything` needs the user's approval
      caused by: the user cannot be asked

    hint: approve it on a terminal, or in advance with `--yes`
    "#);
    assert!(told("call delete_everything --yes").await.starts_with("exit 0"));
}

#[tokio::test]
async fn invalid_ad_hoc_options_are_refused_with_cause() {
    let installed = fresh();
    let told = async |line: &str| transcript(&installed, line).await;
    insta::assert_snapshot!(told("tools --stdio 'no-such-program x'").await, @r#"
    exit 5
    --- stdout
    --- stderr
    error: cannot use the server `ad-hoc`
      caused by: cannot connect
      caused by: the program `no-such-program` was not found

    hint: check that `no-such-program` is installed and can be run
    "#);
    insta::assert_snapshot!(told("tools --stdio ''").await, @r#"
    exit 2
    --- stdout
    --- stderr
    error: `--stdio` needs a program
    "#);
    insta::assert_snapshot!(told("tools --stdio https://x.example").await, @r#"
    exit 2
    --- stdout
    --- stderr
    error: `--stdio` takes a program; a URL goes with `--url`
    "#);
    insta::assert_snapshot!(told("tools --url fixture-server").await, @r#"
    exit 2
    --- stdout
    --- stderr
    error: `--url` takes a URL; a program goes with `--stdio`
    "#);
    insta::assert_snapshot!(told("tools --url http://127.0.0.1:1/mcp?key=secret").await, @r#"
    exit 5
    --- stdout
    --- stderr
    error: cannot use the server `ad-hoc`
      caused by: cannot connect
      caused by: no connection to `http://127.0.0.1:1`
      caused by: connection refused
    "#);
    insta::assert_snapshot!(told("tools demo --url http://127.0.0.1:1/mcp").await, @r#"
    exit 2
    --- stdout
    --- stderr
    error: the argument '[SERVER]' cannot be used with '--url <URL>'

    Usage: switchboard tools <SERVER>

    For more information, try '--help'.
    "#);
    insta::assert_snapshot!(told("call ecoh --stdio 'fixture-server everything'").await, @r#"
    exit 2
    --- stdout
    --- stderr
    error: no tool is named `ecoh`

    hint: did you mean `echo`?
    "#);
}

#[tokio::test]
async fn start_timeout_of_an_ad_hoc_server_is_explained() {
    let installed = fresh();
    let line = "call --timeout 1s --stdio 'sleep 100' anything";
    insta::assert_snapshot!(transcript(&installed, line).await, @"
    exit 5
    --- stdout
    --- stderr
    error: cannot use the server `ad-hoc`
      caused by: cannot connect
      caused by: the server did not answer `initialize` within [TIME]

    ");
}
