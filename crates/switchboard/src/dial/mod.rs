//! From a recipe to a pair of byte streams: programs and in-process servers.

pub mod in_process;
pub mod spawn;
