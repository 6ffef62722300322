//! Prints new JSON values in the style of the surrounding text.

use serde_json::Value as Json;

pub(super) struct Layout<'t> {
    pub(super) newline: &'static str,
    /// The text of one indentation level.
    pub(super) unit: &'t str,
}

impl Layout<'_> {
    /// Prints each object member on its own line. The lines are indented one level deeper than
    /// `indent`. An array of scalars stays on one line.
    pub(super) fn on_lines(&self, value: &Json, indent: &str) -> String {
        let inner = format!("{indent}{}", self.unit);
        let (open, rows, close) = match value {
            Json::Object(members) if !members.is_empty() => {
                let row = |(key, value): (&String, &Json)| {
                    format!("{}{}", self::key(key), self.on_lines(value, &inner))
                };
                ('{', members.iter().map(row).collect::<Vec<_>>(), '}')
            }
            Json::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
                ('[', items.iter().map(|item| self.on_lines(item, &inner)).collect(), ']')
            }
            plain => return self.inline(plain),
        };
        let newline = self.newline;
        let rows = rows.join(&format!(",{newline}{inner}"));
        format!("{open}{newline}{inner}{rows}{newline}{indent}{close}")
    }

    pub(super) fn inline(&self, value: &Json) -> String {
        match value {
            Json::Object(members) if !members.is_empty() => {
                let member = |(key, value): (&String, &Json)| {
                    format!("{}{}", self::key(key), self.inline(value))
                };
                format!("{{ {} }}", members.iter().map(member).collect::<Vec<_>>().join(", "))
            }
            Json::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.inline(item)).collect();
                format!("[{}]", items.join(", "))
            }
            plain => plain.to_string(),
        }
    }
}

/// An escaped member name with the colon: `"name": `.
pub(super) fn key(name: &str) -> String {
    format!("{}: ", Json::from(name))
}
