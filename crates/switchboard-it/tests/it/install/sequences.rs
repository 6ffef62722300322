//! Random sequences of installations in several directories and hosts: no server is ever lost, and
//! in the end every file is as it was.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use serde_json::{Value, json};
use switchboard::config::hosts::{self, Host};
use switchboard::config::install::Target;
use switchboard::config::layers::{ConfigSource, Tier};
use switchboard::env::Environment;
use switchboard::install::{Installer, Servers};
use switchboard::load::LoadOptions;
use switchboard::paths::Paths;
use tempfile::TempDir;

const OPERATIONS: usize = 200;
const NAMES: [&str; 5] = ["files", "mail", "search", "notes", "maps"];

/// One configuration directory of a host.
struct Site {
    target: Target,
    host: Host,
    variable: (&'static str, PathBuf),
    file: PathBuf,
    /// The original text of the file.
    before: Option<String>,
    /// The settings file of Claude Code, with its original text.
    settings: Option<(PathBuf, Option<String>)>,
    /// The command of each server.
    servers: BTreeMap<String, String>,
}

struct World {
    home: TempDir,
    sites: Vec<Site>,
    user: PathBuf,
    user_before: Option<String>,
}

/// Whether the user edits their file between the operations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edits {
    None,
    ByTheUser,
}

impl World {
    fn new(rng: &mut Rng) -> World {
        let home = tempfile::tempdir().unwrap();
        let root = home.path();
        let hosts = [
            (Host::Codex, "CODEX_HOME", "codex-a", "config.toml"),
            (Host::Codex, "CODEX_HOME", "codex-b", "config.toml"),
            (Host::Codex, "CODEX_HOME", "codex-c", "config.toml"),
            (Host::ClaudeCode, "CLAUDE_CONFIG_DIR", "claude-a", ".claude.json"),
            (Host::ClaudeCode, "CLAUDE_CONFIG_DIR", "claude-b", ".claude.json"),
        ];
        let mut sites = Vec::new();
        for (host, variable, directory, file) in hosts {
            let target = Target::Host(host);
            let directory = root.join(directory);
            let chosen: Vec<_> = NAMES.iter().filter(|_| rng.bool()).collect();
            let command = |name: &&str| (name.to_string(), format!("run-{}", rng.u8(..3)));
            let servers: BTreeMap<String, String> = chosen.into_iter().map(command).collect();
            let before = (rng.u8(..4) > 0).then(|| written(host, &servers, rng));
            let servers = if before.is_some() { servers } else { BTreeMap::new() };
            let file = directory.join(file);
            put(&file, before.as_deref());
            let settings = (host == Host::ClaudeCode).then(|| {
                let file = directory.join("settings.json");
                let texts =
                    [None, Some("{}"), Some("{ \"permissions\": { \"allow\": [\"Read\"] } }")];
                (file, rng.choice(texts).unwrap().map(str::to_owned))
            });
            settings.iter().for_each(|(file, text)| put(file, text.as_deref()));
            sites.push(Site {
                settings,
                target,
                host,
                variable: (variable, directory),
                file,
                before,
                servers,
            });
        }
        let user = root.join(".config/switchboard/mcp.json");
        let user_before = [
            None,
            Some("{}\n"),
            Some(
                "// mine\n{\n  \"mcpServers\": {\n    \"own\": { \"command\": \"own\" }, // stays\n  },\n}\n",
            ),
            Some(
                "{ \"mcpServers\": { \"mail\": { \"disabled\": true }, \"files\": { \"command\": \"run-1\" } } }",
            ),
        ];
        let user_before = rng.choice(user_before).unwrap().map(str::to_owned);
        put(&user, user_before.as_deref());
        World { home, sites, user, user_before }
    }

    /// Runs an operation in an environment whose variable names the directory of this site.
    fn at(&self, site: &Site, operation: Operation) {
        let (variable, directory) = &site.variable;
        let home = self.home.path().to_str().unwrap();
        let variables = [("HOME", home), (*variable, directory.to_str().unwrap())];
        let mut environment = Environment::made_of(variables, home);
        environment.program = Some("/opt/switchboard".into());
        let locations = Paths::of(&environment);
        let options = LoadOptions { project: home.into(), ..LoadOptions::default() };
        let installer = Installer::new(&environment, &locations, options, &[]);
        let plan = match operation {
            Operation::Install => installer.install(site.target, Servers::Stay),
            Operation::Move => installer.install(site.target, Servers::Move),
            Operation::Uninstall => installer.uninstall(site.target),
        };
        let plan = plan.unwrap();
        for file in &plan.files {
            let is_mine = file.path.starts_with(directory) || file.path == self.user;
            assert!(is_mine, "{operation:?} of {directory:?} changes {:?}", file.path);
        }
        if operation == Operation::Uninstall || !plan.is_nothing() {
            installer.carry_out(&plan).unwrap();
        }
    }

    /// Asserts that every server is active in its host or defined in the user's file.
    fn check_all_there(&self, history: &[String]) {
        let user: Value = match fs::read_to_string(&self.user) {
            Ok(text) => {
                let source = ConfigSource { path: "".into(), tier: Tier::User };
                let parsed = switchboard::config::parse::parse(&text, &source).servers;
                let command = |entry: &switchboard::config::server::ServerEntry| {
                    entry.command.as_ref().map(|command| command.source().to_owned())
                };
                parsed.iter().map(|server| (server.name.clone(), command(&server.entry))).collect()
            }
            Err(_) => json!({}),
        };
        for site in &self.sites {
            let active = site.active();
            for (name, command) in &site.servers {
                let there = active.get(name) == Some(command) || user[name] == **command;
                assert!(there, "{name} of {:?} is lost after {history:#?}", site.file);
            }
        }
    }

    fn check_as_before(&self, history: &[String]) {
        for site in &self.sites {
            let now = fs::read_to_string(&site.file).ok();
            assert_eq!(now, site.before, "{:?} after {history:#?}", site.file);
            if let Some((file, before)) = &site.settings {
                assert_eq!(fs::read_to_string(file).ok(), *before, "{file:?} after {history:#?}");
            }
        }
        let now = fs::read_to_string(&self.user).ok();
        assert_eq!(now, self.user_before, "after {history:#?}");
        let directory = self.user.parent().unwrap();
        assert_eq!(directory.exists(), self.user_before.is_some(), "after {history:#?}");
    }

    /// Edits the user's file, as a user would by hand.
    fn edit(&self, rng: &mut Rng) {
        let Ok(text) = fs::read_to_string(&self.user) else {
            return put(
                &self.user,
                Some("{ \"mcpServers\": { \"late\": { \"command\": \"late\" } } }"),
            );
        };
        let text = match rng.u8(..3) {
            0 => format!("// seen\n{text}"),
            1 => text.replacen("\"mcpServers\": {", "\"mcpServers\": {\n  ", 1),
            _ => text.replacen("\"command\": \"run-", "\"debug\": true, \"command\": \"run-", 1),
        };
        put(&self.user, Some(&text));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Install,
    Move,
    Uninstall,
}

impl Site {
    /// The servers that the host starts, with their commands.
    fn active(&self) -> BTreeMap<String, String> {
        let Ok(text) = fs::read_to_string(&self.file) else { return BTreeMap::new() };
        let source = ConfigSource { path: "".into(), tier: Tier::User };
        let servers = hosts::parse(self.host, &text, &source, "/p").servers;
        let on = servers.into_iter().filter(|server| !server.entry.is_disabled());
        on.filter_map(|server| Some((server.name, server.entry.command?.source().to_owned())))
            .collect()
    }
}

fn written(host: Host, servers: &BTreeMap<String, String>, rng: &mut Rng) -> String {
    let table = |(name, command): (&String, &String)| {
        format!("[mcp_servers.{name}] # mine\ncommand = \"{command}\"\n\n")
    };
    let member = |(name, command): (&String, &String)| {
        format!("    \"{name}\": {{ \"command\": \"{command}\", \"args\": [] }}")
    };
    match host {
        Host::Codex => {
            let tables: String = servers.iter().map(table).collect();
            format!("model = \"{}\"\n\n{tables}[tui]\nx = 1\n", rng.u8(..))
        }
        _ => {
            let members: Vec<String> = servers.iter().map(member).collect();
            let members = members.join(",\n");
            format!("{{\n  \"a\": {},\n  \"mcpServers\": {{\n{members}\n  }}\n}}", rng.u8(..))
        }
    }
}

fn put(file: &Path, text: Option<&str>) {
    let Some(text) = text else { return };
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn run(seed: u64, edits: Edits) {
    let mut rng = Rng::with_seed(seed);
    let world = World::new(&mut rng);
    let mut history = vec![format!("seed {seed}")];
    let operations = [Operation::Install, Operation::Move, Operation::Move, Operation::Uninstall];
    for _ in 0..OPERATIONS {
        if edits == Edits::ByTheUser && rng.u8(..8) == 0 {
            world.edit(&mut rng);
            history.push("edit".to_owned());
        }
        let site = rng.choice(&world.sites).unwrap();
        let operation = rng.choice(operations).unwrap();
        history.push(format!("{operation:?} {}", site.variable.1.display()));
        world.at(site, operation);
        world.check_all_there(&history);
    }
    let mut last: Vec<&Site> = world.sites.iter().collect();
    rng.shuffle(&mut last);
    for site in last {
        history.push(format!("Uninstall {}", site.variable.1.display()));
        world.at(site, Operation::Uninstall);
        world.check_all_there(&history);
    }
    match edits {
        Edits::None => world.check_as_before(&history),
        Edits::ByTheUser => {
            for site in &world.sites {
                assert_eq!(site.active(), site.servers, "{:?} after {history:#?}", site.file);
            }
        }
    }
}

#[test]
fn random_install_sequences_lose_no_server_and_restore_files() {
    (0..3).for_each(|seed| run(seed, Edits::None));
}

#[test]
fn user_edits_between_installs_lose_no_server() {
    (100..102).for_each(|seed| run(seed, Edits::ByTheUser));
}
