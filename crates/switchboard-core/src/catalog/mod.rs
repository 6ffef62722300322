//! What all servers offer, as one snapshot.

pub mod search;
