//! Host settings that allow the tool of Switchboard: `install` writes and explains them, and
//! `uninstall` removes them.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::{CLAUDE, Machine};

const SETTINGS: &str = ".claude/settings.json";

#[tokio::test]
async fn claude_code_permission_is_added_and_settings_are_restored() {
    for settings in [
        None,
        Some("{}"),
        Some("{\n  // mine\n  \"permissions\": { \"allow\": [\"Bash(hunter2:*)\"] },\n}\n"),
    ] {
        let machine = Machine::bare();
        settings.map(|text| machine.installed.write(SETTINGS, text));
        let before = machine.files();
        let said = machine.done("install claude-code --yes").await;
        for part in ["`alwaysLoad`: Claude Code", "`permissions.allow`: Claude Code"] {
            assert!(said.contains(part), "{said}");
        }
        assert!(said.contains(r#""mcp__switchboard""#), "{said}");
        assert!(machine.read(SETTINGS).contains("mcp__switchboard"));
        let entry: Value = serde_json::from_str(&machine.read(CLAUDE)).unwrap();
        let args = json!(["serve", "--host", "claude-code"]);
        let expected = json!({
            "type": "stdio", "command": "switchboard", "args": args, "alwaysLoad": true,
        });
        assert_eq!(entry["mcpServers"]["switchboard"], expected);
        let again = machine.done("install claude-code --yes").await;
        assert!(again.contains("installed in Claude Code already"), "{again}");
        machine.done("uninstall claude-code --yes").await;
        assert_eq!(machine.files(), before);
    }
}

#[tokio::test]
async fn uninstall_removes_only_switchboard_permission_from_rewritten_settings() {
    let machine = Machine::bare();
    machine.done("install claude-code --yes").await;
    machine.installed.write(
        SETTINGS,
        r#"{ "model": "x", "permissions": { "allow": ["mcp__switchboard", "Read"] } }"#,
    );
    machine.done("uninstall claude-code --yes").await;
    let left: Value = serde_json::from_str(&machine.read(SETTINGS)).unwrap();
    assert_eq!(left, json!({ "model": "x", "permissions": { "allow": ["Read"] } }));
}

#[tokio::test]
async fn install_updates_the_entry_of_an_earlier_version() {
    let machine = Machine::bare();
    let older = r#"{ "mcpServers": { "switchboard": { "command": "switchboard", "args": ["serve"], "note": 1 } } }"#;
    machine.installed.write(".gemini/settings.json", older);
    let said = machine.done("install gemini-cli --yes").await;
    assert!(said.contains("`trust`: Gemini CLI does not ask for approval"), "{said}");
    let now: Value = serde_json::from_str(&machine.read(".gemini/settings.json")).unwrap();
    let entry = &now["mcpServers"]["switchboard"];
    assert_eq!(entry["args"], json!(["serve", "--host", "gemini-cli"]));
    assert_eq!((&entry["trust"], &entry["note"]), (&json!(true), &json!(1)));
    machine.done("uninstall gemini-cli --yes").await;
    assert_eq!(machine.read(".gemini/settings.json"), older);
}

#[tokio::test]
async fn codex_tool_namespace_is_set_only_in_supporting_versions() {
    for (name, version, expected) in [
        ("@openai/codex", "0.141.0", false),
        ("@openai/codex", "0.166.0", true),
        ("@openai/codex-linux-x64", "0.166.0-linux-x64", true),
        // A directory above the program can hold the package of another project.
        ("my-project", "1.0.0", false),
    ] {
        let machine = Machine::bare();
        let package = machine.home.join("lib/codex");
        fs::create_dir_all(package.join("bin")).unwrap();
        fs::write(
            package.join("package.json"),
            json!({ "name": name, "version": version }).to_string(),
        )
        .unwrap();
        fs::write(package.join("bin/codex.js"), "").unwrap();
        symlink(package.join("bin/codex.js"), machine.home.join("bin/codex")).unwrap();
        let before = machine.files();
        machine.done("install codex --yes").await;
        let text = machine.read(".codex/config.toml");
        assert_eq!(text.contains("direct_only_tool_namespaces"), expected, "{version}: {text}");
        assert!(text.contains("default_tools_approval_mode = \"approve\""), "{text}");
        machine.done("uninstall codex --yes").await;
        assert_eq!(machine.files(), before);
    }
}

#[tokio::test]
async fn install_prints_an_entry_for_an_unknown_host() {
    let machine = Machine::bare();
    let ran = machine.run("install codecks").await;
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("does not know the host `codecks`"), "{}", ran.stderr);
    let pasted: Value = serde_json::from_str(&ran.stdout).unwrap();
    let entry = json!({ "command": "switchboard", "args": ["serve"] });
    assert_eq!(pasted, json!({ "mcpServers": { "switchboard": entry } }));
    let ran = machine.run("install goose").await;
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("YAML"), "{}", ran.stderr);
    assert!(ran.stdout.contains("    args: [serve, --host, goose]\n"), "{}", ran.stdout);
    let ran = machine.run("uninstall codx").await;
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("no supported host is named `codx`"), "{}", ran.stderr);
    assert_eq!(machine.files(), std::collections::BTreeMap::new());
}
