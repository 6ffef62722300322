//! `cargo xtask soak`: runs the long scenarios of the test kit's binary `soak` on a release build.

use std::process::ExitCode;

use crate::command::{root, succeed};
use crate::printer::exit_code;

/// How long the scenarios run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// Half an hour.
    Short,
    /// Two hours.
    Long,
}

const BUILD: &str = "build --release -p switchboard-it --bins";
const RUN: &str = "run --release -p switchboard-it --bin soak --";

/// The scenarios with their arguments, except `kills`, whose arguments depend on the length.
const SCENARIOS: [&str; 4] =
    ["writers 32 1000", "token-expiry 16 200", "misbehavior 10000 200", "load 600 50 1"];

pub(crate) fn run(length: Length) -> ExitCode {
    let kills = match length {
        Length::Short => "kills 200 100 200",
        Length::Long => "kills 1000 300 1000",
    };
    let runs = SCENARIOS.into_iter().chain([kills]).map(|scenario| format!("{RUN} {scenario}"));
    let mut steps = [BUILD.to_owned()].into_iter().chain(runs);
    exit_code(steps.try_for_each(|words| succeed(root(), "cargo", words.split(' '))))
}
