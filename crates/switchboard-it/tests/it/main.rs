//! Every test above the core, in one binary.

mod approval;
mod cache;
mod calls;
mod content;
mod definitions;
mod failures;
mod lifecycle;
mod listing;
mod trust;
