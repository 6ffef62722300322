//! Glob patterns for names, as in `includeTools`, `approveTools`, `allow` and `deny`.

use globset::{GlobBuilder, GlobMatcher};

use crate::pattern::Case;

/// Globs with `*`, `?` and `[…]`, in the order of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Globs {
    patterns: Vec<(String, Option<GlobMatcher>)>,
}

impl Globs {
    /// Compiles the patterns. An invalid glob matches its own text literally, because a typing
    /// error must not disable a rule.
    pub fn new(patterns: &[String]) -> Globs {
        let compiled =
            patterns.iter().map(|pattern| (pattern.clone(), compile(pattern, Case::Matters)));
        Globs { patterns: compiled.collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The first pattern that matches at least one of the names.
    pub fn find(&self, names: &[impl AsRef<str>]) -> Option<&str> {
        self.iter().find(|pattern| names.iter().any(|name| self.fits(pattern, name.as_ref())))
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.patterns.iter().map(|(pattern, _)| pattern.as_str())
    }

    /// Whether the glob `pattern`, one of these patterns, matches the name.
    pub fn fits(&self, pattern: &str, name: &str) -> bool {
        let of_text = |(text, _): &&(String, Option<GlobMatcher>)| text == pattern;
        self.patterns.iter().find(of_text).is_some_and(|(text, glob)| match glob {
            Some(glob) => glob.is_match(name),
            None => text == name,
        })
    }

    pub fn is_match(&self, names: &[impl AsRef<str>]) -> bool {
        self.find(names).is_some()
    }
}

/// Compiles a glob; `None` if it is invalid. A backslash is no escape, so that [`literal`] can
/// match any name.
pub(crate) fn compile(pattern: &str, case: Case) -> Option<GlobMatcher> {
    let mut glob = GlobBuilder::new(pattern);
    glob.backslash_escape(false).case_insensitive(case == Case::Ignored);
    glob.build().ok().map(|glob| glob.compile_matcher())
}

/// The glob that matches only this text; see [`crate::pattern::is_glob`].
pub fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let at_end = at == 0 || at + c.len_utf8() == text.len();
        let after_mark = at == 1 && text.starts_with('!');
        match c {
            // The text `[!]` would begin a negated set.
            '!' if at == 0 => pattern.push_str("{!}"),
            '*' | '?' | '[' | ']' | '{' | '}' | ',' | '\\' => pattern.extend(['[', c, ']']),
            c if c.is_whitespace() && (at_end || after_mark) => pattern.extend(['[', c, ']']),
            c => pattern.push(c),
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pattern::is_glob;

    fn check(pattern: &str, names: &[&str], expected: bool) {
        let globs = Globs::new(&[pattern.to_owned()]);
        assert_eq!(globs.is_match(names), expected, "{pattern} {names:?}");
    }

    #[test]
    fn glob_matches_if_one_of_the_names_matches() {
        check("demo/*", &["demo_add", "demo/add"], true);
        check("demo/*", &["demos/add"], false);
        check("*_delete_?", &["demo_delete_x"], true);
        check("*", &["anything/at_all"], true);
    }

    #[test]
    fn malformed_glob_is_matched_literally() {
        check("demo/[", &["demo/["], true);
        check("demo/[", &["demo/x"], false);
    }

    proptest! {
        #[test]
        fn escaped_name_is_a_glob_that_matches_the_name(name in "[ -~]{1,40}") {
            let pattern = literal(&name);
            prop_assert!(is_glob(&pattern), "{pattern}");
            prop_assert!(Globs::new(&[pattern]).is_match(&[&name]));
        }
    }
}
