//! Every test above the core, in one binary.

mod lifecycle;
