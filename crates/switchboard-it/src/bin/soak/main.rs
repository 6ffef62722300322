//! `soak SCENARIO NUMBER…` runs one long scenario, prints its figures, and fails if a limit is
//! exceeded.

mod kills;
mod load;
mod misbehavior;
mod token_expiry;
mod writers;

use std::io::{self, Write};
use std::process::ExitCode;

use tokio::runtime::{Builder, Runtime};

/// A scenario: its name, its numbers, and what runs it. The result is whether all figures are
/// within their limits.
struct Scenario {
    name: &'static str,
    numbers: &'static str,
    run: fn(&Runtime, &[usize]) -> io::Result<bool>,
}

const SCENARIOS: [Scenario; 5] = [
    Scenario { name: "writers", numbers: "WRITERS UPDATES", run: writers::run },
    Scenario { name: "token-expiry", numbers: "PROCESSES EXPIRIES", run: token_expiry::run },
    Scenario { name: "misbehavior", numbers: "CALLS TRIALS", run: misbehavior::run },
    Scenario { name: "load", numbers: "SECONDS SERVERS SEED", run: load::run },
    Scenario { name: "kills", numbers: "GATEWAYS REAPERS COMMANDS", run: kills::run },
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ended = match words.as_slice() {
        [writers::WRITER, home, numbers @ ..] => writers::write_as_child(home, numbers),
        [name, numbers @ ..] => run(name, numbers),
        [] => Err(usage()),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Nothing to do if stderr is closed.
            let _ = writeln!(io::stderr(), "soak: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(name: &str, numbers: &[&str]) -> io::Result<bool> {
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name).ok_or_else(usage)?;
    let numbers: Result<Vec<usize>, _> = numbers.iter().map(|number| number.parse()).collect();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    (scenario.run)(&runtime, &numbers.map_err(|_| usage())?)
}

/// The error for unknown scenarios and wrong numbers.
fn usage() -> io::Error {
    let lines =
        SCENARIOS.map(|scenario| format!("\n  soak {} {}", scenario.name, scenario.numbers));
    io::Error::other(format!("usage:{}", lines.concat()))
}
