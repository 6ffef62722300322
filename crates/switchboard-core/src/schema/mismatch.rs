//! Mismatches between arguments and a schema, as one clause each.

use std::fmt;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::paths::LocationSegment;
use serde_json::{Map, Value};

use super::object::Property;
use super::shape::{Detail, Shape};
use super::{limits, object, text};
use crate::exact::kind_of;
use crate::spelled::spelled_enum;

/// The maximum number of mismatches in one error.
const MAX_MISMATCHES: usize = 8;

/// How many levels of alternatives are searched for the one that the caller meant.
const MAX_ALTERNATIVES: usize = 8;

const MAX_PATH_BYTES: usize = 160;
const MAX_DETAIL_BYTES: usize = 240;

/// A position at which the arguments do not match the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The path of the value, such as `filters.states[2]`; empty for the whole object of arguments.
    pub path: String,
    pub problem: Problem,
}

/// The kind of a mismatch. The texts are limited in length, and safe to display.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("is required")]
    Missing,
    #[error("is not a parameter{}", suggestion(.nearest.as_deref()))]
    Unknown { nearest: Option<String> },
    #[error("must be {expected}, not {found}")]
    WrongType { expected: String, found: &'static str },
    #[error("must be {options}")]
    NotAnOption { options: String },
    #[error("must be {bound} {limit}")]
    OutOfRange { bound: Bound, limit: String },
    #[error("must have {bound} {limit} {unit}")]
    WrongSize { bound: Bound, limit: u64, unit: Unit },
    #[error("must be a multiple of {of}")]
    NotAMultiple { of: String },
    #[error("must match the pattern `{pattern}`")]
    NoPatternMatch { pattern: String },
    #[error("must not contain duplicate items")]
    Duplicates,
    #[error("must not be nested deeper than {limit} levels")]
    TooDeep { limit: usize },
    #[error("must fit `{expected}`")]
    NoAlternative { expected: String },
    #[error("does not match its schema")]
    Refused,
}

spelled_enum! {
    pub enum Bound {
        AtLeast = "at least",
        AtMost = "at most",
        MoreThan = "more than",
        LessThan = "less than",
    }
}

spelled_enum! {
    pub enum Unit {
        Characters = "characters",
        Items = "items",
        Properties = "properties",
    }
}

impl Mismatch {
    pub(crate) fn unknown(name: &str) -> Mismatch {
        let path = text::cut(text::name(name).into_owned(), MAX_PATH_BYTES);
        Mismatch { path, problem: Problem::Unknown { nearest: None } }
    }

    /// A mismatch without a path, because locating it in large arguments takes too much time.
    pub(super) fn somewhere() -> Mismatch {
        Mismatch { path: String::new(), problem: Problem::Refused }
    }

    pub(super) fn too_deep() -> Mismatch {
        let limit = limits::ARGUMENTS.depth;
        Mismatch { path: String::new(), problem: Problem::TooDeep { limit } }
    }
}

/// The first errors of the validator as mismatches. The paths of the errors lead into `schema`.
pub(super) fn collect<'e>(
    schema: &Value,
    errors: impl Iterator<Item = ValidationError<'e>>,
) -> Vec<Mismatch> {
    let mut mismatches = Mismatches { schema, found: Vec::new() };
    for error in errors {
        mismatches.add(&error, 0);
    }
    mismatches.found
}

struct Mismatches<'s> {
    schema: &'s Value,
    found: Vec<Mismatch>,
}

impl<'s> Mismatches<'s> {
    fn add(&mut self, error: &ValidationError<'_>, level: usize) {
        match error.kind() {
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                self.push(path(error, Some(name)), Problem::Missing);
            }
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                for name in unexpected.iter().take(MAX_MISMATCHES) {
                    let nearest = self.nearest(error, name);
                    self.push(path(error, Some(name)), Problem::Unknown { nearest });
                }
            }
            Kind::AnyOf { context }
            | Kind::OneOfNotValid { context }
            | Kind::OneOfMultipleValid { context } => {
                match meant(error, context).filter(|_| level < MAX_ALTERNATIVES) {
                    Some(errors) => errors.iter().for_each(|error| self.add(error, level + 1)),
                    None => self.push(path(error, None), self.no_alternative(error)),
                }
            }
            kind => self.push(path(error, None), self.problem(kind, error)),
        }
    }

    fn push(&mut self, path: String, problem: Problem) {
        let mismatch = Mismatch { path, problem };
        if self.found.len() < MAX_MISMATCHES && !self.found.contains(&mismatch) {
            self.found.push(mismatch);
        }
    }

    fn problem(&self, kind: &Kind, error: &ValidationError<'_>) -> Problem {
        use Bound::{AtLeast, AtMost, LessThan, MoreThan};
        let range = |bound, limit: &Value| Problem::OutOfRange { bound, limit: literal(limit) };
        let size = |bound, limit: &u64, unit| Problem::WrongSize { bound, limit: *limit, unit };
        match kind {
            Kind::Type { kind } => {
                Problem::WrongType { expected: wanted(kind), found: kind_of(error.instance()) }
            }
            Kind::Enum { .. } | Kind::Constant { .. } => {
                Problem::NotAnOption { options: self.expected(error) }
            }
            Kind::Minimum { limit } => range(AtLeast, limit),
            Kind::Maximum { limit } => range(AtMost, limit),
            Kind::ExclusiveMinimum { limit } => range(MoreThan, limit),
            Kind::ExclusiveMaximum { limit } => range(LessThan, limit),
            Kind::MinLength { limit } => size(AtLeast, limit, Unit::Characters),
            Kind::MaxLength { limit } => size(AtMost, limit, Unit::Characters),
            Kind::MinItems { limit } => size(AtLeast, limit, Unit::Items),
            Kind::MaxItems { limit } => size(AtMost, limit, Unit::Items),
            Kind::MinProperties { limit } => size(AtLeast, limit, Unit::Properties),
            Kind::MaxProperties { limit } => size(AtMost, limit, Unit::Properties),
            Kind::AdditionalItems { limit } => {
                size(AtMost, &u64::try_from(*limit).unwrap_or(u64::MAX), Unit::Items)
            }
            Kind::MultipleOf { multiple_of } => {
                Problem::NotAMultiple { of: multiple_of.to_string() }
            }
            Kind::Pattern { pattern } => Problem::NoPatternMatch {
                pattern: text::cut(text::prose(pattern), MAX_DETAIL_BYTES),
            },
            Kind::UniqueItems => Problem::Duplicates,
            _ => Problem::Refused,
        }
    }

    fn no_alternative(&self, error: &ValidationError<'_>) -> Problem {
        match self.expected(error) {
            expected if expected == "any" => Problem::Refused,
            expected => Problem::NoAlternative { expected },
        }
    }

    /// The type that the schema with the failed keyword requires.
    fn expected(&self, error: &ValidationError<'_>) -> String {
        let described =
            self.around(error).map(|at| Shape::new(self.schema, Detail::Short).describe(at));
        text::cut(described.unwrap_or_else(|| "any".to_owned()), MAX_DETAIL_BYTES)
    }

    fn nearest(&self, error: &ValidationError<'_>, name: &str) -> Option<String> {
        nearest(&object::fields(self.schema, self.around(error)?), name)
    }

    fn around(&self, error: &ValidationError<'_>) -> Option<&'s Value> {
        let (around, _) = error.schema_path().as_str().rsplit_once('/')?;
        self.schema.pointer(around)
    }
}

/// The property whose name is most like `name`.
fn nearest(fields: &[Property<'_>], name: &str) -> Option<String> {
    if name.len() > MAX_PATH_BYTES {
        return None;
    }
    let lower = name.to_lowercase();
    let near = fields
        .iter()
        .filter(|field| field.name.len() <= MAX_PATH_BYTES)
        .map(|field| (strsim::jaro_winkler(&lower, &field.name.to_lowercase()), field.name))
        .filter(|(likeness, _)| *likeness >= 0.8);
    let best = near.max_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, name)| text::name(name).into_owned())
}

/// The arguments that the schema allows but does not declare. They are probably misspelt, because
/// a schema without `additionalProperties` allows every name. Empty if the schema says that further
/// properties are expected.
pub fn undeclared_arguments(schema: &Value, given: &Map<String, Value>) -> Vec<Mismatch> {
    let expects_more = ["additionalProperties", "patternProperties"];
    if expects_more.iter().any(|keyword| schema.get(keyword).is_some()) {
        return Vec::new();
    }
    let fields = object::fields(schema, schema);
    let is_declared = |name: &str| fields.iter().any(|field| field.name == name);
    let undeclared = given.keys().filter(|name| !fields.is_empty() && !is_declared(name));
    let unknown = undeclared.map(|name| {
        let Mismatch { path, .. } = Mismatch::unknown(name);
        Mismatch { path, problem: Problem::Unknown { nearest: nearest(&fields, name) } }
    });
    unknown.take(MAX_MISMATCHES).collect()
}

/// The errors of the alternative that was meant: the only one whose type matches the value.
fn meant<'c>(
    error: &ValidationError<'_>,
    alternatives: &'c [Vec<ValidationError<'static>>],
) -> Option<&'c [ValidationError<'static>]> {
    let mut fitting = alternatives.iter().filter(|errors| {
        !errors.is_empty()
            && !errors.iter().any(|inner| {
                matches!(
                    inner.kind(),
                    Kind::Type { .. } | Kind::Enum { .. } | Kind::Constant { .. }
                ) && inner.instance_path() == error.instance_path()
            })
    });
    match (fitting.next(), fitting.next()) {
        (Some(errors), None) => Some(errors),
        _ => None,
    }
}

fn path(error: &ValidationError<'_>, property: Option<&str>) -> String {
    let mut path = String::new();
    let segments = error.instance_path().segments();
    for segment in segments.chain(property.map(|name| LocationSegment::Property(name.into()))) {
        match segment {
            LocationSegment::Index(index) => path.push_str(&format!("[{index}]")),
            LocationSegment::Property(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&text::name(&name));
            }
        }
    }
    text::cut(path, MAX_PATH_BYTES)
}

fn literal(value: &Value) -> String {
    text::cut(text::literal(value), MAX_DETAIL_BYTES)
}

fn wanted(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(name) => with_article(name.as_str()).to_owned(),
        TypeKind::Multiple(names) => {
            let names: Vec<&str> = names.iter().map(|name| with_article(name.as_str())).collect();
            names.join(" or ")
        }
    }
}

fn with_article(name: &str) -> &'static str {
    match name {
        "boolean" => "a boolean",
        "number" => "a number",
        "integer" => "an integer",
        "string" => "a string",
        "array" => "an array",
        "object" => "an object",
        _ => "null",
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => write!(f, "the object of arguments {}", self.problem),
            path => write!(f, "`{path}` {}", self.problem),
        }
    }
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map(|name| format!(", did you mean `{name}`?")).unwrap_or_default()
}
