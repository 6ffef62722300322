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

/// The two major versions of the Python SDK do not live in one environment.
const PYTHONS: [Python; 2] = [
    Python { environment: "venv-v1", requirements: "requirements-v1.txt" },
    Python { environment: "venv-v2", requirements: "requirements-v2.txt" },
];

struct Python {
    environment: &'static str,
    requirements: &'static str,
}

impl Python {
    fn program(&self, place: &Path) -> PathBuf {
        place.join(self.environment).join("bin/python")
    }

    fn install(&self, place: &Path) -> Result<(), CommandError> {
        succeed(place, "python3", ["-m", "venv", self.environment])?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        succeed(place, self.program(place), pip.into_iter().chain(["-r", self.requirements]))
    }
}

/// Puts the packages below the target directory, unless the same ones are there.
fn install() -> Result<PathBuf, InstallError> {
    let place = target().join("real-hosts");
    let [v1, v2] = PYTHONS;
    let pins = ["package-lock.json", v1.requirements, v2.requirements];
    install_once(SOURCE, &place, &pins, || {
        npm_ci(&place)?;
        v1.install(&place)?;
        v2.install(&place)
    })?;
    Ok(place)
}

fn drive(place: &Path) -> Result<(), CommandError> {
    succeed(root(), "cargo", ["build", "--quiet", "--package", "switchboard-cli"])?;
    let [v1, v2] = PYTHONS.map(|python| python.program(place));
    let switchboard = target().join("debug/switchboard");
    succeed(root(), "node", [place.join("drive.mjs"), switchboard, v1, v2])
}
