//! How xtask starts other programs: from the repository root, and nowhere else in this crate.

use std::path::Path;
use std::process::Command;

/// The repository root; every path that xtask prints is relative to it.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in a folder of the root")
}

/// A command that runs `program` in the repository root.
#[expect(clippy::disallowed_methods, reason = "the engine's Spawner is for MCP servers, not tools")]
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}
