//! `cargo xtask test`: what must pass before a change is done, as a list of steps.

use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::command::{command, root};
use crate::printer::{complain, say};

/// How much to check.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Everything, as CI does.
    Full,
    /// The inner loop: no process tests, no doctests.
    Quick,
}

struct Step {
    name: &'static str,
    command: &'static str,
    /// Passed as `-p`, as far as they are in the workspace; with none of them there is no step.
    packages: &'static [&'static str],
    when: When,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    Only(Depth),
}

const fn step(name: &'static str, command: &'static str, when: When) -> Step {
    Step { name, command, packages: &[], when }
}

const STEPS: &[Step] = &[
    step("fmt", "cargo fmt --all --check", When::Always),
    step("tidy", "cargo xtask tidy", When::Always),
    step("deny", "cargo xtask deny", When::Only(Depth::Full)),
    step("msrv", "cargo xtask msrv", When::Only(Depth::Full)),
    step("clippy", "cargo clippy --workspace --all-targets -- -D warnings", When::Always),
    step("tests", "cargo nextest run --workspace", When::Only(Depth::Full)),
    Step {
        name: "tests",
        command: "cargo nextest run",
        packages: &["switchboard-core", "switchboard", "switchboard-wire"],
        when: When::Only(Depth::Quick),
    },
    Step {
        name: "doctests",
        command: "cargo test --doc",
        packages: &["switchboard"],
        when: When::Only(Depth::Full),
    },
    step("docs", "cargo xtask docs --check", When::Only(Depth::Full)),
    step("conformance", "cargo xtask conformance", When::Only(Depth::Full)),
    step("real-hosts", "cargo xtask real-hosts", When::Only(Depth::Full)),
    step("pi", "cargo xtask pi", When::Only(Depth::Full)),
    step("hosts", "cargo xtask hosts", When::Only(Depth::Full)),
];

/// What this machine and this workspace have, as far as the steps depend on it.
struct Setting {
    packages: Vec<String>,
    runner: Runner,
}

#[derive(Clone, Copy)]
enum Runner {
    Nextest,
    /// cargo-nextest is not installed.
    CargoTest,
}

/// Runs the steps in order up to the first that fails, then says how long each took.
pub(crate) fn run(depth: Depth) -> ExitCode {
    let setting = setting();
    if matches!(setting.runner, Runner::CargoTest) {
        complain("cargo-nextest is not installed: the tests run under `cargo test`");
    }
    let mut timings = Vec::new();
    let mut failed = None;
    for (name, words) in plan(STEPS, depth, &setting) {
        complain(&format!("\n── {name}: {}", words.join(" ")));
        let started = Instant::now();
        let passed = succeeds(&words);
        timings.push((name, started.elapsed()));
        if !passed {
            failed = Some(name);
            break;
        }
    }
    say(&table(&timings));
    match failed {
        None => ExitCode::SUCCESS,
        Some(name) => {
            complain(&format!("error: step `{name}` failed"));
            ExitCode::FAILURE
        }
    }
}

/// The command lines to run, in order, each with the name of its step.
fn plan<'a>(steps: &'a [Step], depth: Depth, setting: &Setting) -> Vec<(&'a str, Vec<&'a str>)> {
    let wanted = |step: &&Step| step.when == When::Always || step.when == When::Only(depth);
    let mut plan = Vec::new();
    for step in steps.iter().filter(wanted) {
        let present: Vec<&str> = step
            .packages
            .iter()
            .copied()
            .filter(|name| setting.packages.iter().any(|package| package == name))
            .collect();
        if present.is_empty() && !step.packages.is_empty() {
            continue;
        }
        let line = match (setting.runner, step.command.strip_prefix("cargo nextest run")) {
            (Runner::CargoTest, Some(rest)) => ["cargo test", rest],
            (Runner::CargoTest, None) | (Runner::Nextest, _) => [step.command, ""],
        };
        let mut words: Vec<&str> = line.iter().flat_map(|part| part.split_whitespace()).collect();
        words.extend(present.iter().flat_map(|package| ["-p", *package]));
        plan.push((step.name, words));
    }
    plan
}

/// Runs one command line with our terminal and tells whether it succeeded.
fn succeeds(words: &[&str]) -> bool {
    let (program, args) = words.split_first().expect("a step has a command");
    match command(program).args(args).status() {
        Ok(status) => status.success(),
        Err(cause) => {
            complain(&format!("error: cannot start `{program}`\n  caused by: {cause}"));
            false
        }
    }
}

fn setting() -> Setting {
    let nextest = command("cargo")
        .args(["nextest", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let runner = match nextest {
        Ok(status) if status.success() => Runner::Nextest,
        Ok(_) | Err(_) => Runner::CargoTest,
    };
    // A crate's folder carries its name.
    let packages = std::fs::read_dir(root().join("crates"))
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().join("Cargo.toml").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    Setting { packages, runner }
}

fn table(timings: &[(&str, Duration)]) -> String {
    let total = timings.iter().map(|(_, took)| *took).sum();
    let mut table = format!("\n{:<10}{:>9}", "step", "seconds");
    for (name, took) in timings.iter().chain([&("total", total)]) {
        table.push_str(&format!("\n{name:<10}{:>9.1}", took.as_secs_f64()));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(depth: Depth, packages: &[&str], runner: Runner, expected: &[&str]) {
        let packages = packages.iter().map(|name| (*name).to_owned()).collect();
        let planned: Vec<String> = plan(STEPS, depth, &Setting { packages, runner })
            .into_iter()
            .map(|(name, words)| format!("{name}: {}", words.join(" ")))
            .collect();
        assert_eq!(planned, expected);
    }

    #[test]
    fn full_run_ends_with_doctests_and_pages() {
        check(
            Depth::Full,
            &["switchboard", "switchboard-core"],
            Runner::Nextest,
            &[
                "fmt: cargo fmt --all --check",
                "tidy: cargo xtask tidy",
                "deny: cargo xtask deny",
                "msrv: cargo xtask msrv",
                "clippy: cargo clippy --workspace --all-targets -- -D warnings",
                "tests: cargo nextest run --workspace",
                "doctests: cargo test --doc -p switchboard",
                "docs: cargo xtask docs --check",
                "conformance: cargo xtask conformance",
                "real-hosts: cargo xtask real-hosts",
                "pi: cargo xtask pi",
                "hosts: cargo xtask hosts",
            ],
        );
    }

    #[test]
    fn quick_run_tests_the_crates_below_the_faces() {
        check(
            Depth::Quick,
            &["switchboard-core", "switchboard-cli", "switchboard"],
            Runner::Nextest,
            &[
                "fmt: cargo fmt --all --check",
                "tidy: cargo xtask tidy",
                "clippy: cargo clippy --workspace --all-targets -- -D warnings",
                "tests: cargo nextest run -p switchboard-core -p switchboard",
            ],
        );
    }

    #[test]
    fn cargo_runs_the_tests_without_nextest() {
        check(
            Depth::Full,
            &["switchboard-core"],
            Runner::CargoTest,
            &[
                "fmt: cargo fmt --all --check",
                "tidy: cargo xtask tidy",
                "deny: cargo xtask deny",
                "msrv: cargo xtask msrv",
                "clippy: cargo clippy --workspace --all-targets -- -D warnings",
                "tests: cargo test --workspace",
                "docs: cargo xtask docs --check",
                "conformance: cargo xtask conformance",
                "real-hosts: cargo xtask real-hosts",
                "pi: cargo xtask pi",
                "hosts: cargo xtask hosts",
            ],
        );
    }

    #[test]
    fn timing_table_ends_with_the_total() {
        let timings = [("fmt", Duration::from_millis(400)), ("clippy", Duration::from_secs(12))];
        let expected = "
step        seconds
fmt             0.4
clippy         12.0
total          12.4";
        assert_eq!(table(&timings), expected);
    }
}
