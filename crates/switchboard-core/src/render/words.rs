//! Text functions for all replies: numbers, lists, sizes, and making text of servers safe to
//! display.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use crate::hidden::{after_sequence, is_bidi, is_hidden, is_invisible, is_private};

/// A number with its noun: `1 tool`, `3 tools`, `1,200 matches`.
pub fn plural(count: usize, noun: &str) -> String {
    let count_text = thousands(count);
    if count == 1 {
        return format!("{count_text} {noun}");
    }
    if let Some(stem) = noun.strip_suffix('y')
        && !stem.ends_with(['a', 'e', 'i', 'o', 'u'])
    {
        return format!("{count_text} {stem}ies");
    }
    let hisses = ["s", "x", "z", "ch", "sh"].iter().any(|end| noun.ends_with(end));
    format!("{count_text} {noun}{}", if hisses { "es" } else { "s" })
}

/// A list such as `a, b and c`. Items beyond `cap` are counted: `a, b and 3 more`.
pub fn list<T: AsRef<str>>(items: &[T], cap: usize) -> String {
    let shown = items.len().min(cap);
    let more = items.len() - shown;
    let mut out = String::new();
    for (index, item) in items.iter().take(shown).enumerate() {
        if index > 0 {
            out.push_str(if more == 0 && index + 1 == shown { " and " } else { ", " });
        }
        out.push_str(item.as_ref());
    }
    if more > 0 {
        let and = if shown > 0 { " and " } else { "" };
        let _ = write!(out, "{and}{} more", thousands(more));
    }
    out
}

/// A number with separators: `12,345`.
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A size: `512 B`, `1.5 KiB`, `10.0 MiB`.
pub fn bytes(count: usize) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut size = count as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would be printed as `1024.0`.
    while size >= 1023.95 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS.get(unit).copied().unwrap_or("TiB"))
}

/// A duration in its largest whole unit: `250ms`, `3s`, `2m`, `5h`, `3d`.
pub fn duration(took: Duration) -> String {
    match took.as_secs() {
        0 => format!("{}ms", took.as_millis()),
        seconds @ 1..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..86_400 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// How long ago an event was, as `just now` or `3s ago`.
pub fn ago(since: Duration) -> String {
    if since.is_zero() { "just now".to_owned() } else { format!("{} ago", duration(since)) }
}

/// Makes a text safe to display on one line of at most `max` characters, in terminals, logs and
/// metadata.
///
/// White space in a row becomes one space. Colours and invisible characters are removed. Characters
/// that could move the cursor or reorder the line are shown as escapes.
pub fn clean_line(text: &str, max: usize) -> Cow<'_, str> {
    // A fast path for printable ASCII, because servers send nearly nothing else.
    let plain = text.len() <= max
        && text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && !text.contains("  ")
        && !text.starts_with(' ')
        && !text.ends_with(' ');
    if plain {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut width = 0;
    let mut gap = false;
    for atom in atoms(text) {
        let is_space = match atom {
            Atom::Newline => true,
            Atom::Keep(kept) => kept.is_whitespace(),
            Atom::Escape(_) => false,
        };
        if is_space {
            gap = !out.is_empty();
            continue;
        }
        if gap {
            out.push(' ');
            width += 1;
            gap = false;
        }
        width += atom.push_to(&mut out);
        if width > max {
            let keep = out.char_indices().nth(max.saturating_sub(1)).map_or(0, |(at, _)| at);
            out.truncate(keep);
            if max > 0 {
                out.push('…');
            }
            break;
        }
    }
    Cow::Owned(out)
}

/// Makes a text safe to display like [`clean_line`], in at most `max_bytes`. Line breaks and tabs
/// are preserved.
pub fn clean_block(text: &str, max_bytes: usize) -> Cow<'_, str> {
    let plain = text.len() <= max_bytes
        && text.bytes().all(|byte| matches!(byte, b'\n' | b'\t' | 0x20..0x7f));
    if plain {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for atom in atoms(text) {
        match atom {
            Atom::Newline => out.push('\n'),
            Atom::Keep(separator @ ('\u{2028}' | '\u{2029}')) => {
                Atom::Escape(separator).push_to(&mut out);
            }
            Atom::Keep(_) | Atom::Escape(_) => {
                atom.push_to(&mut out);
            }
        }
        if out.len() > max_bytes {
            out.truncate(out.floor_char_boundary(max_bytes.saturating_sub('…'.len_utf8())));
            if max_bytes >= '…'.len_utf8() {
                out.push('…');
            }
            break;
        }
    }
    Cow::Owned(out)
}

/// The text with every character visible: control characters, invisible characters and unusual
/// blanks are escaped. Quotes and backslashes are unchanged.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\'' | '\\' => out.push(c),
            // `escape_debug` writes NUL as `\0`, which is clear.
            c if is_unseen(c) && c != '\0' => out.extend(c.escape_unicode()),
            c => out.extend(c.escape_debug()),
        }
    }
    out
}

/// JSON for approval, with every character visible: hidden and private-use characters and unusual
/// blanks are escaped.
///
/// Different JSON gives different text, because a backslash in a JSON string is always doubled.
/// Line breaks are unchanged, because they stand only outside of strings. Combining marks are
/// unchanged too, because Hindi or Thai would be illegible with escapes.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| c != '\n' && (is_unseen(c) || is_private(c));
    if !json.contains(is_escaped) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_escaped(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Whether a character is invisible or looks like a space.
pub(crate) fn is_unseen(c: char) -> bool {
    is_hidden(c) || (c.is_whitespace() && c != ' ')
}

/// How one character of a text is displayed.
#[derive(Clone, Copy)]
enum Atom {
    /// A line break: `\n` or `\r\n`.
    Newline,
    Keep(char),
    Escape(char),
}

impl Atom {
    /// Appends the character; returns the number of characters that were appended.
    fn push_to(self, out: &mut String) -> usize {
        match self {
            Atom::Newline => out.push('\n'),
            Atom::Keep(kept) => out.push(kept),
            Atom::Escape(bad) => {
                out.extend(bad.escape_default());
                return bad.escape_default().len();
            }
        }
        1
    }
}

fn atoms(text: &str) -> impl Iterator<Item = Atom> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            if let Some(after) = after_sequence(rest) {
                rest = after;
                continue;
            }
            if let Some(after) = rest.strip_prefix("\r\n") {
                rest = after;
                return Some(Atom::Newline);
            }
            let mut chars = rest.chars();
            let next = chars.next()?;
            rest = chars.as_str();
            if is_invisible(next) {
                continue;
            }
            return Some(match next {
                '\n' => Atom::Newline,
                '\t' => Atom::Keep('\t'),
                _ if next.is_control() || is_bidi(next) => Atom::Escape(next),
                _ => Atom::Keep(next),
            });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counts_lists_sizes_and_durations_are_formatted() {
        let check = |shown: String, expected: &str| assert_eq!(shown, expected);
        check(plural(0, "tool"), "0 tools");
        check(plural(1, "tool"), "1 tool");
        check(plural(1_200, "match"), "1,200 matches");
        check(plural(2, "entry"), "2 entries");
        check(plural(2, "day"), "2 days");
        check(list::<&str>(&[], 3), "");
        check(list(&["a"], 3), "a");
        check(list(&["a", "b", "c"], 3), "a, b and c");
        check(list(&["a", "b", "c", "d"], 2), "a, b and 2 more");
        check(list(&["a", "b"], 0), "2 more");
        check(thousands(999), "999");
        check(thousands(1_000), "1,000");
        check(thousands(1_234_567), "1,234,567");
        check(bytes(1_023), "1023 B");
        check(bytes(1_536), "1.5 KiB");
        check(bytes((1 << 20) - 1), "1.0 MiB");
        check(bytes(10 << 20), "10.0 MiB");
        check(duration(Duration::from_millis(250)), "250ms");
        check(duration(Duration::from_secs(3)), "3s");
        check(duration(Duration::from_secs(150)), "2m");
        check(duration(Duration::from_secs(7_200)), "2h");
        check(duration(Duration::from_secs(200_000)), "2d");
    }

    /// Threat T20: special characters that a server may put into a name, a description or an error.
    #[test]
    fn dangerous_characters_are_removed_or_escaped() {
        let check = |text: &str, line: &str, block: &str| {
            assert_eq!(clean_line(text, 200), line, "line of {text:?}");
            assert_eq!(clean_block(text, 200), block, "block of {text:?}");
        };
        check("plain", "plain", "plain");
        check("a\nb\tc", "a b c", "a\nb\tc");
        check("a\r\nb", "a b", "a\nb");
        check("  a \n\n  b ", "a b", "  a \n\n  b ");
        check("safe\rEVIL", "safe\\rEVIL", "safe\\rEVIL");
        check("\u{1b}[31mred\u{1b}[0m", "red", "red");
        check("\u{1b}[2J\u{1b}[1;1Hgone", "gone", "gone");
        check(
            "\u{1b}]8;;http://x\u{7}y",
            "\\u{1b}]8;;http://x\\u{7}y",
            "\\u{1b}]8;;http://x\\u{7}y",
        );
        check("\u{1b}Pq\u{1b}\\", "\\u{1b}Pq\\u{1b}\\", "\\u{1b}Pq\\u{1b}\\");
        check("\u{1b}\u{1b}[0m[31mx", "\\u{1b}[31mx", "\\u{1b}[31mx");
        check("\u{1b}[31", "\\u{1b}[31", "\\u{1b}[31");
        check("\u{9b}31mx\u{8}\0\u{7f}", "x\\u{8}\\u{0}\\u{7f}", "x\\u{8}\\u{0}\\u{7f}");
        check(
            "a\u{202e}b\u{2066}c\u{200f}",
            "a\\u{202e}b\\u{2066}c\\u{200f}",
            "a\\u{202e}b\\u{2066}c\\u{200f}",
        );
        check("a\u{200b}b\u{feff}c\u{2060}d", "abcd", "abcd");
        check("hi\u{e0001}\u{e0068}\u{e0069}\u{e007f}", "hi", "hi");
        check("x\u{fe0f}y\u{e0100}", "xy", "xy");
        check("a\u{2028}b", "a b", "a\\u{2028}b");
        check("naïve 漢字 🦀", "naïve 漢字 🦀", "naïve 漢字 🦀");
    }

    #[test]
    fn text_to_approve_shows_hidden_characters_as_escapes() {
        let check = |text: &str, expected: &str| assert_eq!(visible(text), expected, "{text:?}");
        check(r#"sh -c "a\b" 'c'"#, r#"sh -c "a\b" 'c'"#);
        check("größe 漢字", "größe 漢字");
        check("a\u{a0}b\u{3000}c\u{2800}d", r"a\u{a0}b\u{3000}c\u{2800}d");
        check("\u{3164}\u{115f}\u{200b}", r"\u{3164}\u{115f}\u{200b}");
        check("a\u{202e}b\u{1b}[2J\n", r"a\u{202e}b\u{1b}[2J\u{a}");
    }

    #[test]
    fn json_to_approve_shows_every_hidden_character() {
        let hidden: Vec<char> = ('\0'..=char::MAX).filter(|c| is_hidden(*c)).collect();
        for some in hidden.chunks(1_000) {
            let text: String = some.iter().collect();
            let json =
                serde_json::to_string_pretty(&serde_json::json!({ &text: [&text] })).unwrap();
            let shown = visible_json(&json);
            assert!(!shown.contains(is_hidden), "{shown}");
            // JSON has its own escapes for lower code points, such as `\u001b` and `\b`.
            let escapes = some.iter().filter(|c| **c >= '\u{7f}').map(|c| c.escape_unicode());
            let escapes: String = escapes.flatten().collect();
            assert_eq!(shown.matches(&escapes).count(), 2, "{shown}");
        }
        let check = |json: &str, expected: &str| assert_eq!(visible_json(json), expected);
        check("{\n  \"größe\": \"हिन्दी 🦀\"\n}", "{\n  \"größe\": \"हिन्दी 🦀\"\n}");
        check("\"no\u{2060}tes\u{3164}.txt\"", r#""no\u{2060}tes\u{3164}.txt""#);
        check("\"a\u{a0}b\u{2028}c\u{e000}\"", r#""a\u{a0}b\u{2028}c\u{e000}""#);
    }

    #[test]
    fn long_text_is_truncated_between_characters() {
        assert_eq!(clean_line("abcdef", 6), "abcdef");
        assert_eq!(clean_line("abcdefg", 6), "abcde…");
        assert_eq!(clean_line("ééééééé", 6), "ééééé…");
        assert_eq!(clean_line("abc", 0), "");
        assert_eq!(clean_block("ééé", 6), "ééé");
        assert_eq!(clean_block("éééé", 6), "é…");
    }

    /// Random text of hidden characters, and of the characters that occur in their escapes.
    fn tricky_text() -> impl Strategy<Value = String> {
        let hidden = any::<char>().prop_filter("hidden", |c| is_hidden(*c));
        let common = prop::sample::select(vec!['\u{200b}', '\u{2060}', '\u{3164}', '\u{e0041}']);
        let escape = prop::sample::select(vec!["\\u{200b}", "\\", "u{2060}", "\"", "\n", "a"]);
        let part = prop_oneof![
            common.prop_map(String::from),
            hidden.prop_map(String::from),
            escape.prop_map(str::to_owned)
        ];
        prop::collection::vec(part, 0..4).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn different_json_to_approve_is_shown_differently(
            one in (tricky_text(), tricky_text()),
            other in (tricky_text(), tricky_text()),
        ) {
            let json = |(key, value): &(String, String)| {
                serde_json::to_string_pretty(&serde_json::json!({ key: value })).unwrap()
            };
            let (shown, other_shown) = (json(&one), json(&other));
            let (shown, other_shown) = (visible_json(&shown), visible_json(&other_shown));
            prop_assert!(!shown.contains(is_hidden));
            prop_assert_eq!(one == other, shown == other_shown);
        }

        #[test]
        fn cleaned_text_has_no_control_or_hidden_characters(text in any::<String>(), max in 0usize..300) {
            let line = clean_line(&text, max);
            let block = clean_block(&text, max);
            prop_assert!(line.chars().count() <= max);
            prop_assert!(block.len() <= max);
            prop_assert!(!line.chars().any(char::is_control));
            prop_assert!(!block.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
            prop_assert!(!line.chars().chain(block.chars()).any(is_hidden));
        }
    }
}
