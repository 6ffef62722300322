//! All parameters of a tool, one line each, with everything its schema says about them.

use serde_json::Value;

use super::object::{self, Field, Presence};
use super::shape::{Detail, Shape};
use super::{refs, text};

/// For `describe`: nothing of a sane tool is lost.
const FULL: Bounds = Bounds { bytes: 32 * 1024, description: 4 * 1024 };

/// For the answer to wrong arguments, which comes unasked.
const TIGHT: Bounds = Bounds { bytes: 3 * 1024, description: 160 };

/// Nesting that is shown.
const MAX_LEVELS: usize = 12;

/// How far references, alternatives and list items are followed at one parameter.
const MAX_STEPS: usize = 6;

/// Alternatives of one schema that are looked at.
const MAX_ALTERNATIVES: usize = 64;

/// Schemas looked at for one text: references can name the same schema many times.
const MAX_VISITS: usize = 2_500;

/// Every parameter of a tool, for `describe`.
pub fn parameters(input_schema: &Value) -> String {
    outline(input_schema, FULL)
}

/// The parameters of a tool within a tight bound, for the answer to wrong arguments.
pub fn expected(input_schema: &Value) -> String {
    outline(input_schema, TIGHT)
}

#[derive(Clone, Copy)]
struct Bounds {
    bytes: usize,
    description: usize,
}

fn outline(schema: &Value, bounds: Bounds) -> String {
    let mut outline = Outline {
        root: schema,
        shape: Shape::new(schema, Detail::Outline),
        bounds,
        text: String::new(),
        shown: Vec::new(),
        visits_left: MAX_VISITS,
    };
    let objects = outline.objects(schema);
    outline.nested(&objects, "", 0);
    if let ([], Some(extra)) = (objects.as_slice(), object::extra(schema, schema)) {
        let field = Field { name: "", schema: extra, presence: Presence::Optional };
        outline.parameter("[key]", &field, 0);
    }
    if outline.text.is_empty() {
        outline.text.push_str("(no parameters)");
    }
    if outline.text.len() > bounds.bytes {
        let end = outline.text.floor_char_boundary(bounds.bytes);
        let line_end = outline.text.get(..end).and_then(|text| text.rfind('\n')).unwrap_or(end);
        outline.text.truncate(line_end);
        outline.text.push_str("\n…");
    }
    outline.text
}

struct Outline<'s> {
    root: &'s Value,
    shape: Shape<'s>,
    bounds: Bounds,
    text: String,
    /// Objects whose properties are in the text, with the parameter they are under: a schema that
    /// is referred to many times, or by itself, is shown once.
    shown: Vec<(&'s Value, &'s str)>,
    visits_left: usize,
}

/// What a schema says beside the type, gathered over references, alternatives and list items.
#[derive(Default)]
struct Notes<'s> {
    limits: Vec<String>,
    default: Option<&'s Value>,
    descriptions: Vec<&'s str>,
}

impl<'s> Outline<'s> {
    /// The properties of all objects that a parameter can hold.
    fn nested(&mut self, objects: &[&'s Value], under: &'s str, level: usize) {
        for object in objects {
            if self.text.len() > self.bounds.bytes || level > MAX_LEVELS {
                return;
            }
            if objects.len() > 1 {
                let description = object.get("description").and_then(Value::as_str);
                let description = text::prose(description.unwrap_or_default());
                let line = format!("| {}", text::cut(description, self.bounds.description));
                self.line(level, line.trim_end());
            }
            let known = self.shown.iter().find(|(known, _)| std::ptr::eq(*known, *object));
            if let Some((_, parameter)) = known {
                let line = match *parameter {
                    "" => "as the parameters themselves".to_owned(),
                    parameter => format!("as in {}", text::name(parameter)),
                };
                self.line(level, &line);
                continue;
            }
            self.shown.push((object, under));
            for field in object::fields(self.root, object) {
                self.parameter(&text::name(field.name), &field, level);
            }
            if let Some(schema) = object::extra(self.root, object) {
                let field = Field { name: under, schema, presence: Presence::Optional };
                self.parameter("[key]", &field, level);
            }
            let variants = ["anyOf", "oneOf"].iter().filter_map(|key| object.get(*key)?.as_array());
            for branch in variants.flatten().take(MAX_ALTERNATIVES) {
                self.line(level, "|");
                let objects = self.objects(branch);
                self.nested(&objects, under, level);
            }
        }
    }

    fn parameter(&mut self, shown_name: &str, field: &Field<'s>, level: usize) {
        if self.text.len() > self.bounds.bytes {
            return;
        }
        let mark = match field.presence {
            Presence::Required => "",
            Presence::Optional => "?",
        };
        let mut line = format!("{shown_name}{mark}: {}", self.shape.describe(field.schema));
        let objects = self.objects(field.schema);
        let mut notes = Notes::default();
        self.gather(&mut notes, field.schema, &objects, "", 0);
        if !notes.limits.is_empty() {
            line.push_str(&format!(" [{}]", notes.limits.join(", ")));
        }
        if let Some(default) = notes.default {
            line.push_str(&format!(" = {}", text::literal(default)));
        }
        for description in notes.descriptions {
            let description = text::cut(text::prose(description), self.bounds.description);
            line.push_str(&format!(" - {description}"));
        }
        self.line(level, &line);
        self.nested(&objects, field.name, level + 1);
    }

    fn line(&mut self, level: usize, line: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.extend(std::iter::repeat_n(' ', level));
        self.text.push_str(line);
    }

    /// The objects with properties that a schema admits: behind references, in alternatives, as
    /// list items and as values of a map.
    fn objects(&mut self, schema: &'s Value) -> Vec<&'s Value> {
        let mut objects = Vec::new();
        let mut pending = vec![(schema, 0)];
        while let Some((schema, step)) = pending.pop() {
            let Some(schema) = refs::resolve(self.root, schema) else {
                continue;
            };
            if step > MAX_STEPS || self.visits_left == 0 {
                continue;
            }
            self.visits_left -= 1;
            if object::has_fields(self.root, schema) {
                objects.push(schema);
            } else {
                let start = pending.len();
                pending.extend(parts(schema).into_iter().map(|part| (part, step + 1)));
                pending.get_mut(start..).unwrap_or_default().reverse();
            }
        }
        objects
    }

    fn gather(
        &mut self,
        notes: &mut Notes<'s>,
        schema: &'s Value,
        objects: &[&'s Value],
        prefix: &str,
        step: usize,
    ) {
        if step > MAX_STEPS || self.visits_left == 0 {
            return;
        }
        self.visits_left -= 1;
        notes.add(schema, prefix);
        if let Some(target) = refs::target(self.root, schema) {
            self.gather(notes, target, objects, prefix, step + 1);
        }
        if object::has_fields(self.root, schema) {
            return;
        }
        for part in parts(schema) {
            let resolved = refs::resolve(self.root, part).unwrap_or(part);
            // Where several objects follow, each shows its own description.
            if objects.len() > 1 && objects.iter().any(|object| std::ptr::eq(*object, resolved)) {
                continue;
            }
            let is_item = ["items", "additionalProperties"]
                .iter()
                .any(|key| schema.get(*key).is_some_and(|item| std::ptr::eq(item, part)));
            self.gather(notes, part, objects, if is_item { "each " } else { prefix }, step + 1);
        }
    }
}

impl<'s> Notes<'s> {
    fn add(&mut self, schema: &'s Value, prefix: &str) {
        self.default = self.default.or(schema.get("default").filter(|_| prefix.is_empty()));
        if let Some(description) = schema.get("description").and_then(Value::as_str)
            && !description.trim().is_empty()
            && !self.descriptions.contains(&description)
        {
            self.descriptions.push(description);
        }
        for limit in limits(schema) {
            let limit = format!("{prefix}{limit}");
            if !self.limits.contains(&limit) {
                self.limits.push(limit);
            }
        }
    }
}

/// Schemas that say more about the same parameter.
fn parts(schema: &Value) -> Vec<&Value> {
    let mut parts = Vec::new();
    for key in ["anyOf", "oneOf", "allOf", "prefixItems", "items", "additionalProperties"] {
        match schema.get(key) {
            Some(Value::Array(listed)) => parts.extend(listed.iter().take(MAX_ALTERNATIVES)),
            Some(part @ Value::Object(_)) => parts.push(part),
            _ => {}
        }
    }
    parts
}

/// The limits that one schema sets, in few words.
fn limits(schema: &Value) -> Vec<String> {
    let mut limits = Vec::new();
    let Value::Object(keywords) = schema else {
        return limits;
    };
    let shown = |key: &str| keywords.get(key).map(text::literal);
    let range = |low: &str, high: &str| match (shown(low), shown(high)) {
        (None, None) => None,
        (low, high) => Some(format!("{}..{}", low.unwrap_or_default(), high.unwrap_or_default())),
    };
    if let Some(Value::String(format)) = keywords.get("format") {
        limits.push(text::name(format).into_owned());
    }
    limits.extend(range("minimum", "maximum"));
    limits.extend(shown("exclusiveMinimum").map(|limit| format!(">{limit}")));
    limits.extend(shown("exclusiveMaximum").map(|limit| format!("<{limit}")));
    limits.extend(shown("multipleOf").map(|limit| format!("multiple of {limit}")));
    limits.extend(range("minLength", "maxLength").map(|range| format!("{range} chars")));
    limits.extend(range("minItems", "maxItems").map(|range| format!("{range} items")));
    limits.extend(range("minProperties", "maxProperties").map(|range| format!("{range} keys")));
    if keywords.get("uniqueItems") == Some(&Value::Bool(true)) {
        limits.push("unique".to_owned());
    }
    if let Some(Value::String(pattern)) = keywords.get("pattern") {
        limits.push(format!("/{}/", text::cut(text::prose(pattern), 1024)));
    }
    if keywords.get("deprecated") == Some(&Value::Bool(true)) {
        limits.push("deprecated".to_owned());
    }
    if let Some(Value::Array(examples)) = keywords.get("examples") {
        let examples: Vec<String> = examples.iter().take(3).map(text::literal).collect();
        limits.push(format!("e.g. {}", examples.join(" ")));
    }
    limits
}
