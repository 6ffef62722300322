//! Failures as text for the terminal: what failed, why, and what to type next.

use std::fmt::Write;

use switchboard::failure::{Failure, Hint, Subject};
use switchboard::render::remedy::{self, CommandSyntax};
use switchboard::render::words::clean_line;

use crate::exit::Exit;
use crate::style::Palette;

const MESSAGE: usize = 2_000;

/// The maximum number of characters that are shown of a line that a failed server wrote.
const STDERR_LINE: usize = 200;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(Failure),
    /// Standard output is closed, or cannot be written.
    Output(std::io::Error),
    /// The user ended a dialogue, with Ctrl-C or the end of input.
    Left(Exit),
}

/// How a command ends.
pub(crate) type CommandResult = Result<Exit, Stop>;

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

/// A hint on a line of its own.
pub(crate) fn hint(hint: &Hint, palette: Palette) -> String {
    format!("{} {}", palette.heading("hint:"), wording(hint, palette))
}

/// One line about a failed server in a list: the failure, the line of its standard error that names
/// the reason, and the command that retries.
pub(crate) fn line(failure: &Failure, palette: Palette) -> String {
    let mut line = clean_line(&failure.to_string(), MESSAGE).into_owned();
    let reason = failure.hints.iter().find_map(|hint| match hint {
        Hint::Stderr(lines) => telling(lines),
        _ => None,
    });
    if let Some(reason) = reason {
        line.push_str(&format!(": {}", clean_line(reason.trim(), STDERR_LINE)));
    }
    match next_step(failure) {
        Some(next) => format!("{line}; {}", wording(&next, palette)),
        None => line,
    }
}

/// What to do about a failed server: the first remedy of the failure. Its log, or another attempt,
/// if there is none.
fn next_step(failure: &Failure) -> Option<Hint> {
    let is_remedy = |hint: &&Hint| {
        !matches!(hint, Hint::Stderr(_) | Hint::ReadLog(_) | Hint::RetryAfter(_) | Hint::Connect(_))
    };
    let has_log = |hint: &&Hint| matches!(hint, Hint::ReadLog(_));
    let mut hints = failure.hints.iter();
    let next = hints.clone().find(is_remedy).or_else(|| hints.find(has_log)).cloned();
    next.or_else(|| match &failure.subject {
        Subject::Server(server) | Subject::Tool { server, .. } => {
            Some(Hint::Connect(server.clone()))
        }
        Subject::Request | Subject::Config { .. } => None,
    })
}

/// The line of standard error that names the reason: usually the last. npm names it first, after the
/// code, and ends with general advice.
fn telling(lines: &[String]) -> Option<&String> {
    let mut lines = lines.iter().filter(|line| !line.trim().is_empty());
    let npm = lines.clone().skip_while(|line| !line.starts_with("npm error code")).nth(1);
    npm.filter(|line| line.starts_with("npm error")).or_else(|| lines.next_back())
}

/// A hint with the commands of this program.
pub(crate) fn wording(hint: &Hint, palette: Palette) -> String {
    remedy::wording(hint, &palette)
}

impl CommandSyntax for Palette {
    fn command(&self, words: &str) -> String {
        self.shell(&format!("switchboard {words}"))
    }

    fn shell(&self, line: &str) -> String {
        Palette::command(*self, format!("`{line}`")).to_string()
    }

    fn approve(&self) -> String {
        "approve it on a terminal, or in advance with `--yes`".to_owned()
    }
}

#[cfg(test)]
mod tests;
