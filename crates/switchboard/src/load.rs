//! Reads the configuration files of a user and a project, lowest layer first.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use switchboard_core::config::diagnostic::Diagnostic;
use switchboard_core::config::layers::{self, Approvals, Config, Layer, Source, Tier};
use switchboard_core::config::parse;
use switchboard_core::config::server::ServerEntry;
use switchboard_core::config::trust::{FileHash, scripts_in};

use crate::env::Environment;
use crate::paths::{self, Paths};
use crate::shared_file::{Privacy, SharedFile};
use crate::trust::{TrustError, TrustStore};

/// A script larger than this is hashed by its size and time only when someone changes the limit.
const LARGEST_SCRIPT: usize = 16 * 1024 * 1024;

/// What to load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Replaces the user's own file.
    pub config: Option<PathBuf>,
    /// The project's directory.
    pub project: PathBuf,
}

/// A configuration, and what there is to say about the files that it came from.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// Every file that was looked for, in order.
    pub files: Vec<FileState>,
    /// The approvals could not be read, so nothing of the project counts as approved.
    pub trust_problem: Option<TrustError>,
}

#[derive(Clone, Debug)]
pub struct FileState {
    pub path: PathBuf,
    pub tier: Tier,
    pub found: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("the configuration file `{}` does not exist", path.display())]
    Missing { path: PathBuf },
}

/// Reads all layers. A file that does not parse is reported and skipped.
pub fn load(
    environment: &Environment,
    locations: &Paths,
    options: &LoadOptions,
) -> Result<Loaded, LoadError> {
    let own = match &options.config {
        Some(path) => environment.cwd.join(path),
        None => locations.user_config(),
    };
    sweep(&own, locations);
    let candidates = [
        (locations.shared_config.join("mcp.json"), Tier::User),
        (own.clone(), Tier::User),
        (options.project.join(".mcp.json"), Tier::Project),
        (options.project.join(".switchboard/mcp.json"), Tier::Project),
    ];
    let mut layers = Vec::new();
    let mut files = Vec::new();
    let mut unreadable = Vec::new();
    for (path, tier) in candidates {
        let text = match paths::read(&path) {
            Ok(Some(bytes)) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Ok(None) => None,
            Err(error) => {
                unreadable
                    .push(Diagnostic::unreadable(&path.to_string_lossy(), &error.to_string()));
                None
            }
        };
        let found = text.is_some();
        if !found && options.config.is_some() && path == own {
            return Err(LoadError::Missing { path });
        }
        if let Some(text) = text {
            let source = Source { path: path.to_string_lossy().into(), tier };
            let file = parse::parse(&text, &source);
            layers.push(Layer { source, file });
        }
        files.push(FileState { path, tier, found });
    }
    let store = TrustStore::at(locations.trust());
    let (approved, trust_problem) = match store.approved() {
        Ok(approved) => (Some(approved), None),
        Err(error) => (None, Some(error)),
    };
    let mut config = layers::merge(
        &layers,
        &Approvals {
            project_root: &options.project.to_string_lossy(),
            file_hashes: &|entry| script_hashes(entry, &options.project),
            is_approved: &|hash| approved.as_ref().is_some_and(|approved| approved(hash)),
        },
    );
    config.diagnostics.extend(unreadable);
    Ok(Loaded { config, files, trust_problem })
}

/// Removes what killed writers left of our own files.
fn sweep(own: &Path, locations: &Paths) {
    let swept = SharedFile::elsewhere(own, &locations.locks(), Privacy::Private)
        .and_then(|file| file.sweep())
        .and_then(|()| SharedFile::sweep_directory(&locations.state));
    if let Err(error) = swept {
        tracing::debug!(%error, "cannot tidy up");
    }
}

/// Hashes of the project's own files that the definition would run.
fn script_hashes(entry: &ServerEntry, project: &Path) -> Vec<FileHash> {
    let Ok(root) = project.canonicalize() else { return Vec::new() };
    // Relative names are looked up where the server would run.
    let cwd = entry.cwd.as_ref().map_or_else(|| root.clone(), |cwd| root.join(cwd.source()));
    let mut hashes = Vec::new();
    for script in scripts_in(entry) {
        let Ok(path) = cwd.join(&script).canonicalize() else { continue };
        if !path.starts_with(&root) || !path.is_file() {
            continue;
        }
        let digest = match paths::read(&path) {
            Ok(Some(bytes)) if bytes.len() <= LARGEST_SCRIPT => Sha256::digest(&bytes).into(),
            // What cannot be hashed can never match an approval.
            Ok(_) | Err(_) => random_hash(),
        };
        hashes.push((script, digest));
    }
    hashes
}

fn random_hash() -> [u8; 32] {
    std::array::from_fn(|_| fastrand::u8(..))
}
