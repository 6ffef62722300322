//! Ranked search over tools: what a tool is found by, and in which order.

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
pub use page::Page;
pub use postings::Postings;
pub use rank::{Hit, Ranking, rank};

/// The form under which a lower-case word is indexed.
pub fn stem(word: &str) -> String {
    stemming::stem(&stemming::stemmer(), word).into_owned()
}

/// One tool as search sees it.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    pub server: &'a str,
    /// The tool's name as its server spells it.
    pub name: &'a str,
    pub title: Option<&'a str>,
    pub description: &'a str,
    /// JSON text of the input schema; of what is none, what stands before the fault counts.
    pub input_schema: &'a str,
    /// The user's own `searchKeywords` for this tool.
    pub keywords: &'a [String],
    /// What the tool declares of its effects.
    pub annotations: Annotations,
}

impl Document<'_> {
    /// Whether the name, the title, the description or a keyword matches.
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
