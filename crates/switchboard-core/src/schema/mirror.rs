//! Parameters that are also sent as HTTP headers (`x-mcp-header`), and the values of these headers.
//!
//! The annotation comes from the server, so it is accepted only as the specification allows: on
//! primitive values that are reached only through `properties`, and with unique header names.

use std::collections::HashSet;

use serde_json::{Map, Value};

const ANNOTATION: &str = "x-mcp-header";

/// The maximum length of a header name that a tool declares.
const LONGEST_NAME: usize = 128;

/// Why the `x-mcp-header` annotations of a tool are invalid, so that it cannot be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MirrorError {
    #[error("`x-mcp-header` is not a valid header name")]
    Name,
    #[error("`x-mcp-header` requires a string, integer or boolean parameter")]
    Type,
    #[error("`x-mcp-header` is allowed only on parameters")]
    NotAParameter,
    #[error("two parameters have the same `x-mcp-header`")]
    Twice,
}

/// The names and values of the headers for a call with these arguments.
pub fn mirrored(
    schema: &Value,
    args: &Map<String, Value>,
) -> Result<Vec<(String, String)>, MirrorError> {
    let mut found = Vec::new();
    if let Some(schema) = schema.as_object() {
        collect_headers(schema, Some(args), HeaderPosition::Root, &mut found)?;
    }
    let mut names = HashSet::new();
    if !found.iter().all(|(name, _)| names.insert(name.to_ascii_lowercase())) {
        return Err(MirrorError::Twice);
    }
    Ok(found.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
}

/// Where a schema stands within the input schema of the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderPosition {
    Root,
    /// The schema of a parameter, or of a property inside a parameter.
    Property,
    /// A schema that does not describe a single value of the arguments, such as that of array
    /// items.
    Aside,
}

/// The header names, each with the value of its argument.
type HeaderValues = Vec<(String, Option<String>)>;

/// Adds the headers that a schema declares. Recursion is safe, because the parser limits the depth
/// of the schema.
fn collect_headers(
    schema: &Map<String, Value>,
    args: Option<&Map<String, Value>>,
    place: HeaderPosition,
    found: &mut HeaderValues,
) -> Result<(), MirrorError> {
    if place != HeaderPosition::Property && schema.contains_key(ANNOTATION) {
        return Err(MirrorError::NotAParameter);
    }
    for (key, value) in schema {
        match key.as_str() {
            "properties" if place != HeaderPosition::Aside => {
                for (name, property) in value.as_object().into_iter().flatten() {
                    let Some(property) = property.as_object() else { continue };
                    let arg = args.and_then(|args| args.get(name));
                    if let Some(annotation) = property.get(ANNOTATION) {
                        found.push((header(annotation, property)?, arg.and_then(text)));
                    }
                    let inner = arg.and_then(Value::as_object);
                    collect_headers(property, inner, HeaderPosition::Property, found)?;
                }
            }
            "properties" | "$defs" | "definitions" | "dependentSchemas" | "patternProperties" => {
                for schema in value.as_object().into_iter().flat_map(Map::values) {
                    reject_headers(schema)?;
                }
            }
            // `default`, `const`, `enum` and `examples` contain values, not schemas.
            "default" | "const" | "enum" | "examples" => {}
            _ => reject_headers(value)?,
        }
    }
    Ok(())
}

fn reject_headers(value: &Value) -> Result<(), MirrorError> {
    match value {
        Value::Object(schema) => {
            collect_headers(schema, None, HeaderPosition::Aside, &mut HeaderValues::new())
        }
        Value::Array(schemas) => schemas.iter().try_for_each(reject_headers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// The header name of a property with the annotation, after validation.
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

/// The header value of an argument; `None` for `null`, arrays and objects.
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
    fn only_annotated_parameters_are_mirrored_in_headers() {
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
    fn invalid_header_annotation_is_an_error() {
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
        check(item, json!({}), Err(MirrorError::NotAParameter));
        let choice = json!({ "a": { "anyOf": [named("Choice", "string")] } });
        check(choice, json!({}), Err(MirrorError::NotAParameter));
        let root = json!({ "type": "object", "x-mcp-header": "Root" });
        assert_eq!(mirrored(&root, &Map::new()), Err(MirrorError::NotAParameter));
    }
}
