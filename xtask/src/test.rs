//! `cargo xtask test`: the steps that must pass before a change is done.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::command::{self, command, is_silent_success};
use crate::printer::{complain, report, say};

/// How much is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Everything that CI checks.
    Full,
    /// What an author runs often: no tests with processes, no doctests.
    Quick,
}

/// Name and command line of each step, and the depths that it belongs to.
const STEPS: &[(&str, &str, &[Depth])] = &[
    ("fmt", "cargo fmt --all --check", BOTH),
    ("tidy", "cargo xtask tidy", BOTH),
    ("deny", "cargo xtask deny", FULL),
    ("msrv", "cargo xtask msrv", FULL),
    ("clippy", "cargo clippy --workspace --all-targets -- -D warnings", BOTH),
    ("tests", "cargo nextest run --workspace", FULL),
    ("tests", "cargo nextest run -p switchboard-core -p switchboard -p switchboard-wire", QUICK),
    ("doctests", "cargo test --doc -p switchboard", FULL),
    ("docs", "cargo xtask docs --check", FULL),
    ("conformance", "cargo xtask conformance", FULL),
    ("real-hosts", "cargo xtask real-hosts", FULL),
    ("pi", "cargo xtask pi", FULL),
    ("hosts", "cargo xtask hosts", FULL),
];

const BOTH: &[Depth] = &[Depth::Full, Depth::Quick];
const FULL: &[Depth] = &[Depth::Full];
const QUICK: &[Depth] = &[Depth::Quick];

#[derive(Clone, Copy)]
enum Runner {
    Nextest,
    /// `cargo test`, because cargo-nextest is not installed.
    CargoTest,
}

/// Runs the steps in order until one fails, then prints how long each took.
pub(crate) fn run(depth: Depth) -> ExitCode {
    let runner = if is_silent_success(command("cargo").args(["nextest", "--version"])) {
        Runner::Nextest
    } else {
        complain("cargo-nextest is not installed: the tests run under `cargo test`");
        Runner::CargoTest
    };
    let mut timings = Vec::new();
    let mut failed = None;
    for (name, line) in plan(depth, runner) {
        complain(&format!("\n── {name}: {line}"));
        let started = Instant::now();
        let mut words = line.split(' ');
        let program = words.next().unwrap_or_default();
        let outcome = command::run(command(program).args(words));
        timings.push((name, started.elapsed()));
        if let Err(error) = outcome {
            report(&error);
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
fn plan(depth: Depth, runner: Runner) -> impl Iterator<Item = (&'static str, String)> {
    let line = move |line: &str| match runner {
        Runner::Nextest => line.to_owned(),
        Runner::CargoTest => line.replace("cargo nextest run", "cargo test"),
    };
    let steps = STEPS.iter().filter(move |(_, _, depths)| depths.contains(&depth));
    steps.map(move |(name, command, _)| (*name, line(command)))
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

    fn check(depth: Depth, runner: Runner, expected: &[&str]) {
        let planned: Vec<String> = plan(depth, runner).map(|(_, line)| line).collect();
        assert_eq!(planned, expected);
    }

    fn full(tests: &str) -> Vec<&str> {
        vec![
            "cargo fmt --all --check",
            "cargo xtask tidy",
            "cargo xtask deny",
            "cargo xtask msrv",
            "cargo clippy --workspace --all-targets -- -D warnings",
            tests,
            "cargo test --doc -p switchboard",
            "cargo xtask docs --check",
            "cargo xtask conformance",
            "cargo xtask real-hosts",
            "cargo xtask pi",
            "cargo xtask hosts",
        ]
    }

    #[test]
    fn full_test_plan_ends_with_doctests_and_long_suites() {
        check(Depth::Full, Runner::Nextest, &full("cargo nextest run --workspace"));
    }

    #[test]
    fn quick_test_plan_tests_only_core_engine_and_wire() {
        check(
            Depth::Quick,
            Runner::Nextest,
            &[
                "cargo fmt --all --check",
                "cargo xtask tidy",
                "cargo clippy --workspace --all-targets -- -D warnings",
                "cargo nextest run -p switchboard-core -p switchboard -p switchboard-wire",
            ],
        );
    }

    #[test]
    fn test_plan_uses_cargo_test_if_nextest_is_missing() {
        check(Depth::Full, Runner::CargoTest, &full("cargo test --workspace"));
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
