//! Descriptions of parameters whose name and type are not enough.

use serde_json::Value;

use super::object::{self, Presence, Property};
use super::shape::{Detail, Shape};
use super::{refs, text};

/// The most parameters of one tool that get a note.
const MAX_NOTES: usize = 8;

/// The most bytes of a description.
const MAX_DESCRIPTION: usize = 1_000;

/// The server's description of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The name as in the signature.
    pub parameter: String,
    pub text: String,
}

/// Notes on the parameters that need an explanation: required ones, and ones with an unspecific
/// type.
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

/// The description of a parameter, or of the schema that it references.
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
