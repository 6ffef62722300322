//! Input schemas in the two forms in which an adapter with one tool for each server shows them, and
//! arguments that match them.

use serde_json::{Map, Value, json};

/// Parts of a schema below this depth are shown as `object`.
const DEPTH: usize = 6;

/// Keywords that the short form cannot express.
const BEYOND: [&str; 7] =
    ["if", "then", "else", "allOf", "not", "patternProperties", "additionalProperties"];

/// The schema as a result shows it, each line indented by `indent`.
pub(crate) fn shown(schema: &Value, indent: &str) -> String {
    if is_beyond(schema, DEPTH) {
        let lines = parameters(schema);
        return format!("{indent}Parameters:\n{indent}  {}", lines.join(&format!("\n{indent}  ")));
    }
    format!("{indent}Shape:\n{indent}  {}", shape(schema, DEPTH))
}

fn is_beyond(schema: &Value, depth: usize) -> bool {
    let Some(fields) = schema.as_object().filter(|_| depth > 0) else { return false };
    let beyond = |word: &&str| fields.get(*word).is_some_and(|value| *value != false);
    let inside = fields.get("properties").and_then(Value::as_object).into_iter();
    BEYOND.iter().any(beyond)
        || inside.flat_map(Map::values).any(|inner| is_beyond(inner, depth - 1))
        || fields.get("items").is_some_and(|items| is_beyond(items, depth - 1))
}

/// The short form, such as `{ format?: "png" | "jpeg"; fullPage?: boolean; }`.
fn shape(schema: &Value, depth: usize) -> String {
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    if let Some(values) = list("enum") {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    if let Some(choices) = list("anyOf").or(list("oneOf")).filter(|_| depth > 0) {
        return choices.iter().map(|it| shape(it, depth - 1)).collect::<Vec<_>>().join(" | ");
    }
    match kind(schema).as_str() {
        "integer" | "number" => "number".to_owned(),
        "array" => match schema.get("items").filter(|_| depth > 0) {
            Some(items) => format!("{}[]", shape(items, depth - 1)),
            None => "unknown[]".to_owned(),
        },
        "object" if depth > 0 && schema.get("properties").is_some() => {
            let mut out = "{".to_owned();
            for (name, property, required) in properties(schema) {
                let mark = if required { "" } else { "?" };
                out.push_str(&format!(" {name}{mark}: {};", shape(property, depth - 1)));
            }
            out.push_str(" }");
            out
        }
        other => other.to_owned(),
    }
}

/// The long form, one line for each parameter: `name (type) *required* - description [default: 1]`.
fn parameters(schema: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, property, required) in properties(schema) {
        let mut line = format!("{name} ({})", kind(property));
        if required {
            line.push_str(" *required*");
        }
        if let Some(about) = property.get("description").and_then(Value::as_str) {
            line.push_str(&format!(" - {about}"));
        }
        for key in ["enum", "minimum", "maximum", "default"] {
            if let Some(value) = property.get(key) {
                line.push_str(&format!(" [{key}: {value}]"));
            }
        }
        lines.push(line);
    }
    if lines.is_empty() { vec!["(no parameters)".to_owned()] } else { lines }
}

/// The fewest arguments that the schema accepts.
pub(crate) fn arguments(schema: &Value) -> Value {
    let required = properties(schema).into_iter().filter(|(_, _, required)| *required);
    let fields = required.map(|(name, property, _)| (name.to_owned(), sample(property, DEPTH)));
    Value::Object(fields.collect())
}

fn sample(schema: &Value, depth: usize) -> Value {
    let first = |key: &str| schema.get(key).and_then(Value::as_array)?.first();
    if let Some(value) = schema.get("const").or(schema.get("default")).or(first("enum")) {
        return value.clone();
    }
    if let Some(choice) = first("anyOf").or(first("oneOf")).filter(|_| depth > 0) {
        return sample(choice, depth - 1);
    }
    match kind(schema).as_str() {
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(7)),
        "boolean" => json!(true),
        "array" => match schema.get("items").filter(|_| depth > 0) {
            Some(items) => json!([sample(items, depth - 1)]),
            None => json!([]),
        },
        "object" => arguments(schema),
        _ => json!("an example value"),
    }
}

fn properties(schema: &Value) -> Vec<(&str, &Value, bool)> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.contains(&json!(name)));
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties.map(|(name, property)| (name.as_str(), property, is_required(name))).collect()
}

fn kind(schema: &Value) -> String {
    match schema.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            kinds.collect::<Vec<_>>().join(" | ")
        }
        Some(_) | None if schema.get("properties").is_some() => "object".to_owned(),
        Some(_) | None => "unknown".to_owned(),
    }
}
