//! Reads the configuration files of a user and a project, lowest layer first.

use std::path::PathBuf;

use switchboard_core::config::diagnostic::Diagnostic;
use switchboard_core::config::layers::{self, Approvals, Config, Layer, Source, Tier};
use switchboard_core::config::parse::{self, ParsedFile};

use crate::env::Environment;
use crate::last_good::LastGood;
use crate::paths::{self, Paths};
use crate::trust::{TrustError, TrustStore, script_hashes};

/// What to load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Replaces the user's own file.
    pub config: Option<PathBuf>,
    /// The project's directory: the working directory of the environment that it is loaded with.
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
    /// Places in files that do not read and for which an earlier version stands in.
    pub stale: Vec<String>,
    /// What stands in for a file that does not read the next time.
    pub good: LastGood,
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
    load_again(environment, locations, options, &LastGood::default())
}

/// The same, with earlier versions of files that do not parse.
pub fn load_again(
    environment: &Environment,
    locations: &Paths,
    options: &LoadOptions,
    last_good: &LastGood,
) -> Result<Loaded, LoadError> {
    let own = match &options.config {
        Some(path) => environment.cwd.join(path),
        None => locations.user_config(),
    };
    let candidates = [
        (locations.shared_config.join("mcp.json"), Tier::User),
        (own.clone(), Tier::User),
        (options.project.join(".mcp.json"), Tier::Project),
    ];
    let mut layers = Vec::new();
    let mut files = Vec::new();
    let mut stale = Vec::new();
    for (path, tier) in candidates {
        let source = Source { path: path.to_string_lossy().into(), tier };
        let file = match paths::read(&path) {
            Ok(Some(bytes)) => Some(parse::parse(&String::from_utf8_lossy(&bytes), &source)),
            Ok(None) => None,
            Err(error) => {
                let problem = Diagnostic::unreadable(&source.path, &error.to_string());
                Some(ParsedFile { diagnostics: vec![problem], ..ParsedFile::default() })
            }
        };
        let found = file.is_some();
        if !found && options.config.is_some() && path == own {
            return Err(LoadError::Missing { path });
        }
        if let Some(file) = file {
            let (layer, place) = last_good.stand_in(Layer { source, file });
            layers.push(layer);
            stale.extend(place);
        }
        files.push(FileState { path, tier, found });
    }
    let store = TrustStore::at(locations.trust());
    let (approved, trust_problem) = match store.approved() {
        Ok(approved) => (Some(approved), None),
        Err(error) => (None, Some(error)),
    };
    let config = layers::merge(
        &layers,
        &Approvals {
            project_root: &options.project.to_string_lossy(),
            file_hashes: &|entry| script_hashes(entry, environment),
            is_approved: &|hash| approved.as_ref().is_some_and(|approved| approved(hash)),
        },
    );
    let good = last_good.then(layers, files.iter().map(|file| file.path.as_path()));
    Ok(Loaded { config, files, trust_problem, stale, good })
}
