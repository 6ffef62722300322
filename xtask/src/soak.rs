//! `cargo xtask soak`: what takes too long for every test run, on a release build.

use std::process::ExitCode;

use crate::command::command;

const STORM: &str = "cargo run --release -p switchboard-it --bin storm -- 32 1000";

pub(crate) fn run() -> ExitCode {
    let mut words = STORM.split(' ');
    let program = words.next().unwrap_or_default();
    match command(program).args(words).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) | Err(_) => ExitCode::FAILURE,
    }
}
