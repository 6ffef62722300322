//! Renders replies for models, programs and users, and has the text functions that they share.

pub mod caution;
pub mod definition;
pub mod granular;
pub mod json;
pub(crate) mod lead;
pub mod remedy;
pub mod text;
pub mod words;
