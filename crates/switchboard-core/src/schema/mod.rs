//! JSON Schemas of tools: showing them in short form, checking arguments, repairing arguments.
//!
//! Schemas come from servers and may be hostile. All code here limits depth, nodes and bytes,
//! follows no reference to another document, and ends for every JSON value.

mod checkable;
mod complaint;
mod limits;
mod mirror;
mod mismatch;
mod notes;
mod object;
mod outline;
mod refs;
mod repair;
mod shape;
mod shown;
mod text;
mod admitted;
mod validate;

#[cfg(test)]
mod tests;

pub use admitted::{List, Word, list, undeclared, word};
pub use complaint::complains;
pub use limits::SchemaError;
pub use mirror::{MirrorError, mirrored};
pub use mismatch::{Bound, Mismatch, Problem, Unit, undeclared_arguments};
pub use notes::{Note, notes};
pub use outline::{expected, parameters};
pub use shape::{output_shape, signature};
pub use shown::as_parameters;
pub use validate::Validator;
