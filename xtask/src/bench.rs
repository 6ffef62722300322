//! `cargo xtask bench`: builds what is measured for release, then measures it.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::command::{command, root};
use crate::pi;
use crate::printer::complain;

/// Over tools and queries, without any process.
const TOOL_BENCH: &str = "cargo build --release -p switchboard-bench --bin tool-bench";

const BUILDS: [&str; 2] = [
    "cargo build --release -p switchboard-cli --bin switchboard",
    "cargo build --release -p switchboard-it -p switchboard-bench --bin fixture-server --bin switchboard-bench",
];

/// Runs the sections that are named, or all of them. `pi`, `tokens` and `ranking` are sections of
/// their own, with other extensions or with folders of tools.
pub(crate) fn run(sections: &[&str]) -> ExitCode {
    match sections {
        ["pi", others @ ..] => return pi::bench(others),
        ["tokens", folders @ ..] => return over_tools("tokens", folders),
        ["ranking", folders @ ..] => return over_tools("search", folders),
        _ => {}
    }
    if !all_build(&BUILDS) {
        return ExitCode::FAILURE;
    }
    let mut bench = command(built("switchboard-bench"));
    bench.arg(built("switchboard")).arg(built("fixture-server")).args(sections);
    ended(&mut bench)
}

fn over_tools(what: &str, folders: &[&str]) -> ExitCode {
    if !all_build(&[TOOL_BENCH]) {
        return ExitCode::FAILURE;
    }
    ended(command(built("tool-bench")).arg(what).args(folders))
}

fn all_build(builds: &[&str]) -> bool {
    let failed = builds.iter().find(|build| !succeeds(build));
    if let Some(build) = failed {
        complain(&format!("error: `{build}` failed"));
    }
    failed.is_none()
}

/// Where cargo put a program.
#[expect(
    clippy::disallowed_methods,
    reason = "cargo itself is told by this variable where to build"
)]
fn built(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |target| root().join(target));
    target.join("release").join(name)
}

fn ended(bench: &mut Command) -> ExitCode {
    match bench.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) | Err(_) => ExitCode::FAILURE,
    }
}

fn succeeds(line: &str) -> bool {
    let mut words = line.split(' ');
    let Some(program) = words.next() else { return false };
    command(program).args(words).status().is_ok_and(|status| status.success())
}
