//! Measures how well tools are found: the quality of the ranking, and the tokens and turns of a
//! task, over lists of real tools.
//!
//! `cargo xtask bench ranking` and `cargo xtask bench tokens` build and run this.

mod adapter;
mod arguments;
mod data;
mod judge;
mod report;
mod shape;
mod simulation;
#[cfg(test)]
mod tests;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use data::ToolData;

/// The result of a benchmark step; a failure is only reported.
pub(crate) type BenchResult<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (what, folders) = match args.split_first() {
        Some((what, folders)) => (what.as_str(), folders),
        None => ("", args.as_slice()),
    };
    let folders: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
    let printed = match what {
        "search" => ToolData::read(&folders).and_then(|data| report::search(&data)),
        "tokens" => ToolData::read(&folders).and_then(|data| report::tokens(&data)),
        _ => {
            report::complain("usage: tool-bench search|tokens [FOLDER…]");
            return ExitCode::from(2);
        }
    };
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::complain(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}
