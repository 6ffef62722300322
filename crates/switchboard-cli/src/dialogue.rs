//! Questions to the user that end with Ctrl-C or the end of input.

use std::io;

use switchboard::secret::Secret;

use crate::exit::Exit;
use crate::printer::{Printer, is_yes};
use crate::report::Stop;
use crate::signals::Signals;

/// The user at a terminal, who answers one question after the other.
pub(crate) struct Dialogue {
    pub(crate) printer: Printer,
    pub(crate) written: Written,
    signals: Signals,
}

/// Whether the dialogue has changed a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Nothing,
    Something,
}

impl Dialogue {
    /// Opens a dialogue; `None` if the user cannot be asked.
    pub(crate) fn open(printer: Printer) -> Option<Dialogue> {
        let written = Written::Nothing;
        printer.can_ask().then(|| Dialogue { printer, written, signals: Signals::listen() })
    }

    /// Reads a line without echo.
    pub(crate) async fn ask_unseen(&mut self, question: &str) -> Result<Secret, Stop> {
        let unseen = self.printer.hide_typing()?;
        let answer = self.ask(question).await.map(Secret::new);
        drop(unseen);
        // The Enter key was not echoed, so the line is ended here.
        self.printer.note("");
        answer
    }

    /// Reads a line. Input that was typed before the question is dropped.
    pub(crate) async fn ask(&mut self, question: &str) -> Result<String, Stop> {
        self.line(question, Printer::ask_unless_over).await
    }

    /// Reads a further line of a longer text. Input that was typed before the question is used.
    pub(crate) async fn ask_more(&mut self, question: &str) -> Result<String, Stop> {
        self.line(question, Printer::read_more).await
    }

    async fn line(
        &mut self,
        question: &str,
        read: fn(Printer, &str) -> io::Result<Option<String>>,
    ) -> Result<String, Stop> {
        let (printer, question) = (self.printer, question.to_owned());
        let reading = tokio::task::spawn_blocking(move || read(printer, &question));
        let answer = tokio::select! {
            answer = reading => answer,
            () = self.signals.stop() => {
                self.printer.note("");
                return Err(self.left());
            }
        };
        match answer {
            Ok(Ok(Some(line))) => Ok(line),
            Ok(Ok(None)) => Err(self.left()),
            Ok(Err(error)) => Err(error.into()),
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }

    /// The end of a dialogue that the user left. Prints whether anything was written.
    fn left(&self) -> Stop {
        self.printer.note(match self.written {
            Written::Nothing => "stopped, nothing was written",
            Written::Something => "stopped, nothing more was written",
        });
        Stop::Left(Exit::Interrupted)
    }

    pub(crate) async fn agrees(&mut self, question: &str) -> Result<bool, Stop> {
        let answer = self.ask(&self.printer.yes_or_no(question)).await?;
        Ok(is_yes(&answer))
    }
}
