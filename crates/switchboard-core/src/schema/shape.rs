//! Writes a schema as a short type on one line.

use serde_json::{Map, Value};

use super::object::{self, Presence, Property};
use super::{refs, text};
use crate::budget::weight;

/// The maximum weight of a signature in search results. Longer signatures are cut between two
/// parameters.
const MAX_SIGNATURE: usize = 600;

/// The maximum weight of the type of a tool's structured result.
const MAX_OUTPUT: usize = 240;

/// The maximum number of bytes of a default in a signature. `describe` shows longer defaults too.
const MAX_DEFAULT_BYTES: usize = 24;

/// The maximum number of nested levels that are shown.
const MAX_LEVELS: usize = 24;

/// The signature of a tool: `list_issues(owner: string, state?: "open"|"closed" = "open")`.
pub fn signature(name: &str, input_schema: &Value) -> String {
    let mut shape = Shape::new(input_schema, Detail::Short);
    let mut line = text::tool_name(name).into_owned();
    line.push('(');
    let fields = object::fields(input_schema, input_schema);
    if fields.is_empty() {
        match shape.describe(input_schema).as_str() {
            "object" | "any" => {}
            alternatives => line.push_str(alternatives),
        }
    }
    for (index, field) in fields.iter().enumerate() {
        let parameter = shape.parameter(field);
        if weight(&line) + weight(&parameter) > MAX_SIGNATURE {
            line.push_str(if index == 0 { "…" } else { ", …" });
            break;
        }
        if index > 0 {
            line.push_str(", ");
        }
        line.push_str(&parameter);
    }
    text::cut(line, MAX_SIGNATURE + 16) + ")"
}

/// The type of a tool's structured result, on one line.
pub fn output_shape(schema: &Value) -> String {
    text::cut(Shape::new(schema, Detail::Short).describe(schema), MAX_OUTPUT)
}

/// How much detail the text of a type has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// The type has the first options of an enum, and the properties of nested objects.
    Short,
    /// The type has more options of an enum. Nested objects have only a name, because lines with
    /// their properties follow.
    Tight,
    /// The type has all options of an enum. Nested objects have only a name.
    Outline,
}

impl Detail {
    /// The maximum weight of the options of one enum. Omitted options are counted.
    fn options(self) -> usize {
        match self {
            Detail::Short => 120,
            Detail::Tight => 400,
            Detail::Outline => 6_000,
        }
    }
}

pub(super) struct Shape<'s> {
    root: &'s Value,
    detail: Detail,
    /// The references that are being followed, to detect a cycle.
    following: Vec<&'s Value>,
    /// The number of schemas that may still be visited for one text, because many references can
    /// lead to the same schema.
    nodes_left: usize,
    levels_left: usize,
    objects_left: usize,
}

impl<'s> Shape<'s> {
    pub(super) fn new(root: &'s Value, detail: Detail) -> Self {
        let (nodes_left, objects_left) = match detail {
            Detail::Short => (1_000, 2),
            Detail::Tight | Detail::Outline => (2_500, 0),
        };
        Shape {
            root,
            detail,
            following: Vec::new(),
            nodes_left,
            levels_left: MAX_LEVELS,
            objects_left,
        }
    }

    pub(super) fn describe(&mut self, schema: &'s Value) -> String {
        if self.levels_left == 0 || self.nodes_left == 0 {
            return "any".to_owned();
        }
        self.nodes_left -= 1;
        self.levels_left -= 1;
        let text = match schema {
            Value::Object(keywords) => self.describe_keywords(schema, keywords),
            Value::Bool(false) => "never".to_owned(),
            _ => "any".to_owned(),
        };
        self.levels_left += 1;
        text
    }

    fn parameter(&mut self, field: &Property<'s>) -> String {
        let mark = match field.presence {
            Presence::Required => "",
            Presence::Optional => "?",
        };
        let mut parameter =
            format!("{}{mark}: {}", text::name(field.name), self.describe(field.schema));
        let default = field.schema.get("default").filter(|value| !value.is_null());
        if let Some(default) = default.map(text::literal)
            && default.len() <= MAX_DEFAULT_BYTES
        {
            parameter.push_str(" = ");
            parameter.push_str(&default);
        }
        parameter
    }

    fn describe_keywords(&mut self, schema: &'s Value, keywords: &'s Map<String, Value>) -> String {
        if keywords.contains_key("$ref") {
            return self.describe_reference(schema);
        }
        if let Some(value) = keywords.get("const") {
            return text::literal(value);
        }
        if let Some(Value::Array(options)) = keywords.get("enum") {
            return self.describe_options(options);
        }
        let alternatives = ["anyOf", "oneOf"].iter().find_map(|key| keywords.get(*key)?.as_array());
        if let Some(alternatives) = alternatives
            && !keywords.contains_key("properties")
        {
            let types: Vec<String> =
                alternatives.iter().map(|branch| self.describe(branch)).collect();
            // Alternatives that only list required properties have no type and are omitted.
            if !types.is_empty() && types.iter().any(|text| text != "any") {
                return self.union(types);
            }
        }
        let mut types: Vec<String> = match keywords.get("type") {
            Some(Value::String(name)) => vec![self.describe_named(schema, name)],
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str).take(7);
                names.map(|name| self.describe_named(schema, name)).collect()
            }
            _ if keywords.contains_key("properties") => vec![self.describe_object(schema)],
            _ if keywords.contains_key("items") => vec![self.describe_array(schema)],
            _ => vec![self.describe_all_of(schema)],
        };
        if keywords.get("nullable") == Some(&Value::Bool(true)) {
            types.push("null".to_owned());
        }
        self.union(types)
    }

    fn describe_reference(&mut self, schema: &'s Value) -> String {
        let Some(target) = refs::target(self.root, schema) else {
            return "any".to_owned();
        };
        if self.following.iter().any(|known| std::ptr::eq(*known, target)) {
            let is_object = target.get("type").is_some_and(|name| name == "object");
            return if is_object { "object" } else { "any" }.to_owned();
        }
        self.following.push(target);
        let text = self.describe(target);
        self.following.pop();
        text
    }

    fn describe_options(&mut self, options: &[Value]) -> String {
        let mut left = self.detail.options();
        let mut texts: Vec<String> = Vec::new();
        for option in options {
            let text = text::literal(option);
            let weight = weight(&text) + 1;
            if weight > left && !texts.is_empty() {
                texts.push(format!("…{} more", options.len() - texts.len()));
                break;
            }
            left = left.saturating_sub(weight);
            texts.push(text);
        }
        joined(&texts)
    }

    /// The types joined with `|`. In a short text, types together with `any` become `any`.
    fn union(&self, types: Vec<String>) -> String {
        if self.detail == Detail::Short && types.iter().any(|text| text == "any") {
            return "any".to_owned();
        }
        joined(&types)
    }

    fn describe_named(&mut self, schema: &'s Value, name: &str) -> String {
        match name {
            "object" => self.describe_object(schema),
            "array" => self.describe_array(schema),
            "string" | "number" | "integer" | "boolean" | "null" => name.to_owned(),
            _ => "any".to_owned(),
        }
    }

    fn describe_array(&mut self, schema: &'s Value) -> String {
        let tuple = ["prefixItems", "items"].iter().find_map(|key| schema.get(*key)?.as_array());
        if let Some(items) = tuple {
            let items: Vec<String> = items.iter().map(|item| self.describe(item)).collect();
            return format!("[{}]", items.join(", "));
        }
        let item = schema.get("items").map_or("any".to_owned(), |item| self.describe(item));
        if is_union(&item) { format!("({item})[]") } else { format!("{item}[]") }
    }

    fn describe_object(&mut self, schema: &'s Value) -> String {
        if self.objects_left == 0 || !object::has_fields(self.root, schema) {
            return self.describe_map(schema).unwrap_or_else(|| "object".to_owned());
        }
        let fields = object::fields(self.root, schema);
        self.objects_left -= 1;
        let mut texts = Vec::new();
        for field in &fields {
            if self.nodes_left == 0 {
                texts.push("…".to_owned());
                break;
            }
            texts.push(self.parameter(field));
        }
        self.objects_left += 1;
        format!("{{{}}}", texts.join(", "))
    }

    /// The type of an object whose keys are data: `{[key]: number}`.
    fn describe_map(&mut self, schema: &'s Value) -> Option<String> {
        if schema.get("properties").is_some() {
            return None;
        }
        let extra = object::extra(self.root, schema)?;
        Some(format!("{{[key]: {}}}", self.describe(extra)))
    }

    fn describe_all_of(&mut self, schema: &'s Value) -> String {
        let Some(Value::Array(parts)) = schema.get("allOf") else {
            return "any".to_owned();
        };
        if object::has_fields(self.root, schema) {
            return self.describe_object(schema);
        }
        let mut texts = parts.iter().map(|part| self.describe(part));
        texts.find(|text| text != "any").unwrap_or_else(|| "any".to_owned())
    }
}

/// The types joined with `|`. Repeated types are omitted.
fn joined(types: &[String]) -> String {
    let mut seen = std::collections::HashSet::new();
    let distinct: Vec<&str> =
        types.iter().map(String::as_str).filter(|text| seen.insert(*text)).collect();
    distinct.join("|")
}

/// Whether the text has a `|` outside of brackets and quotes.
fn is_union(text: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_i32, false, false);
    text.chars().any(|c| {
        let in_text = in_string;
        in_string ^= c == '"' && !escaped;
        escaped = in_text && c == '\\' && !escaped;
        match c {
            '{' | '[' | '(' if !in_text => depth += 1,
            '}' | ']' | ')' if !in_text => depth -= 1,
            _ => {}
        }
        c == '|' && !in_text && depth == 0
    })
}
