//! Extracts the part of a schema that can be checked: self-contained, limited in size, with
//! patterns that run in linear time.

use std::collections::HashSet;

use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::SchemaError;
use super::refs;

/// The memory limit of one compiled pattern, in bytes.
pub(super) const MAX_PATTERN_BYTES: usize = 64 * 1024;

/// The maximum number of patterns that are compiled for one schema. Further patterns are not
/// checked.
const MAX_PATTERNS: usize = 32;

/// The maximum number of times that the schema is copied. Removing a part can leave a reference
/// without a target, which the next copy removes.
const MAX_PASSES: usize = 4;

/// A copy of `schema` without the parts that cannot be checked: references to other documents,
/// patterns that do not run in linear time, prose, and unknown keywords. The copy accepts all
/// values that the original accepts.
pub(super) fn checkable(schema: &Value) -> Result<Value, SchemaError> {
    let mut dangling = HashSet::new();
    let mut mode = CopyMode::Exact;
    for _ in 0..MAX_PASSES {
        let mut pass = Pass { mode, dangling: &dangling, patterns: 0, left_out: false };
        let copy = pass.schema(schema, SchemaLevel::Root);
        let missing: HashSet<String> = references(&copy)
            .filter(|reference| {
                refs::pointer(reference).is_none_or(|at| copy.pointer(&at).is_none())
            })
            .map(str::to_owned)
            .collect();
        let is_final = mode == CopyMode::Lenient || !pass.left_out;
        if missing.is_empty() && is_final {
            return Ok(copy);
        }
        dangling.extend(missing);
        mode = CopyMode::Lenient;
    }
    Err(SchemaError::Invalid)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CopyMode {
    Exact,
    /// A part was removed, so the copy accepts more than the original. Keywords that reject a match
    /// (`not`, `oneOf`, …) would now reject valid values, and are removed too.
    Lenient,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaLevel {
    Root,
    Within,
}

struct Pass<'p> {
    mode: CopyMode,
    dangling: &'p HashSet<String>,
    patterns: usize,
    left_out: bool,
}

impl Pass<'_> {
    fn schema(&mut self, schema: &Value, place: SchemaLevel) -> Value {
        let Value::Object(keywords) = schema else {
            return schema.clone();
        };
        if self.is_foreign(keywords, place) {
            self.left_out = true;
            let definitions =
                keywords.iter().filter(|(key, _)| *key == "$defs" || *key == "definitions");
            return definitions
                .map(|(key, value)| (key.clone(), self.keyword(key, value)))
                .collect();
        }
        let mut copy = Map::new();
        for (key, value) in keywords {
            match key.as_str() {
                "pattern" if !self.is_linear(value.as_str()) => self.left_out = true,
                "patternProperties" if !self.are_linear(value) => self.left_out = true,
                "not"
                | "oneOf"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "minContains"
                | "maxContains"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                    if self.mode == CopyMode::Lenient => {}
                _ if is_checked(key) => {
                    copy.insert(key.clone(), self.keyword(key, value));
                }
                _ => {}
            }
        }
        if keywords.contains_key("patternProperties") && !copy.contains_key("patternProperties") {
            copy.shift_remove("additionalProperties");
        }
        Value::Object(copy)
    }

    fn keyword(&mut self, key: &str, value: &Value) -> Value {
        match value {
            Value::Object(schemas) if refs::SCHEMAS_BY_NAME.contains(&key) => schemas
                .iter()
                .map(|(name, schema)| (name.clone(), self.schema(schema, SchemaLevel::Within)))
                .collect(),
            Value::Array(schemas) if SCHEMA_LISTS.contains(&key) => {
                schemas.iter().map(|schema| self.schema(schema, SchemaLevel::Within)).collect()
            }
            schema if SINGLE_SCHEMAS.contains(&key) => self.schema(schema, SchemaLevel::Within),
            value => value.clone(),
        }
    }

    /// Whether the meaning of a schema depends on another document or on a dynamic reference.
    fn is_foreign(&self, keywords: &Map<String, Value>, place: SchemaLevel) -> bool {
        let reference = keywords.get("$ref").and_then(Value::as_str);
        let unresolved =
            reference.is_some_and(|it| refs::pointer(it).is_none() || self.dangling.contains(it));
        let dynamic =
            ["$dynamicRef", "$recursiveRef"].iter().any(|key| keywords.contains_key(*key));
        // An `$id` below the root changes the base URI of every reference inside it.
        let rebased = place == SchemaLevel::Within
            && ["$id", "$schema"].iter().any(|key| keywords.contains_key(*key));
        unresolved || dynamic || rebased
    }

    fn are_linear(&mut self, patterns: &Value) -> bool {
        let Value::Object(patterns) = patterns else {
            return true;
        };
        patterns.keys().all(|pattern| self.is_linear(Some(pattern)))
    }

    fn is_linear(&mut self, pattern: Option<&str>) -> bool {
        let Some(pattern) = pattern else { return true };
        self.patterns += 1;
        self.patterns <= MAX_PATTERNS
            && RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build().is_ok()
    }
}

/// Keywords whose value is a list of schemas. The value of `items` can also be a single schema.
const SCHEMA_LISTS: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];

/// Keywords whose value is a single schema.
const SINGLE_SCHEMAS: [&str; 11] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords without schemas. `format` is not checked, because servers accept different addresses
/// and dates.
const ASSERTIONS: [&str; 21] = [
    "$ref",
    "const",
    "dependentRequired",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "required",
    "type",
    "uniqueItems",
];

/// Whether the copy contains this keyword: it accepts or rejects values, or has targets of
/// references.
fn is_checked(key: &str) -> bool {
    let lists = [&refs::SCHEMAS_BY_NAME[..], &SCHEMA_LISTS, &SINGLE_SCHEMAS, &ASSERTIONS];
    lists.iter().any(|keywords| keywords.contains(&key))
}

/// Every string below the key `$ref`, at any depth.
fn references(schema: &Value) -> impl Iterator<Item = &str> {
    let mut pending = vec![schema];
    let mut found = Vec::new();
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                pending.extend(fields.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found.into_iter()
}
