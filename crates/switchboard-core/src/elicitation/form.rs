//! Walks the schema of a form: its fields, and every text that describes them.
//!
//! Clients show more of a schema than the specification allows in a form, and each client shows
//! other parts. So the whole schema is walked, and every string in it is checked, including keys.

use serde_json::{Map, Value};

use super::vocabulary::{AnswerType, chooses_method, names_secret};
use super::{asks, shows_token};

/// The maximum number of schemas and texts that are checked. A larger form is treated like one that
/// requests a secret.
pub(super) const NODES: usize = 10_000;

/// The maximum nesting of schemas that are checked.
pub(super) const DEPTH: usize = 40;

/// Keywords whose value is an object with a schema for each name.
const NAMED: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Keywords whose value is a schema or a list of schemas.
const NESTED: [&str; 14] = [
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "then",
    "else",
];

#[derive(Clone, Copy)]
enum FieldKind {
    /// The user types a value of this type.
    Typed(AnswerType),
    /// The user chooses one of several values.
    Choice,
    /// An object or array. Its fields have kinds of their own.
    Container,
    /// A boolean or null: the user types no text.
    Switch,
}

/// The state while a form is walked.
pub(super) struct Walk<'a> {
    nodes: usize,
    /// The name of the first field that the user types into.
    pub(super) typed: Option<&'a str>,
    /// Texts about several fields of the form. They are checked if the user types into any field.
    pub(super) about: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    pub(super) fn new() -> Walk<'a> {
        Walk { nodes: NODES, typed: None, about: Vec::new() }
    }

    /// The name of the field that requests a secret. Texts about the whole form are added to
    /// `about`.
    pub(super) fn form(&mut self, schema: &'a Value) -> Option<&'a str> {
        self.object("requestedSchema", schema.as_object()?, FieldKind::Container, 0)
    }

    fn field(&mut self, name: &'a str, schema: &'a Value, depth: usize) -> Option<&'a str> {
        let kind = schema.as_object().map_or(FieldKind::Typed(AnswerType::Text), kind_of);
        self.label(name, name, kind).or_else(|| self.schema(name, schema, depth))
    }

    fn schema(&mut self, name: &'a str, schema: &'a Value, depth: usize) -> Option<&'a str> {
        match schema {
            Value::Object(object) => self.object(name, object, kind_of(object), depth),
            Value::Array(schemas) => {
                schemas.iter().find_map(|schema| self.schema(name, schema, depth + 1))
            }
            other => self.texts(name, other, FieldKind::Typed(AnswerType::Text), depth),
        }
    }

    fn object(
        &mut self,
        name: &'a str,
        object: &'a Map<String, Value>,
        kind: FieldKind,
        depth: usize,
    ) -> Option<&'a str> {
        if self.is_spent(depth) {
            return Some(name);
        }
        if let FieldKind::Typed(_) = kind {
            self.typed.get_or_insert(name);
            if object.get("writeOnly") == Some(&Value::Bool(true)) {
                return Some(name);
            }
        }
        object.iter().find_map(|(key, value)| {
            match (key.as_str(), value, kind) {
                ("type", _, _) => None,
                (key, Value::Object(fields), _) if NAMED.contains(&key) => {
                    fields.iter().find_map(|(name, field)| self.field(name, field, depth + 1))
                }
                // Only required names without a schema are checked here. The schema of a field is
                // checked with its name.
                ("required", Value::Array(names), _) => {
                    let fields = object.get("properties");
                    let is_known = |name: &&str| fields.is_some_and(|f| f.get(name).is_some());
                    let names = names.iter().filter_map(Value::as_str);
                    names.filter(|name| !is_known(name)).find(|name| asks(name))
                }
                ("enum" | "enumNames" | "default" | "oneOf" | "anyOf", _, FieldKind::Choice) => {
                    let title = object.get("title").and_then(Value::as_str).unwrap_or_default();
                    let is_method = chooses_method(name) || chooses_method(title);
                    self.choices(name, value, is_method, depth)
                }
                (key, Value::Object(_) | Value::Array(_), _) if NESTED.contains(&key) => {
                    self.schema(name, value, depth + 1)
                }
                _ => {
                    self.label(name, key, kind).or_else(|| self.texts(name, value, kind, depth + 1))
                }
            }
        })
    }

    /// Checks every string in a value, including keys.
    fn texts(
        &mut self,
        name: &'a str,
        value: &'a Value,
        kind: FieldKind,
        depth: usize,
    ) -> Option<&'a str> {
        if self.is_spent(depth) {
            return Some(name);
        }
        match value {
            Value::String(text) => self.label(name, text, kind),
            Value::Array(items) => {
                items.iter().find_map(|item| self.texts(name, item, kind, depth + 1))
            }
            Value::Object(members) => members.iter().find_map(|(key, member)| {
                self.label(name, key, kind).or_else(|| self.texts(name, member, kind, depth + 1))
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }

    fn label(&mut self, name: &'a str, label: &'a str, kind: FieldKind) -> Option<&'a str> {
        match kind {
            FieldKind::Typed(answer) => {
                (names_secret(label, answer) || shows_token(label)).then_some(name)
            }
            FieldKind::Container => {
                self.about.push(label);
                None
            }
            FieldKind::Choice | FieldKind::Switch => None,
        }
    }

    /// Checks the options of a choice. In a choice of sign-in methods, single words such as
    /// `password` or `token` are harmless.
    fn choices(
        &mut self,
        name: &'a str,
        value: &'a Value,
        is_method: bool,
        depth: usize,
    ) -> Option<&'a str> {
        if self.is_spent(depth) {
            return Some(name);
        }
        let is_sentence = |text: &str| text.split_whitespace().nth(1).is_some();
        match value {
            Value::String(text) => {
                ((!is_method || is_sentence(text)) && asks(text)).then_some(name)
            }
            Value::Array(items) => {
                items.iter().find_map(|item| self.choices(name, item, is_method, depth + 1))
            }
            Value::Object(members) => members
                .iter()
                .filter(|(key, _)| *key != "type")
                .find_map(|(_, member)| self.choices(name, member, is_method, depth + 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }

    /// Whether a limit is reached. The rest of the form is then not checked.
    fn is_spent(&mut self, depth: usize) -> bool {
        let left = self.nodes.checked_sub(1);
        self.nodes = left.unwrap_or_default();
        left.is_none() || depth > DEPTH
    }
}

fn kind_of(object: &Map<String, Value>) -> FieldKind {
    let types = types_of(object);
    let are = |kinds: &[&str]| !types.is_empty() && types.iter().all(|t| kinds.contains(t));
    let has = |keys: &[&str]| keys.iter().any(|key| object.contains_key(*key));
    // A choice with a single option is only a label.
    let offers = |key: &str| object.get(key).and_then(Value::as_array).filter(|l| l.len() > 1);
    let is_constant = |branch: &Value| {
        branch.get("const").is_some()
            || branch.get("enum").is_some()
            || branch.get("type").is_some_and(|kind| kind == "null")
    };
    let is_chosen = offers("enum").is_some()
        || ["oneOf", "anyOf"]
            .iter()
            .any(|key| offers(key).is_some_and(|branches| branches.iter().all(is_constant)));
    if are(&["boolean", "null"]) {
        FieldKind::Switch
    } else if is_chosen {
        FieldKind::Choice
    } else if (types.is_empty() || are(&["object", "array", "null"]))
        && (has(&NAMED) || has(&NESTED))
    {
        FieldKind::Container
    } else if are(&["integer", "number", "null"]) {
        FieldKind::Typed(AnswerType::Number)
    } else {
        FieldKind::Typed(AnswerType::Text)
    }
}

/// The types of a field, or those of its alternatives.
fn types_of(object: &Map<String, Value>) -> Vec<&str> {
    match object.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => ["oneOf", "anyOf"]
            .iter()
            .filter_map(|key| object.get(*key)?.as_array())
            .flatten()
            .filter_map(|branch| branch.get("type")?.as_str())
            .collect(),
    }
}
