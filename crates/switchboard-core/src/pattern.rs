//! Regular expressions from models and configuration files: limited in size, and matched in linear
//! time.

use std::ops::Range;

use regex::{Regex, RegexBuilder};

use crate::globs::compile;

const LONGEST: usize = 256;
const LARGEST_PROGRAM: usize = 1 << 20;

/// How much of a long text is searched at once.
const WINDOW: usize = 64 * 1024;

/// How much of a window is searched again with the next one.
const OVERLAP: usize = 16 * 1024;

/// A search that took longer than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the search takes too long")]
pub struct TooSlow;

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

/// Whether a pattern distinguishes upper-case and lower-case letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Matters,
    Ignored,
}

/// Why a pattern is rejected.
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

    /// The first match that begins at `start` or later. A long text is searched in windows, and the
    /// search stops when `is_over` says so between two of them. A match longer than [`OVERLAP`] that
    /// spans two windows may be missed.
    pub fn match_from(
        &self,
        text: &str,
        start: usize,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Option<Range<usize>>, TooSlow> {
        let (mut at, mut length) = (start, WINDOW);
        while at <= text.len() {
            if is_over() {
                return Err(TooSlow);
            }
            let end = text.ceil_char_boundary(at.saturating_add(length).min(text.len()));
            let window = text.get(..end).unwrap_or(text);
            match self.0.find_at(window, at) {
                // The match may be longer in the whole text.
                Some(found) if found.end() == end && end < text.len() => {
                    at = found.start();
                    length = length.saturating_mul(2);
                }
                Some(found) => return Ok(Some(found.range())),
                None if end == text.len() => return Ok(None),
                None => {
                    at = text.floor_char_boundary(end - OVERLAP);
                    length = WINDOW;
                }
            }
        }
        Ok(None)
    }
}

/// Whether a glob for names is valid. An invalid glob would match no name without notice.
pub fn is_glob(pattern: &str) -> bool {
    const LONGEST: usize = 512;
    (1..=LONGEST).contains(&pattern.len())
        && compile(pattern, Case::Matters).is_some()
        && !has_foreign_syntax(pattern)
}

/// Whether a pattern uses the syntax of other programs: a blank at its beginning or end, which no
/// name has, a backslash as an escape, or `!` as negation.
fn has_foreign_syntax(pattern: &str) -> bool {
    let mut set = None;
    let mut outside = String::with_capacity(pattern.len());
    for (at, c) in pattern.char_indices() {
        match set {
            // A `]` at the beginning of a set is an element of the set.
            Some(first) if c == ']' && at > first => set = None,
            None if c == '[' => {
                let negated = pattern[at + 1..].starts_with(['!', '^']);
                set = Some(at + 1 + usize::from(negated));
                // A set is treated as one character other than a blank.
                outside.push('[');
            }
            Some(_) => {}
            None => outside.push(c),
        }
    }
    let mut ends = outside.split(['{', ',', '}']);
    let blank_ends = |part: &str| part.trim() != part;
    outside.starts_with('!') || outside.contains('\\') || ends.any(blank_ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oversized_or_unsupported_regular_expression_is_rejected() {
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
    fn pattern_ignores_letter_case_only_if_requested() {
        assert!(!Pattern::compile("abc", Case::Matters).unwrap().is_match("ABC"));
        assert!(Pattern::compile("abc", Case::Ignored).unwrap().is_match("ABC"));
    }

    #[test]
    fn glob_that_can_match_no_name_is_invalid() {
        for wrong in [
            "",
            " ",
            "s/del ",
            " s/del",
            "s/del\t",
            "s/del\n",
            "s/del\u{a0}",
            "s/\\*",
            "s\\del",
            "s/del\\",
            "!s/del",
            "!*",
            "s/{del, ex}",
            "s/{ del}",
            "s/[",
            "s/[]",
            "s/[z-a]",
            "s/{del",
        ] {
            assert!(!is_glob(wrong), "{wrong:?}");
        }
        for right in [
            "s/del",
            "s/*",
            "*",
            "s/[!a]*",
            "s/d?l",
            "s/{del,ex}",
            "s/my tool",
            "s/a!b",
            "s/[]]",
            "s/[[]x",
            "s/[\\]",
            "s/x[ ]",
            "{!}s/del",
            "s/[!]]",
        ] {
            assert!(is_glob(right), "{right:?}");
        }
    }

    #[test]
    fn long_text_is_searched_in_windows_without_loss() {
        let never = || false;
        for at in [0, WINDOW - 3, WINDOW, WINDOW + OVERLAP, 3 * WINDOW - 1] {
            let text = format!("{}needle{}", "é".repeat(at / 2), "x".repeat(2 * WINDOW));
            for pattern in ["needle", "n.*$", "needlex+", "(?-u:\\b)x*$", "^é", "x$", "zzz"] {
                let pattern = Pattern::compile(pattern, Case::Matters).unwrap();
                let whole = pattern.0.find(&text).map(|found| found.range());
                assert_eq!(pattern.match_from(&text, 0, &never), Ok(whole), "{at} {pattern:?}");
            }
        }
        let pattern = Pattern::compile("x", Case::Matters).unwrap();
        assert_eq!(pattern.match_from("x", 0, &|| true), Err(TooSlow));
        assert_eq!(pattern.match_from("x", 2, &never), Ok(None));
    }
}
