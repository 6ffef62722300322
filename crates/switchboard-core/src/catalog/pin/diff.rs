//! The difference of two definitions, field by field: limited in size, and safe to display.

use serde_json::Value;

use crate::render::words::clean_line;

const MOST_CHANGES: usize = 40;
const LONGEST_PATH: usize = 160;
const LONGEST_VALUE: usize = 300;

/// How many characters before the first difference of two long texts are shown.
const CONTEXT: usize = 40;

/// A field that differs between two definitions. Its texts are shortened and cleaned for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path of the field, such as `inputSchema.properties.path`. It is empty in the line that
    /// counts the omitted changes.
    pub field: String,
    pub old: Option<String>,
    pub new: Option<String>,
}

pub(super) fn changes(old: &Value, new: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    walk(&mut found, "", Some(old), Some(new));
    let left_out = found.len().saturating_sub(MOST_CHANGES);
    found.truncate(MOST_CHANGES);
    if left_out > 0 {
        let new = Some(format!("… and {left_out} more"));
        found.push(Change { field: String::new(), old: None, new });
    }
    found
}

/// Adds the changes below `path` to `found`. Recursion is safe, because the parser limits the
/// depth.
fn walk(found: &mut Vec<Change>, path: &str, old: Option<&Value>, new: Option<&Value>) {
    if old == new {
        return;
    }
    if let (Some(Value::Object(before)), Some(Value::Object(after))) = (old, new) {
        let gone = before.keys().filter(|name| !after.contains_key(*name));
        for name in after.keys().chain(gone) {
            let field = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            walk(found, &field, before.get(name), after.get(name));
        }
        return;
    }
    let (old, new) = (old.map(Value::to_string), new.map(Value::to_string));
    // The equal characters at the beginning of both texts are skipped.
    let both = old.iter().flat_map(|old| old.chars()).zip(new.iter().flat_map(|new| new.chars()));
    let skipped = both.take_while(|(a, b)| a == b).count().saturating_sub(CONTEXT);
    found.push(Change {
        field: clean_line(path, LONGEST_PATH).into_owned(),
        old: old.map(|text| shown(&text, skipped)),
        new: new.map(|text| shown(&text, skipped)),
    });
}

/// The text from the character `skipped` on. A short text is returned whole.
fn shown(text: &str, skipped: usize) -> String {
    if text.chars().count() <= LONGEST_VALUE {
        return clean_line(text, LONGEST_VALUE).into_owned();
    }
    let rest: String = text.chars().skip(skipped).take(LONGEST_VALUE * 2).collect();
    let rest = clean_line(&rest, LONGEST_VALUE);
    if skipped == 0 { rest.into_owned() } else { format!("…{rest}") }
}
