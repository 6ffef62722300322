//! Reads the configuration files of a user and a project, lowest layer first.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use switchboard_core::config::diagnostic::Diagnostic;
use switchboard_core::config::hosts::Host;
use switchboard_core::config::layers::{self, Approvals, Config, Layer, Tier};
use switchboard_core::config::server::ServerEntry;
use switchboard_core::config::trust::{FileHash, scripts_in};

use crate::env::Environment;
use crate::paths::{self, Paths};
use crate::sources::{self, Candidate, Content};
use crate::trust::{TrustError, TrustStore};

/// A script larger than this is hashed by its size and time only when someone changes the limit.
const LARGEST_SCRIPT: usize = 16 * 1024 * 1024;

/// What to load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Replaces the user's own files.
    pub config: Option<PathBuf>,
    /// The project's directory.
    pub project: PathBuf,
}

/// A configuration, and what there is to say about the files that it came from.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// Every file that was looked for, lowest layer first.
    pub files: Vec<FileState>,
    /// The one of them that changes for this user go to.
    pub user_file: PathBuf,
    /// The approvals could not be read, so nothing of the project counts as approved.
    pub trust_problem: Option<TrustError>,
}

#[derive(Clone, Debug)]
pub struct FileState {
    pub path: PathBuf,
    pub tier: Tier,
    /// The host whose file this is; `None` for a layer of ours.
    pub host: Option<Host>,
    pub found: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("the configuration file `{}` does not exist", path.display())]
    Missing { path: PathBuf },
}

/// Reads all layers, and the files of the hosts that the user's own name as imports. A file that
/// does not parse is reported and skipped.
pub fn load(
    environment: &Environment,
    locations: &Paths,
    options: &LoadOptions,
) -> Result<Loaded, LoadError> {
    let project = &options.project;
    let own = own_layers(environment, locations, options)?;
    let mut all = Gathered::default();
    for host in own.imports() {
        for candidate in sources::of_host(locations, project, host) {
            all.gather(&candidate, project);
        }
    }
    all.append(own);
    let store = TrustStore::at(locations.trust());
    let (approved, trust_problem) = match store.approved() {
        Ok(approved) => (Some(approved), None),
        Err(error) => (None, Some(error)),
    };
    let mut config = layers::merge(
        &all.layers,
        &Approvals {
            project_root: &project.to_string_lossy(),
            file_hashes: &|entry| script_hashes(entry, project),
            is_approved: &|hash| approved.as_ref().is_some_and(|approved| approved(hash)),
        },
    );
    config.diagnostics.extend(all.unreadable);
    let user_file = user_file(environment, locations, options);
    Ok(Loaded { config, files: all.files, user_file, trust_problem })
}

fn user_file(environment: &Environment, locations: &Paths, options: &LoadOptions) -> PathBuf {
    match &options.config {
        Some(path) => environment.cwd.join(path),
        None => locations.user_config(),
    }
}

/// Reads our own files alone.
pub(crate) fn own_layers(
    environment: &Environment,
    locations: &Paths,
    options: &LoadOptions,
) -> Result<Gathered, LoadError> {
    let named = options.config.as_ref().map(|_| user_file(environment, locations, options));
    let mut own = Gathered::default();
    for candidate in sources::own(locations, &options.project, named.clone()) {
        own.gather(&candidate, &options.project);
    }
    match named {
        Some(path) if own.files.iter().any(|file| file.path == path && !file.found) => {
            Err(LoadError::Missing { path })
        }
        Some(_) | None => Ok(own),
    }
}

/// Files that were looked for, and what came of it.
#[derive(Default)]
pub(crate) struct Gathered {
    files: Vec<FileState>,
    pub(crate) layers: Vec<Layer>,
    unreadable: Vec<Diagnostic>,
}

impl Gathered {
    fn gather(&mut self, candidate: &Candidate, project: &Path) {
        let content = candidate.read(project);
        let found = matches!(content, Content::Read(_));
        let Candidate { path, tier, .. } = candidate.clone();
        self.files.push(FileState { path, tier, host: candidate.host(), found });
        match content {
            Content::Missing => {}
            Content::Unreadable(diagnostic) => self.unreadable.push(diagnostic),
            Content::Read(layer) => self.layers.push(*layer),
        }
    }

    fn append(&mut self, upper: Gathered) {
        self.files.extend(upper.files);
        self.layers.extend(upper.layers);
        self.unreadable.extend(upper.unreadable);
    }

    /// The hosts that the files name, each once.
    pub(crate) fn imports(&self) -> Vec<Host> {
        let mut hosts: Vec<Host> = Vec::new();
        for host in self.layers.iter().flat_map(|layer| &layer.file.imports) {
            if !hosts.contains(host) {
                hosts.push(*host);
            }
        }
        hosts
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
