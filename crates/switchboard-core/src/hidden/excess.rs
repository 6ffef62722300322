//! Detects suspiciously many of the characters that scripts need, because each of them can encode a
//! bit.

use hashbrown::HashMap;

use super::characters::{is_emoji, is_hidden, is_private};

/// How many of the characters that scripts need must be close together to be suspicious. Texts in
/// Persian, Hindi, Hebrew and Sinhala have at most a quarter of this number in the same space.
const MANY: usize = 17;

/// [`MANY`] such characters are suspicious if fewer visible characters than this lie between the
/// first and the last of them. Text before and after them is not counted, so that a long text does
/// not hide them.
const WINDOW: usize = 4 * MANY;

/// The longest harmless run of blanks other than the space. Some texts use such blanks for
/// indentation.
const BLANKS: usize = 8;

/// The longest harmless run of Windows line breaks.
const BREAKS: usize = 32;

/// The suspicious characters of a text: needed characters that are too many and too close together,
/// and blanks in long runs. `needed` are the characters that scripts and emoji need, with their
/// offsets.
pub(super) fn excess(text: &str, needed: &[(usize, char)]) -> Vec<char> {
    let mut excess = Vec::new();
    if needed.len() >= MANY {
        let counted = counted(text, needed);
        if is_dense(&counted) {
            excess.extend(counted.iter().map(|(_, c)| *c));
        }
    }
    for run in runs(text, is_blank, |_| false) {
        excess.extend((run.len() > BLANKS).then_some(run).into_iter().flatten());
    }
    for run in runs(text, |c| c == '\r', |c| c == '\n') {
        excess.extend((run.len() > BREAKS).then_some(run).into_iter().flatten());
    }
    excess
}

/// The characters that can encode a bit, each with the number of visible characters before it.
///
/// A joiner between two emoji can encode no bit, because it visibly makes one emoji of them. A
/// selector can encode a bit if the same emoji occurs elsewhere with another selector or without
/// one. A carriage return can encode a bit if other lines have none.
fn counted(text: &str, needed: &[(usize, char)]) -> Vec<(usize, char)> {
    let mut needed = needed.iter().map(|(at, _)| *at).peekable();
    let selectors = selectors(text);
    let is_mixed = text.bytes().filter(|b| *b == b'\n').count() > text.matches("\r\n").count();
    let (mut counted, mut visible, mut before) = (Vec::new(), 0, ' ');
    for (at, c) in text.char_indices() {
        if needed.next_if_eq(&at).is_some() {
            let is_bit = match c {
                '\u{200d}' => !is_emoji(before) && before != '\u{fe0f}',
                '\u{fe0e}' | '\u{fe0f}' => selectors.get(&before).is_some_and(|s| s.is_mixed),
                '\r' => is_mixed,
                _ => true,
            };
            counted.extend(is_bit.then_some((visible, c)));
        } else {
            visible += usize::from(!c.is_whitespace() && !is_hidden(c) && !is_private(c));
        }
        before = c;
    }
    counted
}

struct Selectors {
    first: Option<char>,
    is_mixed: bool,
}

/// For each emoji of a text, the selectors that follow it.
fn selectors(text: &str) -> HashMap<char, Selectors> {
    let mut all: HashMap<char, Selectors> = HashMap::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if is_emoji(c) {
            let selector = chars.peek().copied().filter(|c| matches!(c, '\u{fe0e}' | '\u{fe0f}'));
            let seen = all.entry(c).or_insert(Selectors { first: selector, is_mixed: false });
            seen.is_mixed |= seen.first != selector;
        }
    }
    all
}

fn is_dense(counted: &[(usize, char)]) -> bool {
    counted.windows(MANY).any(|some| match some {
        [(first, _), .., (last, _)] => last - first < WINDOW,
        _ => false,
    })
}

/// Whether a character looks like one or several spaces.
fn is_blank(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// The runs of characters for which `is` is true. Characters for which `passes` is true are
/// skipped.
fn runs(text: &str, is: fn(char) -> bool, passes: fn(char) -> bool) -> Vec<Vec<char>> {
    let mut runs = vec![Vec::new()];
    for c in text.chars() {
        match runs.last_mut() {
            Some(run) if is(c) => run.push(c),
            Some(run) if !run.is_empty() && !passes(c) => runs.push(Vec::new()),
            _ => {}
        }
    }
    runs
}
