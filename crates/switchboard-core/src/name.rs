//! Names of servers and tools.
