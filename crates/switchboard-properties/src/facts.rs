//! The facts of a schema that a caller needs, and whether a text contains them.

use std::fmt;

use serde_json::{Map, Value};

/// One fact of a schema about its parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    Required(String),
    Optional(String),
    Description(String),
    /// A value that the schema admits: one of an `enum`, or the value of `const`.
    Option(Value),
    Default(Value),
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fact::Required(name) => write!(f, "`{name}` is required"),
            Fact::Optional(name) => write!(f, "`{name}` is optional"),
            Fact::Description(text) => write!(f, "description {text:?}"),
            Fact::Option(value) => write!(f, "option {value}"),
            Fact::Default(value) => write!(f, "default {value}"),
        }
    }
}

/// The facts of a schema that `text` does not contain.
///
/// References within the schema are followed, each target once. The check searches the text, so it
/// is reliable only if no two facts have the same text.
pub fn lost(schema: &Value, text: &str) -> Vec<Fact> {
    let mut facts = Facts { root: schema, seen: Vec::new(), found: Vec::new() };
    facts.look(schema);
    let text = one_line(text);
    facts.found.retain(|fact| !says(&text, fact));
    facts.found
}

struct Facts<'s> {
    root: &'s Value,
    /// The targets of the references that were followed.
    seen: Vec<&'s Value>,
    found: Vec<Fact>,
}

impl<'s> Facts<'s> {
    fn look(&mut self, schema: &'s Value) {
        let Value::Object(keywords) = schema else { return };
        if let Some(Value::String(text)) = keywords.get("description") {
            self.found.push(Fact::Description(one_line(text)));
        }
        self.found.extend(keywords.get("default").cloned().map(Fact::Default));
        self.found.extend(keywords.get("const").cloned().map(Fact::Option));
        if let Some(Value::Array(options)) = keywords.get("enum") {
            self.found.extend(options.iter().cloned().map(Fact::Option));
        }
        self.properties(keywords);
        for key in ["items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf"] {
            match keywords.get(key) {
                Some(Value::Array(parts)) => parts.iter().for_each(|part| self.look(part)),
                Some(part) => self.look(part),
                None => {}
            }
        }
        let reference = keywords.get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|it| self.root.pointer(it.strip_prefix('#')?));
        if let Some(target) = target
            && !self.seen.iter().any(|seen| std::ptr::eq(*seen, target))
        {
            self.seen.push(target);
            self.look(target);
        }
    }

    fn properties(&mut self, keywords: &'s Map<String, Value>) {
        let required = keywords.get("required").and_then(Value::as_array);
        let required: Vec<&str> =
            required.into_iter().flatten().filter_map(Value::as_str).collect();
        self.found.extend(required.iter().map(|name| Fact::Required((*name).to_owned())));
        let Some(Value::Object(properties)) = keywords.get("properties") else { return };
        for (name, schema) in properties {
            if !required.contains(&name.as_str()) {
                self.found.push(Fact::Optional(name.clone()));
            }
            self.look(schema);
        }
    }
}

fn says(text: &str, fact: &Fact) -> bool {
    match fact {
        Fact::Required(name) => names(text, name, ":"),
        Fact::Optional(name) => names(text, name, "?:"),
        Fact::Description(words) => text.contains(words.as_str()),
        Fact::Option(value) => text.contains(&value.to_string()),
        Fact::Default(value) => text.contains(&format!("= {value}")),
    }
}

/// Whether the text contains the name as a whole word, followed by `mark`.
fn names(text: &str, name: &str, mark: &str) -> bool {
    let quoted = Value::from(name).to_string();
    [name, &quoted].into_iter().any(|name| {
        let named = format!("{name}{mark}");
        text.match_indices(&named).any(|(at, _)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '$' | '"'))
        })
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
