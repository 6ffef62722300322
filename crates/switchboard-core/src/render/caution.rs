//! Warnings about tools, prompts and instructions, in two forms: short marks after a name, and
//! sentences.

use super::words::clean_line;
use crate::catalog::Resolved;
use crate::catalog::pin::Pin;
use crate::hidden::Hidden;
use crate::name::ServerName;
use crate::reply::ToolLine;

/// The mark of a definition from which hidden text was removed.
const HIDDEN_TEXT: &str = "hidden text";

/// The maximum length of a server's name in a mark.
const NAME: usize = 40;

/// The mark of a definition that has characters of private use.
const PRIVATE_USE: &str = "private-use characters";

/// The mark of a definition with suspiciously many invisible characters. They are not removed.
const EXCESS: &str = "many invisible characters";

/// The mark of a definition with these hidden characters.
pub fn of_hidden(hidden: &Hidden) -> &'static str {
    match hidden.is_left_out() {
        true => HIDDEN_TEXT,
        false if hidden.excess > 0 => EXCESS,
        false => PRIVATE_USE,
    }
}

/// The warnings about the definition of a tool or prompt, as clauses.
pub(crate) fn sentences(
    pin: Pin,
    claims: Option<&ServerName>,
    hidden: Option<&Hidden>,
) -> Vec<String> {
    let of_pin = match pin {
        Pin::Same => None,
        Pin::Changed => Some("its definition changed since it was pinned"),
        Pin::New => Some("it is new since its server was first listed"),
        Pin::Unknown => Some("its pin cannot be read"),
    };
    let claims = claims.map(|server| {
        format!("its own name has the prefix of `{}`", clean_line(server.as_str(), NAME))
    });
    let hidden = hidden.map(|hidden| match hidden.is_left_out() {
        true => "hidden text was left out of its definition".to_owned(),
        false if hidden.excess > 0 => "its definition has many invisible characters".to_owned(),
        false => "its definition has characters of private use".to_owned(),
    });
    of_pin.map(str::to_owned).into_iter().chain(claims).chain(hidden).collect()
}

impl ToolLine {
    /// The marks that follow the name of the tool in a list.
    pub fn marks(&self) -> impl Iterator<Item = String> {
        let server = self.claims.as_ref().map(|server| clean_line(server.as_str(), NAME));
        let claims = server.map(|server| format!("not of {server}"));
        let hidden = self.hidden.as_ref().map(|hidden| of_hidden(hidden).to_owned());
        self.pin.mark().map(str::to_owned).into_iter().chain(claims).chain(hidden)
    }

    /// The warnings about the tool, as clauses without initial capital and full stop.
    pub fn cautions(&self) -> Vec<String> {
        sentences(self.pin, self.claims.as_ref(), self.hidden.as_ref())
    }
}

impl Resolved {
    /// The warnings that a user sees before approving a call of the tool.
    pub fn cautions(&self) -> Vec<String> {
        sentences(self.pin, self.claims.as_deref(), self.entry.hidden.as_deref())
    }
}

/// The warnings about the instructions of a server, as clauses.
pub fn of_instructions(pin: Pin, hidden: Option<&Hidden>) -> Vec<String> {
    let of_pin = match pin {
        Pin::Same => None,
        Pin::Changed => Some("these instructions changed since they were pinned"),
        Pin::New => Some("these instructions are new since the server was first listed"),
        Pin::Unknown => Some("the pin of these instructions cannot be read"),
    };
    let hidden = hidden.map(|hidden| match hidden.is_left_out() {
        true => "hidden text was left out",
        false if hidden.excess > 0 => "these instructions have many invisible characters",
        false => "these instructions have characters of private use",
    });
    of_pin.into_iter().chain(hidden).map(str::to_owned).collect()
}

/// The marks in brackets, as they follow a name: ` (changed) (not of github)`.
pub(crate) fn behind_name(marks: impl Iterator<Item = String>) -> String {
    marks.map(|mark| format!(" ({mark})")).collect()
}
