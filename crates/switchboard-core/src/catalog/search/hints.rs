//! Words that tools use for what people say in other words, by patterns of everyday phrases.
//!
//! The patterns stand in `hints.txt`, which says how they are written.

use std::sync::LazyLock;

use hashbrown::HashMap;
use rust_stemmers::Stemmer;

use super::tokens;

/// A word of tools that a query hints at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hint {
    pub(super) word: &'static str,
    /// A pattern of several parts is hardly ever there by chance.
    pub(super) is_sure: bool,
}

/// The words of tools that a query hints at, each once. `words` are all words of the query,
/// lower-case, as typed; `shapes` are those of its literals.
pub(super) fn of(words: &[&str], shapes: &[&'static str]) -> Vec<Hint> {
    let mut counts = vec![0_u8; LEXICON.parts];
    let mut count = |phrase: &str| {
        for part in LEXICON.by_phrase.get(phrase).into_iter().flatten() {
            if let Some(count) = counts.get_mut(usize::from(*part)) {
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
        LEXICON.patterns.iter().filter(|pattern| pattern.holds(&counts)).collect();
    // What is said at length counts first.
    patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.parts.len()));
    for pattern in patterns {
        let is_sure = pattern.parts.len() > 1;
        for &word in &pattern.meant {
            if hints.len() < MOST_HINTS && hints.iter().all(|hint| hint.word != word) {
                hints.push(Hint { word, is_sure });
            }
        }
    }
    hints
}

/// Whether a word alone has a hint, so that it needs no other meaning.
pub(super) fn has(stem: &str) -> bool {
    let Some(parts) = LEXICON.by_phrase.get(stem) else { return false };
    let alone =
        |pattern: &Pattern| matches!(&*pattern.parts, [only] if parts.contains(&only.number));
    LEXICON.patterns.iter().any(alone)
}

/// Whether a pattern has the word, so that its spelling is no slip.
pub(super) fn knows(stem: &str) -> bool {
    LEXICON.by_phrase.contains_key(stem)
}

const MOST_HINTS: usize = 12;
/// Words of the longest phrase in the patterns.
const LONGEST_PHRASE: usize = 4;

struct Lexicon {
    /// The parts of patterns that a phrase stands for.
    by_phrase: HashMap<String, Vec<u16>>,
    /// How many distinct parts there are.
    parts: usize,
    patterns: Vec<Pattern>,
}

/// The words that are meant where all parts are said.
struct Pattern {
    parts: Vec<Part>,
    meant: Vec<&'static str>,
}

/// One of several phrases, so many times.
struct Part {
    number: u16,
    least: u8,
    most: u8,
}

impl Pattern {
    fn holds(&self, counts: &[u8]) -> bool {
        self.parts.iter().all(|part| {
            let count = counts.get(usize::from(part.number)).copied().unwrap_or_default();
            (part.least..=part.most).contains(&count)
        })
    }
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::read(include_str!("hints.txt")));

impl Lexicon {
    fn read(text: &'static str) -> Lexicon {
        let mut lexicon = Lexicon { by_phrase: HashMap::new(), parts: 0, patterns: Vec::new() };
        let mut classes: HashMap<&str, &'static str> = HashMap::new();
        let mut numbers: HashMap<&str, u16> = HashMap::new();
        let mut stems = Stems { stemmer: tokens::stemmer(), known: HashMap::new() };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some((class, phrases)) = line.split_once(" = ") {
                classes.insert(class, phrases);
            } else if let Some((said, meant)) = line.split_once(" > ") {
                let parts = said.split(' ').map(|part| {
                    let (least, most, part) = match part.split_at_checked(1) {
                        Some(("-", part)) => (0, 0, part),
                        Some(("2", part)) => (2, u8::MAX, part),
                        _ => (1, u8::MAX, part),
                    };
                    let number = *numbers.entry(part).or_insert_with(|| {
                        lexicon.parts += 1;
                        let number = (lexicon.parts - 1) as u16;
                        lexicon.enter(part, number, (&classes, &mut stems));
                        number
                    });
                    Part { number, least, most }
                });
                let parts = parts.collect();
                lexicon.patterns.push(Pattern { parts, meant: meant.split(' ').collect() });
            }
        }
        lexicon
    }

    fn enter(
        &mut self,
        part: &'static str,
        number: u16,
        (classes, stems): (&HashMap<&str, &'static str>, &mut Stems),
    ) {
        for phrase in part.split('|') {
            if let Some(phrases) = classes.get(phrase) {
                for phrase in phrases.split(' ') {
                    self.enter(phrase, number, (classes, stems));
                }
                continue;
            }
            let parts = self.by_phrase.entry_ref(stems.of(phrase)).or_default();
            if parts.last() != Some(&number) {
                parts.push(number);
            }
        }
    }
}

/// Phrases by their stems. Many patterns share a class, so each phrase is stemmed once.
struct Stems {
    stemmer: Stemmer,
    known: HashMap<&'static str, String>,
}

impl Stems {
    fn of(&mut self, phrase: &'static str) -> &str {
        let stemmer = &self.stemmer;
        self.known.entry(phrase).or_insert_with(|| {
            let stems = phrase.split('_').map(|word| tokens::stem(stemmer, word));
            stems.collect::<Vec<_>>().join("_")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{LEXICON, Pattern, of};

    #[test]
    fn each_line_is_a_class_or_a_pattern() {
        let lines = include_str!("hints.txt").lines();
        let odd = |line: &&str| {
            let is_text = line.is_empty() || line.starts_with('#');
            !is_text && line.matches(" = ").count() + line.matches(" > ").count() != 1
        };
        assert_eq!(lines.filter(odd).collect::<Vec<_>>(), Vec::<&str>::new());
        let meant = |pattern: &Pattern| !pattern.parts.is_empty() && !pattern.meant.is_empty();
        assert!(LEXICON.patterns.iter().all(meant));
        assert!(!LEXICON.by_phrase.keys().any(|phrase| phrase.starts_with('@')), "unknown class");
    }

    #[test]
    fn all_parts_of_a_pattern_are_needed() {
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
