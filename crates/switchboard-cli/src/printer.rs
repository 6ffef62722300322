//! The only place that prints: data on standard output, everything else on standard error.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios};
use serde_json::Value;
use switchboard::render::words::clean_block;

use crate::style::Palette;

/// The terminal, or what stands in for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    /// The colours of standard output.
    pub(crate) out: Palette,
    /// The colours of standard error.
    pub(crate) err: Palette,
    /// How wide a line of standard output should be.
    pub(crate) columns: usize,
    out_is_terminal: bool,
    err_is_terminal: bool,
    in_is_terminal: bool,
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
        }
    }

    /// Whether someone can be asked and can answer.
    pub(crate) fn can_ask(self) -> bool {
        self.err_is_terminal && self.in_is_terminal
    }

    /// Whether someone watches standard error.
    pub(crate) fn is_watched(self) -> bool {
        self.err_is_terminal
    }

    /// Prints our own text, whose foreign parts were made harmless.
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

    /// Prints what a server sent: harmless on a terminal, to the byte into a file or a pipe.
    pub(crate) fn foreign(self, text: &str) -> io::Result<()> {
        if self.out_is_terminal {
            self.text(&clean_block(text, usize::MAX))
        } else {
            self.text(text)
        }
    }

    pub(crate) fn json(self, value: &Value) -> io::Result<()> {
        self.foreign(&format!("{value:#}"))
    }

    /// One of several values, on a line of its own.
    pub(crate) fn json_line(self, value: &Value) -> io::Result<()> {
        self.foreign(&value.to_string())
    }

    /// Says something that is no data. A standard error that is gone is no reason to stop.
    pub(crate) fn note(self, text: &str) {
        let mut err = io::stderr().lock();
        // In one piece: other programs write there, too.
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

    /// Asks on standard error and waits for a line; end of input is an empty answer.
    pub(crate) fn ask(self, question: &str) -> io::Result<String> {
        Ok(self.ask_unless_over(question)?.unwrap_or_default())
    }

    /// The same; `None` is the end of input.
    pub(crate) fn ask_unless_over(self, question: &str) -> io::Result<Option<String>> {
        let mut err = io::stderr().lock();
        // What was typed before the question was there is no answer to it.
        let _not_a_terminal = rustix::termios::tcflush(io::stdin(), QueueSelector::IFlush);
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

    /// From now on nothing that is typed is shown, until what is given back is dropped.
    pub(crate) fn hide_typing(self) -> io::Result<Unseen> {
        let before = rustix::termios::tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        rustix::termios::tcsetattr(io::stdin(), OptionalActions::Now, &hidden)?;
        Ok(Unseen { before })
    }

    /// Asks a question that only a `y` answers with yes.
    pub(crate) async fn agrees(self, question: &str) -> bool {
        let question = self.yes_or_no(question);
        let answer = tokio::task::spawn_blocking(move || self.ask(&question)).await;
        matches!(answer, Ok(Ok(answer)) if is_yes(&answer))
    }

    /// A question with the answers that it can have.
    pub(crate) fn yes_or_no(self, question: &str) -> String {
        format!("{question} {}", self.err.aside("[y/N]"))
    }

    /// Help and version go to standard output, wrong usage to standard error.
    pub(crate) fn usage(self, error: &clap::Error) {
        let rendered = error.render();
        let styled = |palette| match palette {
            Palette::Coloured => rendered.ansi().to_string(),
            Palette::Plain => rendered.to_string(),
        };
        if error.use_stderr() {
            self.note(&styled(self.err));
        } else {
            let _closed = self.text(&styled(self.out));
        }
    }
}

/// A terminal that shows nothing of what is typed.
pub(crate) struct Unseen {
    before: Termios,
}

impl Drop for Unseen {
    fn drop(&mut self) {
        let _gone = rustix::termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Anything but a `y`, Enter included, is a no.
pub(crate) fn is_yes(answer: &str) -> bool {
    answer.eq_ignore_ascii_case("y")
}

/// The width of the terminal; a file has room for what is worth reading in a list.
fn columns() -> usize {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        Ok(_) | Err(_) => 160,
    }
}
