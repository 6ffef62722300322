//! Runs `switchboard_it::storm`, many writers of the same files; also the program of each writer.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use switchboard_it::storm::{Storm, rage, write};

const USAGE: &str = "usage: storm WRITERS UPDATES";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing to do if stderr is closed.
            let _ = writeln!(io::stderr(), "storm: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(words: &[&str]) -> io::Result<()> {
    let number = |word: &str| word.parse::<u32>().map_err(|_| io::Error::other(USAGE));
    match words {
        [_, "write", home, writer, first, last] => {
            write(Path::new(home), number(writer)?, number(first)?, number(last)?)
        }
        [program, writers, updates] => {
            let (writers, updates) = (number(writers)?, number(updates)?);
            let home = tempfile::tempdir()?;
            let storm = Storm { writers, updates, calm: writers * 2 };
            let damage = rage(program, home.path(), storm);
            let (updates, kills) = (damage.updates, damage.kills);
            writeln!(
                io::stdout(),
                "{writers} writers: {updates} updates, {kills} killed, none lost, nothing torn"
            )
        }
        _ => Err(io::Error::other(USAGE)),
    }
}
