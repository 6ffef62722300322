//! Signing in to servers at a URL: what servers and authorities say is judged here, as values.

pub mod callback;
pub mod redirect;
