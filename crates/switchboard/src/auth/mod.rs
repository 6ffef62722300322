//! Sign-ins to servers at a URL: how they come about, what they give, and how it is kept.

#[cfg_attr(not(test), expect(dead_code, reason = "the sign-in that waits here is built beside it"))]
pub(crate) mod callback;
