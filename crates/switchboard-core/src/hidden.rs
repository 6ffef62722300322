//! Hidden text: characters that users do not see but models read.
//!
//! Texts of servers pass [`strip`] or [`strip_json`] when they arrive, so that every face gets them
//! without hidden characters. Characters that scripts and emoji need are kept: a joiner between
//! letters of Persian or Hindi, or the variation selector of ❤️.

mod characters;
mod excess;

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

pub use self::characters::is_hidden;
use self::characters::{flag_length, is_needed};
pub(crate) use self::characters::{is_bidi, is_invisible, is_private};
use self::excess::excess;
use crate::content::{push_json_string, push_unescaped};
use crate::exact::Args;
use crate::render::words::plural;

/// The key in `_meta` of a result or a tool. Its value is the number of hidden characters, both
/// removed and kept.
pub const MARK: &str = "switchboard/hiddenCharacters";

/// The maximum number of hidden characters that a message shows.
const REVEALED: usize = 120;

/// The hidden characters of a text, counted and in readable form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    pub characters: usize,
    /// The number of private-use characters. They are not removed.
    pub private: usize,
    /// The number of characters that scripts need but that are suspiciously many. They are not
    /// removed.
    pub excess: usize,
    /// The hidden characters in readable form: short, and only ASCII.
    pub text: Box<str>,
}

impl Hidden {
    /// The number of hidden characters that were removed.
    pub fn left_out(&self) -> usize {
        self.characters - self.private - self.excess
    }

    /// The number of hidden characters, without those that are normal in data: many blanks and
    /// joiners.
    pub fn in_data(&self) -> usize {
        self.characters - self.excess
    }

    /// Whether hidden characters were removed.
    pub fn is_left_out(&self) -> bool {
        self.left_out() > 0
    }
}

impl fmt::Display for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({})", self.text, plural(self.characters, "character"))
    }
}

/// The text without its hidden characters.
pub fn strip(text: &str) -> Cow<'_, str> {
    // Nearly all texts consist of printable ASCII and have no hidden characters.
    if is_plain(text) || hidden(text).next().is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (at, c) in hidden(text) {
        out.push_str(&text[from..at]);
        from = at + c.len_utf8();
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

/// The hidden characters of a text; `None` if it has none.
pub fn find(text: &str) -> Option<Hidden> {
    if is_plain(text) {
        return None;
    }
    reveal(found(text).into_iter())
}

/// The JSON without the hidden characters in its strings, including names of members. All other
/// bytes are unchanged.
pub fn strip_json(json: &str) -> Cow<'_, str> {
    if is_plain_json(json) {
        return Cow::Borrowed(json);
    }
    let mut out = String::new();
    let mut from = 0;
    for (at, literal, text) in strings(json) {
        let Cow::Owned(stripped) = strip(&text) else { continue };
        out.push_str(&json[from..at]);
        match text {
            // The escapes decode to visible characters, so they are written unchanged.
            Cow::Borrowed(_) => out.push_str(&format!("\"{stripped}\"")),
            Cow::Owned(_) => push_json_string(&mut out, &stripped),
        }
        from = at + literal.len();
    }
    if from == 0 {
        return Cow::Borrowed(json);
    }
    out.push_str(&json[from..]);
    Cow::Owned(out)
}

/// The hidden characters in the strings of a JSON text; `None` if it has none.
pub fn find_json(json: &str) -> Option<Hidden> {
    if is_plain_json(json) {
        return None;
    }
    reveal(strings(json).flat_map(|(_, _, text)| found(&text)))
}

/// The result with the number of its hidden characters in `_meta`; `None` if it has none. Otherwise
/// the result is unchanged, because it is data.
pub fn marked_result(json: &str) -> Option<String> {
    let characters = find_json(json)?.in_data();
    if characters == 0 { None } else { with_mark(json, characters) }
}

/// The object with the number of hidden characters in its `_meta`; `None` if the JSON is not an
/// object.
pub fn with_mark(json: &str, characters: usize) -> Option<String> {
    with_meta(json, MARK, Value::from(characters))
}

/// The object with another member in its `_meta`; `None` if the JSON is not an object.
pub fn with_meta(json: &str, key: &str, value: Value) -> Option<String> {
    let mut object = Args::parse(json).ok()?;
    let mut meta = Args::default();
    if let Some(present) = object.take("_meta").and_then(|meta| Args::try_from(meta).ok()) {
        meta = present;
    }
    meta.insert(key, value);
    object.insert("_meta", meta);
    Some(object.to_string())
}

/// Whether a text consists only of printable ASCII, line breaks and tabs.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t'))
}

/// Whether a JSON text consists only of printable ASCII, and has no escapes of other characters. It
/// then has no hidden characters.
fn is_plain_json(json: &str) -> bool {
    /// How many bytes are checked without an early exit, so that the compiler vectorizes the loop.
    const STEP: usize = 16 << 10;
    let bytes = json.as_bytes();
    let follows = |at: usize| bytes.get(at + 1..).unwrap_or_default();
    bytes.chunks(STEP).enumerate().all(|(step, chunk)| {
        let pairs = chunk.iter().zip(follows(step * STEP));
        !pairs.fold(false, |seen, (byte, next)| {
            let escapes = matches!(next, b'u' | b'b' | b'f' | b'r');
            seen | (*byte >= 0x7f) | ((*byte == b'\\') & escapes)
        })
    }) && bytes.last().is_none_or(|last| *last < 0x7f)
}

/// Whether a JSON text has an escape that may decode to a hidden character.
fn escapes_hide(json: &str) -> bool {
    let bytes = json.as_bytes();
    memchr::memchr_iter(b'\\', bytes)
        .any(|at| matches!(bytes.get(at + 1), Some(b'u' | b'b' | b'f' | b'r')))
}

/// The string literals of a JSON text that may have hidden characters: offset, literal and value.
/// If no escape may decode to a hidden character, the value still has its escapes.
fn strings(json: &str) -> impl Iterator<Item = (usize, &str, Cow<'_, str>)> {
    let bytes = json.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + memchr::memchr(b'"', bytes.get(at..)?)?;
            let mut end = start + 1;
            loop {
                end += memchr::memchr2(b'"', b'\\', bytes.get(end..)?)?;
                if bytes[end] == b'"' {
                    break;
                }
                end += 2;
            }
            at = end + 1;
            let literal = json.get(start..at)?;
            if is_plain_json(literal) {
                continue;
            }
            if !escapes_hide(literal) && !literal.contains(CSI) {
                return Some((start, literal, Cow::Borrowed(&literal[1..literal.len() - 1])));
            }
            // serde_json rejects a lone surrogate. The rest of the string would then be unchecked.
            let mut text = String::new();
            push_unescaped(literal, &mut text);
            return Some((start, literal, Cow::Owned(text)));
        }
    })
}

/// Why a character is reported, or why it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finding {
    LeftOut,
    Private,
    Excess,
    /// The character is not reported, because its neighbours need it.
    Needed,
}

/// The characters of a text to report, each with the reason.
fn found(text: &str) -> Vec<(Finding, char)> {
    let (needed, found): (Vec<_>, Vec<_>) =
        classified(text).partition(|(_, _, finding)| *finding == Finding::Needed);
    let needed: Vec<(usize, char)> = needed.into_iter().map(|(at, c, _)| (at, c)).collect();
    let excess = excess(text, &needed).into_iter().map(|c| (Finding::Excess, c));
    found.into_iter().map(|(_, c, finding)| (finding, c)).chain(excess).collect()
}

/// The characters of a text to remove, each with its offset.
fn hidden(text: &str) -> impl Iterator<Item = (usize, char)> {
    let left_out = classified(text).filter(|(_, _, finding)| *finding == Finding::LeftOut);
    left_out.map(|(at, c, _)| (at, c))
}

/// The characters of a text that are hidden, for private use or needed by their neighbours. Each
/// has its offset and finding.
fn classified(text: &str) -> impl Iterator<Item = (usize, char, Finding)> {
    let mut before = None;
    let mut chars = text.char_indices().peekable();
    let (mut sequence_end, mut flag_end) = (0, 0);
    std::iter::from_fn(move || {
        loop {
            let (at, c) = chars.next()?;
            let after = chars.peek().map(|(_, c)| *c);
            if at < sequence_end {
                return Some((at, c, Finding::LeftOut));
            }
            if at < flag_end {
                continue;
            }
            let is_needed = is_hidden(c) && is_needed(before, c, after);
            if is_hidden(c) && !is_needed {
                let rest = &text[at..];
                let after = after_sequence(rest).or_else(|| after_string(rest));
                sequence_end = text.len() - after.map_or(rest.len(), str::len);
                return Some((at, c, Finding::LeftOut));
            }
            before = Some(c);
            flag_end = at + flag_length(&text[at..]);
            if is_needed {
                return Some((at, c, Finding::Needed));
            }
            if is_private(c) {
                return Some((at, c, Finding::Private));
            }
        }
    })
}

/// The control character that, like `ESC [`, begins a control sequence.
const CSI: char = '\u{9b}';

/// The text after the control sequence that `text` begins with, such as `ESC [ 31 m`, which
/// terminals do not show. `None` if it begins with none.
pub(crate) fn after_sequence(text: &str) -> Option<&str> {
    const LONGEST: usize = 32;
    let body = text.strip_prefix("\u{1b}[").or_else(|| text.strip_prefix(CSI))?;
    let end = body.bytes().take(LONGEST).position(|byte| !matches!(byte, 0x20..=0x3f))?;
    let is_final = body.as_bytes().get(end).is_some_and(|byte| matches!(byte, 0x40..=0x7e));
    if is_final { body.get(end + 1..) } else { None }
}

/// The text after the control string that `text` begins with, such as `ESC ] 0;title BEL`, which
/// sets a title or a link. `None` if it begins with none.
fn after_string(text: &str) -> Option<&str> {
    const LONGEST: usize = 1024;
    const ENDS: [&str; 3] = ["\u{7}", "\u{1b}\\", "\u{9c}"];
    let body = match text.strip_prefix('\u{1b}') {
        Some(rest) => rest.strip_prefix([']', 'P', 'X', '^', '_'])?,
        None => text.strip_prefix(['\u{9d}', '\u{90}', '\u{98}', '\u{9e}', '\u{9f}'])?,
    };
    let found = ENDS.iter().filter_map(|end| Some((body.find(end)?, end.len())));
    let (at, length) = found.min().filter(|(at, _)| *at <= LONGEST)?;
    body.get(at + length..)
}

/// Converts hidden characters to readable form. Tags and selectors are shown as the bytes that they
/// encode, all other characters by code point.
fn reveal(characters: impl Iterator<Item = (Finding, char)>) -> Option<Hidden> {
    let (mut count, mut private, mut excess, mut text) = (0, 0, 0, String::new());
    let mut room = REVEALED;
    for (finding, c) in characters {
        count += 1;
        private += usize::from(finding == Finding::Private);
        excess += usize::from(finding == Finding::Excess);
        let code = u32::from(c);
        let byte = match code {
            // The character is part of a control sequence.
            0x20..=0x7e => u8::try_from(code).ok(),
            0xe0020..=0xe007e => u8::try_from(code - 0xe0000).ok(),
            0xfe00..=0xfe0f => u8::try_from(code - 0xfe00).ok(),
            0xe0100..=0xe01ef => u8::try_from(code - 0xe0100 + 16).ok(),
            _ => None,
        };
        let shown = match byte {
            Some(byte @ 0x20..=0x7e) => char::from(byte).to_string(),
            Some(_) | None => format!("<U+{code:04X}>"),
        };
        if let Some(left) = room.checked_sub(shown.len()) {
            room = left;
            text.push_str(&shown);
        } else if !text.ends_with('…') {
            room = 0;
            text.push('…');
        }
    }
    (count > 0).then_some(Hidden { characters: count, private, excess, text: text.into() })
}

#[cfg(test)]
mod tests;
