//! Calls on the command line: arguments from files and pipes, saved and raw results, prompts.

use std::fs;

use serde_json::{Value, json};
use switchboard_it::program::Installed;

use super::{configured, transcript};
use crate::PROGRAMS;

/// A server with one tool that returns its arguments.
fn echoing() -> Installed {
    Installed::with_fixture(
        PROGRAMS,
        "kit",
        r#"
        [[tools]]
        name = "note"
        input_schema = { type = "object", properties = { body = { type = "string" }, tags = { type = "array", items = { type = "string" } }, where = { type = "object" }, count = { type = "integer" } } }
        "#,
    )
}

#[tokio::test]
async fn call_arguments_can_come_from_files_and_stdin() {
    let installed = echoing();
    installed.write("body.md", "# Notes, kept to the byte\n");
    installed.write("where.json", "{ \"line\": 1.10 }\n");
    let words = ["call", "note", "body=@body.md", "where=@where.json", "count=-", "tags=@@you"];
    let ran = installed.run_with_input(words, "7\n").await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        serde_json::from_str::<Value>(&ran.stdout).unwrap(),
        json!({
            "body": "# Notes, kept to the byte\n",
            "where": { "line": 1.1 },
            "count": 7,
            "tags": ["@you"],
        })
    );
    let ran = installed.run_with_input(["call", "note", "tags=a", "tags=-"], "b,c").await;
    assert_eq!(ran.stdout, "{\"tags\":[\"a\",\"b,c\"]}\n");
}

#[tokio::test]
async fn invalid_call_argument_error_shows_the_correct_syntax() {
    let installed = echoing();
    insta::assert_snapshot!(transcript(&installed, "call note tags=a,b").await, @r"
    exit 2
    --- stdout
    --- stderr
    error: `tags` takes a list: repeat the key (`tags=A tags=B`), or write JSON (`tags:='[…]'`)
    ");
    insta::assert_snapshot!(transcript(&installed, "call note body=a body=b").await, @r"
    exit 2
    --- stdout
    --- stderr
    error: `body` is given twice, but does not accept a list
    ");
    insta::assert_snapshot!(transcript(&installed, "call note body=- count=-").await, @r"
    exit 2
    --- stdout
    --- stderr
    error: only one argument can be `-`: standard input is read once
    ");
    insta::assert_snapshot!(transcript(&installed, "call note body=@nowhere").await, @r"
    exit 2
    --- stdout
    --- stderr
    error: cannot use the file for `body` (to pass the text `@x`, write `body=@@x`)
      caused by: cannot read `[HOME]/nowhere`
      caused by: No such file or directory (os error 2)
    ");
    insta::assert_snapshot!(transcript(&installed, "call note body=@/dev/zero").await, @r"
    exit 2
    --- stdout
    --- stderr
    error: cannot use the file for `body` (to pass the text `@x`, write `body=@@x`)
      caused by: cannot read `/dev/zero`
      caused by: not a regular file
    ");
}

#[tokio::test]
async fn save_option_writes_images_without_overwriting_files() {
    let installed = configured();
    let home = installed.home().to_owned();
    insta::assert_snapshot!(transcript(&installed, "call all_image --save shots/").await, @r"
    exit 0
    --- stdout
    [image image/png, 70 bytes, saved to [HOME]/shots/all_image.png]
    --- stderr
    ");
    let first = fs::read(home.join("shots/all_image.png")).unwrap();
    assert!(first.starts_with(b"\x89PNG"), "{first:?}");
    let ran = installed.run(["call", "all_image", "--save", "shots", "--json"]).await;
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let second = home.join("shots/all_image-2.png");
    assert_eq!(answer["saved"], json!([second]));
    assert_eq!(fs::read(&second).unwrap(), first);
    let ran = installed.run(["call", "all_audio", "--save", "sound.bin"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(fs::metadata(home.join("sound.bin")).is_ok());
    insta::assert_snapshot!(transcript(&installed, "call all_crash --save sound.bin").await, @r"
    exit 2
    --- stdout
    --- stderr
    error: `[HOME]/sound.bin` exists already, and `--save` does not overwrite it
    ");
    insta::assert_snapshot!(transcript(&installed, "call all_crash --save no/where.png").await, @r"
    exit 2
    --- stdout
    --- stderr
    error: cannot write `[HOME]/no`
      caused by: No such file or directory (os error 2)
    ");
    insta::assert_snapshot!(transcript(&installed, "call all_echo text=hi --save shots").await, @r"
    exit 0
    --- stdout
    hi
    --- stderr
    warning: the result has no image, audio or blob: nothing was saved
    ");
}

#[tokio::test]
async fn blob_resource_reaches_stdout_as_raw_bytes() {
    let installed = configured();
    let mut command = installed.command();
    let words = ["read", "file:///logo.png", "--server", "all"];
    let output = command.args(words).output().await.unwrap();
    assert_eq!(output.stdout, b"\x89PNG\r\n\x1a\n", "{output:?}");
    let ran = installed.run(words.into_iter().chain(["--save", "."])).await;
    assert!(ran.stdout.contains("logo.png]"), "{ran:?}");
    assert_eq!(fs::read(installed.home().join("logo.png")).unwrap(), b"\x89PNG\r\n\x1a\n");
    let ran = installed.run(words.into_iter().chain(["--json"])).await;
    assert!(ran.stdout.contains("iVBORw0KGgo="), "{ran:?}");
}

#[tokio::test]
async fn raw_option_prints_the_server_result_unchanged() {
    let installed = configured();
    insta::assert_snapshot!(transcript(&installed, "call all_echo text=hi --raw").await, @r#"
    exit 0
    --- stdout
    {"content":[{"type":"text","text":"hi"}]}
    --- stderr
    "#);
    insta::assert_snapshot!(transcript(&installed, "call all_fail --raw").await, @r#"
    exit 1
    --- stdout
    {"content":[{"type":"text","text":"the disk is full"}],"isError":true}
    --- stderr
    "#);
    let ran = installed.run(["call", "all_echo", "text=hi", "--raw", "--json"]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[tokio::test]
async fn timeout_option_limits_the_start_of_a_server() {
    let installed = Installed::bare(PROGRAMS);
    let script = installed.write("stuck.toml", "[faults]\nnever_answer = 'initialize'\n");
    let servers = json!({ "stuck": { "command": "fixture-server", "args": [script], "startTimeoutMs": 60_000 } });
    installed.write("switchboard/mcp.json", &json!({ "mcpServers": servers }).to_string());
    let ran = installed.run(["call", "stuck_echo", "--timeout", "500ms"]).await;
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stderr.contains("did not answer `initialize` within 0.5 s"), "{ran:?}");
    assert!(!ran.stderr.contains("raise the setting"), "{ran:?}");
}

#[tokio::test]
async fn timeout_option_overrides_the_configured_request_timeout() {
    let installed = Installed::with(
        PROGRAMS,
        r#"{ "mcpServers": { "all": {
            "command": "fixture-server", "args": ["everything"], "requestTimeoutMs": 20
        } } }"#,
    );
    let slow = ["call", "all_slow", "ms=500"];
    let ran = installed.run(slow).await;
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stderr.contains("raise the setting `requestTimeoutMs`"), "{ran:?}");
    let ran = installed.run(slow.into_iter().chain(["--timeout", "40s"])).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    insta::assert_snapshot!(transcript(&installed, "call all_slow --timeout soon").await, @r"
    exit 2
    --- stdout
    --- stderr
    error: invalid value 'soon' for '--timeout <TIME>': a time is a number with ms, s, m or h

    For more information, try '--help'.
    ");
}

#[tokio::test]
async fn prompt_command_checks_arguments_and_prints_message_roles() {
    let installed = configured();
    let ran = installed.run(["prompt", "plain", "--server", "all", "--json"]).await;
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        answer["messages"],
        json!([
            { "role": "user", "content": { "type": "text", "text": "Hello." } },
            { "role": "assistant", "content": { "type": "text", "text": "Hello!" } },
        ])
    );
    insta::assert_snapshot!(transcript(&installed, "prompt greet --server all").await, @r"
    exit 2
    --- stdout
    --- stderr
    error: the prompt `greet` needs the argument `who`

    hint: it takes:
      who (required): Whom to greet
    ");
    insta::assert_snapshot!(transcript(&installed, "prompt greet name=Ada --server all").await, @r"
    exit 2
    --- stdout
    --- stderr
    error: the prompt `greet` has no argument `name`

    hint: it takes:
      who (required): Whom to greet
    ");
    installed.write("who", "Ada");
    insta::assert_snapshot!(transcript(&installed, "prompt greet who=@who --server all").await, @r"
    exit 0
    --- stdout
    Say hello to Ada.
    --- stderr
    ");
}
