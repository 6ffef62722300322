//! Keys for how names look: names that readers would confuse have the same key.

use std::borrow::Cow;
use std::sync::LazyLock;

use hashbrown::HashMap;
use unicode_normalization::UnicodeNormalization;

use crate::render::words::is_unseen;

/// The characters that look like ASCII characters; parsed when first needed. The full table in a
/// library would take 400 KB. Names of servers are mostly ASCII, so these lookalikes are enough.
static LOOKS: LazyLock<HashMap<char, &'static str>> = LazyLock::new(|| {
    let rows = include_str!("confusables.txt").lines().filter(|line| !line.starts_with('#'));
    let rows = rows.filter_map(|row| row.split_once(' '));
    let rows = rows.map(|(ascii, codes)| (if ascii == "space" { " " } else { ascii }, codes));
    rows.flat_map(|(ascii, codes)| codes.split(' ').flat_map(range).map(move |c| (c, ascii)))
        .collect()
});

/// The characters of a range such as `2010-2013`, or a single one.
fn range(codes: &str) -> impl Iterator<Item = char> + use<> {
    let (first, last) = codes.split_once('-').unwrap_or((codes, codes));
    let code = |hex: &str| u32::from_str_radix(hex, 16).unwrap_or_default();
    (code(first)..=code(last)).filter_map(char::from_u32)
}

/// The name with letters and their accents composed (NFC), because both forms look the same.
pub(crate) fn composed(name: &str) -> Cow<'_, str> {
    if name.is_ascii() { name.into() } else { name.nfc().collect::<String>().into() }
}

/// A key that is equal for names that differ only in letter case, in separators, in invisible
/// characters, in canonically equivalent letters, or in letters of other scripts that look like
/// ASCII letters. Unlike in [`look`], each letter becomes one letter, so that patterns can be
/// folded like names.
pub(crate) fn folded(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in composed(name).chars() {
        push_folded(&mut out, c);
    }
    out
}

fn push_folded(out: &mut String, c: char) {
    if is_separator(c) || c.is_whitespace() {
        push_separator(out);
    } else if c.is_ascii() {
        out.extend((!c.is_ascii_control()).then(|| c.to_ascii_lowercase()));
    } else if !is_unseen(c) && !is_unseen_dot(out, c) {
        match LOOKS.get(&c) {
            // The letters are appended to the same text, because a separator depends on the text
            // before it.
            Some(ascii) => ascii.chars().for_each(|c| push_folded(out, c)),
            None => out.extend(c.to_lowercase()),
        }
    }
}

/// The name in one letter case; `None` if that changes nothing. An upper-case letter may look like
/// another letter than its lower-case form, so [`folded`] and [`look`] give them different keys.
pub(crate) fn in_one_case(name: &str) -> Option<String> {
    if name.is_ascii() {
        return None;
    }
    let same = composed(name).chars().map(one_case).collect::<String>();
    (same != name).then_some(same)
}

/// The lower-case letter, unless only the upper-case one looks like an ASCII letter.
fn one_case(c: char) -> char {
    // Several lower-case letters may have the same upper-case letter, so the letter is first
    // converted to upper case.
    let capital = only(c.to_uppercase()).unwrap_or(c);
    let small = only(capital.to_lowercase()).unwrap_or(capital);
    match only(small.to_uppercase()) {
        Some(capital) if !is_look(small) && is_look(capital) => capital,
        Some(_) | None => small,
    }
}

fn only(mut letters: impl Iterator<Item = char>) -> Option<char> {
    letters.next().filter(|_| letters.next().is_none())
}

/// Whether this is a combining dot above a letter that has a dot anyway; [`look`] writes `l` for
/// `i`.
fn is_unseen_dot(before: &str, c: char) -> bool {
    c == '\u{307}' && before.ends_with(['i', 'j', 'l'])
}

fn is_separator(c: char) -> bool {
    matches!(c, '-' | '.' | ' ' | '/' | ':' | '_')
}

/// Whether the character looks like an ASCII character.
pub(crate) fn is_look(c: char) -> bool {
    LOOKS.contains_key(&c)
}

/// A key that is equal for names that differ only in letter case, in separators (runs of `-`, `_`,
/// `/`, `.`, `:` and blanks), in invisible characters, in equivalent characters (NFKC), or in
/// characters that look alike.
pub(crate) fn look(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 8);
    let name: Cow<'_, str> =
        if name.is_ascii() { name.into() } else { name.nfkc().collect::<String>().into() };
    for c in name.chars() {
        if c.is_ascii() {
            push_ascii(&mut out, c);
        } else if c.is_whitespace() {
            push_separator(&mut out);
        } else if !is_unseen(c) && !is_unseen_dot(&out, c) {
            push_other(&mut out, c);
        }
    }
    out
}

fn push_ascii(out: &mut String, c: char) {
    match c.to_ascii_lowercase() {
        '0' => out.push('o'),
        '1' | '|' | 'i' => out.push('l'),
        'm' => out.push_str("rn"),
        separator if is_separator(separator) => push_separator(out),
        plain if plain.is_ascii_alphanumeric() => out.push(plain),
        control if control.is_ascii_control() => {}
        other => push_code(out, other),
    }
}

/// Appends a separator. Runs of separators become one, and leading ones are omitted.
fn push_separator(out: &mut String) {
    if !out.is_empty() && !out.ends_with('_') {
        out.push('_');
    }
}

fn push_other(out: &mut String, c: char) {
    // An upper-case letter may look like another letter than its lower-case form.
    if let Some(ascii) = LOOKS.get(&c) {
        return ascii.chars().for_each(|c| push_ascii(out, c));
    }
    for small in c.to_lowercase() {
        match LOOKS.get(&small) {
            Some(ascii) => ascii.chars().for_each(|c| push_ascii(out, c)),
            None if small.is_ascii() => push_ascii(out, small),
            None if is_unseen_dot(out, small) => {}
            None => push_code(out, small),
        }
    }
}

/// Appends the code point of a character, as shown names do.
fn push_code(out: &mut String, c: char) {
    for c in format!("_{:x}_", u32::from(c)).chars() {
        push_ascii(out, c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_separator_lookalike_folds_to_underscore() {
        let separators: Vec<char> = LOOKS
            .iter()
            .filter(|(c, ascii)| ascii.chars().all(is_separator) && !is_unseen(**c))
            .map(|(c, _)| *c)
            .collect();
        assert!(separators.len() > 50, "{}", separators.len());
        for c in separators {
            assert_eq!(folded(&format!("delete{c}repo")), "delete_repo", "{c:?}");
        }
    }

    #[test]
    fn letter_and_its_capital_have_one_lookalike_key() {
        let keys = |name: &str| {
            let name = in_one_case(name).unwrap_or_else(|| name.to_owned());
            (folded(&name), look(&name))
        };
        let letters =
            ('\u{80}'..=char::MAX).filter(|c| only(c.to_uppercase()).is_some_and(|up| up != *c));
        let mut count = 0;
        for small in
            letters.filter(|c| only(only(c.to_uppercase()).unwrap().to_lowercase()) == Some(*c))
        {
            let capital = only(small.to_uppercase()).unwrap();
            assert_eq!(
                keys(&format!("a{small}")),
                keys(&format!("a{capital}")),
                "{small} {capital}"
            );
            count += 1;
        }
        assert!(count > 1_000, "{count}");
        assert_eq!(look("\u{130}x"), look("ix"));
    }

    #[test]
    fn lookalike_names_have_the_same_key() {
        for (name, other) in [
            ("GitHub_create-issue", "github/create_issue"),
            ("g\u{456}thub", "github"),
            ("\u{ff47}\u{ff49}thub\u{ff3f}x", "github_x"),
            ("git\u{200b}hub", "github"),
            ("gi\u{307}thub", "github"),
            ("git\u{fe0f}hub", "github"),
            ("git\u{2010}hub", "git-hub"),
            ("git\u{a0}hub", "git hub"),
            ("\u{1d420}ithub", "github"),
            ("\u{41d}UB", "HUB"),
            ("memory", "rnemory"),
            ("m0dels", "models"),
            ("app1", "appl"),
            ("Iinear", "linear"),
            ("mcp_github_x", "mcp__github__x"),
            ("__github--x", "github_x"),
            ("cafe\u{301}", "caf\u{e9}"),
            ("\u{439}", "\u{438}\u{306}"),
            ("\u{d55c}", "\u{1112}\u{1161}\u{11ab}"),
            ("\u{ff76}\u{ff9e}", "\u{30ac}"),
        ] {
            assert_eq!(look(name), look(other), "{name} {other}");
        }
        for (name, other) in [("github", "gitlab"), ("a_b", "ab"), ("größe", "grosse")] {
            assert_ne!(look(name), look(other), "{name} {other}");
        }
    }
}
