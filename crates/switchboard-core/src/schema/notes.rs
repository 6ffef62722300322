//! Descriptions of the parameters whose name and type do not say enough.

use serde_json::Value;

use super::object::{self, Presence, Property};
use super::shape::{Detail, Shape};
use super::{refs, text};

/// The maximum number of parameters with a note.
const MAX_NOTES: usize = 8;

/// The maximum number of bytes of a description.
const MAX_DESCRIPTION: usize = 1_000;

/// The server's description of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The name of the parameter, as in the signature.
    pub parameter: String,
    pub text: String,
}

/// Notes for the parameters that need an explanation: required parameters, and parameters whose
/// type says little.
pub fn notes(input_schema: &Value) -> Vec<Note> {
    let fields = object::fields(input_schema, input_schema);
    let notes = fields.iter().filter(|field| matters(input_schema, field)).filter_map(|field| {
        let description = description(input_schema, field.schema)?;
        let text = description.get(..description.floor_char_boundary(MAX_DESCRIPTION))?;
        let parameter = text::name(field.name).into_owned();
        (!repeats(text, field.name)).then(|| Note { parameter, text: text.to_owned() })
    });
    notes.take(MAX_NOTES).collect()
}

fn matters(root: &Value, field: &Property<'_>) -> bool {
    match field.presence {
        Presence::Required => true,
        Presence::Optional => {
            let shape = Shape::new(root, Detail::Tight).describe(field.schema);
            let kind = shape.trim_end_matches("[]");
            kind == "any" || kind == "object"
        }
    }
}

/// The description of a parameter, or of the schema to which it refers.
fn description<'s>(root: &'s Value, schema: &'s Value) -> Option<&'s str> {
    let own = schema.get("description").and_then(Value::as_str);
    let behind = || refs::resolve(root, schema)?.get("description").and_then(Value::as_str);
    own.or_else(behind).map(str::trim).filter(|text| !text.is_empty())
}

/// Whether a description only repeats the name of its parameter.
fn repeats(description: &str, name: &str) -> bool {
    let name = name.to_lowercase();
    let filler = ["the", "a", "an", "of", "for", "to", "this", "name", "value", "string"];
    let words = description.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut words = words.map(str::to_lowercase);
    words.all(|word| name.contains(&word) || filler.contains(&word.as_str()))
}
