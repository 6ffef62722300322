//! The transcripts of the README and the guide: each is run with the real program, in a new home
//! and without a network.
