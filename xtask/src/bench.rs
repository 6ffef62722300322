//! `cargo xtask bench`: builds what is measured for release, then measures it.

use std::process::ExitCode;

use crate::command::{command, root};
use crate::pi;
use crate::printer::complain;

const BUILDS: [&str; 2] = [
    "cargo build --release -p switchboard-cli --bin switchboard",
    "cargo build --release -p switchboard-it -p switchboard-bench --bin fixture-server --bin switchboard-bench",
];

/// Runs the sections that are named, or all of them; `pi` is one of its own, with other extensions.
#[expect(
    clippy::disallowed_methods,
    reason = "cargo itself is told by this variable where to build"
)]
pub(crate) fn run(sections: &[&str]) -> ExitCode {
    if let ["pi", others @ ..] = sections {
        return pi::bench(others);
    }
    for build in BUILDS {
        if !succeeds(build) {
            complain(&format!("error: `{build}` failed"));
            return ExitCode::FAILURE;
        }
    }
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |target| root().join(target));
    let built = |name: &str| target.join("release").join(name).display().to_string();
    let mut bench = command(built("switchboard-bench"));
    bench.arg(built("switchboard")).arg(built("fixture-server")).args(sections);
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
