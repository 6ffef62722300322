//! `cargo xtask real-hosts`: hosts and servers by others, pinned, against the program as built here.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::{fs, io};

use crate::command::{command, root};
use crate::printer::{complain, say};

/// What the step needs from the machine; all else it installs below the target directory.
const TOOLS: [&str; 3] = ["node", "npm", "python3"];

const SOURCE: &str = "crates/switchboard-it/real-hosts";

#[derive(Debug, thiserror::Error)]
enum HostsError {
    #[error("cannot prepare `{}`", path.display())]
    Prepare {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("cannot start `{program}`")]
    Start {
        program: String,
        #[source]
        cause: io::Error,
    },
    #[error("`{program} {first}` failed")]
    Failed { program: String, first: String },
}

pub(crate) fn run() -> ExitCode {
    let missing: Vec<&str> = TOOLS.into_iter().filter(|tool| !is_installed(tool)).collect();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        if in_ci() {
            complain(&format!("error: real-hosts needs what is not installed: {missing}"));
            return ExitCode::FAILURE;
        }
        say(&format!("skipped: real-hosts (not installed: {missing})"));
        return ExitCode::SUCCESS;
    }
    match install().and_then(|place| drive(&place)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let cause = std::error::Error::source(&error);
            let cause = cause.map(|cause| format!("\n  caused by: {cause}")).unwrap_or_default();
            complain(&format!("error: {error}{cause}"));
            ExitCode::FAILURE
        }
    }
}

fn is_installed(tool: &str) -> bool {
    let asked = command(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

#[expect(clippy::disallowed_methods, reason = "a developer's tool asks where it runs")]
fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

/// Puts the packages below the target directory, unless the same ones are there.
fn install() -> Result<PathBuf, HostsError> {
    let place = target().join("real-hosts");
    let pins =
        copy_sources(&place).map_err(|cause| HostsError::Prepare { path: place.clone(), cause })?;
    let stamp = place.join("installed");
    if fs::read(&stamp).is_ok_and(|installed| installed == pins) {
        return Ok(place);
    }
    let quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    succeed(&place, "npm", ["ci"].into_iter().chain(quiet))?;
    succeed(&place, "python3", ["-m", "venv", "venv"])?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    succeed(&place, python(&place), pip.into_iter().chain(["-r", "requirements.txt"]))?;
    fs::write(&stamp, pins).map_err(|cause| HostsError::Prepare { path: stamp, cause })?;
    Ok(place)
}

/// Copies what is committed, so that nothing is written beside it; returns the pinned versions.
fn copy_sources(place: &Path) -> io::Result<Vec<u8>> {
    fs::create_dir_all(place)?;
    for entry in fs::read_dir(root().join(SOURCE))? {
        let entry = entry?;
        fs::copy(entry.path(), place.join(entry.file_name()))?;
    }
    let mut pins = fs::read(place.join("package-lock.json"))?;
    pins.extend(fs::read(place.join("requirements.txt"))?);
    Ok(pins)
}

fn drive(place: &Path) -> Result<(), HostsError> {
    succeed(root(), "cargo", ["build", "--quiet", "--package", "switchboard-cli"])?;
    let script = place.join("drive.mjs");
    succeed(root(), "node", [script, target().join("debug/switchboard"), python(place)])
}

fn python(place: &Path) -> PathBuf {
    place.join("venv/bin/python")
}

/// Where cargo builds: this very program lies in `debug` below it.
fn target() -> PathBuf {
    let program = std::env::current_exe().expect("a running program has a path");
    program.ancestors().nth(2).expect("cargo builds into two folders").to_owned()
}

/// Runs a program in `place` with our terminal.
fn succeed(
    place: &Path,
    program: impl AsRef<OsStr>,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<(), HostsError> {
    let program = program.as_ref().to_string_lossy().into_owned();
    let mut command = command(&program);
    command.args(args).current_dir(place);
    let status =
        command.status().map_err(|cause| HostsError::Start { program: program.clone(), cause })?;
    if status.success() {
        return Ok(());
    }
    let first = command.get_args().next().unwrap_or_default().to_string_lossy().into_owned();
    Err(HostsError::Failed { program, first })
}
