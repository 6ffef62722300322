//! Parses a text into a syntax tree. The text is JSON with comments, or TOML that is converted to
//! the same tree.

use std::borrow::Cow;

use jsonc_parser::ast::{
    Array, BooleanLit, NumberLit, Object, ObjectProp, ObjectPropName, StringLit, Value,
};
use jsonc_parser::common::Range;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostic::{Diagnostic, DiagnosticKind};
use super::layers::ConfigSource;
use super::reader::ConfigReader;

/// The size limit of our own files, and of files in a repository.
pub(super) const OWN_FILE_BYTES: usize = 1024 * 1024;
/// The size limit of a host's user file, which may also contain the history of the user.
pub(super) const HOST_FILE_BYTES: usize = 16 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// JSON with comments and trailing commas.
    Jsonc,
    Toml,
}

/// Parses a text and calls `read` with its root, if it has one. Returns the syntax error, or the
/// problems that `read` reports.
pub(super) fn read(
    (text, syntax): (&str, Syntax),
    source: &ConfigSource,
    limit: usize,
    read: impl FnOnce(&mut ConfigReader<'_>, &Value<'_>),
) -> Vec<Diagnostic> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = ConfigReader::new(text, source);
    if text.len() > limit {
        reader.error(0, DiagnosticKind::FileTooLarge { limit });
        return reader.into_diagnostics();
    }
    let problem = match syntax {
        // The parser accepts control characters in strings. A crash during a write can leave such
        // characters in a file.
        Syntax::Jsonc if let Some(at) = control_character(text) => {
            Some((at, "control characters are not allowed".to_owned()))
        }
        Syntax::Jsonc => match parse_to_ast(text, &CollectOptions::default(), &STRICT) {
            Ok(parsed) => {
                if let Some(root) = &parsed.value {
                    read(&mut reader, root);
                }
                None
            }
            Err(error) => Some((error.range().start, lower_first(&error.kind().to_string()))),
        },
        Syntax::Toml => match DeTable::parse(text) {
            Ok(table) => {
                read(&mut reader, &object(text, table.get_ref(), table.span()));
                None
            }
            Err(error) => {
                Some((error.span().map_or(0, |span| span.start), lower_first(error.message())))
            }
        },
    };
    if let Some((at, clause)) = problem {
        reader.error(at, DiagnosticKind::Syntax { clause });
    }
    reader.into_diagnostics()
}

fn control_character(text: &str) -> Option<usize> {
    let white = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r');
    text.bytes().position(|byte| byte < b' ' && !white(&byte))
}

/// Parses JSON with comments and trailing commas, but with no other extension of JSON.
pub(super) const STRICT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

fn object<'v>(text: &'v str, table: &'v DeTable<'_>, span: std::ops::Range<usize>) -> Value<'v> {
    let mut properties: Vec<ObjectProp<'v>> = table
        .iter()
        .map(|(key, value)| ObjectProp {
            range: range(key.span()),
            name: ObjectPropName::String(literal(key.get_ref(), key.span())),
            value: tree(text, value),
        })
        .collect();
    properties.sort_by_key(|property| property.range.start);
    Value::Object(Object { range: range(span), properties })
}

fn tree<'v>(text: &'v str, value: &'v Spanned<DeValue<'_>>) -> Value<'v> {
    let span = value.span();
    let written = text.get(span.clone()).unwrap_or_default();
    let number = |value: &'v str| Value::NumberLit(NumberLit { range: range(span.clone()), value });
    match value.get_ref() {
        DeValue::String(string) => Value::StringLit(literal(string, span)),
        // A number that is not decimal keeps its text, which the readers of numbers refuse.
        DeValue::Integer(integer) if integer.radix() == 10 => number(integer.as_str()),
        DeValue::Integer(_) => number(written),
        DeValue::Float(float) => number(float.as_str()),
        DeValue::Boolean(value) => {
            Value::BooleanLit(BooleanLit { range: range(span), value: *value })
        }
        DeValue::Datetime(_) => Value::StringLit(literal(written, span)),
        DeValue::Array(array) => {
            let elements = array.iter().map(|element| tree(text, element)).collect();
            Value::Array(Array { range: range(span), elements })
        }
        DeValue::Table(table) => object(text, table, span),
    }
}

fn literal(text: &str, span: std::ops::Range<usize>) -> StringLit<'_> {
    StringLit { range: range(span), value: Cow::Borrowed(text) }
}

fn range(span: std::ops::Range<usize>) -> Range {
    Range { start: span.start, end: span.end }
}

pub(super) fn lower_first(clause: &str) -> String {
    let mut chars = clause.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}
