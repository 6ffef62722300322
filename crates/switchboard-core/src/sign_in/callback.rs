//! Validates the OAuth callback: state, issuer, and code or error.

use std::borrow::Cow;
use std::fmt;

use url::form_urlencoded;
use zeroize::Zeroizing;

use crate::render::words::clean_line;

/// The maximum length of a callback. Some authorization codes have a few kilobytes.
const LONGEST: usize = 16 * 1024;

/// The maximum length of an error that is shown, and of its description.
const LONGEST_ERROR: usize = 60;
const LONGEST_DESCRIPTION: usize = 300;

/// The values of an authorization request with which its callback must agree.
pub struct Expected<'a> {
    pub state: &'a str,
    pub issuer: &'a str,
    /// Whether the metadata of the authorization server says that each callback has `iss` (RFC
    /// 9207).
    pub issuer_promised: bool,
}

impl fmt::Debug for Expected<'_> {
    /// The state is omitted, because a callback could be forged with it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expected").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// An authorization code. It is never shown, and erased from memory after use.
#[derive(Clone, PartialEq, Eq)]
pub struct Code(Zeroizing<String>);

impl Code {
    /// Returns the code, for the one token request that needs it.
    pub fn reveal(mut self) -> String {
        std::mem::take(&mut self.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(…)")
    }
}

/// Why a callback does not yield a valid code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallbackError {
    /// The callback belongs to another sign-in, or to none. The sign-in in progress continues.
    #[error("the callback does not match the sign-in in progress")]
    Stray,
    #[error("the callback has no `iss`, which this authorization server always sends")]
    IssuerMissing,
    /// The issuer in the callback is not the expected one. Other parameters are neither used nor
    /// shown.
    #[error("the callback is from another authorization server")]
    IssuerOther,
    #[error("the callback contains `{parameter}` more than once")]
    Repeated { parameter: &'static str },
    #[error(
        "the authorization server refused the request: `{error}`{}",
        in_words(description.as_deref())
    )]
    Denied { error: String, description: Option<String> },
    #[error("the callback has no code")]
    NoCode,
    /// This error is possible only for text that the user pasted.
    #[error(
        "the pasted code has no `iss`, which this authorization server always sends: paste the \
         whole URL"
    )]
    CodeAlone,
}

impl CallbackError {
    /// Whether the user can paste another callback after this error. If the error was found before
    /// any parameter was used, the sign-in continues. If the authorization server refused, the
    /// sign-in ends.
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

/// The code in the query of a callback.
///
/// The state is checked first, then the issuer (RFC 9207). Other parameters are used only after
/// both checks.
pub fn of_query(query: &str, expected: &Expected<'_>) -> Result<Code, CallbackError> {
    if query.len() > LONGEST {
        return Err(CallbackError::Stray);
    }
    // A callback with a repeated state is rejected.
    if only(query, "state").ok().flatten().as_deref() != Some(expected.state) {
        return Err(CallbackError::Stray);
    }
    match only(query, "iss")? {
        // Issuers are compared as text: two spellings of a URL are two issuers.
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

/// The code in pasted text: the URL to which the browser was redirected, its query, or the code
/// alone.
///
/// A code alone has neither state nor issuer. The state need not be checked if the user pasted the
/// code, but the issuer must be checked. So if the authorization server sends `iss`, the whole URL
/// is required.
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
    // The user may have pasted the authorization URL, for example.
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

/// The value of a parameter, which must not be repeated (RFC 6749, section 3.1).
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
