//! Failures as text for the terminal: what failed, why, and what to type next.

use std::fmt::Write;

use switchboard::failure::{Failure, Hint, Subject};
use switchboard::render::remedy::{self, CommandSyntax};
use switchboard::render::words::clean_line;

use crate::exit::Exit;
use crate::style::Palette;

const MESSAGE: usize = 2_000;

/// The number of characters that are shown of the last line that a failed server wrote.
const LAST_LINE: usize = 200;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(Failure),
    /// Standard output is closed, or cannot be written.
    Output(std::io::Error),
    /// The user ended a dialogue.
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

/// One line about a failed server in a list: the failure, the last line of its standard error, and
/// the command that retries.
pub(crate) fn line(failure: &Failure, palette: Palette) -> String {
    let mut line = clean_line(&failure.to_string(), MESSAGE).into_owned();
    let last = failure.hints.iter().find_map(|hint| match hint {
        Hint::Stderr(lines) => lines.iter().rev().find(|line| is_useful(line)),
        _ => None,
    });
    if let Some(last) = last {
        line.push_str(&format!(": {}", clean_line(last.trim(), LAST_LINE)));
    }
    let better = failure.hints.iter().find(|hint| matches!(hint, Hint::SignIn(_) | Hint::Trust(_)));
    let next = match (better, &failure.subject) {
        (Some(hint), _) => wording(hint, palette),
        (None, Subject::Server(server) | Subject::Tool { server, .. }) => {
            wording(&Hint::Connect(server.clone()), palette)
        }
        (None, Subject::Request | Subject::Config { .. }) => return line,
    };
    format!("{line}; {next}")
}

/// Whether a line of a server's log helps the user. The last line of npm only names its own log
/// file.
fn is_useful(line: &str) -> bool {
    !line.trim().is_empty() && !line.contains("A complete log of this run")
}

/// The text of a hint with the commands of this program.
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
