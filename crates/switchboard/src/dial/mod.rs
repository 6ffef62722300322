//! From a recipe to a pair of byte streams: programs, what they are given, and in-process servers.

pub mod in_process;
pub(crate) mod lookup;
pub(crate) mod secret;
pub mod spawn;
