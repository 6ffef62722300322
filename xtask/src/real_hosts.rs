//! `cargo xtask real-hosts`: third-party hosts and servers, pinned, against the program as built
//! here.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::command::{CommandError, ends_without, root, succeed, target};
use crate::packages::{InstallError, RUNTIMES, install_once, npm_ci, pip_install, venv_python};
use crate::printer::exit_code;

const SOURCE: &str = "crates/switchboard-it/real-hosts";

pub(crate) fn run() -> ExitCode {
    if let Some(end) = ends_without("real-hosts", &RUNTIMES) {
        return end;
    }
    exit_code(install().and_then(|place| Ok(drive(&place)?)))
}

/// A virtual environment and its requirements for each major version of the Python SDK, because one
/// environment cannot contain both.
const PYTHONS: [(&str, &str); 2] =
    [("venv-v1", "requirements-v1.txt"), ("venv-v2", "requirements-v2.txt")];

/// Installs the packages below the target directory, once.
fn install() -> Result<PathBuf, InstallError> {
    let place = target().join("real-hosts");
    let [(_, v1), (_, v2)] = PYTHONS;
    install_once(SOURCE, &place, &["package-lock.json", v1, v2], || {
        npm_ci(&place)?;
        let mut pythons = PYTHONS.into_iter();
        pythons.try_for_each(|(venv, pins)| pip_install(&place, "python3", venv, pins))
    })?;
    Ok(place)
}

fn drive(place: &Path) -> Result<(), CommandError> {
    succeed(root(), "cargo", ["build", "--quiet", "--package", "switchboard-cli"])?;
    let [v1, v2] = PYTHONS.map(|(venv, _)| venv_python(place, venv));
    let switchboard = target().join("debug/switchboard");
    succeed(root(), "node", [place.join("drive.mjs"), switchboard, v1, v2])
}
