//! Errors of the command line: their form and their remedies.

use switchboard_it::terminal;

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
    error: no server lists the resource `demo://note`

    hint: did you mean `demo://notes`?
    ");
    insta::assert_snapshot!(transcript(&installed, "prompt greeet").await, @r"
    exit 2
    --- stdout
    --- stderr
    error: no server has the prompt `greeet`

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

#[tokio::test]
async fn unknown_resource_prompt_or_pair_gets_a_next_step() {
    let installed = fresh();
    for (line, hint) in [
        ("read demo://nothing-like-it", "hint: see the resources with `switchboard resources`"),
        ("prompt nothing-like-it", "hint: see the prompts with `switchboard prompts`"),
        ("call demo_echo hello", "hint: for example `switchboard call demo_add a=2 b=40`"),
    ] {
        let told = transcript(&installed, line).await;
        assert!(told.starts_with("exit 2\n") && told.contains(hint), "{line}: {told}");
    }
}

#[tokio::test]
async fn failed_connections_name_the_first_remedy() {
    let config = r#"{ "mcpServers": {
        "cwd": { "command": "fixture-server", "cwd": "/no/such/directory" },
        "web": { "url": "http://127.0.0.1:1/mcp" },
        "ends": { "command": "sh", "args": ["-c", "echo no database >&2; exit 3"] },
        "gone": { "command": "no-such-program" } } }"#;
    let installed = Installed::with(PROGRAMS, config);
    let mut lines: Vec<String> =
        transcript(&installed, "reconnect").await.lines().map(str::to_owned).collect();
    lines.sort();
    insta::assert_snapshot!(lines.join("\n"), @"
    --- stderr
    --- stdout
    exit 5
    warning: cannot use the server `cwd`: cannot connect: the working directory `/no/such/directory` does not exist; correct `cwd` of its entry
    warning: cannot use the server `ends`: cannot connect: the server ended while it was starting (exit code 3): no database; read its log with `switchboard logs ends`
    warning: cannot use the server `gone`: cannot connect: the program `no-such-program` was not found; check that `no-such-program` is installed and can be run
    warning: cannot use the server `web`: cannot connect: no connection to `http://127.0.0.1:1`: connection refused; check that the server is running, and that the `url` of its entry is correct
    ");
    let doctor = transcript(&installed, "doctor ends web").await;
    let ago = Regex::new(r"(just now|\[TIME\] ago)").unwrap();
    insta::assert_snapshot!(ago.replace_all(&doctor, "[AGO]"), @"
    exit 1
    --- stdout
    warning: ends: connecting failed [AGO]: the server ended while it was starting (exit code 3)
      hint: connect it with `switchboard connect ends`
      hint: read its log with `switchboard logs ends`
    warning: web: connecting failed [AGO]: no connection to `http://127.0.0.1:1`: connection refused
      hint: connect it with `switchboard connect web`
    --- stderr
    checked 4 servers: 2 faults
    ");
}

#[tokio::test]
async fn undeclared_argument_is_sent_with_a_warning() {
    let installed = fresh();
    insta::assert_snapshot!(transcript(&installed, "call demo_echo text=x stile=capitals").await, @"
    exit 0
    --- stdout
    x
    --- stderr
    warning: demo_echo: `stile` is not a parameter, did you mean `style`?
    ");
}

#[tokio::test]
async fn removing_an_unknown_rule_fails_with_a_suggestion() {
    let installed = fresh();
    transcript(&installed, "allow demo/echo").await;
    insta::assert_snapshot!(transcript(&installed, "allow --remove demo/eco").await, @"
    exit 2
    --- stdout
    --- stderr
    error: there is no `allow` rule `demo/eco`

    hint: did you mean `demo/echo`?
    ");
    let removed = transcript(&installed, "allow --remove demo/echo").await;
    assert!(removed.ends_with("`demo/echo` is no longer allowed\n"), "{removed}");
}

#[tokio::test]
async fn config_set_unset_reports_a_removed_or_absent_key() {
    let installed = fresh();
    transcript(&installed, "config set idleTimeout 5").await;
    let unset = transcript(&installed, "config set idleTimeout --unset").await;
    assert!(unset.ends_with("`idleTimeout` is no longer set\n"), "{unset}");
    let again = transcript(&installed, "config set idleTimeout --unset").await;
    assert!(again.ends_with("`idleTimeout` is not set, nothing was changed\n"), "{again}");
}

#[tokio::test]
async fn status_of_one_server_shows_only_that_server() {
    let installed = configured();
    insta::assert_snapshot!(transcript(&installed, "status ALL").await, @"
    exit 0
    --- stdout
    ○ all (not connected)
    --- stderr
    ");
    let json = transcript(&installed, "status all --json").await;
    assert_eq!(json.matches("\"name\":").count(), 1, "{json}");
    let unknown = transcript(&installed, "status nothing-like-it").await;
    assert!(unknown.contains("no server is named `nothing-like-it`"), "{unknown}");
}

#[tokio::test]
async fn config_check_prints_problems_in_file_order() {
    let config = "{ \"mcpServers\": {\n\"a\": { \"comand\": \"x\" },\n\"b\": { \"command\": \"x\", \"odd\": 1 } },\n\"settings\": { \"odd\": 1 } }";
    let installed = Installed::with(PROGRAMS, config);
    let told = transcript(&installed, "config check").await;
    let lines: Vec<&str> = told.split(".json:").skip(1).map(|at| &at[..1]).collect();
    assert_eq!(lines, ["2", "2", "3", "4"], "{told}");
}

#[tokio::test]
async fn json_object_argument_needs_no_args_option() {
    let installed = fresh();
    let called = transcript(&installed, r#"call demo_add '{"a": 2}' b=40"#).await;
    assert_eq!(called, "exit 0\n--- stdout\n42\n--- stderr\n");
    let wrong = transcript(&installed, r#"call demo_add '{"a": 2'"#).await;
    assert!(wrong.contains("the value of `--args` is invalid"), "{wrong}");
}

#[tokio::test]
async fn unknown_tool_error_mentions_pending_servers() {
    let installed = fresh();
    let servers = r#"{ "mcpServers": { "theirs": { "command": "x" } } }"#;
    installed.write("switchboard/mcp.json", "{}");
    installed.write(".mcp.json", servers);
    let told = transcript(&installed, "call nothing_like_it").await;
    assert!(told.contains("1 server pending: theirs"), "{told}");
}

#[tokio::test]
async fn variables_before_a_program_become_its_environment() {
    let installed = fresh();
    transcript(&installed, "add --no-check k -- API_KEY=a=b B=2 kit-mcp C=3").await;
    let text = std::fs::read_to_string(installed.home().join("switchboard/mcp.json")).unwrap();
    let entry = &serde_json::from_str::<serde_json::Value>(&text).unwrap()["mcpServers"]["k"];
    let expected = serde_json::json!({
        "command": "kit-mcp", "args": ["C=3"], "env": { "API_KEY": "a=b", "B": "2" }
    });
    assert_eq!(*entry, expected);
    for (line, error) in [
        ("add k2 -- A=secret", "a program is missing after the environment variables"),
        ("add k2 localhost:3000/mcp", "a URL begins with a scheme, such as `https://`"),
        ("tools --url 127.0.0.1:9/mcp", "a URL begins with a scheme, such as `https://`"),
    ] {
        let told = transcript(&installed, line).await;
        assert!(told.starts_with("exit 2\n") && told.contains(error), "{line}: {told}");
        assert!(!told.contains("secret"), "{told}");
    }
}

#[tokio::test]
async fn install_without_a_host_names_the_hosts_found() {
    let installed = fresh();
    let told = transcript(&installed, "install").await;
    assert!(told.contains("hint: it could be `claude-code`"), "{told}");
    installed.write(".cursor/mcp.json", "{}");
    let told = transcript(&installed, "install").await;
    assert!(told.starts_with("exit 2\n") && told.contains("it could be `cursor`\n"), "{told}");
}

#[tokio::test]
async fn unsetting_the_endpoint_of_a_server_reports_the_error() {
    let installed = configured();
    let told = transcript(&installed, "config set --server all --unset command").await;
    assert!(told.contains("server `all` needs one of `command`, `url` and `socket`"), "{told}");
    assert_eq!(told.matches("error:").count(), 1, "{told}");
}

#[tokio::test]
async fn serve_on_a_terminal_announces_that_it_waits() {
    let installed = fresh();
    let mut program = installed.command();
    let shown = terminal::interrupt(program.arg("serve"), "", "Waiting for a host").await;
    assert!(shown.screen.contains("`switchboard install HOST`"), "{}", shown.screen);
}
