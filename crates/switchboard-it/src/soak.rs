//! The soak scenarios: long runs whose figures must stay within limits. The binary `soak` runs them
//! by name; tests run short versions.

pub mod load;
pub mod misbehavior;
pub mod token_expiry;
pub mod vitals;
pub mod writers;
