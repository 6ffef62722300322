//! Rules about wording: terms that STYLE.md excludes, and the length of test names.

use super::test_names::tests_of;
use super::{File, Finding, Tree, has_word, numbered};

/// Words that name no party. The message asks for the party.
const INDEFINITE: &[&str] = &["whoever", "nobody", "somebody", "anybody", "everybody"];

/// Phrases that have a term of the field; the term is the second item.
const PHRASES: &[(&str, &str)] = &[
    ("does not read:", "cannot be parsed"),
    ("means nothing here", "has no effect"),
    ("who is asking", "authentication"),
];

/// The pages that quote excluded words.
const QUOTING: &[&str] = &["docs/glossary.md", "STYLE.md"];

/// The maximum number of words of a test name.
const MOST_WORDS: usize = 9;

/// Text for readers names the party and uses the term of the field.
pub(super) fn plain_words(file: &File, _: &Tree) -> Vec<Finding> {
    let code = file.path.starts_with("crates/") && file.path.contains("/src/");
    let page = file.path.ends_with(".md") && !QUOTING.contains(&file.path.as_str());
    let source = code && file.path.ends_with(".rs");
    if !page && !source {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in numbered(&file.text) {
        let lower = line.to_lowercase();
        for word in INDEFINITE.iter().filter(|word| has_word(&lower, word)) {
            let message = format!("`{word}`: name the party, such as the user or the client");
            findings.push(Finding::error(number, message));
        }
        for (phrase, term) in PHRASES.iter().filter(|(phrase, _)| lower.contains(phrase)) {
            findings.push(Finding::error(number, format!("`{phrase}`: write `{term}`")));
        }
    }
    findings
}

/// A test name is short, so that it is understood at a glance.
pub(super) fn test_name_length(file: &File, _: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for test in tests_of(file) {
        let words = test.name.split('_').count();
        if words > MOST_WORDS {
            let message = format!(
                "`{}` has {words} words, more than {MOST_WORDS}: state condition and expectation",
                test.name
            );
            findings.push(Finding::error(test.line, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::MOST_WORDS;
    use crate::tidy::tests::{CORE_FILE, TEST_FILE, check};

    #[test]
    fn indefinite_persons_and_paraphrases_are_reported() {
        let rule = "plain-words";
        check(rule, CORE_FILE, "//! Names.\n// Nobody asks.\nlet s = \"whoever\";\n", &[2, 3]);
        check(rule, CORE_FILE, "fn nobody_asks() {}\n// The deny rule takes precedence.\n", &[]);
        check(rule, "docs/a.md", "`x` means nothing here\nit does not read: x\n", &[1, 2]);
        check(rule, "docs/glossary.md", "| user | nobody |\n", &[]);
        check(rule, TEST_FILE, "// Nobody.\n", &[]);
    }

    #[test]
    fn long_test_name_is_reported() {
        let rule = "test-name-length";
        let name = |words: usize| vec!["a"; words].join("_");
        let test = |words: usize| format!("#[test]\nfn {}() {{}}\n", name(words));
        check(rule, TEST_FILE, &test(MOST_WORDS), &[]);
        check(rule, TEST_FILE, &test(MOST_WORDS + 1), &[2]);
        check(rule, CORE_FILE, &format!("fn {}() {{}}\n", name(20)), &[]);
    }
}
