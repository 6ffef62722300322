//! Ranks tools for a query: BM25 over weighted fields, and the similarity of word vectors.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::effect::Intent;
use super::expand::{self, Meaning, Spelt};
use super::fit::{self, Fit};
use super::hints::{self, Hint};
use super::literals::{self, QueryText};
use super::postings::{FieldTotal, Occurrence, Postings, ToolField};
use super::query::{self, QueryWord};
use super::synonyms;
use super::table::{self, Direction, Sum};
use super::tokens::WordForm;
use super::vocabulary::Key;

/// A tool that matches a query, with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The index of the tool's listing among the searched listings.
    pub listing: usize,
    /// The index of the tool in its listing.
    pub document: usize,
    /// The score, from 0 to 1.
    pub score: f32,
}

/// The tools that match a query, and how well they match.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// The matching tools, best first.
    pub hits: Vec<Hit>,
    /// How well the best hit matches.
    pub fit: Fit,
    /// How many hits at the top are about as good as the best one.
    pub good: usize,
}

/// Ranks all tools that have a word of the query, or a word vector similar to that of the query.
///
/// Equal scores are sorted by server and name, so that the order of the listings does not matter.
pub fn rank(listings: &[&Postings], query: &str) -> Ranking {
    let mut scores = Scores::new(listings);
    let mut about = Sum::ZERO;
    let mut expansions = MOST_EXPANSIONS;
    let QueryText { text, words, shapes } = literals::extract(query::bounded(query));
    let query_words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut words: VecDeque<QueryWord> = query::parse(&text).into();
    while let Some(word) = words.pop_front() {
        let key = Key::new(&word.stem);
        let synonyms = synonyms::of(&word.stem).iter();
        let mut others: Vec<Meaning<'_>> =
            synonyms.filter_map(|other| known(listings, Key::new(other), SYNONYM)).collect();
        let mut meanings = match known(listings, key, 1.0) {
            Some(itself) => vec![itself],
            None if word.form != WordForm::Part || expansions == 0 => Vec::new(),
            // If the word has a synonym or a hint, similar spellings are not tried.
            None if !others.is_empty() || hints::has(&word.stem) => Vec::new(),
            None => {
                expansions -= 1;
                let spelling = match table::find(key) {
                    Some(_) => Spelt::Right,
                    None if hints::knows(&word.stem) => Spelt::Right,
                    None => Spelt::Perhaps,
                };
                let meanings = expand::meanings(listings, &word, spelling);
                let is_likely = meanings.first().is_some_and(|best| best.weight >= LIKELY);
                let run_together = if is_likely { None } else { split_compound(listings, &word) };
                if let Some(parts) = run_together {
                    words.extend(parts);
                    continue;
                }
                meanings
            }
        };
        add_to_direction(&mut about, key, &meanings);
        meanings.append(&mut others);
        if !meanings.is_empty() {
            scores.add(&meanings);
        } else if word.form == WordForm::Part {
            scores.unknown += 1;
        }
    }
    for hint in hints::of(&query_words, &shapes) {
        scores.hint(listings, &mut about, hint);
    }
    scores.into_ranking(about.direction().as_ref(), Intent::of(&query_words))
}

/// How many unknown words of a query are corrected at most, because each correction scans the words
/// of every listing.
const MOST_EXPANSIONS: usize = 8;
/// The weight from which a correction is unlikely to be a match by chance.
const LIKELY: f32 = 0.8;
/// The minimum length of each part when an unknown word is split into two known ones.
const SHORTEST_PART: usize = 3;
/// The weight of a synonym, relative to the word itself.
const SYNONYM: f32 = 0.7;
/// The weight of a hint in the word score, and in the direction of the query.
const HINT: (f32, f32) = (0.6, 0.3);
/// The weights of a hint whose pattern has several parts.
const SURE_HINT: (f32, f32) = (0.9, 0.5);
/// How many corrections of an unknown word are added to the direction of a query.
const DIRECTION_MEANINGS: usize = 4;

/// How soon further occurrences of a word add little to the score (BM25 `k1`).
const SATURATION: f32 = 1.5;
/// How much the score rises for a tool with all words of the query, as a share of that score.
const COVERAGE_BONUS: f32 = 0.25;

/// The share of the word-vector similarity in the final score. The rest is the word score.
const ABOUT: f32 = 0.7;
/// The factor by which the score of a deprecated tool is multiplied.
const DEPRECATED: f32 = 0.9;
/// The similarity from which a tool without any word of the query is a hit.
const CLOSE: f32 = 0.45;

/// The weight of a word in each field, and how much the length of the field reduces it.
///
/// For keywords, `weight / (SATURATION + weight)` is larger than the weight of any correction, and
/// the length has no effect. So a keyword never lowers the rank of its tool in a search for that
/// keyword.
const fn importance(field: ToolField) -> (f32, f32) {
    match field {
        ToolField::Name => (2.8, 0.5),
        ToolField::Title => (2.0, 0.5),
        ToolField::Server => (4.2, 0.5),
        ToolField::Lead => (1.5, 0.5),
        ToolField::Description => (0.28, 0.5),
        ToolField::PropertyNames => (0.84, 0.5),
        ToolField::PropertyText => (0.1, 0.5),
        ToolField::Keywords => (8.0, 0.0),
    }
}

/// Splits a word into two known words that were written together.
fn split_compound(listings: &[&Postings], word: &QueryWord) -> Option<[QueryWord; 2]> {
    let typed = Some(&word.typed).filter(|typed| typed.is_ascii())?;
    let last = typed.len().checked_sub(SHORTEST_PART)?;
    let mut splits = (SHORTEST_PART..=last).filter_map(|at| typed.split_at_checked(at));
    splits.find_map(|(first, second)| {
        let parts = [first, second].map(QueryWord::part);
        let is_known = |part: &QueryWord| {
            listings.iter().any(|it| it.vocabulary.find(Key::new(&part.stem)).is_some())
        };
        // Neither part may be a stop word: `forget` must not become `for get`.
        let says_something = |part: &QueryWord| !query::is_stop_word(&part.typed);
        parts.iter().all(|part| says_something(part) && is_known(part)).then_some(parts)
    })
}

fn known<'a>(listings: &[&Postings], key: Key<'a>, weight: f32) -> Option<Meaning<'a>> {
    let mut places = Vec::new();
    for (listing, postings) in listings.iter().enumerate() {
        places.extend(postings.vocabulary.find(key).map(|number| (listing, number)));
    }
    (!places.is_empty()).then_some(Meaning { word: key.word, weight, places })
}

/// Adds the vector of a word to the direction of the query. A word without a vector adds the
/// vectors of its corrections.
fn add_to_direction(about: &mut Sum, key: Key<'_>, meanings: &[Meaning<'_>]) {
    if let Some(row) = table::find(key) {
        about.add(row, 1.0);
        return;
    }
    let rows = meanings.iter().filter_map(|it| Some((table::find(Key::new(it.word))?, it.weight)));
    let rows: Vec<_> = rows.take(DIRECTION_MEANINGS).collect();
    let whole: f32 = rows.iter().map(|(_, weight)| weight).sum();
    for (row, weight) in rows {
        about.add(row, weight / whole);
    }
}

struct Scores<'a> {
    listings: Vec<(&'a Postings, Vec<Tally>)>,
    documents: usize,
    norms: [Norm; ToolField::COUNT],
    /// The number of query words that some tool has, directly or as a synonym.
    words: u16,
    /// The number of query words that no tool has.
    unknown: u16,
    /// The number of words looked up so far, including hints.
    turns: u16,
}

/// Whether a word comes from the query itself or from a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    Word,
    Hint,
}

/// The score of one document while words are added.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    score: f32,
    /// The number of query words that the document has.
    matched: u16,
    /// The number of the last word that added to the score, counted from one, and how much it
    /// added.
    turn: u16,
    earned: f32,
    /// The number of query words that are keywords of the document, and the number of the last one.
    keywords: u16,
    keyword: u16,
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
        let mut totals = [FieldTotal::default(); ToolField::COUNT];
        for postings in listings {
            for (sum, total) in totals.iter_mut().zip(&postings.totals) {
                sum.words += total.words;
                sum.documents += total.documents;
            }
        }
        let tallied =
            |&postings: &&'a Postings| (postings, vec![Tally::default(); postings.documents.len()]);
        Scores {
            documents: listings.iter().map(|postings| postings.documents.len()).sum(),
            listings: listings.iter().map(tallied).collect(),
            norms: ToolField::ALL.map(|field| {
                let (weight, by_length) = importance(field);
                let total = totals.get(field as usize).copied().unwrap_or_default();
                let average = total.words.max(1) as f32 / total.documents.max(1) as f32;
                Norm { weight, constant: 1.0 - by_length, per_word: by_length / average }
            }),
            words: 0,
            unknown: 0,
            turns: 0,
        }
    }

    /// Adds one word of the query. Each document scores by the meaning that fits it best.
    fn add(&mut self, meanings: &[Meaning<'_>]) {
        self.words += 1;
        self.earn(meanings, Counted::Word);
    }

    /// Adds a hint. It raises the scores of documents, but is not a query word that they must have.
    fn hint(&mut self, listings: &[&Postings], about: &mut Sum, hint: Hint) {
        let stem = super::stem(hint.word);
        let (worth, near) = if hint.is_sure { SURE_HINT } else { HINT };
        let key = Key::new(&stem);
        if let Some(row) = table::find(key) {
            about.add(row, near);
        }
        let synonyms = synonyms::of(&stem).iter().map(|other| (Key::new(other), worth * SYNONYM));
        let words = std::iter::once((key, worth)).chain(synonyms);
        let meanings = words.filter_map(|(key, weight)| known(listings, key, weight));
        self.earn(&meanings.collect::<Vec<_>>(), Counted::Hint);
    }

    fn earn(&mut self, meanings: &[Meaning<'_>], counted: Counted) {
        self.turns += 1;
        for meaning in meanings {
            let worth = meaning.weight * self.rarity(meaning);
            for &(listing, word) in &meaning.places {
                let Some((postings, tallies)) = self.listings.get_mut(listing) else {
                    continue;
                };
                for (document, entries) in postings.occurrences(word) {
                    let found = postings.documents.get(document).zip(tallies.get_mut(document));
                    let Some((indexed, tally)) = found else { continue };
                    let frequency = frequency(&self.norms, entries, &indexed.lengths);
                    let is_keyword =
                        |entry: &Occurrence| entry.field() == ToolField::Keywords as usize;
                    if counted == Counted::Word
                        && entries.iter().any(is_keyword)
                        && tally.keyword != self.words
                    {
                        tally.keyword = self.words;
                        tally.keywords += 1;
                    }
                    let worth = worth * frequency / (SATURATION + frequency);
                    tally.earn(self.turns, worth, counted);
                }
            }
        }
    }

    /// The inverse document frequency of a word in all listings.
    fn rarity(&self, meaning: &Meaning<'_>) -> f32 {
        let counts = meaning.places.iter().filter_map(|&(listing, word)| {
            let (postings, _) = self.listings.get(listing)?;
            Some(postings.occurrences(word).count())
        });
        let having: usize = counts.sum();
        let without = self.documents.saturating_sub(having);
        ((without as f32 + 0.5) / (having as f32 + 0.5)).ln_1p()
    }

    /// The ranking by the sum of word score and similarity, each from 0 to 1.
    fn into_ranking(self, about: Option<&Direction>, intent: Intent) -> Ranking {
        let bonus = COVERAGE_BONUS / f32::from(self.words.max(1));
        let by_words = |tally: &Tally| tally.score * (1.0 + bonus * f32::from(tally.matched));
        let tallies = self.listings.iter().flat_map(|(_, tallies)| tallies);
        let most = tallies.map(by_words).fold(f32::MIN_POSITIVE, f32::max);
        let mut hits: Vec<(Hit, fit::Match)> = Vec::new();
        for (listing, (postings, tallies)) in self.listings.iter().enumerate() {
            let tools = postings.documents.iter().zip(tallies).enumerate();
            for (document, (indexed, tally)) in tools {
                let of = self.words + self.unknown;
                // A keyword match adds to the similarity too, because the user set the keyword.
                let keyword_share = f32::from(tally.keywords) / f32::from(of.max(1));
                let near = about.map(|about| {
                    indexed
                        .about
                        .as_ref()
                        .map_or(0.0, |it| it.likeness(about))
                        .clamp(keyword_share, 1.0)
                });
                if tally.score == 0.0 && near.is_none_or(|near| near < CLOSE) {
                    continue;
                }
                let words = by_words(tally) / most;
                let score = near.map_or(words, |near| (1.0 - ABOUT) * words + ABOUT * near);
                let score = if indexed.is_deprecated { score * DEPRECATED } else { score };
                let score = score * intent.share(indexed.effect);
                let matched = fit::Match { words: tally.matched, of, near };
                hits.push((Hit { listing, document, score }, matched));
            }
        }
        hits.sort_unstable_by(|(one, _), (other, _)| {
            other.score.total_cmp(&one.score).then_with(|| self.by_name(one, other))
        });
        let best = hits.first().map(|(_, matched)| *matched);
        let hits: Vec<Hit> = hits.into_iter().map(|(hit, _)| hit).collect();
        Ranking { fit: fit::of(&hits, best), good: fit::good(&hits), hits }
    }

    fn by_name(&self, one: &Hit, other: &Hit) -> Ordering {
        let key = |hit: &Hit| {
            let (postings, _) = self.listings.get(hit.listing)?;
            let indexed = postings.documents.get(hit.document)?;
            Some((&indexed.server, &indexed.name, hit.document, hit.listing))
        };
        key(one).cmp(&key(other))
    }
}

impl Tally {
    fn earn(&mut self, turn: u16, worth: f32, counted: Counted) {
        if self.turn != turn {
            self.turn = turn;
            self.matched += u16::from(counted == Counted::Word);
            self.earned = 0.0;
        }
        if worth > self.earned {
            self.score += worth - self.earned;
            self.earned = worth;
        }
    }
}

/// How often a word occurs in a document, weighted by the field and its length.
fn frequency(
    norms: &[Norm; ToolField::COUNT],
    entries: &[Occurrence],
    lengths: &[u16; ToolField::COUNT],
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
