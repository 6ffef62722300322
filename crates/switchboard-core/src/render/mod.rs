//! Renders answers for models, machines and users, with shared text functions.

pub mod caution;
pub mod definition;
pub mod granular;
pub mod json;
pub(crate) mod lead;
pub mod remedy;
pub mod text;
pub mod words;
