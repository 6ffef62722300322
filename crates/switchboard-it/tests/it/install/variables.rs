//! `install` makes hosts with a reduced environment pass on the variables that servers need.

use serde_json::{Value, json};

use switchboard_it::client::Client;

use super::Machine;

const CODEX: &str = ".codex/config.toml";
const GEMINI: &str = ".gemini/settings.json";

impl Machine {
    async fn findings(&self, variables: &[(&str, &str)]) -> Vec<Value> {
        let mut command = self.command("doctor --json");
        let output = command.envs(variables.iter().copied()).output().await.unwrap();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        found["findings"].as_array().unwrap().clone()
    }

    fn gemini_entry(&self) -> Value {
        let settings: Value = serde_json::from_str(&self.read(GEMINI)).unwrap();
        settings["mcpServers"]["switchboard"].clone()
    }
}

#[tokio::test]
async fn codex_passes_the_variables_of_moved_servers() {
    let machine = Machine::bare();
    machine.installed.write(
        CODEX,
        "[mcp_servers.a]\ncommand = \"a\"\nenv_vars = [\"MY_TOKEN\"]\n\n\
         [mcp_servers.b]\nurl = \"https://b.example/mcp\"\nbearer_token_env_var = \"B_TOKEN\"\n",
    );
    let before = machine.files();
    let said = machine.done("install codex --move --yes").await;
    assert!(said.contains("`B_TOKEN`, `MY_TOKEN` and `SWITCHBOARD_HOME`; Codex"), "{said}");
    let text = machine.read(CODEX);
    let passed = "env_vars = [\"B_TOKEN\", \"MY_TOKEN\", \"SWITCHBOARD_HOME\"]";
    assert!(text.contains(passed), "{text}");
    let ours: Value = serde_json::from_str(&machine.read(super::USER)).unwrap();
    assert_eq!(ours["mcpServers"]["a"]["env"], json!({ "MY_TOKEN": "${MY_TOKEN}" }));
    machine.done("uninstall codex --yes").await;
    assert_eq!(machine.files(), before);
}

#[tokio::test]
async fn reinstall_passes_variables_of_newly_added_servers() {
    let machine = Machine::bare();
    machine.installed.write(
        GEMINI,
        r#"{ "mcpServers": { "a": { "command": "a", "env": { "K": "$A_KEY" } } } }"#,
    );
    let before = machine.files();
    machine.done("install gemini-cli --move --yes").await;
    assert_eq!(machine.gemini_entry()["env"]["A_KEY"], "$A_KEY");
    machine.done("add late -- late-mcp ${LATE_KEY}").await;
    let said = machine.done("install gemini-cli --yes").await;
    assert!(said.contains("passed on: `LATE_KEY`;"), "{said}");
    assert_eq!(machine.gemini_entry()["env"]["LATE_KEY"], "$LATE_KEY");
    assert_eq!(super::keys(&machine.read(super::USER), "mcpServers"), ["a", "late"]);
    machine.done("remove late").await;
    machine.done("uninstall gemini-cli --yes").await;
    assert_eq!(machine.read(GEMINI), before[&machine.home.join(GEMINI)]);
}

#[tokio::test]
async fn doctor_names_variables_that_a_host_does_not_pass() {
    let machine = Machine::bare();
    machine.installed.write(super::USER, r#"{ "mcpServers": { "a": { "command": "sh" } } }"#);
    machine.done("install codex --yes").await;
    machine.done("install vibe --yes").await;
    let user = r#"{ "mcpServers": { "a": { "command": "sh", "args": ["${MY_TOKEN}"] } } }"#;
    machine.installed.write(super::USER, user);
    let of_variable = |found: Vec<Value>| -> Vec<(String, String)> {
        let of_variable = ["variable_not_passed_on", "missing_variable"];
        let found = found.into_iter().filter(|finding| {
            finding["server"] == "a" && of_variable.iter().any(|code| finding["code"] == *code)
        });
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        found.map(|finding| (word(&finding["code"]), word(&finding["level"]))).collect()
    };
    let pair = |code: &str, level: &str| (code.to_owned(), level.to_owned());
    let set = [("MY_TOKEN", "x")];
    let found = of_variable(machine.findings(&set).await);
    let expected =
        [pair("variable_not_passed_on", "warning"), pair("variable_not_passed_on", "note")];
    assert_eq!(found, expected);
    let ran = machine.run("doctor").await;
    assert!(ran.stdout.contains("switchboard install codex"), "{}", ran.stdout);
    machine.done("install codex --yes").await;
    let found = of_variable(machine.findings(&set).await);
    assert_eq!(found, [pair("variable_not_passed_on", "note")]);
    let found = of_variable(machine.findings(&[]).await);
    assert!(found.contains(&pair("missing_variable", "error")), "{found:?}");
}

#[tokio::test]
async fn empty_variable_from_gemini_cli_is_reported_missing() {
    let machine = Machine::bare();
    machine.installed.write(
        super::USER,
        r#"{ "mcpServers": { "a": { "command": "sh", "env": { "T": "${MY_TOKEN}" } } } }"#,
    );
    for (host, expected) in [("gemini-cli", true), ("claude-code", false)] {
        let mut command = machine.command(&format!("serve --host {host}"));
        command.env("MY_TOKEN", "");
        let mut client = Client::start(&mut command);
        client.initialize("2025-11-25", json!({})).await;
        let said = client.mcp(json!({ "connect": "a" })).await;
        let is_missing = said.contains("the environment variable `MY_TOKEN` is not set");
        assert_eq!(is_missing, expected, "{host}: {said}");
    }
}
