//! Ranked search over tools: what a tool is found by, and in which order.

mod expand;
mod page;
mod pattern;
mod postings;
mod properties;
mod query;
mod rank;
mod tokens;
mod vocabulary;

pub use page::Page;
pub use pattern::{Pattern, PatternError};
pub use postings::Postings;
pub use rank::{Hit, rank};

/// One tool as search sees it.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    pub server: &'a str,
    /// The tool's name as its server spells it.
    pub name: &'a str,
    pub title: Option<&'a str>,
    pub description: &'a str,
    /// JSON text of the input schema; empty or invalid text has no properties.
    pub input_schema: &'a str,
    /// The user's own `searchKeywords` for this tool.
    pub keywords: &'a [String],
}

#[cfg(test)]
mod tests;
