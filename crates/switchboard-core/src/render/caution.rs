//! What a reader should know of a tool before it is called: marks behind its name, and sentences.

use super::words::clean_line;
use crate::catalog::Resolved;
use crate::catalog::pin::Pin;
use crate::name::ServerName;
use crate::reply::ToolLine;

/// Characters of a server's name in a mark.
const NAME: usize = 40;

fn marks(pin: Pin, claims: Option<&ServerName>) -> impl Iterator<Item = String> {
    let claims = claims.map(|server| format!("not of {}", clean_line(server.as_str(), NAME)));
    pin.mark().map(str::to_owned).into_iter().chain(claims)
}

fn sentences(pin: Pin, claims: Option<&ServerName>) -> Vec<String> {
    let of_pin = match pin {
        Pin::Same => None,
        Pin::Changed => Some("its definition changed since it was accepted"),
        Pin::New => Some("it is new since its server was first listed"),
        Pin::Unknown => Some("what it was when it was accepted cannot be read"),
    };
    let claims = claims.map(|server| {
        format!("its own name has the prefix of `{}`", clean_line(server.as_str(), NAME))
    });
    of_pin.map(str::to_owned).into_iter().chain(claims).collect()
}

impl ToolLine {
    /// What stands behind its name in a list.
    pub fn marks(&self) -> impl Iterator<Item = String> {
        marks(self.pin, self.claims.as_ref())
    }

    /// The same in sentences, without a capital or a full stop.
    pub fn cautions(&self) -> Vec<String> {
        sentences(self.pin, self.claims.as_ref())
    }
}

impl Resolved {
    /// What the user should know before approving it.
    pub fn cautions(&self) -> Vec<String> {
        sentences(self.pin, self.claims.as_deref())
    }
}

/// The marks as they follow a name: ` (changed) (not of github)`.
pub(super) fn behind_name(marks: impl Iterator<Item = String>) -> String {
    marks.map(|mark| format!(" ({mark})")).collect()
}
