//! Corrects unknown words of a query: finds known words that begin with the word, or of which it is
//! a misspelling.

use std::collections::HashMap;

use super::postings::{Outline, Postings};
use super::query::QueryWord;

/// A known word that a word of the query may mean.
#[derive(Debug)]
pub(super) struct Meaning<'a> {
    pub(super) word: &'a str,
    /// The weight of a match with this word, relative to an exact match.
    pub(super) weight: f32,
    /// Each listing that contains the word, with the number of the word in that listing.
    pub(super) places: Vec<(usize, u32)>,
}

/// Whether a query word may be misspelt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelt {
    /// The query word is spelt correctly, so a similar word has another meaning.
    Right,
    Perhaps,
}

const BEGINNING: f32 = 0.8;
const ONE_EDIT: f32 = 0.8;
const TWO_EDITS: f32 = 0.5;
const SHORTEST_BEGINNING: usize = 3;
const MOST_MEANINGS: usize = 16;
/// The maximum number of candidates with the same beginning, because a server can list any number
/// of words.
const MOST_CANDIDATES: usize = 4096;

/// The most likely meanings of a query word that no listing contains.
pub(super) fn meanings<'a>(
    listings: &[&'a Postings],
    word: &QueryWord,
    spelt: Spelt,
) -> Vec<Meaning<'a>> {
    let spelling = Spelling::new(word, spelt);
    let mut found: HashMap<&str, Meaning<'_>> = HashMap::new();
    for (listing, postings) in listings.iter().enumerate() {
        for (number, outline) in (0..).zip(&postings.outlines) {
            if !spelling.may_mean(*outline) {
                continue;
            }
            let candidate = postings.vocabulary.word(number);
            let Some(weight) = spelling.likeness(candidate) else {
                continue;
            };
            if found.len() >= MOST_CANDIDATES && !found.contains_key(candidate) {
                continue;
            }
            let meaning = found.entry(candidate);
            let meaning =
                meaning.or_insert(Meaning { word: candidate, weight, places: Vec::new() });
            meaning.places.push((listing, number));
        }
    }
    let mut found: Vec<Meaning<'_>> = found.into_values().collect();
    // Equal weights are sorted by word, so that the result does not depend on the order of the map.
    found.sort_unstable_by(|one, other| {
        let by_weight = other.weight.total_cmp(&one.weight);
        let by_spread = other.places.len().cmp(&one.places.len());
        by_weight.then(by_spread).then_with(|| one.word.cmp(other.word))
    });
    found.truncate(MOST_MEANINGS);
    found
}

/// A query word, prepared for comparison with many known words.
struct Spelling<'a> {
    typed: &'a str,
    typed_outline: Outline,
    stem: &'a str,
    stem_outline: Outline,
    may_begin: bool,
    most_edits: u32,
}

impl<'a> Spelling<'a> {
    fn new(word: &'a QueryWord, spelt: Spelt) -> Self {
        let length = word.typed.chars().count();
        Spelling {
            typed: &word.typed,
            typed_outline: Outline::of(&word.typed),
            stem: &word.stem,
            stem_outline: Outline::of(&word.stem),
            may_begin: length >= SHORTEST_BEGINNING,
            most_edits: match length {
                _ if spelt == Spelt::Right => 0,
                0..4 => 0,
                4..8 => 1,
                8.. => 2,
            },
        }
    }

    /// Whether the candidate may match, judged by its outline. Outlines exclude most words without
    /// reading the words.
    fn may_mean(&self, candidate: Outline) -> bool {
        self.stem_outline.fewest_edits(candidate) <= self.most_edits
            || self.may_begin && self.typed_outline.may_begin(candidate)
    }

    fn likeness(&self, candidate: &str) -> Option<f32> {
        if self.may_begin && candidate.starts_with(self.typed) {
            return Some(BEGINNING);
        }
        // Words with two edits match only if their first letters are equal, because the first
        // letter is rarely wrong.
        let same_start = candidate.chars().next() == self.stem.chars().next();
        if self.most_edits == 0 || self.most_edits == 2 && !same_start {
            return None;
        }
        match strsim::osa_distance(self.stem, candidate) {
            1 => Some(ONE_EDIT),
            2 if self.most_edits == 2 => Some(TWO_EDITS),
            _ => None,
        }
    }
}
