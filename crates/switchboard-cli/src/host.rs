//! The person at the terminal, who is asked before a call that a rule asks about.

use switchboard::approval::{Answer, Question, pattern_of};
use switchboard::catalog::Kind;
use switchboard::failure::Hint;
use switchboard::host::{Asked, CannotAsk, Host};
use switchboard::render::words::{bytes, clean_block, clean_line, visible, visible_json};

use crate::printer::Printer;
use crate::report;
use crate::spinner::Spinner;

/// As much of the arguments as a question shows.
const SHOWN_BYTES: usize = 4 * 1024;

/// Asks on the terminal; without one, nothing is approved.
pub(crate) struct Terminal {
    pub(crate) printer: Printer,
    pub(crate) spinner: Spinner,
    pub(crate) consent: Consent,
}

/// Who answers the questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    Ask,
    /// `--yes` answered beforehand.
    Given,
}

impl Host for Terminal {
    fn approve<'a>(&'a self, question: &'a Question) -> Asked<'a, Result<Answer, CannotAsk>> {
        if self.consent == Consent::Given {
            return Box::pin(std::future::ready(Ok(Answer::Once)));
        }
        if !self.printer.can_ask() {
            return Box::pin(std::future::ready(Err(CannotAsk::NobodyThere)));
        }
        Box::pin(async move {
            let hidden = self.spinner.hide();
            let printer = self.printer;
            printer.note(&described(question, printer));
            let asked = format!("Call it? {}", printer.err.aside(CHOICES));
            let answer = tokio::task::spawn_blocking(move || printer.ask(&asked)).await;
            hidden.answered();
            let answer = match answer {
                Ok(Ok(typed)) => answer_of(&typed),
                Ok(Err(_)) | Err(_) => return Err(CannotAsk::NobodyThere),
            };
            if answer != Answer::No {
                let hint = Hint::Allow(pattern_of(question.target()));
                printer.note(&report::hint(&hint, printer.err));
            }
            Ok(answer)
        })
    }
}

const CHOICES: &str = "[y = once, t = this tool, s = this server, while this command runs; N]";

/// Anything but a clear yes is a no.
fn answer_of(typed: &str) -> Answer {
    match typed {
        "y" | "Y" => Answer::Once,
        "t" | "T" => Answer::Tool,
        "s" | "S" => Answer::Server,
        _ => Answer::No,
    }
}

fn described(question: &Question, printer: Printer) -> String {
    let palette = printer.err;
    let target = question.target();
    let args = serde_json::to_string_pretty(question.args()).unwrap_or_default();
    // The user approves what the server gets: cleaning would leave out characters of it.
    let args = visible_json(&args);
    let shown = clean_block(&args, SHOWN_BYTES);
    let mut text = format!(
        "{}\n  server     {}\n  tool       {}\n  arguments  {}",
        palette.warning("This call needs your approval:"),
        palette.name(clean_line(target.server.as_str(), 200)),
        palette.name(clean_line(target.entry.name.as_str(), 200)),
        shown.replace('\n', "\n             "),
    );
    if let Kind::Resource { uri } = &target.entry.kind {
        text.push_str(&format!("\n  reads      {}", clean_line(&visible(uri), SHOWN_BYTES)));
    }
    if args.len() > SHOWN_BYTES {
        text.push_str(&format!("\n  ({} of arguments, not all are shown)", bytes(args.len())));
    }
    for caution in target.cautions() {
        text.push_str(&format!("\n  {} {caution}", palette.warning("attention:")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_word_is_a_yes() {
        let check = |typed: &str, expected| assert_eq!(answer_of(typed), expected, "{typed:?}");
        check("y", Answer::Once);
        check("T", Answer::Tool);
        check("s", Answer::Server);
        for typed in ["", "n", "yes please", "always", "yy"] {
            check(typed, Answer::No);
        }
    }
}
