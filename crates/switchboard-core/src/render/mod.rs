//! How answers are worded: for a model, for machines, and the words that both use.

pub mod granular;
pub mod json;
pub mod text;
pub mod words;
