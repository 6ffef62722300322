//! Translates everyday phrases of queries into words that tools use.
//!
//! The patterns are in `hints.txt`, which also describes their syntax. The build script compiles
//! them into the two tables that are parsed here.

use std::cmp::Ordering;
use std::sync::LazyLock;

/// A word that tools use, found by a phrase of the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hint {
    pub(super) word: &'static str,
    /// Whether the pattern has several parts, so that it rarely matches by chance.
    pub(super) is_sure: bool,
}

/// The hints for a query, each word once. `words` are all words of the query in lower case.
/// `shapes` are the shapes of its literals, such as `<url>`.
pub(super) fn of(words: &[&str], shapes: &[&'static str]) -> Vec<Hint> {
    let mut counts = vec![0_u8; PATTERNS.parts];
    let mut count = |phrase: &str| {
        for part in parts_of(phrase).into_iter().flatten() {
            if let Some(count) = counts.get_mut(part) {
                *count = count.saturating_add(1);
            }
        }
    };
    shapes.iter().for_each(|shape| count(shape));
    let stems: Vec<String> = words.iter().map(|word| super::stem(word)).collect();
    for start in 0..stems.len() {
        for length in 1..=LONGEST_PHRASE {
            let Some(phrase) = stems.get(start..start + length) else { break };
            match phrase {
                [only] => count(only),
                several => count(&several.join("_")),
            }
        }
    }
    let mut hints: Vec<Hint> = Vec::new();
    let mut patterns: Vec<&Pattern> =
        PATTERNS.all.iter().filter(|pattern| pattern.holds(&counts)).collect();
    // Patterns with more parts come first, because they rarely match by chance.
    patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.parts.len()));
    for pattern in patterns {
        let is_sure = pattern.parts.len() > 1;
        for word in pattern.meant.split(' ') {
            if hints.len() < MOST_HINTS && hints.iter().all(|hint| hint.word != word) {
                hints.push(Hint { word, is_sure });
            }
        }
    }
    hints
}

/// Whether this single word has a hint and so needs no correction.
pub(super) fn has(stem: &str) -> bool {
    let Some(mut parts) = parts_of(stem) else { return false };
    parts.any(|part| {
        let alone = |pattern: &Pattern| matches!(&*pattern.parts, [only] if only.number == part);
        PATTERNS.all.iter().any(alone)
    })
}

/// Whether a pattern contains the word, which is then spelt correctly.
pub(super) fn knows(stem: &str) -> bool {
    parts_of(stem).is_some()
}

const MOST_HINTS: usize = 12;
/// The maximum number of words in a phrase of the patterns.
const LONGEST_PHRASE: usize = 4;

/// The phrase table. Each line has the stems of a phrase, and the numbers of the pattern parts that
/// contain it. The lines are sorted.
static PHRASES: &str = include_str!(concat!(env!("OUT_DIR"), "/hint_phrases.txt"));

/// The numbers of the pattern parts that contain a phrase.
fn parts_of(phrase: &str) -> Option<impl Iterator<Item = usize>> {
    let mut lines = PHRASES;
    loop {
        // The middle must be a character boundary, because some phrases are not ASCII.
        let middle = lines.floor_char_boundary(lines.len() / 2);
        let (before, after) = lines.split_at_checked(middle)?;
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let end = middle + after.find('\n')?;
        let (known, parts) = lines.get(start..end)?.split_once(' ')?;
        lines = match phrase.cmp(known) {
            Ordering::Less => lines.get(..start)?,
            Ordering::Greater => lines.get(end + 1..)?,
            Ordering::Equal => return Some(parts.split(' ').flat_map(str::parse)),
        };
    }
}

struct Patterns {
    all: Vec<Pattern>,
    /// The number of distinct parts in all patterns.
    parts: usize,
}

/// A pattern, and the words that a query means if all parts of the pattern match.
struct Pattern {
    parts: Vec<Part>,
    meant: &'static str,
}

/// A set of phrases, given by its number, and how often one of them must occur in the query.
struct Part {
    number: usize,
    least: u8,
    most: u8,
}

impl Pattern {
    fn holds(&self, counts: &[u8]) -> bool {
        self.parts.iter().all(|part| {
            let count = counts.get(part.number).copied().unwrap_or_default();
            (part.least..=part.most).contains(&count)
        })
    }
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let lines = include_str!(concat!(env!("OUT_DIR"), "/hint_patterns.txt")).lines();
    let all: Vec<Pattern> = lines.filter_map(pattern).collect();
    let numbers = all.iter().flat_map(|pattern| &pattern.parts).map(|part| part.number + 1);
    let parts = numbers.max().unwrap_or_default();
    Patterns { all, parts }
});

fn pattern(line: &'static str) -> Option<Pattern> {
    let (parts, meant) = line.split_once(" > ")?;
    let part = |part: &str| {
        let mut numbers = part.splitn(3, ':');
        let (least, most) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        Some(Part { number: numbers.next()?.parse().ok()?, least, most })
    };
    Some(Pattern { parts: parts.split(' ').map(part).collect::<Option<_>>()?, meant })
}

#[cfg(test)]
mod tests {
    use super::{PATTERNS, PHRASES, knows, of, parts_of};

    #[test]
    fn every_search_hint_pattern_and_phrase_can_be_parsed() {
        let lines = include_str!("hints.txt").lines();
        let patterns = lines.filter(|line| !line.starts_with('#') && line.contains(" > ")).count();
        assert_eq!(PATTERNS.all.len(), patterns);
        for line in PHRASES.lines() {
            let (phrase, parts) = line.split_once(' ').unwrap();
            let read: Vec<String> =
                parts_of(phrase).unwrap().map(|part| part.to_string()).collect();
            assert_eq!(read.join(" "), parts, "{phrase}");
        }
        let unknown = ["", "\u{1}", "\u{10ffff}", "fetc", "fetchx"];
        assert_eq!(unknown.map(knows), [false; 5]);
    }

    #[test]
    fn search_hint_applies_only_if_its_whole_pattern_matches() {
        let words = |query: &str, shapes: &[&'static str]| -> Vec<&'static str> {
            let words: Vec<&str> = query.split(' ').collect();
            of(&words, shapes).iter().map(|hint| hint.word).collect()
        };
        assert!(words("take me back to main", &[]).contains(&"checkout"));
        assert!(!words("take me back", &[]).contains(&"checkout"));
        assert!(words("when is that", &["<clock>"]).contains(&"timezone"));
        assert!(!words("when is that", &[]).contains(&"timezone"));
    }
}
