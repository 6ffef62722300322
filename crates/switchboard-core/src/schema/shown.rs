//! The input schema of a direct tool: as the server wrote it, except for parts that hosts reject.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use crate::exact::{Members, members};

/// A schema that accepts any object.
const EMPTY: &str = r#"{"type":"object","properties":{}}"#;

/// The maximum nesting of schemas that are checked.
const DEPTH: usize = 16;

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

/// The schema of a tool's parameters in a form that hosts accept. A root that is not an object
/// schema is replaced by one that accepts any object. The schema of a property with an unknown type
/// is replaced by one that accepts any value.
pub fn as_parameters(schema: &str) -> Cow<'_, str> {
    let Some(root) = members(schema) else { return Cow::Borrowed(EMPTY) };
    let mut edits = Edits::new();
    match root.get("type").map(serde_json::from_str::<Value>) {
        Some(Ok(Value::String(kind))) if kind == "object" => {}
        Some(Ok(Value::Array(kinds))) if kinds.iter().any(|kind| kind == "object") => {}
        Some(_) => return Cow::Borrowed(EMPTY),
        None if root.get("properties").is_some() => {
            let inside = schema.find('{').map_or(0, |brace| brace + 1);
            edits.push((inside..inside, "\"type\":\"object\",".to_owned()));
        }
        None if ["$ref", "anyOf", "oneOf", "allOf"].iter().any(|key| root.get(key).is_some()) => {}
        None => return Cow::Borrowed(EMPTY),
    }
    within(&root, schema, DEPTH, &mut edits);
    if edits.is_empty() {
        return Cow::Borrowed(schema);
    }
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(schema.len());
    let mut done = 0;
    for (range, text) in edits {
        out.push_str(schema.get(done..range.start).unwrap_or_default());
        out.push_str(&text);
        done = range.end;
    }
    out.push_str(schema.get(done..).unwrap_or_default());
    Cow::Owned(out)
}

type Edits = Vec<(Range<usize>, String)>;

/// Collects the replacements of unknown types in the schemas of properties and array items.
fn within(schema: &Members<'_>, whole: &str, depth: usize, edits: &mut Edits) {
    if depth == 0 {
        return;
    }
    for (_, property) in schema.get("properties").and_then(members).iter().flat_map(|all| &all.0) {
        replace_unknown(property, whole, depth, edits);
    }
    if let Some(items) = schema.get("items").filter(|items| items.starts_with('{')) {
        replace_unknown(items, whole, depth, edits);
    }
}

fn replace_unknown(schema: &str, whole: &str, depth: usize, edits: &mut Edits) {
    let anything = match members(schema) {
        None if matches!(schema, "true" | "false") => return,
        None => "{}".to_owned(),
        Some(members) if members.get("type").is_none_or(is_known) => {
            return within(&members, whole, depth - 1, edits);
        }
        Some(members) => match members.get("description").filter(|text| text.starts_with('"')) {
            None => "{}".to_owned(),
            Some(description) => format!("{{\"description\":{description}}}"),
        },
    };
    let start = schema.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
    edits.push((start..start.wrapping_add(schema.len()), anything));
}

fn is_known(kind: &str) -> bool {
    let known = |kind: &Value| kind.as_str().is_some_and(|kind| TYPES.contains(&kind));
    match serde_json::from_str::<Value>(kind) {
        Ok(Value::Array(kinds)) => !kinds.is_empty() && kinds.iter().all(known),
        Ok(kind) => known(&kind),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &str, expected: &str) {
        assert_eq!(as_parameters(schema), expected, "{schema}");
        let again = as_parameters(expected);
        assert_eq!(again, expected, "a second pass changes nothing");
    }

    #[track_caller]
    fn unchanged(schema: &str) {
        assert!(matches!(as_parameters(schema), Cow::Borrowed(same) if same == schema), "{schema}");
    }

    #[test]
    fn direct_tool_shows_a_supported_schema_unchanged() {
        let of = |property: &str| {
            format!("{{ \"type\" : \"object\", \"properties\":{{\"p\": {property} }} }}")
        };
        for property in [
            r#"{"type":"string","minLength":1,"maxLength":9}"#,
            r#"{"type":"number","minimum":0.50,"maximum":1e3}"#,
            r#"{"type":"integer","minimum":1}"#,
            r#"{"type":"boolean","default":true}"#,
            r#"{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":3}"#,
            r#"{"type":"object","properties":{"key":{"type":"string"}},"required":["key"]}"#,
            r#"{"type":"string","enum":["celsius","fahrenheit"],"default":"celsius"}"#,
            r#"{"type":["string","null"]}"#,
            r##"{"anyOf":[{"type":"string"},{"$ref":"#/$defs/x"}]}"##,
            r#"{"enum":[1,"a",null]}"#,
            r#"{"description":"anything"}"#,
            "{}",
            "true",
        ] {
            unchanged(&of(property));
        }
        unchanged(r#"{"type":"object"}"#);
        unchanged(
            r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false,"$defs":{"x":{"type":"odd"}}}"#,
        );
        unchanged(r##"{"$ref":"#/$defs/x","$defs":{"x":{"type":"object"}}}"##);
        unchanged(r#"{"anyOf":[{"type":"object"}]}"#);
    }

    #[test]
    fn direct_tool_shows_a_non_object_schema_as_object() {
        for root in [
            r#"{"type":"array","items":{"type":"object"}}"#,
            r#"{"type":"string"}"#,
            r#"{"type":["string","null"]}"#,
            r#"{"type":null,"properties":{"a":{}}}"#,
            r#"{"type":7}"#,
            "{}",
            "[]",
            "true",
            "null",
            "\"object\"",
            "{broken",
            "",
        ] {
            check(root, EMPTY);
        }
        check(
            r#"{ "properties":{"a":{"type":"string"}}}"#,
            r#"{"type":"object", "properties":{"a":{"type":"string"}}}"#,
        );
    }

    #[test]
    fn property_of_unknown_schema_type_is_shown_without_type() {
        let of = |property: &str| {
            format!(
                r#"{{"type":"object","properties":{{"p": {property},"q":{{"type":"string"}}}}}}"#
            )
        };
        for (property, expected) in [
            (
                r#"{"type":"date","description":"When \"it\" is"}"#,
                r#"{"description":"When \"it\" is"}"#,
            ),
            (r#"{"type":"date","format":"x"}"#, "{}"),
            (r#"{"type":["string","date"]}"#, "{}"),
            (r#"{"type":[]}"#, "{}"),
            (r#"{"type":{"oneOf":[]},"description":7}"#, "{}"),
            ("\"string\"", "{}"),
            ("null", "{}"),
            ("[1]", "{}"),
            (
                r#"{"type":"object","properties":{"in":{"type":"odd"}}}"#,
                r#"{"type":"object","properties":{"in":{}}}"#,
            ),
            (r#"{"type":"array","items":{"type":"odd"}}"#, r#"{"type":"array","items":{}}"#),
        ] {
            check(&of(property), &of(expected));
        }
    }

    #[test]
    fn schema_part_deeper_than_the_limit_is_unchanged() {
        let deep = format!(
            "{}{{\"type\":\"odd\"}}{}",
            "{\"type\":\"array\",\"items\":".repeat(60),
            "}".repeat(60)
        );
        let schema = format!("{{\"type\":\"object\",\"properties\":{{\"p\":{deep}}}}}");
        unchanged(&schema);
    }
}
