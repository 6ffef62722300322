//! How answers are worded.

pub mod words;
