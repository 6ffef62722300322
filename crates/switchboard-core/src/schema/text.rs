//! Makes text of servers safe to display: on one line, without hidden characters, bounded.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

use super::limits;
pub(super) use crate::budget::cut;
use crate::hidden::is_hidden;

/// The longest name or enum value that is shown in full.
const MAX_WORD_BYTES: usize = 200;

/// The largest structured default or constant that is shown.
const LITERAL: limits::JsonLimits = limits::JsonLimits { depth: 16, nodes: 256, bytes: 4096 };

/// Prose on one line: white space becomes a single space, hidden characters are removed.
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

/// The name of a tool: bare if it is plain, otherwise quoted.
pub(super) fn tool_name(text: &str) -> Cow<'_, str> {
    let plain = !text.is_empty()
        && text.len() <= MAX_WORD_BYTES
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    if plain { Cow::Borrowed(text) } else { Cow::Owned(quoted(text)) }
}

/// A property name: bare if it is an identifier, otherwise quoted.
pub(super) fn name(text: &str) -> Cow<'_, str> {
    let identifier = !text.is_empty()
        && text.len() <= MAX_WORD_BYTES
        && !text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_$-".contains(c));
    if identifier { Cow::Borrowed(text) } else { Cow::Owned(quoted(text)) }
}

/// A JSON value on one line; a value that is too large becomes `…`.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        value if LITERAL.admit(value).is_ok() => escape_hidden(&value.to_string()),
        _ => "…".to_owned(),
    }
}

/// A JSON string; hidden characters are escaped, so that a model can still send them.
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
