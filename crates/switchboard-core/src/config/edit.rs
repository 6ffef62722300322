//! Edits of a JSONC file that leave all other bytes unchanged.
//!
//! Each change replaces a few ranges of the text, which come from the syntax tree. So comments,
//! order, indentation, line ends and unknown keys are preserved. A text that cannot be parsed is
//! refused.

mod lines;
mod print;
mod splice;

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::TokenAndRange;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, parse_to_ast};
use serde_json::{Map, Value as Json};

use self::lines::Lines;
use self::print::Layout;
use self::splice::{Container, Splices};
use super::reader::join;
use super::syntax::{STRICT, lower_first};

/// A change of one value in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// The keys from the root of the file to the changed value.
    pub at: Vec<String>,
    pub change: Change,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Sets the value and creates missing parent objects. In an existing object, members with the
    /// same value keep their text.
    Set(Json),
    /// Removes the key and its value. The comments around it are preserved.
    Remove,
    /// Adds a value to an array, unless the array contains it.
    AddItem(Json),
    RemoveItem(Json),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("line {line}, column {column}: {clause}")]
    Syntax { line: usize, column: usize, clause: String },
    #[error("`{key}` cannot be changed, because it is not {expected}")]
    WrongType { key: String, expected: &'static str },
}

impl Edit {
    pub fn new<const N: usize>(at: [&str; N], change: Change) -> Edit {
        Edit { at: at.map(str::to_owned).into(), change }
    }
}

/// The text after all `edits`, in order. An edit without effect, such as setting the same value,
/// changes no byte.
pub fn apply(text: &str, edits: &[Edit]) -> Result<String, EditError> {
    let (mark, body) = match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(body) => (BYTE_ORDER_MARK, body),
        None => ("", text),
    };
    Document::parse(body)?;
    Ok(format!("{mark}{}", apply_all(body, edits)?))
}

/// The value at a path; `None` if the path does not exist.
pub fn value_at(text: &str, at: &[&str]) -> Result<Option<Json>, EditError> {
    let document = Document::parse(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text))?;
    let mut found = document.root.as_ref();
    for key in at {
        found = match found {
            Some(Value::Object(object)) => property(object, key).map(|property| &property.value),
            _ => None,
        };
    }
    Ok(found.map(json))
}

const BYTE_ORDER_MARK: &str = "\u{feff}";

struct Document<'t> {
    lines: Lines<'t>,
    /// All tokens of the text, including comments.
    tokens: Vec<TokenAndRange<'t>>,
    root: Option<Value<'t>>,
}

impl<'t> Document<'t> {
    fn parse(text: &'t str) -> Result<Self, EditError> {
        let collect =
            CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
        let parsed = parse_to_ast(text, &collect, &STRICT).map_err(|error| EditError::Syntax {
            line: error.line_display(),
            column: error.column_display(),
            clause: lower_first(&error.kind().to_string()),
        })?;
        let tokens = parsed.tokens.unwrap_or_default();
        Ok(Self { lines: Lines { text }, tokens, root: parsed.value })
    }

    fn layout(&self) -> Layout<'t> {
        let newline = if self.lines.text.contains("\r\n") { "\r\n" } else { "\n" };
        let indents = self.tokens.iter().map(|token| self.lines.own_line_indent(token.start()));
        let unit = indents.flatten().find(|indent| !indent.is_empty()).unwrap_or("  ");
        Layout { newline, unit }
    }
}

/// The property with this name. Of duplicate keys, the last takes precedence.
fn property<'o, 't>(object: &'o Object<'t>, key: &str) -> Option<&'o ObjectProp<'t>> {
    object.properties.iter().rev().find(|property| property.name.as_str() == key)
}

fn apply_one(text: &str, Edit { at, change }: &Edit) -> Result<String, EditError> {
    let document = Document::parse(text)?;
    let root = match &document.root {
        Some(Value::Object(root)) => root,
        Some(_) => return Err(wrong_type(&[], "an object")),
        None => return Ok(with_root(&document, at, change)),
    };
    let mut object = root;
    let mut opens = Opens::OnLines;
    for (depth, key) in at.iter().enumerate() {
        let (path, rest) = at.split_at(depth + 1);
        let Some(property) = property(object, key) else {
            let Some(value) = added(rest, change) else { return Ok(text.to_owned()) };
            let container = Container::of_object(&document, object);
            return Ok(container.insert(&document.layout(), opens, Some(key), &value).apply(text));
        };
        if rest.is_empty() {
            return change_property(&document, object, (path, property), change);
        }
        let Value::Object(inner) = &property.value else {
            return Err(wrong_type(path, "an object"));
        };
        object = inner;
        opens = match document.lines.own_line_indent(property.start()) {
            Some(_) => Opens::OnLines,
            None => Opens::Inline,
        };
    }
    Ok(text.to_owned())
}

/// How an object without members is written once it gets its first member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opens {
    OnLines,
    /// The object is written on one line, because its parent object is.
    Inline,
}

/// Edits a text that has no JSON value: it is empty or has only comments.
fn with_root(document: &Document<'_>, at: &[String], change: &Change) -> String {
    let text = document.lines.text;
    let Some(value) = added(at, change) else { return text.to_owned() };
    let layout = document.layout();
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { layout.newline };
    format!("{text}{gap}{}{}", layout.on_lines(&value, ""), layout.newline)
}

/// The value to insert where a path ends: the new value, inside one object for each missing key.
fn added(missing: &[String], change: &Change) -> Option<Json> {
    let value = match change {
        Change::Set(value) => value.clone(),
        Change::AddItem(item) => Json::Array(vec![item.clone()]),
        Change::Remove | Change::RemoveItem(_) => return None,
    };
    let around = |value, key: &String| Json::Object(Map::from_iter([(key.clone(), value)]));
    Some(missing.iter().rev().fold(value, around))
}

fn change_property(
    document: &Document<'_>,
    object: &Object<'_>,
    (path, property): (&[String], &ObjectProp<'_>),
    change: &Change,
) -> Result<String, EditError> {
    let text = document.lines.text;
    let splices = match change {
        Change::Set(value) => {
            let present = json(&property.value);
            match (&present, value) {
                (present, value) if present == value => return Ok(text.to_owned()),
                (Json::Object(present), Json::Object(wanted)) => {
                    return apply_all(text, &member_edits(path, present, wanted));
                }
                _ => document.replacement(property, value),
            }
        }
        Change::Remove => {
            let Some(key) = path.last() else { return Ok(text.to_owned()) };
            Container::of_object(document, object).remove(|index| {
                object.properties.get(index).is_some_and(|p| p.name.as_str() == key)
            })
        }
        Change::AddItem(item) => {
            let Value::Array(array) = &property.value else {
                return Err(wrong_type(path, "an array"));
            };
            if array.elements.iter().any(|element| json(element) == *item) {
                return Ok(text.to_owned());
            }
            Container::of_array(document, array).insert(
                &document.layout(),
                Opens::Inline,
                None,
                item,
            )
        }
        Change::RemoveItem(item) => {
            let Value::Array(array) = &property.value else {
                return Err(wrong_type(path, "an array"));
            };
            Container::of_array(document, array).remove(|index| {
                array.elements.get(index).is_some_and(|element| json(element) == *item)
            })
        }
    };
    Ok(splices.apply(text))
}

fn apply_all(text: &str, edits: &[Edit]) -> Result<String, EditError> {
    edits.iter().try_fold(text.to_owned(), |text, edit| apply_one(&text, edit))
}

/// The edits that change one object into another, member by member. Additions come before removals,
/// so that the object is never empty in between.
fn member_edits(
    path: &[String],
    present: &Map<String, Json>,
    wanted: &Map<String, Json>,
) -> Vec<Edit> {
    let edit = |key: &String, change| {
        let at = path.iter().chain([key]).cloned().collect();
        Edit { at, change }
    };
    let set = wanted.iter().map(|(key, value)| edit(key, Change::Set(value.clone())));
    let gone = present.keys().filter(|key| !wanted.contains_key(*key));
    set.chain(gone.map(|key| edit(key, Change::Remove))).collect()
}

impl Document<'_> {
    fn replacement(&self, property: &ObjectProp<'_>, value: &Json) -> Splices {
        let layout = self.layout();
        let written = match self.lines.own_line_indent(property.start()) {
            Some(indent) => layout.on_lines(value, indent),
            None => layout.inline(value),
        };
        let range = property.value.range();
        Splices::one(range.start..range.end, written)
    }
}

fn wrong_type(path: &[String], expected: &'static str) -> EditError {
    let key = match path {
        [] => "(root)".to_owned(),
        path => path.iter().fold(String::new(), |parent, key| join(&parent, key)),
    };
    EditError::WrongType { key, expected }
}

/// Converts a syntax tree to JSON. Recursion is safe, because the parser limits the depth. Of
/// duplicate keys, the last takes precedence.
pub(super) fn json(value: &Value<'_>) -> Json {
    match value {
        Value::StringLit(literal) => Json::String(literal.value.to_string()),
        Value::NumberLit(literal) => serde_json::from_str(literal.value).unwrap_or_default(),
        Value::BooleanLit(literal) => Json::Bool(literal.value),
        Value::NullKeyword(_) => Json::Null,
        Value::Array(array) => array.elements.iter().map(json).collect(),
        Value::Object(object) => {
            let members = object.properties.iter();
            members.map(|member| (member.name.as_str().to_owned(), json(&member.value))).collect()
        }
    }
}

#[cfg(test)]
mod tests;
