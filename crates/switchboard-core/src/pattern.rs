//! Regular expressions that someone else wrote: bounded in size, matched in linear time.

use regex::{Regex, RegexBuilder};

const LONGEST: usize = 256;
const LARGEST_PROGRAM: usize = 1 << 20;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

/// Whether `a` matches `A`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Matters,
    Ignored,
}

/// Why a pattern is not taken.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    #[error("the pattern is longer than {LONGEST} characters")]
    TooLong,
    #[error("the pattern is too large once it is compiled")]
    TooComplex,
    #[error("the pattern is not a regular expression")]
    Syntax(#[source] Box<regex::Error>),
}

impl Pattern {
    pub fn compile(pattern: &str, case: Case) -> Result<Pattern, PatternError> {
        if pattern.chars().nth(LONGEST).is_some() {
            return Err(PatternError::TooLong);
        }
        RegexBuilder::new(pattern)
            .case_insensitive(case == Case::Ignored)
            .size_limit(LARGEST_PROGRAM)
            .dfa_size_limit(LARGEST_PROGRAM)
            .build()
            .map(Pattern)
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => PatternError::TooComplex,
                error => PatternError::Syntax(Box::new(error)),
            })
    }

    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Where the first match begins that does not begin before `start`.
    pub fn match_from(&self, text: &str, start: usize) -> Option<usize> {
        if start > text.len() {
            return None;
        }
        self.0.find_at(text, start).map(|found| found.start())
    }
}

/// Whether a glob over names can be used. One that cannot would match nothing without a word.
pub fn is_glob(pattern: &str) -> bool {
    const LONGEST: usize = 512;
    !pattern.trim().is_empty() && pattern.len() <= LONGEST && globset::Glob::new(pattern).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_bounded_in_length_and_in_size() {
        assert!(Pattern::compile(&"é".repeat(256), Case::Matters).is_ok());
        let long = Pattern::compile(&"é".repeat(257), Case::Matters);
        assert!(matches!(long, Err(PatternError::TooLong)));
        let large = Pattern::compile("(?:a{1000}){1000}", Case::Matters);
        assert!(matches!(large, Err(PatternError::TooComplex)));
        for wrong in ["(", r"(a)\1", "(?=a)"] {
            let wrong = Pattern::compile(wrong, Case::Matters);
            assert!(matches!(wrong, Err(PatternError::Syntax(_))));
        }
    }

    #[test]
    fn case_matters_only_if_asked() {
        assert!(!Pattern::compile("abc", Case::Matters).unwrap().is_match("ABC"));
        assert!(Pattern::compile("abc", Case::Ignored).unwrap().is_match("ABC"));
    }
}
