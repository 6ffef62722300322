//! `cargo xtask hosts`: third-party coding agents, pinned, with a fake model and the program as
//! built here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::command::{command, ends_without, in_ci, is_silent_success, root, succeed, target};
use crate::packages::{InstallError, RUNTIMES, install_once, node, npm_ci, pip_install};
use crate::printer::{complain, exit_code, say};

const SOURCE: &str = "crates/switchboard-it/hosts";

/// The packages that every host needs: Node, two servers, a tokenizer and a screen.
const COMMON: Package = Package { name: "common", registry: Registry::Npm };

/// The hosts, in the order in which the documents list them.
const HOSTS: [Package; 8] = [
    Package { name: "claude-code", registry: Registry::Npm },
    Package { name: "codex", registry: Registry::Npm },
    Package { name: "gemini-cli", registry: Registry::Npm },
    Package { name: "opencode", registry: Registry::Npm },
    Package { name: "qwen-code", registry: Registry::Npm },
    Package { name: "copilot-cli", registry: Registry::Npm },
    Package { name: "cline", registry: Registry::Npm },
    Package { name: "vibe", registry: Registry::PyPi },
];

/// The hosts that CI runs.
const MAIN_HOSTS: [&str; 3] = ["claude-code", "codex", "gemini-cli"];

/// The tests of the fake model, which are run before it is relied on.
const MODEL: &str = "model";

/// The scenarios that CI runs; each is a file of tests.
const MAIN_SCENARIOS: [&str; 5] = ["seen", "loop", "whole", "write", "exit"];

/// The scenarios that take longer or need a terminal.
const MORE_SCENARIOS: [&str; 3] = ["terminal", "tokens", "variables"];

/// Packages that are installed together. The directory of this name in `packages` pins their
/// versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Package {
    name: &'static str,
    registry: Registry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Registry {
    Npm,
    PyPi,
}

const USAGE: &str = "usage: cargo xtask hosts [--all] [HOST…] [SCENARIO…]";

/// The hosts and the scenarios that they are run in.
#[derive(Debug, PartialEq, Eq)]
struct HostsPlan {
    hosts: Vec<Package>,
    scenarios: Vec<&'static str>,
    /// Whether the command line names hosts.
    is_named: bool,
}

impl HostsPlan {
    /// Parses the names of hosts and scenarios. Without names these are the ones that CI runs, or
    /// all with `--all`. `None` if a name is unknown.
    fn parse(words: &[&str]) -> Option<Self> {
        let is_all = words.contains(&"--all");
        let (mut hosts, mut scenarios) = (Vec::new(), Vec::new());
        for word in words.iter().filter(|word| **word != "--all") {
            let scenario =
                MAIN_SCENARIOS.into_iter().chain(MORE_SCENARIOS).find(|name| name == word);
            if let Some(host) = HOSTS.into_iter().find(|host| host.name == *word) {
                hosts.push(host);
            } else {
                scenarios.push(scenario?);
            }
        }
        let is_named = !hosts.is_empty();
        if hosts.is_empty() {
            let is_wanted = |host: &Package| is_all || MAIN_HOSTS.contains(&host.name);
            hosts.extend(HOSTS.into_iter().filter(is_wanted));
        }
        if scenarios.is_empty() {
            scenarios.extend(MAIN_SCENARIOS);
            if is_all {
                scenarios.extend(MORE_SCENARIOS);
            }
        }
        Some(Self { hosts, scenarios, is_named })
    }
}

pub(crate) fn run(words: &[&str]) -> ExitCode {
    let Some(plan) = HostsPlan::parse(words) else {
        let hosts = HOSTS.map(|host| host.name).join(", ");
        let scenarios = [&MAIN_SCENARIOS[..], &MORE_SCENARIOS[..]].concat().join(", ");
        complain(&format!("{USAGE}\nhosts: {hosts}\nscenarios: {scenarios}"));
        return ExitCode::from(2);
    };
    if let Some(end) = ends_without("hosts", &RUNTIMES) {
        return end;
    }
    let python = python();
    if plan.hosts.iter().any(|host| host.registry == Registry::PyPi) && python.is_none() {
        if plan.is_named && in_ci() {
            complain("error: vibe needs Python 3.12 or newer, which is not installed");
            return ExitCode::FAILURE;
        }
        say("skipped: vibe (needs Python 3.12 or newer)");
    }
    let installed = install(&plan, python.as_deref());
    exit_code(installed.and_then(|hosts| drive(&hosts, &plan.scenarios)))
}

/// Installs the packages of each host below the target directory, once; returns the hosts that can
/// run.
fn install(plan: &HostsPlan, python: Option<&Path>) -> Result<Vec<&'static str>, InstallError> {
    let mut installed = Vec::new();
    for package in [COMMON].iter().chain(&plan.hosts) {
        let source = format!("{SOURCE}/packages/{}", package.name);
        let place = place().join(package.name);
        match (package.registry, python) {
            (Registry::Npm, _) => {
                install_once(&source, &place, &["package-lock.json"], || npm_ci(&place))?;
            }
            (Registry::PyPi, Some(python)) => {
                let pins = "requirements.txt";
                install_once(&source, &place, &[pins], || {
                    pip_install(&place, python, "venv", pins)
                })?;
            }
            (Registry::PyPi, None) => continue,
        }
        installed.push(package.name);
    }
    installed.retain(|name| *name != COMMON.name);
    Ok(installed)
}

fn place() -> PathBuf {
    target().join("hosts")
}

fn drive(hosts: &[&str], scenarios: &[&str]) -> Result<(), InstallError> {
    succeed(root(), "cargo", ["build", "--quiet", "--package", "switchboard-cli"])?;
    let source = root().join(SOURCE);
    let mut args = vec![
        source.join("run.mjs"),
        target().join("debug/switchboard"),
        place(),
        hosts.join(",").into(),
    ];
    let tests = [&[MODEL], scenarios].concat();
    args.extend(tests.iter().map(|test| source.join(format!("{test}.test.mjs"))));
    Ok(succeed(root(), node(&place().join(COMMON.name)), args)?)
}

/// A Python that is new enough for Mistral Vibe.
fn python() -> Option<PathBuf> {
    const IS_NEW: &str = "import sys; sys.exit(sys.version_info < (3, 12))";
    let is_new = |python: &PathBuf| is_silent_success(command(python).args(["-c", IS_NEW]));
    let mut candidates = vec![PathBuf::from("python3.12"), PathBuf::from("python3")];
    candidates.extend(pyenv_pythons());
    candidates.into_iter().find(is_new)
}

/// Python versions that pyenv has installed but may not have selected.
#[expect(clippy::disallowed_methods, reason = "a developer's tool reads the home directory")]
fn pyenv_pythons() -> Vec<PathBuf> {
    let Some(home) = std::env::var_os("HOME") else { return Vec::new() };
    let versions = fs::read_dir(Path::new(&home).join(".pyenv/versions"));
    let entries = versions.into_iter().flatten().flatten();
    let new = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("3.12"));
    new.map(|entry| entry.path().join("bin/python3")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, hosts: &[&str], scenarios: &[&str]) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let plan = HostsPlan::parse(&words).expect(line);
        let planned: Vec<&str> = plan.hosts.iter().map(|host| host.name).collect();
        assert_eq!((planned.as_slice(), plan.scenarios.as_slice()), (hosts, scenarios), "{line}");
    }

    #[test]
    fn hosts_command_without_names_runs_the_main_hosts() {
        check("", &MAIN_HOSTS, &MAIN_SCENARIOS);
    }

    #[test]
    fn host_and_scenario_names_select_what_runs() {
        check("codex cline", &["codex", "cline"], &MAIN_SCENARIOS);
        check("tokens copilot-cli", &["copilot-cli"], &["tokens"]);
        check("exit", &MAIN_HOSTS, &["exit"]);
    }

    #[test]
    fn all_option_selects_every_host_and_scenario() {
        let hosts = HOSTS.map(|host| host.name);
        let scenarios = [&MAIN_SCENARIOS[..], &MORE_SCENARIOS[..]].concat();
        check("--all", &hosts, &scenarios);
        check("--all codex", &["codex"], &scenarios);
        check("--all tokens", &hosts, &["tokens"]);
    }

    #[test]
    fn unknown_host_or_scenario_name_is_rejected() {
        assert_eq!(HostsPlan::parse(&["crush"]), None);
    }

    #[test]
    fn each_host_package_is_pinned_and_each_scenario_exists() {
        for Package { name, registry } in [COMMON].into_iter().chain(HOSTS) {
            let pins = match registry {
                Registry::Npm => "package-lock.json",
                Registry::PyPi => "requirements.txt",
            };
            assert!(root().join(SOURCE).join("packages").join(name).join(pins).is_file(), "{name}");
        }
        for name in MAIN_SCENARIOS.into_iter().chain(MORE_SCENARIOS).chain([MODEL]) {
            assert!(root().join(SOURCE).join(format!("{name}.test.mjs")).is_file(), "{name}");
        }
    }
}
