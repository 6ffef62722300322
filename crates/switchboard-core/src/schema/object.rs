//! The properties of an object schema, including those from `$ref` and `allOf`.

use std::collections::HashMap;

use serde_json::Value;

use super::refs;

/// The schema of a property that is required but not declared: it accepts any value.
static ANYTHING: Value = Value::Bool(true);

/// The maximum number of schemas that are merged into one object. The limit also ends a cycle of
/// `allOf`.
const MAX_PARTS: usize = 16;

/// The maximum number of properties of one object.
const MAX_FIELDS: usize = 1_000;

/// One property of an object schema.
#[derive(Clone, Copy)]
pub(super) struct Property<'s> {
    pub(super) name: &'s str,
    pub(super) schema: &'s Value,
    pub(super) presence: Presence,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Required,
    Optional,
}

/// The properties of a schema: first the required ones in declared order, then the optional ones.
/// If a name is declared several times, the first declaration is used.
pub(super) fn fields<'s>(root: &'s Value, schema: &'s Value) -> Vec<Property<'s>> {
    let mut fields: Vec<Property<'s>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut required: Vec<&str> = Vec::new();
    for part in parts(root, schema) {
        if let Some(Value::Object(properties)) = part.get("properties") {
            for (name, schema) in properties {
                if fields.len() < MAX_FIELDS && !places.contains_key(name.as_str()) {
                    places.insert(name, fields.len());
                    fields.push(Property { name, schema, presence: Presence::Optional });
                }
            }
        }
        if let Some(Value::Array(names)) = part.get("required") {
            required.extend(names.iter().filter_map(Value::as_str).take(MAX_FIELDS));
        }
    }
    for name in required {
        let place = *places.entry(name).or_insert(fields.len());
        if let Some(field) = fields.get_mut(place) {
            field.presence = Presence::Required;
        } else if fields.len() < MAX_FIELDS {
            fields.push(Property { name, schema: &ANYTHING, presence: Presence::Required });
        }
    }
    fields.sort_by_key(|field| field.presence == Presence::Optional);
    fields
}

/// Whether the schema has properties.
pub(super) fn has_fields(root: &Value, schema: &Value) -> bool {
    parts(root, schema).iter().any(|part| {
        part.get("properties").and_then(Value::as_object).is_some_and(|it| !it.is_empty())
            || part.get("required").and_then(Value::as_array).is_some_and(|it| !it.is_empty())
    })
}

/// The schema in `additionalProperties`; `None` if it is empty or not an object.
pub(super) fn extra<'s>(root: &'s Value, schema: &'s Value) -> Option<&'s Value> {
    let extra = refs::resolve(root, schema)?.get("additionalProperties")?;
    extra.as_object().filter(|keywords| !keywords.is_empty()).map(|_| extra)
}

/// The schema itself, and all schemas that apply together with it through `$ref` and `allOf`.
fn parts<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Value> {
    let mut parts = vec![schema];
    let mut next = 0;
    while let Some(part) = parts.get(next).copied() {
        next += 1;
        let all_of = part.get("allOf").and_then(Value::as_array).into_iter().flatten();
        for part in refs::target(root, part).into_iter().chain(all_of) {
            if parts.len() < MAX_PARTS && !parts.iter().any(|known| std::ptr::eq(*known, part)) {
                parts.push(part);
            }
        }
    }
    parts
}
