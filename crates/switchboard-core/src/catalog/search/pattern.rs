//! Search by regular expression, unranked, in time linear in the text.

use regex::{Regex, RegexBuilder};
use thiserror::Error;

use super::Document;

/// A compiled pattern that tools are matched against, without regard to case.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

/// Why a pattern cannot be searched for.
#[derive(Debug, Error)]
pub enum PatternError {
    #[error("the pattern is longer than {limit} characters")]
    TooLong { limit: usize },
    #[error("the pattern is too large once it is compiled")]
    TooComplex,
    #[error("the pattern is not a regular expression")]
    Syntax(#[source] Box<regex::Error>),
}

const LONGEST_PATTERN: usize = 256;
const LARGEST_PROGRAM: usize = 1 << 20;

impl Pattern {
    pub fn compile(pattern: &str) -> Result<Pattern, PatternError> {
        if pattern.chars().nth(LONGEST_PATTERN).is_some() {
            return Err(PatternError::TooLong { limit: LONGEST_PATTERN });
        }
        RegexBuilder::new(pattern)
            .case_insensitive(true)
            .size_limit(LARGEST_PROGRAM)
            .dfa_size_limit(LARGEST_PROGRAM)
            .build()
            .map(Pattern)
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => PatternError::TooComplex,
                error => PatternError::Syntax(Box::new(error)),
            })
    }

    /// Whether the name, the title, the description or a keyword of a tool matches.
    pub fn matches(&self, document: &Document<'_>) -> bool {
        [Some(document.name), document.title, Some(document.description)]
            .into_iter()
            .flatten()
            .chain(document.keywords.iter().map(String::as_str))
            .any(|text| self.0.is_match(text))
    }
}
