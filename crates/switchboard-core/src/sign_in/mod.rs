//! Signing in to servers at a URL: what servers and authorities say is judged here, as values.
//!
//! In reading order: where requests may go, what a server wants, who guards it, what is asked for,
//! where the answer arrives and what it says, and how long what is given lasts.

pub mod address;
pub mod link;
pub mod challenge;
pub mod metadata;
pub mod scope;
pub mod redirect;
pub mod callback;
pub mod token;
