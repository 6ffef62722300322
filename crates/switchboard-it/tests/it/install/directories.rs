//! Several configuration directories of one host, each with an installation of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use switchboard::config::install::Presence;

use super::{CLAUDE, Machine, USER, keys};

const CODEX: &str = "[mcp_servers.NAME]\ncommand = \"NAME-mcp\"\n";

impl Machine {
    /// Runs a command with `CODEX_HOME` set to this directory.
    async fn codex(&self, directory: &str, words: &str) {
        let mut command = self.command(words);
        let ran = command.env("CODEX_HOME", self.home.join(directory)).output().await.unwrap();
        assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    }

    fn with_codex(directories: &[&str]) -> Machine {
        let machine = Machine::bare();
        for directory in directories {
            let file = format!("{directory}/config.toml");
            machine.installed.write(&file, &CODEX.replace("NAME", directory));
        }
        machine
    }
}

#[tokio::test]
async fn install_in_second_codex_directory_leaves_the_first_unchanged() {
    let machine = Machine::with_codex(&["a", "b"]);
    let before = machine.files();
    machine.codex("a", "install codex --move --yes").await;
    let moved = machine.files();
    machine.codex("b", "install codex --yes").await;
    assert_eq!(machine.read(USER), moved[&machine.home.join(USER)]);
    assert_eq!(machine.read("a/config.toml"), moved[&machine.home.join("a/config.toml")]);
    machine.codex("b", "install codex --move --yes").await;
    assert_eq!(keys(&machine.read(USER), "mcpServers"), ["a", "b"]);
    machine.codex("a", "uninstall codex --yes").await;
    assert_eq!(keys(&machine.read(USER), "mcpServers"), ["b"]);
    assert_eq!(machine.presence("codex", "b/config.toml"), Presence::Installed);
    machine.codex("b", "uninstall codex --yes").await;
    assert_eq!(machine.files(), before);
}

#[tokio::test]
async fn moved_server_stays_until_every_codex_directory_is_uninstalled() {
    let machine = Machine::with_codex(&["a", "b"]);
    machine.installed.write("b/config.toml", &CODEX.replace("NAME", "a"));
    let before = machine.files();
    for directory in ["a", "b"] {
        machine.codex(directory, "install codex --move --yes").await;
    }
    machine.codex("a", "uninstall codex --yes").await;
    assert_eq!(keys(&machine.read(USER), "mcpServers"), ["a"]);
    machine.codex("b", "uninstall codex --yes").await;
    assert_eq!(machine.files(), before);
}

#[tokio::test]
async fn uninstall_through_a_link_finds_the_installation() {
    let machine = Machine::with_codex(&["a"]);
    let before = machine.files();
    std::os::unix::fs::symlink(machine.home.join("a"), machine.home.join("linked")).unwrap();
    machine.codex("a", "install codex --move --yes").await;
    machine.codex("linked", "uninstall codex --yes").await;
    fs::remove_file(machine.home.join("linked")).unwrap();
    assert_eq!(machine.files(), before);
}

#[tokio::test]
async fn uninstall_undoes_installations_of_earlier_versions() {
    let machine = Machine::with_hosts("{}\n");
    let before = machine.files();
    let hosts = [("claude-code", CLAUDE), ("windsurf", ".codeium/windsurf/mcp_config.json")];
    let mut older = Vec::new();
    for (host, file) in hosts {
        let (file, user) = (machine.home.join(file), machine.home.join(USER));
        let texts = || [&file, &user].map(|path| fs::read_to_string(path).unwrap());
        let was = texts();
        machine.done(&format!("install {host} --move --yes")).await;
        let is = texts();
        let kept =
            |path, was: &str, is: &str| json!({ "path": path, "before": was, "after": sha256(is) });
        let record: Value =
            serde_json::from_str(&fs::read_to_string(machine.record(host)).unwrap()).unwrap();
        let ours: Value = serde_json::from_str(&is[1]).unwrap();
        let had: Value = serde_json::from_str(&was[1]).unwrap();
        let copied = ours["mcpServers"].as_object().unwrap().iter();
        let copied = copied.filter(|(name, _)| had["mcpServers"].get(name.as_str()).is_none());
        let record = json!({
            "host": kept(&file, &was[0], &is[0]),
            "ours": kept(&user, &was[1], &is[1]),
            "moved": record["moved"],
            "copied": copied.map(|(k, v)| (k.clone(), v.clone())).collect::<Value>(),
        });
        older.push((host, record));
    }
    fs::remove_dir_all(machine.home.join("switchboard/state/installed")).unwrap();
    // Earlier versions did not write the settings of Claude Code.
    fs::remove_file(machine.home.join(".claude/settings.json")).unwrap();
    for (host, record) in older {
        let path = format!("switchboard/state/installed-{host}.json");
        let path = machine.installed.write(&path, &record.to_string());
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let claude = machine.read(CLAUDE);
    machine.done("uninstall windsurf --yes").await;
    assert_eq!(machine.read(CLAUDE), claude);
    assert!(keys(&machine.read(USER), "mcpServers").contains(&"github".to_owned()));
    machine.done("uninstall claude-code --yes").await;
    assert_eq!(machine.files(), before);
}

#[tokio::test]
async fn uninstall_removes_the_configuration_directory_that_install_created() {
    let machine = Machine::with_codex(&["a"]);
    let run = async |words: &str| {
        let mut command = machine.command(words);
        command.env_remove("SWITCHBOARD_HOME").env("CODEX_HOME", machine.home.join("a"));
        assert_eq!(command.output().await.unwrap().status.code(), Some(0), "{words}");
    };
    let directory = machine.home.join(".config/switchboard");
    run("install codex --move --yes").await;
    assert!(directory.join("mcp.json").exists());
    run("uninstall codex --yes").await;
    assert!(!directory.exists());
    fs::create_dir_all(&directory).unwrap();
    run("install codex --move --yes").await;
    run("uninstall codex --yes").await;
    assert!(directory.exists());
}

fn sha256(text: &str) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// OpenCode reads both files; the installed one takes precedence.
#[tokio::test]
async fn reinstall_keeps_using_the_host_file_installed_first() {
    let machine = Machine::bare();
    let (first, second) = (".config/opencode/opencode.jsonc", ".config/opencode/opencode.json");
    let server = json!({ "mcp": { "files": { "type": "local", "command": ["files-mcp"] } } });
    machine.installed.write(first, &server.to_string());
    let run = async |words: &str| {
        let ran = machine.command(words).output().await.unwrap();
        assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    run("install opencode --move --yes").await;
    assert_eq!(keys(&machine.read(USER), "mcpServers"), ["files"]);
    machine.installed.write(second, "{}");
    run("install opencode --yes").await;
    assert_eq!(keys(&machine.read(USER), "mcpServers"), ["files"], "a moved server is not lost");
    run("uninstall opencode --yes").await;
    assert_eq!(machine.read(first), server.to_string());
    assert_eq!(machine.read(second), "{}");
}

#[tokio::test]
async fn uninstall_removes_host_permissions_even_if_entry_is_gone() {
    let machine = Machine::bare();
    let file = ".gemini/settings.json";
    machine.installed.write(file, r#"{ "mcp": { "allowed": ["a"] } }"#);
    let run = async |words: &str| {
        let ran = machine.command(words).output().await.unwrap();
        assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    run("install gemini-cli --yes").await;
    let mut settings: Value = serde_json::from_str(&machine.read(file)).unwrap();
    assert_eq!(settings["mcp"]["allowed"], json!(["a", "switchboard"]));
    settings["mcpServers"] = json!({});
    machine.installed.write(file, &settings.to_string());
    run("uninstall gemini-cli --yes").await;
    let settings: Value = serde_json::from_str(&machine.read(file)).unwrap();
    assert_eq!(settings["mcp"]["allowed"], json!(["a"]));
}
