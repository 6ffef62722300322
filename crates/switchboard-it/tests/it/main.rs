//! Every test above the core, in one binary.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod approval;
mod cache;
mod calls;
mod content;
mod definitions;
mod docs;
mod failures;
mod lifecycle;
mod listing;
mod scenarios;
mod trust;
