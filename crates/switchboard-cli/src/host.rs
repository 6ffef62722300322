//! The user at the terminal, who approves calls and answers server-to-client requests.

use switchboard::approval::{ApprovalAnswer, Question, pattern_of};
use switchboard::catalog::EntryKind;
use switchboard::exact::Args;
use switchboard::failure::Hint;
use switchboard::host::{Abilities, CannotAsk, Host, HostFuture, ServerQuestion};
use switchboard::render::words::{bytes, clean_block, clean_line, visible, visible_json};
use switchboard_wire::{Raw, RpcError};
use tokio::sync::Semaphore;

use crate::boot::capabilities;
use crate::printer::{Printer, is_yes};
use crate::report;
use crate::server_question;
use crate::spinner::Spinner;

/// The maximum number of bytes of the arguments that a question shows.
const SHOWN_BYTES: usize = 4 * 1024;

/// Asks the user at the terminal. Without a terminal, only `--yes` approves calls.
pub(crate) struct Terminal {
    pub(crate) printer: Printer,
    pub(crate) spinner: Spinner,
    pub(crate) consent: Consent,
    /// Allows only one question to the user at a time.
    asking: Semaphore,
}

impl Terminal {
    pub(crate) fn new(printer: Printer, spinner: Spinner, consent: Consent) -> Terminal {
        Terminal { printer, spinner, consent, asking: Semaphore::new(1) }
    }
}

/// Whether calls are approved in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    Ask,
    /// `--yes` approves in advance.
    Given,
}

impl Host for Terminal {
    fn approve<'a>(
        &'a self,
        question: &'a Question,
    ) -> HostFuture<'a, Result<ApprovalAnswer, CannotAsk>> {
        if self.consent == Consent::Given {
            return Box::pin(std::future::ready(Ok(ApprovalAnswer::Once)));
        }
        if !self.printer.can_ask() {
            return Box::pin(std::future::ready(Err(CannotAsk::NoUser)));
        }
        Box::pin(async move {
            let _alone = self.asking.acquire().await;
            let hidden = self.spinner.hide();
            let printer = self.printer;
            printer.note(&described(question, printer));
            let question_line = printer.yes_or_no("Call it?");
            let answer = tokio::task::spawn_blocking(move || printer.ask(&question_line)).await;
            hidden.answered();
            let Ok(Ok(typed)) = answer else { return Err(CannotAsk::NoUser) };
            if !is_yes(&typed) {
                return Ok(ApprovalAnswer::No);
            }
            let hint = Hint::Allow(pattern_of(question.target()));
            printer.note(&report::hint(&hint, printer.err));
            Ok(ApprovalAnswer::Once)
        })
    }

    fn abilities(&self) -> Abilities {
        capabilities(self.printer).abilities()
    }

    fn answer<'a>(&'a self, question: ServerQuestion<'a>) -> HostFuture<'a, Result<Raw, RpcError>> {
        Box::pin(async move {
            let _alone = self.asking.acquire().await;
            if !self.printer.can_ask() {
                return Err(question.topic.refused());
            }
            let hidden = self.spinner.hide();
            let answer = server_question::ask(&question, self.printer).await;
            hidden.answered();
            answer
        })
    }
}

fn described(question: &Question, printer: Printer) -> String {
    let palette = printer.err;
    let target = question.target();
    let mut text = format!(
        "{}\n  server     {}\n  tool       {}\n  arguments  {}",
        palette.warning("This call needs your approval:"),
        palette.name(clean_line(target.server.as_str(), 200)),
        palette.name(clean_line(target.entry.name.as_str(), 200)),
        shown_arguments(question.args()),
    );
    if let EntryKind::Resource { uri, .. } = &target.entry.kind {
        text.push_str(&format!("\n  reads      {}", clean_line(&visible(uri), SHOWN_BYTES)));
    }
    for caution in target.cautions() {
        text.push_str(&format!("\n  {} {caution}", palette.warning("attention:")));
    }
    text
}

/// The arguments as the server receives them. Invisible characters are escaped, not removed.
fn shown_arguments(args: &Args) -> String {
    let args = serde_json::to_string_pretty(args).unwrap_or_default();
    let args = visible_json(&args);
    let mut shown = clean_block(&args, SHOWN_BYTES).replace('\n', "\n             ");
    if args.len() > SHOWN_BYTES {
        shown.push_str(&format!("\n  ({} of arguments, not all are shown)", bytes(args.len())));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_in_approval_questions_are_escaped() {
        let shown = |json: &str| shown_arguments(&Args::parse(json).unwrap());
        assert_eq!(
            shown("{\"pa\u{200b}th\":\"no\u{2060}tes\u{3164}.txt\"}"),
            "{\n               \"pa\\u{200b}th\": \"no\\u{2060}tes\\u{3164}.txt\"\n             }"
        );
        let long = shown(&format!("{{\"a\":\"{}\"}}", "\u{200b}".repeat(1_000)));
        assert!(long.ends_with("(7.8 KiB of arguments, not all are shown)"), "{long}");
    }
}
