//! Extracts the first sentences of a description, which say what a tool does.

use super::words::clean_line;
use crate::budget::{cut, weight};

/// The maximum number of bytes of a description that are examined.
const LOOKED_AT: usize = 2_000;

/// Headings that begin a section about parameters or results. The signature shows these instead.
const SECTIONS: &[&str] = &[
    "args:",
    "arguments:",
    "parameters:",
    "params:",
    "returns:",
    "return:",
    "examples:",
    "example:",
    ":param",
    "@param",
];

/// The first sentences that fit into `max`. If the first one is longer, it is cut.
pub(crate) fn lead(description: &str, max: usize) -> String {
    let looked_at = description.get(..description.floor_char_boundary(LOOKED_AT));
    let text = opening(looked_at.unwrap_or_default());
    let text = if text.is_empty() { description } else { &text };
    let text = clean_line(text, LOOKED_AT).replace("**", "");
    let mut end = 0;
    for sentence in ends(&text) {
        if end > 0 && weight(text.get(..sentence).unwrap_or_default()) > max {
            break;
        }
        end = sentence;
    }
    let sentences = text.get(..end).unwrap_or_default().trim_end();
    cut(sentences.to_owned(), max)
}

/// The first paragraph on one line, without headings and lists, and without later sections.
fn opening(description: &str) -> String {
    let mut text = String::new();
    for line in description.lines().map(str::trim) {
        if line.starts_with('#') || line.starts_with("```") || (line.is_empty() && text.is_empty())
        {
            continue;
        }
        let lower = line.to_lowercase();
        let ends = line.is_empty()
            || line.starts_with(['-', '*', '<', '•'])
            || SECTIONS.iter().any(|section| lower.starts_with(section));
        if ends && !text.is_empty() {
            break;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(line);
    }
    text
}

/// The end of each sentence. The last sentence ends with the text.
fn ends(text: &str) -> impl Iterator<Item = usize> {
    let inner = text.char_indices().filter_map(|(at, c)| {
        let end = at + c.len_utf8();
        let rest = text.get(end..)?;
        let before = text.get(..at)?;
        let stops = match c {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => rest.starts_with(' ') && !is_abbreviation(before),
            _ => false,
        };
        stops.then_some(end)
    });
    inner.chain(Some(text.len()))
}

/// Whether the full stop after this text belongs to an abbreviation, as in `e.g.`.
fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit([' ', '(']).next().unwrap_or_default().to_lowercase();
    word.contains('.')
        || matches!(word.as_str(), "eg" | "ie" | "vs" | "etc" | "incl" | "no" | "approx")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(description: &str, expected: &str) {
        assert_eq!(lead(description, 80), expected);
    }

    #[test]
    fn description_lead_has_the_whole_sentences_that_fit() {
        check("Add two numbers", "Add two numbers");
        check("Add two numbers. Fast.", "Add two numbers. Fast.");
        check(&format!("Add two numbers. {}", "And more ".repeat(20)), "Add two numbers.");
        check("Takes e.g. a name. Then waits.", "Takes e.g. a name. Then waits.");
        check("查询余票。仅支持前十条。", "查询余票。仅支持前十条。");
        let long = "word ".repeat(40);
        assert!(lead(&long, 80).ends_with('…') && weight(&lead(&long, 80)) <= 80);
    }

    #[test]
    fn description_lead_omits_headings_lists_and_sections() {
        check("## Overview\nCreates **pages**.\n\n## Parent\nThe rest.", "Creates pages.");
        check("Fetches data:\n- one\n- two", "Fetches data:");
        check("Creates a todo.\n    Args:\n        title: the title", "Creates a todo.");
        check("Line one\n  goes on. More.", "Line one goes on. More.");
    }

    #[test]
    fn lead_of_a_nonempty_description_is_never_empty() {
        check("# Only a heading", "# Only a heading");
        check("- a list", "- a list");
        check("", "");
        check("\u{202e}\n\n", "\\u{202e}");
    }
}
