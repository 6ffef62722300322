//! Failures as a person reads them: what went wrong, why, and what to type next.

use std::fmt::Write;

use switchboard::failure::{Failure, Hint};
use switchboard::render::remedy::{self, Speech};
use switchboard::render::words::clean_line;

use crate::exit::Exit;
use crate::style::Palette;

const MESSAGE: usize = 2_000;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(Failure),
    /// Nobody reads standard output any more, or it cannot be written.
    Output(std::io::Error),
    /// Whoever was asked went away.
    Left(Exit),
}

/// How a command ends.
pub(crate) type Outcome = Result<Exit, Stop>;

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Stop {
        Stop::Output(error)
    }
}

/// The report of a failure.
pub(crate) fn text(failure: &Failure, palette: Palette) -> String {
    let mut out = String::new();
    for (index, cause) in failure.chain().iter().enumerate() {
        let cause = clean_line(cause, MESSAGE);
        let _ = match index {
            0 => writeln!(out, "{} {cause}", palette.error("error:")),
            _ => writeln!(out, "  caused by: {cause}"),
        };
    }
    if !failure.hints.is_empty() {
        out.push('\n');
    }
    for hint in &failure.hints {
        let _ = writeln!(out, "{}", self::hint(hint, palette));
    }
    out
}

/// A remedy on a line of its own.
pub(crate) fn hint(hint: &Hint, palette: Palette) -> String {
    format!("{} {}", palette.heading("hint:"), wording(hint, palette))
}

/// One line about a server that failed beside others.
pub(crate) fn line(failure: &Failure) -> String {
    clean_line(&failure.to_string(), MESSAGE).into_owned()
}

/// A remedy in the verbs of the command line.
pub(crate) fn wording(hint: &Hint, palette: Palette) -> String {
    remedy::wording(hint, &palette)
}

impl Speech for Palette {
    fn command(&self, words: &str) -> String {
        self.shell(&format!("switchboard {words}"))
    }

    fn shell(&self, line: &str) -> String {
        Palette::command(*self, format!("`{line}`")).to_string()
    }

    fn say_yes(&self) -> String {
        "say yes on a terminal, or beforehand with `--yes`".to_owned()
    }
}

#[cfg(test)]
mod tests;
