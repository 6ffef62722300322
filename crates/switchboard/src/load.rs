//! Reads the configuration files of a user and a project, lowest layer first.

use std::path::PathBuf;

use switchboard_core::config::diagnostic::Diagnostic;
use switchboard_core::config::layers::{self, Approvals, Config, Layer, Source, Tier};
use switchboard_core::config::parse::{self, ParsedFile};

use crate::env::Environment;
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

/// The last version of each file that could be read.
#[derive(Clone, Debug, Default)]
pub struct LastGood {
    layers: Vec<Layer>,
    /// Every file that was looked for.
    files: Vec<PathBuf>,
}

impl LastGood {
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The earlier version of a file, to be used with the problems of the present one.
    fn instead_of(&self, broken: &Layer) -> Option<Layer> {
        let good = self.layers.iter().find(|layer| layer.source == broken.source)?;
        let diagnostics = broken.file.diagnostics.clone();
        Some(Layer {
            source: good.source.clone(),
            file: ParsedFile { diagnostics, ..good.file.clone() },
        })
    }
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
            let mut layer = Layer { source, file };
            if let Some(place) = unusable(&layer.file)
                && let Some(good) = last_good.instead_of(&layer)
            {
                stale.push(place);
                layer = good;
            }
            layers.push(layer);
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
    let good = LastGood {
        // One that never read is nothing to go back to.
        layers: layers.into_iter().filter(|layer| !never_read(layer, last_good)).collect(),
        files: files.iter().map(|file| file.path.clone()).collect(),
    };
    Ok(Loaded { config, files, trust_problem, stale, good })
}

/// Where a file stops making sense as a whole.
fn unusable(file: &ParsedFile) -> Option<String> {
    let problem = file.diagnostics.iter().find(|problem| problem.kind.spoils_the_file())?;
    let path = problem.path.as_deref().unwrap_or_default();
    Some(format!("{path}:{}:{}", problem.line, problem.column))
}

fn never_read(layer: &Layer, last_good: &LastGood) -> bool {
    unusable(&layer.file).is_some() && last_good.instead_of(layer).is_none()
}
