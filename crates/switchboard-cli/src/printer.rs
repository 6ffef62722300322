//! The only place that prints: data on standard output, everything else on standard error.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcgetattr, tcsetattr};
use serde_json::Value;
use switchboard::hidden::is_hidden;
use switchboard::render::words::clean_block;

use crate::style::Palette;

/// The standard streams, and whether they are terminals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    /// The colours of standard output.
    pub(crate) out: Palette,
    /// The colours of standard error.
    pub(crate) err: Palette,
    /// The width of a line of standard output.
    pub(crate) columns: usize,
    out_is_terminal: bool,
    err_is_terminal: bool,
    in_is_terminal: bool,
    /// Whether log lines are written to standard error. They would mix with a line that is redrawn.
    logs: bool,
}

impl Printer {
    pub(crate) fn new(choice: ColorChoice) -> Printer {
        let palette = |automatic: ColorChoice| match (choice, automatic) {
            (ColorChoice::Never, _) | (ColorChoice::Auto, ColorChoice::Never) => Palette::Plain,
            (ColorChoice::Always | ColorChoice::AlwaysAnsi, _) | (ColorChoice::Auto, _) => {
                Palette::Coloured
            }
        };
        Printer {
            out: palette(AutoStream::choice(&io::stdout())),
            err: palette(AutoStream::choice(&io::stderr())),
            columns: columns(),
            out_is_terminal: io::stdout().is_terminal(),
            err_is_terminal: io::stderr().is_terminal(),
            in_is_terminal: io::stdin().is_terminal(),
            logs: false,
        }
    }

    /// The printer for a command that writes its log to the same terminal.
    #[must_use]
    pub(crate) fn without_redrawing(self) -> Printer {
        Printer { logs: true, ..self }
    }

    /// Whether a line on standard error can be redrawn.
    pub(crate) fn redraws(self) -> bool {
        self.err_is_terminal && !self.logs
    }

    /// Whether standard output is a terminal.
    pub(crate) fn is_read(self) -> bool {
        self.out_is_terminal
    }

    /// Whether the user can be asked.
    pub(crate) fn can_ask(self) -> bool {
        self.err_is_terminal && self.in_is_terminal
    }

    /// Whether standard error is a terminal.
    pub(crate) fn is_watched(self) -> bool {
        self.err_is_terminal
    }

    /// Prints text of Switchboard. Text of servers in it is escaped already.
    pub(crate) fn text(self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        out.flush()
    }

    /// Prints text of a server: escaped on a terminal, unchanged into a file or a pipe.
    pub(crate) fn foreign(self, text: &str) -> io::Result<()> {
        if self.out_is_terminal {
            self.text(&clean_block(text, usize::MAX))
        } else {
            self.text(text)
        }
    }

    /// Writes bytes to standard output, without escaping and without an added line break.
    pub(crate) fn bytes(self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    pub(crate) fn json(self, value: &Value) -> io::Result<()> {
        self.foreign(&format!("{value:#}"))
    }

    /// Prints one of several JSON values, each on its own line.
    pub(crate) fn json_line(self, value: &Value) -> io::Result<()> {
        self.foreign(&value.to_string())
    }

    /// Prints a message on standard error. It is lost if standard error is closed.
    pub(crate) fn note(self, text: &str) {
        let mut err = io::stderr().lock();
        // The whole text is written at once, because other programs write to the same terminal.
        let _gone = err.write_all(format!("{}\n", text.trim_end_matches('\n')).as_bytes());
    }

    pub(crate) fn warn(self, text: &str) {
        self.note(&format!("{} {text}", self.err.warning("warning:")));
    }

    /// Replaces the last line of the terminal.
    pub(crate) fn redraw(self, line: &str) {
        let mut err = io::stderr().lock();
        let _gone = write!(err, "\r\u{1b}[2K{line}").and_then(|()| err.flush());
    }

    /// Asks on standard error and waits for a line. The end of input is an empty answer.
    pub(crate) fn ask(self, question: &str) -> io::Result<String> {
        Ok(self.ask_unless_over(question)?.unwrap_or_default())
    }

    /// As [`Printer::ask`], but the end of input is `None`.
    pub(crate) fn ask_unless_over(self, question: &str) -> io::Result<Option<String>> {
        // Input that was typed before the question is dropped, because it is no answer.
        let _not_a_terminal = rustix::termios::tcflush(io::stdin(), QueueSelector::IFlush);
        self.read_more(question)
    }

    /// As [`Printer::ask_unless_over`], but input that was typed before the question is kept.
    pub(crate) fn read_more(self, question: &str) -> io::Result<Option<String>> {
        let mut err = io::stderr().lock();
        err.write_all(format!("{question} ").as_bytes())?;
        err.flush()?;
        drop(err);
        let mut answer = String::new();
        if io::stdin().read_line(&mut answer)? == 0 {
            self.note("");
            return Ok(None);
        }
        Ok(Some(answer.trim().to_owned()))
    }

    /// Turns off the echo of the terminal until the guard is dropped.
    pub(crate) fn hide_typing(self) -> io::Result<HiddenInput> {
        HiddenInput::begin(OptionalActions::Now, |modes| modes.local_modes -= LocalModes::ECHO)
    }

    /// Asks without blocking the runtime; `None` is the end of input.
    pub(crate) async fn answer(self, question: String) -> Option<String> {
        let reading = tokio::task::spawn_blocking(move || self.ask_unless_over(&question));
        reading.await.ok()?.ok()?
    }

    /// Asks a question; only the answer `y` means yes.
    pub(crate) async fn agrees(self, question: &str) -> bool {
        self.answer(self.yes_or_no(question)).await.is_some_and(|answer| is_yes(&answer))
    }

    /// A question, followed by its possible answers `[y/N]`.
    pub(crate) fn yes_or_no(self, question: &str) -> String {
        format!("{question} {}", self.err.aside("[y/N]"))
    }

    /// Help and version go to standard output, wrong usage to standard error.
    pub(crate) fn usage(self, error: &clap::Error, args: &[OsString]) {
        if error.use_stderr() {
            self.note(&usage(error, args, self.err));
        } else {
            let _closed = self.text(&usage(error, args, self.out));
        }
    }
}

/// The text of a usage error. It quotes arguments, whose escape sequences cannot be distinguished
/// from our colours. So if an argument has a hidden character, the text has no colours.
fn usage(error: &clap::Error, args: &[OsString], palette: Palette) -> String {
    let rendered = error.render();
    if args.iter().any(|arg| arg.to_string_lossy().contains(is_hidden)) {
        return clean_block(&rendered.ansi().to_string(), usize::MAX).into_owned();
    }
    match palette {
        Palette::Coloured => rendered.ansi().to_string(),
        Palette::Plain => rendered.to_string(),
    }
}

/// Changed modes of the terminal, which are restored when this is dropped.
pub(crate) struct HiddenInput {
    before: Termios,
    actions: OptionalActions,
}

impl HiddenInput {
    /// Changes the modes of the terminal. `actions` decides whether unread input is dropped when
    /// the modes are changed and restored.
    pub(crate) fn begin(
        actions: OptionalActions,
        change: impl FnOnce(&mut Termios),
    ) -> io::Result<HiddenInput> {
        let before = tcgetattr(io::stdin())?;
        let mut modes = before.clone();
        change(&mut modes);
        tcsetattr(io::stdin(), actions, &modes)?;
        Ok(HiddenInput { before, actions })
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        let _gone = tcsetattr(io::stdin(), self.actions, &self.before);
    }
}

/// Whether the answer is `y`. An empty answer means no.
pub(crate) fn is_yes(answer: &str) -> bool {
    answer.eq_ignore_ascii_case("y")
}

/// The width of the terminal in columns; a fixed width if standard output is a file or a pipe.
fn columns() -> usize {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        Ok(_) | Err(_) => 160,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;

    #[test]
    fn usage_error_with_hidden_characters_prints_no_escape_sequence() {
        let check = |line: &[&str], expected: &str| {
            let args: Vec<OsString> =
                ["switchboard"].iter().chain(line).map(|word| OsString::from(*word)).collect();
            let error = Cli::read(&args).unwrap_err();
            for palette in [Palette::Coloured, Palette::Plain] {
                let printed = usage(&error, &args, palette);
                assert!(!printed.replace('\n', "").contains(is_hidden), "{printed:?}");
                assert!(printed.contains(expected), "{printed}");
            }
        };
        check(&["\u{1b}]0;x\u{7}"], r"\u{1b}]0;x\u{7}");
        check(&["status", "--\u{1b}]0;x\u{7}"], r"--\u{1b}]0;x\u{7}");
        check(&["completions", "\u{1b}[8mfish\u{9b}2J"], "'fish'");
        check(&["import", "\u{202e}x"], r"\u{202e}x");
        let args = ["switchboard", "--nothing"].map(OsString::from);
        let error = Cli::read(&args).unwrap_err();
        assert!(usage(&error, &args, Palette::Coloured).contains("\u{1b}["));
        assert!(!usage(&error, &args, Palette::Plain).contains('\u{1b}'));
    }
}
