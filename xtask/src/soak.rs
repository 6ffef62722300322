//! `cargo xtask soak`: what takes too long for every test run, on a release build.

use std::process::ExitCode;

use crate::command::{root, succeed};
use crate::printer::complain;

/// How much of it.
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
    for words in [BUILD, STORM, RENEWALS, ORDEAL, SOAK, reaping] {
        if let Err(error) = succeed(root(), "cargo", words.split(' ')) {
            complain(&format!("error: {error}: {words}"));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
