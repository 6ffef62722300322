//! Errors of the command line: their form and their remedies.

use super::*;

#[tokio::test]
async fn usage_error_is_json_when_json_is_requested() {
    let installed = fresh();
    insta::assert_snapshot!(transcript(&installed, "tools --json --bogus").await, @r#"
    exit 2
    --- stdout
    {
      "error": {
        "code": "bad_request",
        "message": "unexpected argument '--bogus' found",
        "hints": []
      }
    }
    --- stderr
    "#);
    let told = transcript(&installed, "search --json").await;
    assert!(told.contains("required arguments were not provided"), "{told}");
    assert!(told.starts_with("exit 2\n--- stdout\n{"), "{told}");
    for line in ["tools --bogus", "add --json {} --bogus", "call x -- --json --bogus="] {
        let told = transcript(&installed, line).await;
        assert!(told.starts_with("exit 2\n--- stdout\n--- stderr\nerror: "), "{line}: {told}");
    }
}

#[tokio::test]
async fn json_option_without_a_command_prints_the_status() {
    let installed = configured();
    let bare = transcript(&installed, "--json").await;
    assert_eq!(bare, transcript(&installed, "status --json").await);
    assert!(bare.starts_with("exit 0\n--- stdout\n{\n  \"servers\": ["), "{bare}");
    let misplaced = transcript(&installed, "--json status").await;
    assert!(misplaced.starts_with("exit 2\n--- stdout\n{\n  \"error\": {"), "{misplaced}");
}

#[tokio::test]
async fn listing_commands_fail_if_every_server_failed() {
    let broken = r#""broken": { "command": "no-such-program-anywhere" }"#;
    let works = r#""all": { "command": "fixture-server", "args": ["everything"] }"#;
    for (servers, code) in [(broken.to_owned(), 5), (format!("{broken}, {works}"), 0)] {
        let config = format!(r#"{{ "mcpServers": {{ {servers} }} }}"#);
        for line in ["tools", "search echo", "tools --json", "resources"] {
            let installed = Installed::with(PROGRAMS, &config);
            let ran = installed.run(line.split(' ')).await;
            assert_eq!(ran.code, Some(code), "{line}: {ran:?}");
            let is_error = ran.stdout.starts_with("{\n  \"error\": {");
            assert_eq!(is_error, code == 5 && line.contains("--json"), "{line}: {ran:?}");
            assert!(ran.stderr.contains("`broken`"), "{line}: {ran:?}");
        }
    }
}

#[tokio::test]
async fn misspelt_resource_or_prompt_gets_a_suggestion() {
    let installed = fresh();
    insta::assert_snapshot!(transcript(&installed, "read demo://note").await, @r"
    exit 2
    --- stdout
    --- stderr
    error: no connected server lists the resource `demo://note`

    hint: did you mean `demo://notes`?
    ");
    insta::assert_snapshot!(transcript(&installed, "prompt greeet").await, @r"
    exit 2
    --- stdout
    --- stderr
    error: no connected server has the prompt `greeet`

    hint: did you mean `greet`?
    ");
}

#[tokio::test]
async fn logs_command_reports_a_server_without_a_log() {
    let installed = configured();
    let logs = installed.home().join("switchboard/state/logs");
    assert!(
        transcript(&installed, "logs").await.contains("no server has written to a log yet"),
        "nothing ran yet"
    );
    std::fs::create_dir_all(&logs).unwrap();
    std::fs::write(logs.join("demo.log.1"), "one\ntwo\n").unwrap();
    std::fs::write(logs.join("demo.log"), "three\n").unwrap();
    insta::assert_snapshot!(transcript(&installed, "logs all").await, @r"
    exit 0
    --- stdout
    --- stderr
    `all` has written to no log yet
    ");
    insta::assert_snapshot!(transcript(&installed, "logs demo -n 2").await, @r"
    exit 0
    --- stdout
    two
    three
    --- stderr
    ");
    insta::assert_snapshot!(transcript(&installed, "logs demo -n 1").await, @r"
    exit 0
    --- stdout
    three
    --- stderr
    ");
}

#[tokio::test]
async fn pins_of_a_never_listed_server_cannot_be_accepted() {
    insta::assert_snapshot!(transcript(&configured(), "pins accept all").await, @r"
    exit 2
    --- stdout
    --- stderr
    error: nothing to accept: the tools of `all` were never listed

    hint: connect it with `switchboard connect all`
    ");
}

#[tokio::test]
async fn failed_untrust_or_serve_names_a_remedy() {
    let installed = configured();
    insta::assert_snapshot!(transcript(&installed, "untrust nosuch").await, @r"
    exit 2
    --- stdout
    --- stderr
    error: `nosuch` was not approved in this project

    hint: see the servers with `switchboard status`
    ");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let told = transcript(&installed, &format!("serve --http {port}")).await;
    insta::assert_snapshot!(told.replace(&port, "[PORT]"), @r"
    exit 2
    --- stdout
    --- stderr
    error: cannot listen at `127.0.0.1:[PORT]`
      caused by: Address already in use (os error 98)

    hint: take a free port with `switchboard serve --http 0`
    ");
}
