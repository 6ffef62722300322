//! Sign-ins to servers at a URL: how they come about, what they give, and how it is kept.

mod account;
mod bearer;
pub(crate) mod callback;
mod discover;
mod error;
mod flow;
pub(crate) mod grant;
pub(crate) mod net;
mod register;
mod requests;
mod terms;
pub(crate) mod vault;
