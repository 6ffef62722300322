//! Ranked search over tools.
