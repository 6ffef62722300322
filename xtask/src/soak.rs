//! `cargo xtask soak`: tests that take too long for every test run, on a release build.

use std::process::ExitCode;

use crate::command::{CommandError, root, succeed};
use crate::printer::exit_code;

/// How long it runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// Half an hour.
    Short,
    /// Two hours.
    Long,
}

const BUILD: &str = "build --release -p switchboard-it --bins";
const STORM: &str = "run --release -p switchboard-it --bin storm -- 32 1000";
const REAPING: &str = "run --release -p switchboard-it --bin reaping -- 200 100 200";
const ORDEAL: &str = "run --release -p switchboard-it --bin ordeal -- 10000 200";
const SOAK: &str = "run --release -p switchboard-it --bin soak -- 600 50";
const RENEWALS: &str = "run --release -p switchboard-it --bin renewals -- 16 200";
const LONG_REAPING: &str = "run --release -p switchboard-it --bin reaping -- 1000 300 1000";

pub(crate) fn run(length: Length) -> ExitCode {
    let reaping = match length {
        Length::Short => REAPING,
        Length::Long => LONG_REAPING,
    };
    let steps = [BUILD, STORM, RENEWALS, ORDEAL, SOAK, reaping];
    let run =
        |words: &str| -> Result<(), CommandError> { succeed(root(), "cargo", words.split(' ')) };
    exit_code(steps.into_iter().try_for_each(run))
}
