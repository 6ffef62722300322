//! `cargo xtask bench`: builds the benchmarks for release, then runs them.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::command::{CommandError, root, succeed, target};
use crate::pi;
use crate::printer::exit_code;

/// Runs the named sections, or all of them. `pi`, `tokens` and `ranking` are separate benchmarks,
/// over other extensions or over folders of tools.
pub(crate) fn run(sections: &[&str]) -> ExitCode {
    match sections {
        ["pi", others @ ..] => pi::bench(others),
        ["tokens", folders @ ..] => exit_code(over_tools("tokens", folders)),
        ["ranking", folders @ ..] => exit_code(over_tools("search", folders)),
        sections => exit_code(over_processes(sections)),
    }
}

/// Runs a benchmark over tools, which starts no further process.
fn over_tools(what: &str, folders: &[&str]) -> Result<(), CommandError> {
    build("-p switchboard-bench --bin tool-bench")?;
    succeed(root(), built("tool-bench"), [what].iter().chain(folders))
}

fn over_processes(sections: &[&str]) -> Result<(), CommandError> {
    build("-p switchboard-cli --bin switchboard")?;
    build("-p switchboard-it -p switchboard-bench --bin fixture-server --bin switchboard-bench")?;
    let programs = [built("switchboard"), built("fixture-server")];
    let args = programs.into_iter().chain(sections.iter().map(PathBuf::from));
    succeed(root(), built("switchboard-bench"), args)
}

fn build(what: &str) -> Result<(), CommandError> {
    succeed(root(), "cargo", ["build", "--release"].into_iter().chain(what.split(' ')))
}

fn built(program: &str) -> PathBuf {
    target().join("release").join(program)
}
