//! Developer commands: `cargo xtask test`, `tidy`, `docs`.

fn main() {}
