//! `cargo xtask real-hosts`: hosts and servers by others, pinned, against the program as built here.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::command::{CommandError, ends_without, root, succeed, target};
use crate::packages::{InstallError, install_once, npm_ci};
use crate::printer::report;

/// What the step needs from the machine; all else it installs below the target directory.
const TOOLS: [&str; 3] = ["node", "npm", "python3"];

const SOURCE: &str = "crates/switchboard-it/real-hosts";

pub(crate) fn run() -> ExitCode {
    if let Some(end) = ends_without("real-hosts", &TOOLS) {
        return end;
    }
    match install().and_then(|place| Ok(drive(&place)?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

/// Puts the packages below the target directory, unless the same ones are there.
fn install() -> Result<PathBuf, InstallError> {
    let place = target().join("real-hosts");
    install_once(SOURCE, &place, &["package-lock.json", "requirements.txt"], || {
        npm_ci(&place)?;
        succeed(&place, "python3", ["-m", "venv", "venv"])?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        succeed(&place, python(&place), pip.into_iter().chain(["-r", "requirements.txt"]))
    })?;
    Ok(place)
}

fn drive(place: &Path) -> Result<(), CommandError> {
    succeed(root(), "cargo", ["build", "--quiet", "--package", "switchboard-cli"])?;
    let script = place.join("drive.mjs");
    succeed(root(), "node", [script, target().join("debug/switchboard"), python(place)])
}

fn python(place: &Path) -> PathBuf {
    place.join("venv/bin/python")
}
