//! Lists all parameters of a tool, one line each, with everything that the schema declares about
//! them.

use serde_json::Value;

use super::object::{self, Presence, Property};
use super::shape::{Detail, Shape};
use super::{limits, refs, text};
use crate::budget::weight;
use crate::render::words::list;

/// The limits for `describe`, which are large enough for all parameters of a usual tool.
const FULL: Bounds = Bounds { whole: 18_000, description: 6_000, detail: Detail::Outline };

/// The limits for the list of parameters in the reply to invalid arguments.
const TIGHT: Bounds = Bounds { whole: 3_000, description: 160, detail: Detail::Tight };

/// The maximum number of omitted parameters that are named.
const MAX_NAMED: usize = 20;

/// The maximum weight of the names of omitted parameters.
const MAX_LEFT_OUT: usize = 600;

/// The maximum number of nested levels that are shown.
const MAX_LEVELS: usize = 12;

/// How many references, alternatives and array items are followed in a row for one parameter.
const MAX_STEPS: usize = 16;

/// The maximum number of alternatives of one schema that are shown.
const MAX_ALTERNATIVES: usize = 64;

/// The maximum number of schemas visited for one text, because many references can lead to the same
/// schema.
const MAX_VISITS: usize = 2_500;

/// All parameters of a tool, for `describe`; empty if the tool has none.
pub fn parameters(input_schema: &Value) -> String {
    outline(input_schema, FULL)
}

/// The parameters of a tool in a short form, for the reply to invalid arguments.
pub fn expected(input_schema: &Value) -> String {
    let outline = outline(input_schema, TIGHT);
    if outline.is_empty() { "(no parameters)".to_owned() } else { outline }
}

/// The limits of a text, as weights.
#[derive(Clone, Copy)]
struct Bounds {
    whole: usize,
    description: usize,
    detail: Detail,
}

fn outline(schema: &Value, bounds: Bounds) -> String {
    let mut outline = Outline {
        root: schema,
        shape: Shape::new(schema, bounds.detail),
        bounds,
        text: String::new(),
        weight: 0,
        starts: Vec::new(),
        shown: Vec::new(),
        visits_left: MAX_VISITS,
    };
    outline.about(schema);
    let objects = outline.objects(schema);
    outline.nested(&objects, "", 0);
    if let ([], Some(extra)) = (objects.as_slice(), object::extra(schema, schema)) {
        let field = Property { name: "", schema: extra, presence: Presence::Optional };
        outline.parameter("[key]", &field, 0);
    }
    outline.into_text()
}

struct Outline<'s> {
    root: &'s Value,
    shape: Shape<'s>,
    bounds: Bounds,
    text: String,
    /// The weight of `text` so far.
    weight: usize,
    /// The top-level parameters, each with the offset in `text` at which it begins.
    starts: Vec<(String, usize)>,
    /// The objects whose properties are already in the text, each with its parameter. A schema with
    /// many references, or with one to itself, is thus shown once.
    shown: Vec<(&'s Value, &'s str)>,
    visits_left: usize,
}

/// The limits, defaults and descriptions of one parameter, collected from references, alternatives
/// and array items.
#[derive(Default)]
struct Notes<'s> {
    limits: Vec<String>,
    defaults: Vec<&'s Value>,
    descriptions: Vec<&'s str>,
    /// The referenced schemas that were already visited, so that a cycle ends.
    gathered: Vec<&'s Value>,
}

impl<'s> Outline<'s> {
    /// Appends the description of the whole input schema.
    fn about(&mut self, schema: &Value) {
        let about = text::prose(schema.get("description").and_then(Value::as_str).unwrap_or(""));
        if !about.is_empty() {
            self.line(0, &text::cut(about, self.bounds.description));
        }
    }

    /// The lines that fit into the limit, and a line about the omitted parameters.
    fn into_text(self) -> String {
        let Outline { mut text, starts, bounds, .. } = self;
        let mut room = bounds.whole;
        let fits = |line: &&str| {
            room = room.saturating_sub(weight(line));
            room > 0
        };
        let end = text.split_inclusive('\n').take_while(fits).map(str::len).sum();
        if end == text.len() {
            return text;
        }
        text.truncate(end);
        let between = starts.iter().any(|(_, start)| *start == end);
        let begun = starts.iter().rev().find(|(_, start)| *start < end).filter(|_| !between);
        if let Some((name, _)) = begun {
            text.push_str(&format!("… cut within {name}"));
        }
        let left: Vec<&str> =
            starts.iter().filter(|(_, at)| *at >= end).map(|(name, _)| name.as_str()).collect();
        if !left.is_empty() {
            let names = list(&left, MAX_NAMED);
            let stop = if begun.is_some() { "; left out: " } else { "… left out: " };
            text.push_str(&text::cut(format!("{stop}{names}"), MAX_LEFT_OUT));
        }
        text
    }

    fn is_full(&self) -> bool {
        self.weight > self.bounds.whole
    }

    /// Appends the properties of all objects that a parameter can be.
    fn nested(&mut self, objects: &[&'s Value], under: &'s str, level: usize) {
        for object in objects {
            if level > MAX_LEVELS || (self.is_full() && level > 0) {
                return;
            }
            if objects.len() > 1 {
                let description = object.get("description").and_then(Value::as_str);
                let description = text::prose(description.unwrap_or_default());
                let mut line = format!("| {}", text::cut(description, self.bounds.description));
                if let Some(default) = object.get("default") {
                    line.push_str(&format!(" = {}", text::literal(default)));
                }
                self.line(level, line.trim_end());
            }
            // A comparison is recursive, so only schemas of limited depth are compared.
            let comparable = limits::SCHEMA.admit(object).is_ok();
            let same =
                |known: &Value| std::ptr::eq(known, *object) || comparable && known == *object;
            let known = self.shown.iter().find(|(known, _)| same(known));
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
                let field = Property { name: under, schema, presence: Presence::Optional };
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

    fn parameter(&mut self, shown_name: &str, field: &Property<'s>, level: usize) {
        if level == 0 {
            let start = if self.text.is_empty() { 0 } else { self.text.len() + 1 };
            self.starts.push((text::cut(shown_name.to_owned(), 64), start));
        }
        if self.is_full() {
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
        for default in notes.defaults {
            line.push_str(&format!(" = {}", text::literal(default)));
        }
        for description in notes.descriptions {
            let description = text::cut(text::prose(description), self.bounds.description);
            line.push_str(&format!(" - {description}"));
        }
        self.line(level, &text::cut(line, self.bounds.whole / 2));
        self.nested(&objects, field.name, level + 1);
    }

    fn line(&mut self, level: usize, line: &str) {
        if self.is_full() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.extend(std::iter::repeat_n(' ', level));
        self.text.push_str(line);
        self.weight += level + weight(line) + 1;
    }

    /// The objects with properties that a schema allows: behind references, in alternatives, as
    /// items of an array, and as values of a map.
    fn objects(&mut self, schema: &'s Value) -> Vec<&'s Value> {
        let mut objects = Vec::new();
        let mut seen: Vec<&'s Value> = Vec::new();
        let mut pending = vec![(schema, 0)];
        while let Some((schema, step)) = pending.pop() {
            let Some(schema) = refs::resolve(self.root, schema) else {
                continue;
            };
            let known = seen.iter().any(|known| std::ptr::eq(*known, schema));
            if known || step > MAX_STEPS || self.visits_left == 0 {
                continue;
            }
            seen.push(schema);
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
        if let Some(target) = refs::target(self.root, schema)
            && !notes.gathered.iter().any(|known| std::ptr::eq(*known, target))
        {
            notes.gathered.push(target);
            self.gather(notes, target, objects, prefix, step + 1);
        }
        if object::has_fields(self.root, schema) {
            return;
        }
        for part in parts(schema) {
            let resolved = refs::resolve(self.root, part).unwrap_or(part);
            // If several objects are shown, each has its own description.
            if objects.len() > 1 && objects.iter().any(|object| std::ptr::eq(*object, resolved)) {
                let mut reference = part;
                while let Some(target) = refs::target(self.root, reference) {
                    notes.add(reference, prefix);
                    reference = target;
                }
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
        if let Some(default) = schema.get("default") {
            if prefix.is_empty() && !self.defaults.contains(&default) {
                self.defaults.push(default);
            } else if !prefix.is_empty() {
                self.limits.push(format!("{prefix}= {}", text::literal(default)));
            }
        }
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

/// The schemas inside `schema` that describe the same parameter.
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

/// Whether a limit is the largest safe integer of JavaScript, which some generators add to every
/// number.
fn is_every_integer(limit: &Value) -> bool {
    limit.as_i64().is_some_and(|limit| limit.unsigned_abs() == (1 << 53) - 1)
}

/// The limits that one schema declares, as short texts.
fn limits(schema: &Value) -> Vec<String> {
    let mut limits = Vec::new();
    let Value::Object(keywords) = schema else {
        return limits;
    };
    let shown =
        |key: &str| keywords.get(key).filter(|limit| !is_every_integer(limit)).map(text::literal);
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
