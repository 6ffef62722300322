//! How xtask starts other programs: from the repository root, and nowhere else in this crate.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::printer::{complain, say};

/// The repository root; printed paths are relative to it.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in a folder of the root")
}

/// Cargo's target directory. Its directory `debug` contains this program.
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
    #[error("`{line}` failed")]
    Failed { line: String },
}

/// Runs a program in `place`, with the streams of this terminal.
pub(crate) fn succeed(
    place: &Path,
    program: impl AsRef<OsStr>,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<(), CommandError> {
    run(command(program).args(args).current_dir(place))
}

/// Runs a command and expects it to succeed.
pub(crate) fn run(command: &mut Command) -> Result<(), CommandError> {
    let status = command.status().map_err(|cause| not_started(command, cause))?;
    if status.success() { Ok(()) } else { Err(failed(command)) }
}

/// The standard output of a command that is expected to succeed.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>, CommandError> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|cause| not_started(command, cause))?;
    if output.status.success() { Ok(output.stdout) } else { Err(failed(command)) }
}

fn not_started(command: &Command, cause: io::Error) -> CommandError {
    let program = command.get_program().to_string_lossy().into_owned();
    CommandError::Start { program, cause }
}

fn failed(command: &Command) -> CommandError {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    CommandError::Failed { line: words.join(" ") }
}

/// The directory that CI keeps between its runs.
#[expect(clippy::disallowed_methods, reason = "a developer's tool may use a cache directory")]
pub(crate) fn cache() -> PathBuf {
    match (std::env::var_os("SWITCHBOARD_CI_CACHE"), std::env::home_dir()) {
        (Some(cache), _) => PathBuf::from(cache),
        (None, Some(home)) => home.join(".cache/switchboard-ci"),
        (None, None) => target(),
    }
}

/// The exit code of a step whose tools are not all installed: success on a user's machine, which
/// skips the step, and failure in CI. `None` if all are installed.
pub(crate) fn ends_without(step: &str, tools: &[&str]) -> Option<ExitCode> {
    let missing: Vec<&str> = tools.iter().copied().filter(|tool| !is_installed(tool)).collect();
    if missing.is_empty() {
        return None;
    }
    let missing = missing.join(", ");
    if in_ci() {
        complain(&format!("error: {step} requires {missing}, not installed"));
        return Some(ExitCode::FAILURE);
    }
    say(&format!("skipped: {step} (not installed: {missing})"));
    Some(ExitCode::SUCCESS)
}

fn is_installed(tool: &str) -> bool {
    is_silent_success(command(tool).arg("--version"))
}

/// Runs a command without output, and returns whether it succeeded.
pub(crate) fn is_silent_success(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[expect(clippy::disallowed_methods, reason = "a developer's tool behaves differently in CI")]
pub(crate) fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}
