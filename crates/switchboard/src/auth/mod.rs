//! Sign-ins to servers at a URL: how they come about, what they give, and how it is kept.

#[allow(dead_code, reason = "what signs in is built beside this")]
pub(crate) mod takeover;
pub mod tokens;
pub(crate) mod vault;
