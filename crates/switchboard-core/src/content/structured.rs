//! Decides whether a text block already tells what `structuredContent` holds.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::{significant, unescaped};

/// Two JSON texts that differ in more than white space are compared as values up to this size.
const MAX_COMPARED_BYTES: usize = 64 << 10;

/// Whether a text block (with its quotes) already tells what `structuredContent` holds.
pub(super) fn says(quoted: &str, json: &str) -> bool {
    // Indentation and escapes make a text longer, but not without end.
    if quoted.len() > json.len() * 16 + 1_024 || json.len() > quoted.len() * 2 + 64 {
        return false;
    }
    let text = unescaped(quoted);
    tells(&text, json) || wrapped(json).is_some_and(|inner| tells(&text, inner))
}

/// Some server frameworks wrap whatever is no object as `{"result": …}`.
fn wrapped(json: &str) -> Option<&str> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wrapped<'a> {
        #[serde(borrow)]
        result: &'a RawValue,
    }
    serde_json::from_str::<Wrapped<'_>>(json).ok().map(|wrapped| wrapped.result.get())
}

fn tells(text: &str, json: &str) -> bool {
    if json.starts_with('"') {
        return text == unescaped(json);
    }
    if text.chars().filter(significant()).eq(json.chars().filter(significant())) {
        return true;
    }
    // Same value in another spelling: order of keys, escapes.
    let text = text.trim_start();
    let alike = text.starts_with(['{', '[']) && text.get(..1) == json.get(..1);
    if !alike || text.len().max(json.len()) > MAX_COMPARED_BYTES {
        return false;
    }
    let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).ok();
    value(text).is_some_and(|text| Some(text) == value(json))
}
