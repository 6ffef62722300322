//! The order of tools for a query: BM25 over weighted fields.

use std::cmp::Ordering;

use super::expand::{self, Meaning};
use super::postings::{Entry, Field, FieldTotal, Postings};
use super::query::{self, QueryWord};
use super::tokens::Form;
use super::vocabulary::Key;

/// A tool that matches a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Position of its listing among those searched.
    pub listing: usize,
    /// Position of the tool in its listing.
    pub document: usize,
    pub score: f32,
}

/// All tools that have a word of the query, best first.
///
/// Ties go by server and name, so that the order of the listings does not matter.
pub fn rank(listings: &[&Postings], query: &str) -> Vec<Hit> {
    let mut scores = Scores::new(listings);
    let mut expansions = MOST_EXPANSIONS;
    for word in query::parse(query) {
        let meanings = match known(listings, &word) {
            Some(itself) => vec![itself],
            None if word.form == Form::Part && expansions > 0 => {
                expansions -= 1;
                expand::meanings(listings, &word)
            }
            None => Vec::new(),
        };
        if !meanings.is_empty() {
            scores.add(&meanings);
        }
    }
    scores.into_hits()
}

/// Looking for the meaning of an unknown word reads every vocabulary.
const MOST_EXPANSIONS: usize = 8;

/// How soon further occurrences of a word stop counting.
const SATURATION: f32 = 1.5;
/// What a tool with all words of the query gets on top, as a share of its score.
const COVERAGE_BONUS: f32 = 0.5;

/// How much a word counts in each field, and how far that depends on the field's length.
///
/// A keyword's weight keeps `weight / (SATURATION + weight)` above what any expansion is worth,
/// and its length does not matter, so giving a tool a keyword never lowers its rank for it.
const fn importance(field: Field) -> (f32, f32) {
    match field {
        Field::Name | Field::Title => (2.0, 0.5),
        Field::Server => (2.5, 0.5),
        Field::Lead => (1.5, 0.5),
        Field::Description => (0.4, 0.5),
        Field::PropertyNames => (0.5, 0.5),
        Field::PropertyText => (0.1, 0.5),
        Field::Keywords => (8.0, 0.0),
    }
}

fn known(listings: &[&Postings], word: &QueryWord) -> Option<Meaning> {
    let key = Key::new(&word.stem);
    let mut places = Vec::new();
    for (listing, postings) in listings.iter().enumerate() {
        places.extend(postings.find(key).map(|number| (listing, number)));
    }
    (!places.is_empty()).then_some(Meaning { weight: 1.0, places })
}

struct Scores<'a> {
    listings: Vec<(&'a Postings, Vec<Tally>)>,
    documents: usize,
    norms: [Norm; Field::COUNT],
    /// Words of the query that mean something.
    words: u16,
}

/// What a document has earned so far.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    score: f32,
    /// Words of the query that the document has.
    matched: u16,
    /// The last of them, counted from one, and what it earned.
    word: u16,
    earned: f32,
}

/// A field's weight and the two terms of its length normalisation.
#[derive(Debug, Clone, Copy)]
struct Norm {
    weight: f32,
    constant: f32,
    per_word: f32,
}

impl<'a> Scores<'a> {
    fn new(listings: &[&'a Postings]) -> Self {
        let mut totals = [FieldTotal::default(); Field::COUNT];
        for postings in listings {
            for (sum, total) in totals.iter_mut().zip(postings.totals()) {
                sum.words += total.words;
                sum.documents += total.documents;
            }
        }
        let tallied = |&postings: &&'a Postings| (postings, vec![Tally::default(); postings.len()]);
        Scores {
            documents: listings.iter().map(|postings| postings.len()).sum(),
            listings: listings.iter().map(tallied).collect(),
            norms: Field::ALL.map(|field| {
                let (weight, by_length) = importance(field);
                let total = totals.get(field as usize).copied().unwrap_or_default();
                let average = total.words.max(1) as f32 / total.documents.max(1) as f32;
                Norm { weight, constant: 1.0 - by_length, per_word: by_length / average }
            }),
            words: 0,
        }
    }

    /// Adds one word of the query; a document earns what the best of its meanings is worth there.
    fn add(&mut self, meanings: &[Meaning]) {
        self.words += 1;
        for meaning in meanings {
            let worth = meaning.weight * self.rarity(meaning);
            for &(listing, word) in &meaning.places {
                let Some((postings, tallies)) = self.listings.get_mut(listing) else {
                    continue;
                };
                for (document, entries) in postings.occurrences(word) {
                    let Some(indexed) = postings.documents().get(document) else {
                        continue;
                    };
                    let Some(tally) = tallies.get_mut(document) else {
                        continue;
                    };
                    let frequency = frequency(&self.norms, entries, &indexed.lengths);
                    tally.earn(self.words, worth * frequency / (SATURATION + frequency));
                }
            }
        }
    }

    /// The inverse document frequency of a word over all listings.
    fn rarity(&self, meaning: &Meaning) -> f32 {
        let mut having = 0;
        for &(listing, word) in &meaning.places {
            let Some((postings, _)) = self.listings.get(listing) else {
                continue;
            };
            having += postings.occurrences(word).count();
        }
        let without = self.documents.saturating_sub(having);
        ((without as f32 + 0.5) / (having as f32 + 0.5)).ln_1p()
    }

    fn into_hits(self) -> Vec<Hit> {
        let bonus = COVERAGE_BONUS / f32::from(self.words.max(1));
        let mut hits = Vec::new();
        for (listing, (_, tallies)) in self.listings.iter().enumerate() {
            for (document, tally) in tallies.iter().enumerate() {
                if tally.matched > 0 {
                    let score = tally.score * (1.0 + bonus * f32::from(tally.matched));
                    hits.push(Hit { listing, document, score });
                }
            }
        }
        hits.sort_unstable_by(|one, other| {
            other.score.total_cmp(&one.score).then_with(|| self.by_name(one, other))
        });
        hits
    }

    fn by_name(&self, one: &Hit, other: &Hit) -> Ordering {
        let key = |hit: &Hit| {
            let (postings, _) = self.listings.get(hit.listing)?;
            let indexed = postings.documents().get(hit.document)?;
            Some((&indexed.server, &indexed.name, hit.document, hit.listing))
        };
        key(one).cmp(&key(other))
    }
}

impl Tally {
    fn earn(&mut self, word: u16, worth: f32) {
        if self.word != word {
            self.word = word;
            self.matched += 1;
            self.earned = 0.0;
        }
        if worth > self.earned {
            self.score += worth - self.earned;
            self.earned = worth;
        }
    }
}

/// How often a word stands in a document, weighted by field and by how long the field is.
fn frequency(
    norms: &[Norm; Field::COUNT],
    entries: &[Entry],
    lengths: &[u16; Field::COUNT],
) -> f32 {
    let mut sum = 0.0;
    for entry in entries {
        let (Some(norm), Some(&length)) = (norms.get(entry.field()), lengths.get(entry.field()))
        else {
            continue;
        };
        sum += norm.weight * entry.count() / (norm.constant + norm.per_word * f32::from(length));
    }
    sum
}
