//! How xtask starts other programs: from the repository root, and nowhere else in this crate.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::printer::{complain, say};

/// The repository root; every path that xtask prints is relative to it.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in a folder of the root")
}

/// Where cargo builds: this very program lies in `debug` below it.
pub(crate) fn target() -> PathBuf {
    let program = std::env::current_exe().expect("a running program has a path");
    program.ancestors().nth(2).expect("cargo builds into two folders").to_owned()
}

/// A command that runs `program` in the repository root.
#[expect(clippy::disallowed_methods, reason = "the engine's Spawner is for MCP servers, not tools")]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("cannot start `{program}`")]
    Start {
        program: String,
        #[source]
        cause: io::Error,
    },
    #[error("`{program} {first}` failed")]
    Failed { program: String, first: String },
}

/// Runs a program in `place` with our terminal.
pub(crate) fn succeed(
    place: &Path,
    program: impl AsRef<OsStr>,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<(), CommandError> {
    run(command(program).args(args).current_dir(place))
}

/// Runs a command and expects it to succeed.
pub(crate) fn run(command: &mut Command) -> Result<(), CommandError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command
        .status()
        .map_err(|cause| CommandError::Start { program: program.clone(), cause })?;
    if status.success() {
        return Ok(());
    }
    let first = command.get_args().next().unwrap_or_default().to_string_lossy().into_owned();
    Err(CommandError::Failed { program, first })
}

/// The directory that CI keeps between its runs.
#[expect(clippy::disallowed_methods, reason = "a developer's tool asks where it may keep things")]
pub(crate) fn cache() -> PathBuf {
    match (std::env::var_os("SWITCHBOARD_CI_CACHE"), std::env::home_dir()) {
        (Some(cache), _) => PathBuf::from(cache),
        (None, Some(home)) => home.join(".cache/switchboard-ci"),
        (None, None) => target(),
    }
}

/// How a step ends whose tools are not all there: skipped on a user's machine, failed in CI.
pub(crate) fn ends_without(step: &str, tools: &[&str]) -> Option<ExitCode> {
    let missing: Vec<&str> = tools.iter().copied().filter(|tool| !is_installed(tool)).collect();
    if missing.is_empty() {
        return None;
    }
    let missing = missing.join(", ");
    if in_ci() {
        complain(&format!("error: {step} needs what is not installed: {missing}"));
        return Some(ExitCode::FAILURE);
    }
    say(&format!("skipped: {step} (not installed: {missing})"));
    Some(ExitCode::SUCCESS)
}

fn is_installed(tool: &str) -> bool {
    let asked = command(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

#[expect(clippy::disallowed_methods, reason = "a developer's tool asks where it runs")]
pub(crate) fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}
