//! Renders answers for models, machines and users, with shared text functions.

pub mod caution;
pub mod definition;
pub mod granular;
pub mod json;
mod lead;
pub mod pi;
pub mod remedy;
pub mod text;
pub mod words;
