//! `install` adds the entry of Switchboard to files of hosts and can move their servers;
//! `uninstall` undoes both.

mod allowing;
mod directories;
mod pi;
mod sequences;
mod variables;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use switchboard::config::install::{Presence, Target, presence};
use switchboard_it::program::{Installed, Ran};
use switchboard_it::terminal;

use crate::PROGRAMS;
use crate::nine_hosts::NineHosts;

/// A home in which `switchboard` is on the `PATH`.
struct Machine {
    installed: Installed,
    home: PathBuf,
    project: PathBuf,
}

const CLAUDE: &str = ".claude.json";
const USER: &str = "switchboard/mcp.json";

/// The user-level configuration file of each host. Pi is missing, because it gets a package.
const FILES: [(&str, &str); 17] = [
    ("claude-code", CLAUDE),
    ("cursor", ".cursor/mcp.json"),
    ("vscode", ".config/Code/User/mcp.json"),
    ("codex", ".codex/config.toml"),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
    ("zed", ".config/zed/settings.json"),
    ("gemini-cli", ".gemini/settings.json"),
    ("windsurf", ".codeium/windsurf/mcp_config.json"),
    ("opencode", ".config/opencode/opencode.json"),
    ("copilot-cli", ".copilot/mcp-config.json"),
    ("qwen-code", ".qwen/settings.json"),
    ("cline", ".cline/data/settings/cline_mcp_settings.json"),
    ("vibe", ".vibe/config.toml"),
    ("kiro", ".kiro/settings/mcp.json"),
    ("amp", ".config/amp/settings.json"),
    ("crush", ".config/crush/crush.json"),
    (
        "roo",
        ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
    ),
];

/// Configuration files of the hosts that [`NineHosts`] does not contain.
const MORE_FILES: [(&str, &str); 8] = [
    (
        ".copilot/mcp-config.json",
        r#"{ "mcpServers": { "cop": { "type": "local", "command": "cop", "args": [], "tools": ["*"] } } }"#,
    ),
    (
        ".qwen/settings.json",
        r#"{ "model": { "name": "x" }, "mcpServers": { "qw": { "command": "qw" } } }"#,
    ),
    (
        ".cline/data/settings/cline_mcp_settings.json",
        r#"{ "mcpServers": { "cl": { "transport": { "type": "stdio", "command": "cl" } } } }"#,
    ),
    (
        ".vibe/config.toml",
        "model = 1 # mine\n\n[[mcp_servers]]\nname = \"vi\"\ntransport = \"stdio\"\ncommand = \"vi-mcp\"\n",
    ),
    (
        ".kiro/settings/mcp.json",
        r#"{ "mcpServers": { "ki": { "command": "ki", "disabled": false } } }"#,
    ),
    (".config/amp/settings.json", r#"{ "amp.mcpServers": { "am": { "command": "am" } } }"#),
    (".config/crush/crush.json", r#"{ "mcp": { "cr": { "type": "stdio", "command": "cr" } } }"#),
    (FILES[16].1, r#"{ "mcpServers": { "ro": { "command": "ro" } } }"#),
];

impl Machine {
    /// A home with files of all hosts, in which the user's file of Switchboard has this text.
    fn with_hosts(config: &str) -> Machine {
        let NineHosts { installed, project } = NineHosts::new();
        let machine = Machine::of(installed, project);
        for (file, text) in MORE_FILES {
            machine.installed.write(file, text);
        }
        machine.installed.write(USER, config);
        machine
    }

    /// A home without configuration files.
    fn bare() -> Machine {
        let installed = Installed::bare(PROGRAMS);
        let project = installed.home().join("project");
        fs::create_dir(&project).unwrap();
        Machine::of(installed, project)
    }

    fn of(installed: Installed, project: PathBuf) -> Machine {
        let home = installed.home().canonicalize().unwrap();
        fs::create_dir(home.join("bin")).unwrap();
        symlink(PROGRAMS.switchboard, home.join("bin/switchboard")).unwrap();
        Machine { installed, home, project }
    }

    fn command(&self, words: &str) -> tokio::process::Command {
        let mut command = self.installed.command();
        command.env("PATH", self.home.join("bin")).arg("--cwd").arg(&self.project);
        command.args(words.split(' '));
        command
    }

    /// Runs a command without a terminal.
    async fn run(&self, words: &str) -> Ran {
        let output = self.command(words).stdin(Stdio::null()).output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        for secret in ["correct-horse", "BSA-not", "hunter2", "eu-west-1"] {
            assert!(!stderr.contains(secret), "`{words}` shows {secret}: {stderr}");
        }
        Ran { code: output.status.code(), stdout, stderr }
    }

    async fn done(&self, words: &str) -> String {
        let ran = self.run(words).await;
        assert_eq!(ran.code, Some(0), "{words}: {}", ran.stderr);
        ran.stderr
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.home.join(file)).unwrap()
    }

    /// The texts of all files except those that only Switchboard uses.
    fn files(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let ours =
            ["bin", "switchboard/state", "switchboard/cache"].map(|path| self.home.join(path));
        let mut left = vec![self.home.clone()];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if ours.contains(&path) {
                    continue;
                }
                if path.is_dir() {
                    left.push(path);
                } else {
                    found.insert(path.clone(), fs::read_to_string(&path).unwrap());
                }
            }
        }
        found
    }

    /// The install record of a host, or the path where an earlier version wrote it.
    fn record(&self, host: &str) -> PathBuf {
        let directory = self.home.join("switchboard/state/installed");
        let entries = fs::read_dir(directory).into_iter().flatten();
        let mut records = entries.map(|entry| entry.unwrap().path()).filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with(&format!("{host}-")) && name.ends_with(".json")
        });
        let earlier = self.home.join(format!("switchboard/state/installed-{host}.json"));
        records.next().unwrap_or(earlier)
    }

    fn presence(&self, host: &str, file: &str) -> Presence {
        presence(Target::from_word(host).unwrap(), &self.read(file)).unwrap()
    }

    /// The file that provides the endpoint of each server.
    async fn origins(&self) -> BTreeMap<String, String> {
        let shown: Value =
            serde_json::from_str(&self.run("config show --json").await.stdout).unwrap();
        let servers = shown["servers"].as_object().unwrap().iter();
        let origin = |(name, server): (&String, &Value)| {
            let origins = &server["origin"];
            let at = origins.get("command").or(origins.get("url"))?;
            Some((name.clone(), at["file"].as_str()?.to_owned()))
        };
        servers.filter_map(origin).collect()
    }
}

fn keys(text: &str, holder: &str) -> Vec<String> {
    let root: Value = serde_json::from_str(text).unwrap();
    root[holder].as_object().unwrap().keys().cloned().collect()
}

#[tokio::test]
async fn uninstall_restores_servers_moved_from_claude_code_exactly() {
    let machine = Machine::with_hosts("// mine\n{\n  \"imports\": [\"claude-code\"],\n}\n");
    let before = machine.files();
    let said = machine.done("install claude-code --move --yes").await;
    assert!(
        said.contains("3 servers run from your own file now: github, sentry and puppeteer"),
        "{said}"
    );
    assert_eq!(keys(&machine.read(CLAUDE), "mcpServers"), ["switchboard"]);
    let origins = machine.origins().await;
    let user = machine.home.join(USER).to_string_lossy().into_owned();
    for server in ["github", "sentry", "puppeteer"] {
        assert_eq!(origins.get(server), Some(&user), "{server}");
    }
    assert!(!origins.contains_key("switchboard"));
    let mode = fs::metadata(machine.record("claude-code")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = machine.done("install claude-code --move --yes").await;
    assert!(again.contains("installed in Claude Code already"), "{again}");
    let said = machine.done("uninstall claude-code --yes").await;
    assert!(said.contains("as it was, with the entry of Switchboard that it had before"), "{said}");
    assert_eq!(machine.files(), before);
    assert!(!machine.record("claude-code").exists());
}

#[tokio::test]
async fn server_disabled_by_user_stays_disabled_when_moved() {
    let flag = "{ \"mcpServers\": { \"sentry\": { \"disabled\": true } } }\n";
    let machine = Machine::with_hosts(flag);
    let before = machine.files();
    let said = machine.done("install claude-code --move --yes").await;
    assert!(!said.contains("another server of that name"), "{said}");
    let ours: Value = serde_json::from_str(&machine.read(USER)).unwrap();
    let sentry = &ours["mcpServers"]["sentry"];
    assert_eq!((sentry["disabled"].clone(), sentry["url"].is_string()), (true.into(), true));
    machine.done("uninstall claude-code --yes").await;
    assert_eq!(machine.files(), before);
    machine.done("install claude-code --move --yes").await;
    machine.done("add mine -- my-server").await;
    machine.done("uninstall claude-code --yes").await;
    let ours: Value = serde_json::from_str(&machine.read(USER)).unwrap();
    assert_eq!(ours["mcpServers"]["sentry"], serde_json::json!({ "disabled": true }));
}

#[tokio::test]
async fn uninstall_restores_the_file_of_every_host_exactly() {
    for (host, file) in FILES {
        for flags in ["--yes", "--move --yes"] {
            let machine = Machine::with_hosts("{}\n");
            // The file of Claude Code already has the entry of Switchboard.
            machine.done("uninstall claude-code --yes").await;
            let before = machine.files();
            machine.done(&format!("install {host} {flags}")).await;
            assert_eq!(machine.presence(host, file), Presence::Installed, "{host}");
            assert!(!machine.origins().await.contains_key("switchboard"), "{host}");
            machine.done(&format!("uninstall {host} --yes")).await;
            assert_eq!(machine.files(), before, "{host} {flags}");
        }
    }
}

#[tokio::test]
async fn file_created_for_a_host_is_removed_on_uninstall() {
    for (host, file) in FILES {
        let machine = Machine::bare();
        let said = machine.done(&format!("install {host} --yes")).await;
        assert!(said.contains("Switchboard is installed in "), "{said}");
        assert_eq!(machine.presence(host, file), Presence::Installed, "{host}");
        machine.done(&format!("uninstall {host} --yes")).await;
        assert_eq!(machine.files(), BTreeMap::new(), "{host}");
        let said = machine.done(&format!("uninstall {host} --yes")).await;
        assert!(said.contains("is not installed in "), "{said}");
    }
}

#[tokio::test]
async fn uninstall_keeps_later_edits_of_the_user() {
    let machine = Machine::with_hosts("{}\n");
    let before: Value = serde_json::from_str(&machine.read(CLAUDE)).unwrap();
    machine.done("install claude-code --move --yes").await;
    let text = machine.read(CLAUDE).replace("412", "413");
    machine.installed.write(CLAUDE, &text);
    machine.done("add mine -- my-server").await;
    machine.done("disable sentry").await;
    machine.done("uninstall claude-code --yes").await;
    let mut expected = before;
    expected["numStartups"] = 413.into();
    expected["mcpServers"].as_object_mut().unwrap().shift_remove("switchboard");
    let now: Value = serde_json::from_str(&machine.read(CLAUDE)).unwrap();
    assert_eq!(now, expected);
    assert_eq!(keys(&machine.read(USER), "mcpServers"), ["sentry", "mine"]);
}

#[tokio::test]
async fn crash_between_install_file_writes_loses_no_server() {
    for written in [&[][..], &[USER], &[USER, CLAUDE]] {
        for next in ["uninstall claude-code --yes", "install claude-code --move --yes"] {
            let machine = Machine::with_hosts("{}\n");
            let before = machine.files();
            machine.done("install claude-code --move --yes").await;
            let after = machine.files();
            for file in [USER, CLAUDE].iter().filter(|file| !written.contains(file)) {
                let path = machine.home.join(file);
                fs::write(&path, &before[&path]).unwrap();
            }
            machine.done(next).await;
            let expected = if next.starts_with("un") { &before } else { &after };
            assert_eq!(&machine.files(), expected, "{written:?}, then {next}");
            machine.done("uninstall claude-code --yes").await;
            let now = keys(&machine.read(CLAUDE), "mcpServers");
            assert_eq!(now[..3], ["github", "sentry", "puppeteer"], "{written:?}, then {next}");
        }
    }
}

#[tokio::test]
async fn uninstall_undoes_install_and_later_install_with_move() {
    let machine = Machine::with_hosts("{}\n");
    let before = machine.files();
    machine.done("install codex --yes").await;
    machine.done("install codex --move --yes").await;
    assert!(machine.read(".codex/config.toml").contains("enabled = false"));
    machine.done("uninstall codex --yes").await;
    assert_eq!(machine.files(), before);
}

#[tokio::test]
async fn server_with_conflicting_entry_is_not_moved_from_host() {
    let machine =
        Machine::with_hosts(r#"{ "mcpServers": { "sentry": { "url": "https://mine" } } }"#);
    let said = machine.done("install claude-code --move --yes").await;
    assert!(said.contains("`sentry` stays in Claude Code: your own file has another"), "{said}");
    assert_eq!(keys(&machine.read(CLAUDE), "mcpServers"), ["sentry", "switchboard"]);
    let said = machine.done("install vscode --move --yes").await;
    assert!(said.contains("`perplexity` stays in VS Code: only this host can start it"), "{said}");
}

#[tokio::test]
async fn install_without_confirmation_writes_nothing() {
    let machine = Machine::with_hosts("{}\n");
    let before = machine.files();
    let ran = machine.run("install cursor --move").await;
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    let ran = machine.run("install cursor --move --dry-run").await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("+    \"switchboard\": {"), "{}", ran.stderr);
    let shown = terminal::run(&mut machine.command("install cursor"), "\n").await;
    assert_eq!(shown.code, Some(4), "{}", shown.screen);
    assert_eq!(machine.files(), before);
    assert!(!machine.record("cursor").exists());
    let shown = terminal::run(&mut machine.command("install cursor"), "y\n").await;
    assert_eq!(shown.code, Some(0), "{}", shown.screen);
    let said = machine.done("install cursor").await;
    assert!(said.contains("installed in Cursor already"), "{said}");
    assert_eq!(machine.run("uninstall cursor").await.code, Some(4));
    let shown = terminal::run(&mut machine.command("uninstall cursor"), "y\n").await;
    assert_eq!(shown.code, Some(0), "{}", shown.screen);
    assert_eq!(machine.files(), before);
}

#[tokio::test]
async fn malformed_or_conflicting_host_file_is_left_unchanged() {
    let taken = r#"{ "mcpServers": { "switchboard": { "command": "telephone" } } }"#;
    for (host, file, text) in [
        ("cursor", ".cursor/mcp.json", "{ \"mcpServers\": "),
        ("codex", ".codex/config.toml", "a = = 1\n"),
        ("windsurf", ".codeium/windsurf/mcp_config.json", taken),
        ("claude-code", USER, "{ \"mcpServers\": "),
    ] {
        let machine = Machine::with_hosts("{}\n");
        machine.installed.write(file, text);
        let before = machine.files();
        let ran = machine.run(&format!("install {host} --move --yes")).await;
        assert_eq!(ran.code, Some(2), "{host}: {}", ran.stderr);
        assert_eq!(machine.files(), before, "{host}");
        assert!(!machine.record(host).exists(), "{host}");
    }
}

#[tokio::test]
async fn uninstall_without_record_removes_only_the_switchboard_entry() {
    let machine = Machine::with_hosts("{}\n");
    machine.done("uninstall claude-code --yes").await;
    assert_eq!(keys(&machine.read(CLAUDE), "mcpServers"), ["github", "sentry", "puppeteer"]);
}

#[tokio::test]
async fn install_requires_switchboard_on_the_search_path() {
    let machine = Machine::bare();
    let mut command = machine.command("install cursor --yes");
    let output = command.env("PATH", Path::new("/nowhere")).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    let hint = "hint: put a link to it named `switchboard` on your `PATH`\n";
    assert!(said.ends_with(hint), "{said}");
    assert_eq!(machine.files(), BTreeMap::new());
}
