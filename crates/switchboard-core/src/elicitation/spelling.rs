//! Normalizes encoded text: decodes entities, and replaces compatibility characters and accents.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

use crate::hidden::strip;
use crate::name::is_look;
use crate::name::look::folded;

/// An HTML entity, a percent encoding, or an escape of JSON or another language.
static ENCODED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)&#x(?<h>[0-9a-f]{1,6});?|&#(?<d>[0-9]{1,7});?|%(?<p>[2-7][0-9a-f])|\\u\{(?<b>[0-9a-f]{1,6})\}|\\u(?<u>[0-9a-f]{4})|\\x(?<x>[0-9a-f]{2})|&(?<n>shy|zwn?j|nbsp|lrm|rlm);",
    )
    .expect("the pattern is constant")
});

static TAG: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"<[^<>]{0,200}>").expect("the pattern is constant"));

/// The forms of a text in which a user may read it. All of them are checked.
pub(super) fn readings(text: &str) -> Vec<String> {
    let plain = normalized(text);
    let mut readings = Vec::new();
    // The lower-case form is checked as well, because an upper-case letter may look like another
    // letter: `Ν` and `ν`.
    if plain.chars().any(is_capital_look) {
        let seen = |c: char| match is_capital_look(c) {
            true => folded(c.encode_utf8(&mut [0; 4])),
            false => c.to_string(),
        };
        readings.push(plain.chars().map(seen).collect());
    }
    // Some clients show `pass<b></b>word` without its tags.
    if let Cow::Owned(untagged) = TAG.replace_all(&plain, "") {
        readings.push(untagged);
    }
    readings.push(plain);
    readings
}

fn is_capital_look(c: char) -> bool {
    !c.is_ascii() && c.is_uppercase() && is_look(c)
}

/// Decodes a text, and removes hidden characters, accents, harakat and niqqud. Compatibility forms
/// such as `ﾊﾟｽ` and `ｐ` become plain letters. Marks that make another letter are kept, as in kana
/// and Indic scripts.
pub(super) fn normalized(text: &str) -> String {
    let decoded = ENCODED.replace_all(text, |found: &Captures<'_>| {
        let code = |name: &str, radix| u32::from_str_radix(found.name(name)?.as_str(), radix).ok();
        let code =
            code("d", 10).or_else(|| ["h", "p", "b", "u", "x"].iter().find_map(|n| code(n, 16)));
        code.and_then(char::from_u32).map(String::from).unwrap_or_default()
    });
    let is_letter = |c: &char| matches!(canonical_combining_class(*c), 0 | 7..=9);
    let is_filler = |c: &char| *c == '\u{640}';
    strip(&decoded).nfkd().filter(is_letter).filter(|c| !is_filler(c)).nfc().collect()
}
