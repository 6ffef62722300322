//! Packages of others, installed once for the versions that are pinned in this repository.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::command::{CommandError, root, succeed};

/// What was installed, written last.
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

/// Copies the files of `source` to `place`, so that nothing is written beside what is committed,
/// and runs `install` there, unless the contents of `pins` have been installed already.
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

/// Installs what `package-lock.json` in `place` says; no package runs a script of its own.
pub(crate) fn npm_ci(place: &Path) -> Result<(), CommandError> {
    let args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    succeed(place, "npm", args)
}
