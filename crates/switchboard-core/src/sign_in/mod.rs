//! Signing in to servers at a URL: what servers and authorities say is judged here, as values.

pub mod address;
pub mod link;
