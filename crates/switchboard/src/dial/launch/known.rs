//! The locations of packages that launchers reported, valid for a day.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use switchboard_core::launcher::Launch;

use crate::dial::spawn::Program;
use crate::directory::now;
use crate::paths;
use crate::secret::hex;
use crate::shared_file::{SharedFile, UpdateError};

const DAY: u64 = 24 * 60 * 60;

/// The location of a package that was not looked up for this long is removed.
const REMOVED_AFTER: u64 = 30 * DAY;

/// Prefixes of variables that affect what a launcher installs, and where.
const LAUNCHER_VARIABLES: [&str; 6] = ["npm_config_", "uv_", "bun_", "pnpm_", "xdg_", "home"];

/// The stored location of one installed package.
pub(super) struct Known {
    file: PathBuf,
    key: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    Fresh,
    /// The location is known, but the version that the launcher would install may have changed.
    Stale,
}

#[derive(Default, Serialize, Deserialize)]
struct File {
    packages: BTreeMap<String, PackagePlace>,
}

#[derive(Serialize, Deserialize)]
struct PackagePlace {
    root: PathBuf,
    /// When the launcher reported the location, in seconds since 1970.
    at: u64,
}

impl Known {
    /// The entry for the package that `program` launches in `place`.
    pub(super) fn of(home: &Path, launch: &Launch, program: &Program, place: &Path) -> Known {
        let mut digest = Sha256::new();
        let mut add = |text: &str| {
            digest.update(text.len().to_le_bytes());
            digest.update(text);
        };
        add(&program.command);
        launch.probe_args().iter().for_each(|word| add(word));
        add(&place.to_string_lossy());
        for (name, value) in &program.env {
            let lower = name.to_ascii_lowercase();
            if LAUNCHER_VARIABLES.iter().any(|prefix| lower.starts_with(prefix)) {
                add(&lower);
                add(value);
            }
        }
        let key = hex(digest.finalize().iter().take(16));
        Known { file: home.join("known.json"), key }
    }

    pub(super) fn recall(&self) -> Option<(PathBuf, Age)> {
        // The file decides what runs, so other users must not be able to write it.
        let bytes = paths::read_private(&self.file).ok()??;
        let place = read(&bytes).packages.remove(&self.key)?;
        // A stored time in the future means that the clock was changed: the location is stale.
        let age = match now().checked_sub(place.at) {
            Some(0..DAY) => Age::Fresh,
            Some(_) | None => Age::Stale,
        };
        Some((place.root, age))
    }

    pub(super) fn keep(&self, root: &Path) -> Result<(), UpdateError<Infallible>> {
        SharedFile::ours(self.file.clone()).update(|before| {
            let mut file = before.map(read).unwrap_or_default();
            let at = now();
            file.packages.retain(|_, place| at.saturating_sub(place.at) < REMOVED_AFTER);
            file.packages.insert(self.key.clone(), PackagePlace { root: root.to_owned(), at });
            Ok(serde_json::to_vec(&file).ok())
        })
    }
}

/// Parses the stored locations. A malformed file is treated as empty.
fn read(bytes: &[u8]) -> File {
    serde_json::from_slice(bytes).unwrap_or_default()
}
