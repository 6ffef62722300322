//! Shows on a terminal what a command is waiting for, and since when.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use switchboard::render::words::clean_line;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::printer::Printer;

/// The spinner is shown only if the work takes longer than this.
const SHOW_AFTER: Duration = Duration::from_millis(300);

const STEP: Duration = Duration::from_millis(100);
const FRAMES: [char; 4] = ['◐', '◓', '◑', '◒'];
const WIDTH: usize = 70;

/// The spinner on the last line of the terminal.
#[derive(Clone, Debug)]
pub(crate) struct Spinner {
    printer: Printer,
    /// Whether a question is on the terminal, so that the spinner must not be drawn.
    hidden: Arc<AtomicBool>,
}

impl Spinner {
    pub(crate) fn new(printer: Printer) -> Spinner {
        Spinner { printer, hidden: Arc::default() }
    }

    /// Runs `work`, and shows the text of `stage` meanwhile.
    pub(crate) async fn during<T>(
        &self,
        stage: impl AsyncFn() -> String,
        work: impl Future<Output = T>,
    ) -> T {
        if !self.printer.redraws() {
            return work.await;
        }
        let mut began = Instant::now();
        let mut ticks = interval_at(began + SHOW_AFTER, STEP);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut frames = FRAMES.iter().cycle();
        let mut line = Line { spinner: self, drawn: false };
        tokio::pin!(work);
        loop {
            tokio::select! {
                outcome = &mut work => return outcome,
                _ = ticks.tick() => {}
            }
            if self.hidden.load(Ordering::Relaxed) {
                // The time until the user has answered is not counted.
                began = Instant::now();
            } else if let Some(frame) = frames.next() {
                line.draw(*frame, &stage().await, began.elapsed());
            }
        }
    }

    /// Removes the spinner until the guard is dropped, so that a question can be asked.
    pub(crate) fn hide(&self) -> Hidden {
        self.hidden.store(true, Ordering::Relaxed);
        self.clear();
        Hidden { spinner: self.clone(), answered: false }
    }

    /// Prints data above the spinner.
    pub(crate) fn print(&self, text: &str) -> std::io::Result<()> {
        self.clear();
        self.printer.text(text)
    }

    /// Prints a warning above the spinner.
    pub(crate) fn warn(&self, text: &str) {
        self.clear();
        self.printer.warn(text);
    }

    fn clear(&self) {
        if self.printer.redraws() {
            self.printer.redraw("");
        }
    }
}

/// A guard that hides the spinner until the guard is dropped.
pub(crate) struct Hidden {
    spinner: Spinner,
    answered: bool,
}

impl Hidden {
    /// Declares that the question was answered with Enter, so that the cursor is on a new line.
    pub(crate) fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if !self.answered {
            self.spinner.printer.note("");
        }
        self.spinner.hidden.store(false, Ordering::Relaxed);
    }
}

/// The drawn spinner line. It is cleared on drop, also if the work is cancelled.
struct Line<'s> {
    spinner: &'s Spinner,
    drawn: bool,
}

impl Line<'_> {
    fn draw(&mut self, frame: char, stage: &str, elapsed: Duration) {
        let printer = self.spinner.printer;
        self.drawn = true;
        let stage = clean_line(stage, WIDTH);
        let elapsed = format!("{:.1}s", elapsed.as_secs_f32());
        let palette = printer.err;
        printer.redraw(&format!("{} {stage} {}", palette.name(frame), palette.aside(elapsed)));
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        if self.drawn {
            self.spinner.printer.redraw("");
        }
    }
}
