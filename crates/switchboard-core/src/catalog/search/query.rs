//! Splits a query into its distinct words, without stop words.

use super::stemming::WordStemmer;
use super::tokens::{self, WordForm};

const LONGEST_QUERY: usize = 1024;
pub(super) const MOST_WORDS: usize = 64;

/// A word of a query, as typed and as a stem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueryWord {
    /// The word in lower case, as typed.
    pub(super) typed: String,
    /// The stem under which the word is indexed.
    pub(super) stem: String,
    pub(super) form: WordForm,
}

impl QueryWord {
    pub(super) fn part(typed: &str) -> QueryWord {
        QueryWord { typed: typed.to_owned(), stem: super::stem(typed), form: WordForm::Part }
    }
}

/// The distinct words of a query, whose length is limited. Stop words are kept if the query has no
/// other words.
pub(super) fn parse(query: &str) -> Vec<QueryWord> {
    let stemmer = WordStemmer::default();
    let mut words: Vec<QueryWord> = Vec::new();
    let mut stop_words: Vec<QueryWord> = Vec::new();
    tokens::split(query, |typed, form| {
        if form == WordForm::Character {
            return;
        }
        let list = if is_stop_word(typed) { &mut stop_words } else { &mut words };
        let stem = stemmer.stem(typed);
        if list.len() < MOST_WORDS && list.iter().all(|word| word.stem != stem) {
            list.push(QueryWord { typed: typed.to_owned(), stem: stem.into_owned(), form });
        }
    });
    if words.is_empty() { stop_words } else { words }
}

pub(super) fn bounded(query: &str) -> &str {
    let end = query.char_indices().nth(LONGEST_QUERY).map_or(query.len(), |(index, _)| index);
    query.get(..end).unwrap_or_default()
}

/// Whether the word is so common that it does not distinguish tools.
pub(super) fn is_stop_word(typed: &str) -> bool {
    STOP_WORDS.contains(&typed)
}

const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "could", "do",
    "for", "from", "have", "help", "how", "i", "if", "in", "into", "is", "it", "its", "like", "me",
    "my", "need", "of", "on", "or", "our", "please", "s", "so", "some", "t", "that", "the",
    "their", "them", "then", "there", "these", "this", "to", "us", "use", "using", "want", "was",
    "we", "what", "which", "will", "with", "would", "you", "your",
];
