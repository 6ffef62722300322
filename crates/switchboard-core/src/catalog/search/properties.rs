//! What an input schema adds to a tool's searchable text.

use serde_json::Value;

/// Parsing a larger schema would cost more than its words are worth.
const LARGEST_SCHEMA: usize = 256 * 1024;
const DEEPEST: usize = 64;
const MOST_NODES: usize = 10_000;

/// A piece of searchable text in a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// The name of a property.
    Name(&'a str),
    /// A description or an enum value.
    Text(&'a str),
}

/// Calls `emit` with each piece of text in a schema; what is not a schema has none.
pub(super) fn walk(schema: &str, mut emit: impl FnMut(Piece<'_>)) {
    if schema.len() > LARGEST_SCHEMA {
        return;
    }
    let Ok(root) = serde_json::from_str::<Value>(schema) else {
        return;
    };
    let mut open = vec![(Place::Schema, &root, 0)];
    let mut nodes = 0;
    while let Some((place, value, depth)) = open.pop() {
        nodes += 1;
        if nodes > MOST_NODES {
            return;
        }
        if depth > DEEPEST {
            continue;
        }
        let first_child = open.len();
        match (place, value) {
            (Place::Schema, Value::Object(keywords)) => {
                for (keyword, value) in keywords {
                    if let Some(place) = Place::of(keyword) {
                        open.push((place, value, depth + 1));
                    }
                }
            }
            (Place::Schema, Value::Array(schemas)) => {
                open.extend(schemas.iter().map(|schema| (Place::Schema, schema, depth + 1)));
            }
            (Place::Properties, Value::Object(properties)) => {
                for (name, schema) in properties {
                    emit(Piece::Name(name));
                    open.push((Place::Schema, schema, depth + 1));
                }
            }
            (Place::Definitions, Value::Object(schemas)) => {
                open.extend(schemas.values().map(|schema| (Place::Schema, schema, depth + 1)));
            }
            (Place::Text, Value::String(text)) => emit(Piece::Text(text)),
            (Place::Text, Value::Array(values)) => {
                open.extend(values.iter().map(|value| (Place::Text, value, depth + 1)));
            }
            _ => {}
        }
        // The stack hands out the last child first; reading order matters once a budget runs out.
        if let Some(children) = open.get_mut(first_child..) {
            children.reverse();
        }
    }
}

/// What a value is, by the keyword it stands under.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// A schema, or an array of schemas.
    Schema,
    /// Schemas by property name.
    Properties,
    /// Schemas by a name that no caller types.
    Definitions,
    /// A text, or an array of values some of which are texts.
    Text,
}

impl Place {
    /// `title` is left out: generators repeat the property's name there.
    fn of(keyword: &str) -> Option<Place> {
        match keyword {
            "properties" => Some(Place::Properties),
            "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
                Some(Place::Definitions)
            }
            "description" | "enum" | "const" => Some(Place::Text),
            "items"
            | "prefixItems"
            | "additionalProperties"
            | "anyOf"
            | "oneOf"
            | "allOf"
            | "if"
            | "then"
            | "else"
            | "contains" => Some(Place::Schema),
            _ => None,
        }
    }
}
