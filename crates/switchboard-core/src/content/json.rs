//! Handles JSON strings and white space in JSON text, without parsing the text into values.

use std::borrow::Cow;
use std::io;

use serde::de::IgnoredAny;

/// Whether a text is JSON: one value, or several with white space between them.
pub fn is_json(text: &str) -> bool {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>().peekable();
    values.peek().is_some() && values.all(|value| value.is_ok())
}

/// The content of a JSON string, given with its quotes.
pub(super) fn unescaped(quoted: &str) -> Cow<'_, str> {
    let inner = between_quotes(quoted);
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut text = String::new();
    push_unescaped(quoted, &mut text);
    Cow::Owned(text)
}

pub(super) fn between_quotes(quoted: &str) -> &str {
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(quoted)
}

/// Appends the content of a JSON string to `out`. `serde_json` is not used: it would need a second
/// copy, and it rejects an unpaired surrogate, which servers that cut their output do send.
pub(crate) fn push_unescaped(quoted: &str, out: &mut String) {
    let mut rest = between_quotes(quoted);
    // Unescaping never lengthens a text, so one allocation is enough.
    out.reserve(rest.len());
    while let Some((plain, escaped)) = rest.split_once('\\') {
        out.push_str(plain);
        let mut chars = escaped.chars();
        let kind = chars.next().unwrap_or('\\');
        rest = chars.as_str();
        out.push(match kind {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => {
                let (decoded, after) = decode_unit(rest);
                rest = after;
                decoded
            }
            literal => literal,
        });
    }
    out.push_str(rest);
}

/// The character of a `\u` escape, and the text after it. An unpaired surrogate becomes U+FFFD.
fn decode_unit(text: &str) -> (char, &str) {
    let unit = |text: &str| u32::from_str_radix(text.get(..4)?, 16).ok();
    let Some(first) = unit(text) else {
        return (char::REPLACEMENT_CHARACTER, text);
    };
    let after = text.get(4..).unwrap_or_default();
    if let Some(low) = after.strip_prefix("\\u")
        && let Some(second @ 0xdc00..0xe000) = unit(low)
        && (0xd800..0xdc00).contains(&first)
    {
        let joined = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        let decoded = char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER);
        return (decoded, low.get(4..).unwrap_or_default());
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), after)
}

/// Appends a text as a JSON string.
pub fn push_json_string(out: &mut String, text: &str) {
    struct Utf8<'s>(&'s mut String);
    impl io::Write for Utf8<'_> {
        fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
            self.0.push_str(str::from_utf8(piece).map_err(io::Error::other)?);
            Ok(piece.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    out.reserve(text.len() + 2);
    // Nearly all names and most texts contain no character that needs an escape.
    if !text.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        out.push('"');
        out.push_str(text);
        out.push('"');
        return;
    }
    serde_json::to_writer(Utf8(out), text).expect("serde_json writes whole characters");
}

/// The JSON text without white space between tokens; `None` if that is not shorter. Numbers and
/// strings are unchanged.
pub(super) fn compacted(text: &str) -> Option<Box<str>> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let mut is_significant = significant();
    if text.chars().all(|character| is_significant(&character)) {
        return None;
    }
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    Some(text.chars().filter(significant()).collect::<String>().into())
}

/// A filter for the characters of a JSON text, which drops white space between tokens.
pub(super) fn significant() -> impl FnMut(&char) -> bool {
    let mut in_string = false;
    let mut escaped = false;
    move |&character| {
        if in_string {
            let ends = character == '"' && !escaped;
            escaped = character == '\\' && !escaped;
            in_string = !ends;
            return true;
        }
        in_string = character == '"';
        !matches!(character, ' ' | '\t' | '\n' | '\r')
    }
}
