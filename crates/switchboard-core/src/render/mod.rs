//! How answers are worded: for a model, for machines, for people, and the words that all use.

pub mod caution;
pub mod definition;
pub mod granular;
pub mod json;
mod lead;
pub mod pi;
pub mod remedy;
pub mod text;
pub mod words;
