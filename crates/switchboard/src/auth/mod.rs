//! Sign-ins to servers at a URL: how they come about, what they give, and how it is kept.

#[cfg_attr(not(test), expect(dead_code, reason = "the sign-in that asks through it comes next"))]
pub(crate) mod net;
