//! Checks the arguments of a call against the tool's input schema.

use jsonschema::{Draft, PatternOptions};
use serde_json::Value;

use super::admitted::undeclared;
use super::checkable::{self, checkable};
use super::limits::{self, Effort, SchemaError};
use super::mismatch::{self, Mismatch, Problem};
use super::repair::repair;
use crate::exact::{Args, Exact};

/// A compiled input schema, which checks and repairs arguments.
#[derive(Debug)]
pub struct Validator {
    /// The schema without the parts that cannot be checked; used for repairs and messages.
    schema: Value,
    /// The work of a check, from which the limits for arguments are computed.
    effort: Effort,
    /// The validator; `None` for an unknown dialect, so that arguments cannot be checked.
    compiled: Option<jsonschema::Validator>,
}

impl Validator {
    /// Compiles a schema. Its `$schema` decides the dialect; the default is 2020-12.
    ///
    /// Other documents are never loaded, so references to them are not checked.
    pub fn compile(input_schema: &Value) -> Result<Validator, SchemaError> {
        limits::SCHEMA.admit(input_schema)?;
        let Some(draft) = dialect(input_schema) else {
            return Ok(Validator {
                schema: Value::Bool(true),
                effort: Effort::default(),
                compiled: None,
            });
        };
        let effort = limits::admit_expansion(input_schema)?;
        let schema = checkable(input_schema)?;
        let patterns = PatternOptions::regex()
            .size_limit(checkable::MAX_PATTERN_BYTES)
            .dfa_size_limit(checkable::MAX_PATTERN_BYTES);
        let compiled = jsonschema::options()
            .with_draft(draft)
            .with_pattern_options(patterns)
            .offline()
            .build(&schema)
            .map_err(|_| SchemaError::Invalid)?;
        Ok(Validator { schema, effort, compiled: Some(compiled) })
    }

    /// Whether this validator can check arguments.
    pub fn checks(&self) -> bool {
        self.compiled.is_some()
    }

    /// Returns valid arguments unchanged. Invalid arguments are repaired if only one correction is
    /// possible, and checked again. No argument is repaired if a number would lose digits.
    pub fn check(&self, args: Args) -> Result<Args, Vec<Mismatch>> {
        let Some(compiled) = &self.compiled else {
            return Ok(args);
        };
        let mut args = Exact::from(args);
        if limits::ARGUMENTS.admit(args.value()).is_err() {
            return Err(vec![Mismatch::too_deep()]);
        }
        if self.effort.admits(args.value()) && !compiled.is_valid(args.value()) {
            if args.is_all_value() {
                let mut repaired = args.into_value();
                repair(&self.schema, &mut repaired);
                args = repaired.into();
            }
            let mut mismatches = self.mismatches(compiled, args.value());
            if !mismatches.is_empty() {
                mismatches.extend(self.in_place_of_a_missing_one(args.value(), &mismatches));
                return Err(mismatches);
            }
        }
        // A repair changes members of the object, but the object remains an object.
        Ok(args.try_into().unwrap_or_default())
    }

    /// The mismatches of arguments. For large arguments, only the first mismatch is collected. Its
    /// details are omitted if the validator would have to create all mismatches to find it.
    fn mismatches(&self, compiled: &jsonschema::Validator, args: &Value) -> Vec<Mismatch> {
        if self.effort.collects(args) {
            return mismatch::collect(&self.schema, compiled.iter_errors(args));
        }
        if !has_alternatives(&self.schema) {
            return mismatch::collect(&self.schema, compiled.validate(args).err().into_iter());
        }
        match compiled.is_valid(args) {
            true => Vec::new(),
            false => vec![Mismatch::somewhere()],
        }
    }

    /// The mismatch of an undeclared name, if a required parameter is missing: the name probably
    /// means that parameter.
    fn in_place_of_a_missing_one(&self, args: &Value, found: &[Mismatch]) -> Option<Mismatch> {
        found.iter().find(|mismatch| mismatch.problem == Problem::Missing)?;
        let unknown = Mismatch::unknown(undeclared(&self.schema, args.as_object()?)?);
        (!found.iter().any(|mismatch| mismatch.path == unknown.path)).then_some(unknown)
    }
}

/// Whether the schema has a keyword for which the validator collects the mismatches of all
/// alternatives.
fn has_alternatives(schema: &Value) -> bool {
    let eager = ["anyOf", "oneOf", "propertyNames", "unevaluatedItems", "unevaluatedProperties"];
    match schema {
        Value::Object(keywords) => {
            eager.iter().any(|key| keywords.contains_key(*key))
                || keywords.values().any(has_alternatives)
        }
        Value::Array(schemas) => schemas.iter().any(has_alternatives),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The dialect that `$schema` names; `None` if it is not supported.
fn dialect(schema: &Value) -> Option<Draft> {
    let Some(uri) = schema.get("$schema") else {
        return Some(Draft::Draft202012);
    };
    let uri = uri.as_str()?.trim_end_matches('#');
    let (_, path) = uri.split_once("://json-schema.org/")?;
    match path {
        "draft/2020-12/schema" => Some(Draft::Draft202012),
        "draft/2019-09/schema" => Some(Draft::Draft201909),
        "draft-07/schema" => Some(Draft::Draft7),
        "draft-06/schema" => Some(Draft::Draft6),
        "draft-04/schema" => Some(Draft::Draft4),
        _ => None,
    }
}
