//! Makes text of servers safe to display: on one line, without hidden characters, and limited in
//! length.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

use super::limits;
pub(super) use crate::budget::cut;
use crate::hidden::is_hidden;

/// The maximum number of bytes of a name or enum value that is not shortened.
const MAX_WORD_BYTES: usize = 200;

/// The maximum size of an array or object that is shown as a default or constant.
const LITERAL: limits::JsonLimits = limits::JsonLimits { depth: 16, nodes: 256, bytes: 4096 };

/// A description on one line. White space in a row becomes one space, and hidden characters are
/// removed.
pub(super) fn prose(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        let start = line.len();
        line.extend(word.chars().filter(|c| !is_hidden(*c)));
        if line.len() > start && start > 0 {
            line.insert(start, ' ');
        }
    }
    line
}

/// The name of a tool. It is quoted if it has unusual characters.
pub(super) fn tool_name(text: &str) -> Cow<'_, str> {
    let plain = !text.is_empty()
        && text.len() <= MAX_WORD_BYTES
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    if plain { Cow::Borrowed(text) } else { Cow::Owned(quoted(text)) }
}

/// The name of a property. It is quoted unless it is an identifier.
pub(super) fn name(text: &str) -> Cow<'_, str> {
    let identifier = !text.is_empty()
        && text.len() <= MAX_WORD_BYTES
        && !text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_$-".contains(c));
    if identifier { Cow::Borrowed(text) } else { Cow::Owned(quoted(text)) }
}

/// A JSON value on one line; `…` for a value that is too large.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        value if LITERAL.admit(value).is_ok() => escape_hidden(&value.to_string()),
        _ => "…".to_owned(),
    }
}

/// A JSON string. Hidden characters are escaped, so that a model can still send them.
fn quoted(text: &str) -> String {
    let shown = text.get(..text.floor_char_boundary(MAX_WORD_BYTES)).unwrap_or_default();
    let mut quoted = escape_hidden(&Value::from(shown).to_string());
    if shown.len() < text.len() {
        quoted.insert(quoted.len() - 1, '…');
    }
    quoted
}

fn escape_hidden(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if is_hidden(c) || c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}
