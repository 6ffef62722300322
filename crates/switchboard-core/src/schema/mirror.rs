//! Which parameters a tool wants to see in headers as well (`x-mcp-header`), and what they say.
//!
//! The annotation is the server's word, so it is taken as the specification allows it or not at
//! all: on primitive values that are reached by properties alone, under names that no two share.

use std::collections::HashSet;

use serde_json::{Map, Value};

const ANNOTATION: &str = "x-mcp-header";

/// A header named by a tool is no longer than this.
const LONGEST_NAME: usize = 128;

/// What is wrong with the annotations of a tool, which cannot be called for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MirrorError {
    #[error("`x-mcp-header` is no name of a header")]
    Name,
    #[error("`x-mcp-header` stands on what is no string, integer or boolean")]
    Type,
    #[error("`x-mcp-header` stands where no parameter is")]
    Place,
    #[error("two parameters have the same `x-mcp-header`")]
    Twice,
}

/// The headers that a call with these arguments has: names as the schema has them, and values.
pub fn mirrored(
    schema: &Value,
    args: &Map<String, Value>,
) -> Result<Vec<(String, String)>, MirrorError> {
    let mut found = Vec::new();
    if let Some(schema) = schema.as_object() {
        look(schema, Some(args), Place::Root, &mut found)?;
    }
    let mut names = HashSet::new();
    if !found.iter().all(|(name, _)| names.insert(name.to_ascii_lowercase())) {
        return Err(MirrorError::Twice);
    }
    Ok(found.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
}

/// Where a schema stands in the one of the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Root,
    /// The value of a parameter, or of a property of one.
    Property,
    /// Anywhere else: no single value belongs to it.
    Aside,
}

/// A name, and what the arguments have there.
type Found = Vec<(String, Option<String>)>;

/// As deep as the schema, whose depth its parser bounds.
fn look(
    schema: &Map<String, Value>,
    args: Option<&Map<String, Value>>,
    place: Place,
    found: &mut Found,
) -> Result<(), MirrorError> {
    if place != Place::Property && schema.contains_key(ANNOTATION) {
        return Err(MirrorError::Place);
    }
    for (key, value) in schema {
        match key.as_str() {
            "properties" if place != Place::Aside => {
                for (name, property) in value.as_object().into_iter().flatten() {
                    let Some(property) = property.as_object() else { continue };
                    let arg = args.and_then(|args| args.get(name));
                    if let Some(annotation) = property.get(ANNOTATION) {
                        found.push((header(annotation, property)?, arg.and_then(text)));
                    }
                    let inner = arg.and_then(Value::as_object);
                    look(property, inner, Place::Property, found)?;
                }
            }
            "properties" | "$defs" | "definitions" | "dependentSchemas" | "patternProperties" => {
                for schema in value.as_object().into_iter().flat_map(Map::values) {
                    look_aside(schema)?;
                }
            }
            // Values, not schemas.
            "default" | "const" | "enum" | "examples" => {}
            _ => look_aside(value)?,
        }
    }
    Ok(())
}

fn look_aside(value: &Value) -> Result<(), MirrorError> {
    match value {
        Value::Object(schema) => look(schema, None, Place::Aside, &mut Found::new()),
        Value::Array(schemas) => schemas.iter().try_for_each(look_aside),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// The name that an annotation gives to a property that can have one.
fn header(annotation: &Value, property: &Map<String, Value>) -> Result<String, MirrorError> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let name = annotation.as_str().ok_or(MirrorError::Name)?;
    if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(is_token) {
        return Err(MirrorError::Name);
    }
    match property.get("type").and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => Ok(name.to_owned()),
        Some(_) | None => Err(MirrorError::Type),
    }
}

/// What a value is in a header; nothing for what is left out or cannot stand there.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(properties: Value, args: Value, expected: Result<&[(&str, &str)], MirrorError>) {
        let schema = json!({ "type": "object", "properties": properties });
        let args = args.as_object().cloned().unwrap_or_default();
        let expected = expected.map(|headers| {
            headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
        });
        assert_eq!(mirrored(&schema, &args), expected, "{schema}");
    }

    fn named(name: &str, kind: &str) -> Value {
        json!({ "type": kind, "x-mcp-header": name })
    }

    #[test]
    fn annotated_parameters_are_mirrored_and_no_others() {
        let properties = json!({
            "region": named("Region", "string"),
            "priority": named("Priority", "integer"),
            "verbose": named("Verbose", "boolean"),
            "absent": named("Absent", "string"),
            "none": named("None", "string"),
            "query": { "type": "string" },
            "inner": { "type": "object", "properties": { "zone": named("Zone", "string") } },
        });
        let args = json!({
            "region": "us west", "priority": 42, "verbose": false, "none": null, "query": "x",
            "inner": { "zone": "b" },
        });
        let expected =
            [("Region", "us west"), ("Priority", "42"), ("Verbose", "false"), ("Zone", "b")];
        check(properties, args, Ok(&expected));
        check(json!({ "a": { "default": { "x-mcp-header": "" } } }), json!({}), Ok(&[]));
    }

    #[test]
    fn an_annotation_that_the_specification_does_not_allow_is_an_error() {
        for name in ["", "My Region", "Region:Primary", "Région", "Region\t1", "a\r\nb: c"] {
            check(json!({ "a": named(name, "string") }), json!({}), Err(MirrorError::Name));
        }
        check(
            json!({ "a": { "type": "string", "x-mcp-header": 7 } }),
            json!({}),
            Err(MirrorError::Name),
        );
        for kind in ["object", "array", "null", "number"] {
            check(json!({ "a": named("A", kind) }), json!({}), Err(MirrorError::Type));
        }
        check(json!({ "a": { "x-mcp-header": "A" } }), json!({}), Err(MirrorError::Type));
        let twice = json!({ "a": named("MyField", "string"), "b": named("myfield", "string") });
        check(twice, json!({}), Err(MirrorError::Twice));
        let item = json!({ "a": { "type": "array", "items": named("Item", "string") } });
        check(item, json!({}), Err(MirrorError::Place));
        let choice = json!({ "a": { "anyOf": [named("Choice", "string")] } });
        check(choice, json!({}), Err(MirrorError::Place));
        let root = json!({ "type": "object", "x-mcp-header": "Root" });
        assert_eq!(mirrored(&root, &Map::new()), Err(MirrorError::Place));
    }
}
