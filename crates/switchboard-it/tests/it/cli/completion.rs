//! Shell completions.

use tokio::process::Command;

use super::*;

/// The completions that the shell offers for the last word of `line`.
async fn candidates(installed: &Installed, line: &[&str]) -> Vec<String> {
    let mut command = installed.command();
    let index = line.len() - 1;
    command
        .envs([("SWITCHBOARD_COMPLETE", "bash"), ("_CLAP_IFS", "\n")])
        .env("_CLAP_COMPLETE_INDEX", index.to_string())
        .arg("--")
        .args(line);
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Two servers. One is listed, and the name of one of its tools is a shell injection.
async fn listed() -> Installed {
    let script = "[[tools]]\nname = 'create_issue'\n[[tools]]\nname = '$(touch x);`id`'\n";
    let installed = Installed::with_fixture(PROGRAMS, "tracker", script);
    let never = r#"{ "mcpServers": { "never": { "command": "no-such-program-anywhere" } } }"#;
    installed.write(".config/mcp/mcp.json", never);
    let ran = installed.run(["tools", "tracker"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    installed
}

#[tokio::test]
async fn completion_offers_servers_tools_and_patterns_without_connecting() {
    let installed = listed().await;
    let starts = installed.spawned().len();
    for (line, expected) in [
        (&["switchboard", "describe", "tracker_c"][..], &["tracker_create_issue"][..]),
        (&["switchboard", "call", "tracker_cr"], &["tracker_create_issue"]),
        (&["switchboard", "tools", ""], &["never", "tracker"]),
        (&["switchboard", "search", "x", "--server", "n"], &["never"]),
        (&["switchboard", "deny", "tracker/"], &["tracker/create_issue"]),
        (&["switchboard", "install", "claude-c"], &["claude-code"]),
        (&["switchboard", "comple"], &["completions"]),
    ] {
        let given = candidates(&installed, line).await;
        let names: Vec<&str> =
            given.iter().map(String::as_str).filter(|name| !name.starts_with('-')).collect();
        assert_eq!(names, expected, "{line:?}");
    }
    assert_eq!(installed.spawned().len(), starts);
}

#[tokio::test]
async fn config_option_decides_which_servers_are_completed() {
    let installed = listed().await;
    let other =
        installed.write("other.json", r#"{ "mcpServers": { "elsewhere": { "command": "x" } } }"#);
    let other = other.to_str().unwrap();
    let given = candidates(&installed, &["switchboard", "--config", other, "logs", "e"]).await;
    assert_eq!(given, ["elsewhere"]);
}

#[tokio::test]
async fn commands_are_completed_despite_a_damaged_configuration() {
    let installed = Installed::with(PROGRAMS, "{ \"mcpServers\": ");
    assert_eq!(candidates(&installed, &["switchboard", "desc"]).await, ["describe"]);
    assert_eq!(candidates(&installed, &["switchboard", "describe", "x"]).await, [""; 0]);
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the shell of a user, which no Spawner may own")]
async fn generated_bash_script_completes_a_tool_name() {
    let installed = listed().await;
    let script = installed.run(["completions", "bash"]).await;
    assert_eq!(script.code, Some(0), "{script:?}");
    let asked = format!(
        "{}\nCOMP_WORDS=(switchboard describe tracker_c) COMP_CWORD=2 COMP_TYPE=9\n\
         _clap_complete_switchboard switchboard tracker_c describe\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        script.stdout
    );
    let like = installed.command();
    let environment = like.as_std().get_envs();
    let mut bash = Command::new("bash");
    bash.env_clear().envs(environment.filter_map(|(name, value)| Some((name, value?))));
    let output = bash.current_dir(installed.home()).arg("-c").arg(asked).output().await.unwrap();
    let given = String::from_utf8_lossy(&output.stdout);
    assert_eq!(given.trim(), "tracker_create_issue", "{output:?}");
}
