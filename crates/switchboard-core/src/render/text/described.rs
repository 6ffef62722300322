//! Renders one tool with all details that a call needs.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::{LINE, server_name};
use crate::budget::cut;
use crate::render::words::{clean_block, clean_line};
use crate::reply::{Description, ReachedBy};
use crate::tool_card::WRITE_NAME;

/// The maximum weight of a text that a server wrote about a tool.
const PROSE: usize = 12_000;

/// The maximum length of the facts behind a tool's name, such as title and annotations.
const DECLARED: usize = 240;

pub(super) fn described(description: &Description) -> String {
    let line = &description.line;
    let mut out = line.shown.clone();
    if description.parameters.is_empty() {
        out.push_str("()");
    }
    let facts = facts(description);
    if !facts.is_empty() {
        let _ = write!(out, " ({})", cut(facts.join(", "), DECLARED));
    }
    out.push('\n');
    if line.reached_by == ReachedBy::WriteTool {
        let _ = writeln!(out, "call it with {WRITE_NAME}");
    }
    if let Some(pattern) = &description.denied {
        let _ = writeln!(out, "never called: denied by the rule `{}`", clean_line(pattern, LINE));
    }
    for caution in line.cautions() {
        let _ = writeln!(out, "attention: {caution}");
    }
    if let Some(uri) = &description.resource {
        let _ = writeln!(out, "reads the resource {}", clean_line(uri, LINE * 2));
    }
    let prose = prose(&line.description);
    if !prose.is_empty() {
        let _ = writeln!(out, "{prose}");
    }
    if !description.parameters.is_empty() {
        let _ = writeln!(out, "\n{}", description.parameters);
    }
    if let Some(returns) = &description.returns {
        let _ = writeln!(out, "\nreturns: {returns}");
    }
    out
}

/// Facts about the tool that its shown name does not contain: server, title and annotations.
fn facts(description: &Description) -> Vec<String> {
    let line = &description.line;
    let mut facts = Vec::new();
    if !line.shown.starts_with(line.server.as_str()) {
        facts.push(format!("server {}", server_name(&line.server)));
    }
    let declared: Map<String, Value> = description
        .annotations
        .as_deref()
        .and_then(|annotations| serde_json::from_str(annotations).ok())
        .unwrap_or_default();
    let title = description.title.as_deref().or(declared.get("title").and_then(Value::as_str));
    let known = format!("{} {}", line.tool, line.description).to_lowercase();
    let (mut new, mut old) = (0, 0);
    for word in title.unwrap_or_default().split_whitespace() {
        let count = if known.contains(&word.to_lowercase()) { &mut old } else { &mut new };
        *count += 1;
    }
    if let Some(title) = title.filter(|_| new > old) {
        facts.push(format!("\"{}\"", clean_line(title, LINE)));
    }
    facts.extend(hints(&declared));
    let known = ["title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
    for (key, value) in declared.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
        facts.push(clean_line(&format!("{key}: {value}"), LINE).into_owned());
    }
    facts
}

/// The annotations of the tool that are true. For a read-only tool, most annotations about changes
/// are omitted.
fn hints(declared: &Map<String, Value>) -> Vec<String> {
    let hint = |name: &str| declared.get(name).and_then(Value::as_bool);
    let read_only = hint("readOnlyHint") == Some(true);
    let is_true = |name: &str| hint(name) == Some(true);
    let words = [
        read_only.then_some("read-only"),
        // `destructive` is shown beside `read-only` too, because the annotations contradict each
        // other.
        is_true("destructiveHint").then_some("destructive"),
        (is_true("idempotentHint") && !read_only).then_some("idempotent"),
    ];
    words.into_iter().flatten().map(str::to_owned).collect()
}

/// The description with its line breaks, and without indentation or repeated blanks.
fn prose(description: &str) -> String {
    let text = clean_block(description.trim(), PROSE);
    let indent = |line: &str| line.len() - line.trim_start().len();
    let lines = || text.lines().map(str::trim_end);
    // The first line of a docstring is not indented, but the following lines are.
    let margin = lines().skip(1).filter(|line| !line.is_empty()).map(indent).min().unwrap_or(0);
    let mut out = String::with_capacity(text.len());
    for (index, line) in lines().enumerate() {
        // The indentation may end inside a blank of several bytes.
        let line = if index == 0 { line } else { line.get(margin..).unwrap_or(line.trim_start()) };
        if line.is_empty() && out.ends_with("\n\n") {
            continue;
        }
        out.push_str(line);
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    cut(out, PROSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn superfluous_white_space_is_removed_from_descriptions() {
        let docstring = "Do it.\n\n\n\n    Args:\n        a: one   \n    Returns: b\n   ";
        assert_eq!(prose(docstring), "Do it.\n\nArgs:\n    a: one\nReturns: b");
        assert_eq!(prose("  "), "");
        assert_eq!(prose("é\n é"), "é\né");
    }

    #[test]
    fn description_shows_read_only_destructive_or_idempotent_annotation() {
        let check = |declared: &str, expected: &[&str]| {
            assert_eq!(hints(&serde_json::from_str(declared).unwrap()), expected);
        };
        check(r#"{"readOnlyHint": true, "destructiveHint": false}"#, &["read-only"]);
        check(r#"{"readOnlyHint": false, "destructiveHint": true}"#, &["destructive"]);
        check(r#"{"destructiveHint": false, "idempotentHint": true}"#, &["idempotent"]);
        check(r#"{"openWorldHint": true, "idempotentHint": false, "x": 1}"#, &[]);
    }
}
