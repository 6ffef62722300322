//! Signing in to servers at a URL: what servers and authorities say is judged here, as values.

pub mod challenge;
pub mod metadata;
pub mod scope;
pub mod token;
