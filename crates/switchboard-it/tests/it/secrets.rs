//! Values that a definition may use: variables, directories, and the output of commands.

use std::fs;

use serde_json::{Value, json};
use switchboard::failure::Code;
use switchboard::load::{LoadOptions, load};
use switchboard::paths::Paths;
use switchboard::request::Request;
use switchboard::{Gateway, Headless};
use switchboard_it::harness::Home;
use switchboard_it::processes::{until, until_gone};
use switchboard_it::program::Installed;

use crate::PROGRAMS;

const DUMP: &str = "[[tools]]\nname = 'dump'\nbehaviour = 'env'\n";

/// One server whose entry has these fields besides its command.
fn with_fields(fields: &str) -> Installed {
    let installed = Installed::bare(PROGRAMS);
    let script = installed.write("dump.toml", DUMP);
    let config = format!(
        r#"{{ "mcpServers": {{ "s": {{
            "command": "fixture-server", "args": [{:?}], {fields} }} }} }}"#,
        script.display()
    );
    installed.write("switchboard/mcp.json", &config);
    installed
}

async fn dump(installed: &Installed) -> Value {
    let ran = installed.run(["call", "s_dump"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

#[tokio::test]
async fn entry_env_can_use_variables_directories_and_commands() {
    let installed = with_fields(
        r#""env": {
            "FIRST": "!cat 'a file'", "SECOND": "!sh -c 'echo $0 $SECRET; echo err >&2' ${HOME}",
            "PLAIN": "!!plain", "FOUND": "${HOME}", "EMPTY": "${NOT_THERE:-}",
            "PLACE": "${workspaceFolder}/x" }"#,
    );
    installed.write("a file", "s3cret\n");
    let dumped = dump(&installed).await;
    let home = installed.home().to_string_lossy().into_owned();
    let env = &dumped["env"];
    let names = ["FIRST", "SECOND", "PLAIN", "FOUND", "EMPTY", "PLACE"];
    let seen = Value::from(names.map(|name| env[name].clone()).to_vec());
    assert_eq!(seen, json!(["s3cret", home, "!plain", home, "", format!("{home}/x")]));
}

#[tokio::test]
async fn failing_secret_command_is_reported_without_its_arguments() {
    for (command, parts) in [
        ("!sh -c 'echo topsecret >&2; exit 7'", ["program `sh` returned no value", "exit code 7"]),
        (
            "!./no\\u001b[2Jwhere topsecret",
            [r"program `./nowhere` returned no value", "cannot be started"],
        ),
        ("!${NO_SUCH:-./topsecret} x", ["program `${NO_SUCH:-.", "cannot be started"]),
    ] {
        let installed = with_fields(&format!(r#""env": {{ "TOKEN": "{command}" }}"#));
        let ran = installed.run(["call", "s_dump"]).await;
        assert_eq!(ran.code, Some(5));
        let said = format!("{}{}", ran.stdout, ran.stderr);
        for part in parts.into_iter().chain(["`TOKEN`"]) {
            assert!(said.contains(part), "{part} is not in {said}");
        }
        assert!(!said.contains(" topsecret"), "{said}");
    }
}

#[tokio::test]
async fn status_and_config_check_run_no_secret_command() {
    let installed = with_fields(r#""env": { "TOKEN": "!touch canary" }"#);
    for command in [&["status"][..], &["config", "check"]] {
        installed.run(command.iter().copied()).await;
    }
    assert!(!installed.home().join("canary").exists());
}

#[tokio::test]
async fn url_with_invalid_variable_fails_before_any_request() {
    for (url, expected) in [
        ("https://example.invalid/${NOT_THERE}", "the environment variable `NOT_THERE` is not set"),
        ("https://${HOME}/", "`HOME` is used in the scheme, user, host or port of a URL"),
    ] {
        let config = format!(r#"{{ "mcpServers": {{ "s": {{ "url": {url:?} }} }} }}"#);
        let ran = Installed::with(PROGRAMS, &config).run(["connect", "s"]).await;
        assert_eq!(ran.code, Some(2), "{url}");
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
}

#[tokio::test]
async fn abandoned_secret_command_is_killed_with_its_children() {
    let home = Home::new();
    let config = r#"{ "mcpServers": { "s": { "command": "/bin/cat", "env": {
        "T": "!/bin/sh -c '/bin/sleep 1000 & echo $! $$ > started; /bin/mv started pids; wait'" } } } }"#;
    let environment = home.environment();
    let paths = Paths::of(&environment);
    fs::create_dir_all(&paths.config).unwrap();
    fs::write(paths.user_config(), config).unwrap();
    let options = LoadOptions { project: environment.cwd.clone(), ..LoadOptions::default() };
    let config = load(&environment, &paths, &options).unwrap().config;
    let gateway = Gateway::builder(environment).config(config).build();
    let session = gateway.session(Headless);
    let server = || "s".to_owned();
    let disconnecting = async {
        let file = home.path().join("pids");
        until("the command runs", || file.exists()).await;
        let pids = fs::read_to_string(file).unwrap();
        session.handle(Request::Disconnect { server: server() }).await.unwrap();
        pids.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<u32>>()
    };
    let connecting = session.handle(Request::Connect { server: server() });
    let (connected, pids) = tokio::join!(connecting, disconnecting);
    assert_eq!(connected.unwrap_err().code, Code::Disconnected);
    until_gone(&pids).await;
    gateway.shutdown().await;
}
