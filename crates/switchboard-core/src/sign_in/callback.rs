//! Judges what an authority sends the browser back with: whose answer it is, and what it says.

use std::borrow::Cow;
use std::fmt;

use url::form_urlencoded;
use zeroize::Zeroizing;

use crate::render::words::clean_line;

/// What is longer is no answer; long codes are a few kilobytes.
const LONGEST: usize = 16 * 1024;

/// As much of a refusal as is shown.
const LONGEST_ERROR: usize = 60;
const LONGEST_DESCRIPTION: usize = 300;

/// What an authorization was begun with, to judge what comes back.
pub struct Expected<'a> {
    pub state: &'a str,
    pub issuer: &'a str,
    /// Whether the authority says of itself that it names itself in each answer (RFC 9207).
    pub issuer_promised: bool,
}

impl fmt::Debug for Expected<'_> {
    /// Whoever knows the state can answer in place of the authority.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expected").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// What is exchanged for a token, once. Shown to nobody, and wiped when it is no longer needed.
#[derive(Clone, PartialEq, Eq)]
pub struct Code(Zeroizing<String>);

impl Code {
    /// The code itself, for the one request that needs it.
    pub fn reveal(mut self) -> String {
        std::mem::take(&mut self.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(…)")
    }
}

/// Why what came back is no code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallbackError {
    /// It belongs to another sign-in, or to none: this one goes on.
    #[error("this is not the answer to the sign-in that was begun")]
    Stray,
    #[error("the answer does not say which authority it is from, and this one promised to say it")]
    IssuerMissing,
    /// Nothing else that it says is believed, nor shown.
    #[error("the answer is from another authority than the one that was asked")]
    IssuerOther,
    #[error("the answer says `{parameter}` more than once")]
    Repeated { parameter: &'static str },
    #[error("the authority refused: `{error}`{}", in_words(description.as_deref()))]
    Denied { error: String, description: Option<String> },
    #[error("the answer has no code")]
    NoCode,
    /// Only of what was pasted.
    #[error("a code alone does not say whom it is from: the whole address is needed")]
    CodeAlone,
}

impl CallbackError {
    /// Whether the right answer may still come, if it was a person who brought this one. Nothing of
    /// it was used, so whatever was wrong with it harms nobody; a refusal is an answer, too.
    pub fn leaves_it_open(&self) -> bool {
        match self {
            CallbackError::Denied { .. } => false,
            CallbackError::Stray
            | CallbackError::IssuerMissing
            | CallbackError::IssuerOther
            | CallbackError::Repeated { .. }
            | CallbackError::NoCode
            | CallbackError::CodeAlone => true,
        }
    }
}

fn in_words(description: Option<&str>) -> Cow<'static, str> {
    description.map_or(Cow::Borrowed(""), |text| format!(" ({text})").into())
}

/// The code in the query of a redirect.
///
/// First it has to be the answer to what was asked (`state`), then to be from whom it was asked
/// (RFC 9207); only then does it count what it says.
pub fn of_query(query: &str, expected: &Expected<'_>) -> Result<Code, CallbackError> {
    if query.len() > LONGEST {
        return Err(CallbackError::Stray);
    }
    // Two states are as good as none.
    if only(query, "state").ok().flatten().as_deref() != Some(expected.state) {
        return Err(CallbackError::Stray);
    }
    match only(query, "iss")? {
        // As it is written: two spellings of an address are two authorities.
        Some(issuer) if issuer != expected.issuer => return Err(CallbackError::IssuerOther),
        None if expected.issuer_promised => return Err(CallbackError::IssuerMissing),
        Some(_) | None => {}
    }
    if let Some(error) = only(query, "error")? {
        let description = only(query, "error_description")?;
        return Err(CallbackError::Denied {
            error: clean_line(&error, LONGEST_ERROR).into_owned(),
            description: description
                .map(|text| clean_line(&text, LONGEST_DESCRIPTION).into_owned())
                .filter(|text| !text.is_empty()),
        });
    }
    let code = only(query, "code")?.filter(|code| !code.is_empty());
    code.map(|code| Code(Zeroizing::new(code.into_owned()))).ok_or(CallbackError::NoCode)
}

/// The code in what a person pasted: the address that the browser was sent to, its query, or the
/// code alone.
///
/// A code alone says neither what it answers nor who gave it: the person vouches for the first, and
/// nobody for the second, so an authority that names itself has to be pasted with its whole answer.
pub fn of_pasted(text: &str, expected: &Expected<'_>) -> Result<Code, CallbackError> {
    let text = text.trim();
    let after_path = text.split_once('?').map_or(text, |(_, query)| query);
    let query = after_path.split_once('#').map_or(after_path, |(query, _)| query);
    let says = |words: &[&str]| {
        form_urlencoded::parse(query.as_bytes()).any(|(name, _)| words.contains(&&*name))
    };
    if says(&["code", "error"]) {
        return of_query(query, expected);
    }
    // Such as the address that was to be opened.
    if says(&["state", "iss"]) {
        return Err(CallbackError::NoCode);
    }
    let is_code = (1..=LONGEST).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && !text.contains("://");
    match (is_code, expected.issuer_promised) {
        (false, _) => Err(CallbackError::NoCode),
        (true, true) => Err(CallbackError::CodeAlone),
        (true, false) => Ok(Code(Zeroizing::new(text.to_owned()))),
    }
}

/// The value of a parameter that may stand there once (RFC 6749, section 3.1).
fn only<'q>(
    query: &'q str,
    parameter: &'static str,
) -> Result<Option<Cow<'q, str>>, CallbackError> {
    let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == parameter);
    let value = values.next().map(|(_, value)| value);
    match values.next() {
        None => Ok(value),
        Some(_) => Err(CallbackError::Repeated { parameter }),
    }
}

#[cfg(test)]
mod tests;
