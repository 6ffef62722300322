//! Sign-ins to servers at a URL: how they come about, what they give, and how it is kept.

pub mod tokens;
pub(crate) mod vault;
