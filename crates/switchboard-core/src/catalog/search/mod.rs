//! Searches tools by words, and ranks the results.

mod effect;
mod expand;
mod fit;
mod hints;
mod indexer;
mod literals;
mod page;
mod postings;
mod properties;
mod query;
mod rank;
mod stemming;
mod synonyms;
mod table;
mod tokens;
mod vocabulary;

use crate::catalog::Annotations;
use crate::pattern::Pattern;

pub use fit::Fit;
pub use indexer::{Indexer, index_all};
pub use page::RankingPage;
pub use postings::Postings;
pub use rank::{Hit, Ranking, rank};

/// The stem under which a lower-case word is indexed.
pub fn stem(word: &str) -> String {
    stemming::WordStemmer::default().stem(word).into_owned()
}

/// The searchable fields of one tool.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    pub server: &'a str,
    /// The tool's original name.
    pub name: &'a str,
    pub title: Option<&'a str>,
    pub description: &'a str,
    /// The input schema as JSON. If it is malformed, the part before the error is indexed.
    pub input_schema: &'a str,
    /// The keywords of `searchKeywords` for this tool.
    pub keywords: &'a [String],
    /// The annotations of the tool.
    pub annotations: Annotations,
}

impl Document<'_> {
    /// Whether the pattern matches the name, title, description or a keyword.
    pub fn matches(&self, pattern: &Pattern) -> bool {
        [Some(self.name), self.title, Some(self.description)]
            .into_iter()
            .flatten()
            .chain(self.keywords.iter().map(String::as_str))
            .any(|text| pattern.is_match(text))
    }
}

#[cfg(test)]
mod tests;
