//! Reads the configuration files of a user and a project, lowest layer first.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use switchboard_core::config::diagnostic::{Diagnostic, DiagnosticKind};
use switchboard_core::config::hosts::Host;
use switchboard_core::config::layers::{
    self, Approvals, Config, ConfigOrigin, Layer, PendingServer, Tier,
};
use switchboard_core::render::definition::PendingDefinition;

use crate::env::Environment;
use crate::known_files::{KnownFiles, is_gone, is_sound};
use crate::last_good::LastGood;
use crate::paths::Paths;
use crate::results;
use crate::shared_file::{Privacy, SharedFile};
use crate::sources::{self, Candidate};
use crate::trust::{self, Coverage, Scripts, TrustError, TrustStore, coverage};

/// Which configuration files to load.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// The file to read instead of the `mcp.json` files of Switchboard and Pi (`--config`).
    pub config: Option<PathBuf>,
    /// The bytes of `config` if it is a pipe, which can be read only once.
    pub piped: Option<Arc<[u8]>>,
    /// The project's directory, which is the working directory of the environment.
    pub project: PathBuf,
}

impl LoadOptions {
    /// The bytes of the file at `path`, if they were read from a pipe.
    fn piped_as(&self, path: &Path) -> Option<&[u8]> {
        self.piped.as_deref().filter(|_| self.config.as_deref() == Some(path))
    }
}

/// A configuration, and the state of the files that it was loaded from.
#[derive(Debug)]
pub struct Loaded {
    /// The merged configuration.
    pub config: Config,
    /// The state of every file that was looked for, lowest layer first.
    pub files: Vec<FileState>,
    /// The configuration file that Switchboard edits for this user.
    pub user_file: PathBuf,
    /// Why the approvals could not be read; nothing of the project is then approved.
    pub trust_problem: Option<TrustError>,
    /// The first error of each file whose last good version is used instead.
    pub stale: Vec<ConfigOrigin>,
    /// The last good version of each configuration file, for the next load.
    pub good: LastGood,
}

impl Loaded {
    /// Errors in files that are not replaced by a last good version; the faulty parts have no
    /// effect.
    pub(crate) fn mistakes(&self) -> impl Iterator<Item = &Diagnostic> {
        let is_stale = |path: &str| self.stale.iter().any(|place| *place.path == *path);
        self.config.diagnostics.iter().filter(move |problem| {
            problem.is_error() && !problem.path.as_deref().is_some_and(is_stale)
        })
    }
}

/// One configuration file that was looked for.
#[derive(Clone, Debug)]
pub struct FileState {
    /// The path of the file, which need not exist.
    pub path: PathBuf,
    /// Whether the file belongs to the user or the project.
    pub tier: Tier,
    /// The host whose file this is; `None` for one of Switchboard's own layers.
    pub host: Option<Host>,
    /// Whether the file exists.
    pub found: bool,
}

impl Loaded {
    /// The definition that `pending` would run, for the user's decision.
    pub fn definition(
        &self,
        pending: &PendingServer,
        environment: &Environment,
    ) -> PendingDefinition {
        let of_project = |path: &str| {
            let mut projects = self.files.iter().filter(|file| file.tier == Tier::Project);
            projects.any(|project| project.path == Path::new(path))
        };
        let Coverage { files, not_covered, .. } = coverage(&pending.definition, environment);
        let files: Vec<&str> = files.iter().map(|(file, _)| file.as_str()).collect();
        PendingDefinition::of(pending, &of_project, &files, &not_covered)
    }

    /// Why the entry of this name is refused, if there is one.
    pub fn refused(&self, server: &str) -> Option<RefusedEntry> {
        let problem = self.config.refused.get(server)?;
        let path = problem.path.as_deref().unwrap_or_default().to_owned();
        let (server, line, cause) = (server.to_owned(), problem.line, problem.kind.clone());
        Some(RefusedEntry { server, path, line, cause })
    }
}

/// An entry that has no effect because it is invalid.
#[derive(Debug, thiserror::Error)]
#[error("the entry of `{server}` is refused")]
pub struct RefusedEntry {
    /// The name of the server.
    pub server: String,
    /// The path of the file with the entry.
    pub path: String,
    /// The line at which the entry begins.
    pub line: u32,
    /// The error in the entry.
    #[source]
    pub cause: DiagnosticKind,
}

/// Why no configuration was loaded.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant documents it")]
pub enum LoadError {
    #[error("the configuration file `{}` does not exist", path.display())]
    Missing { path: PathBuf },
}

/// Reads all layers, and the files of the hosts that the user's files import. A file that cannot be
/// parsed is reported and skipped.
pub fn load(
    environment: &Environment,
    locations: &Paths,
    options: &LoadOptions,
) -> Result<Loaded, LoadError> {
    load_again(environment, locations, options, &LastGood::default())
}

/// Like [`load`], but uses the last good version of a file that cannot be parsed.
pub fn load_again(
    environment: &Environment,
    locations: &Paths,
    options: &LoadOptions,
    last_good: &LastGood,
) -> Result<Loaded, LoadError> {
    let project = &options.project;
    let user_file = user_file(environment, locations, options);
    let known = KnownFiles::read(&locations.known_files());
    let earlier = Earlier { last_good, known: &known };
    let own = own_layers(environment, locations, options, earlier)?;
    let users_own = [user_file.clone(), locations.others.pi.join("mcp.json")];
    let unread_rules = own.unread_rules(&users_own, &known);
    let mut all = Gathered::default();
    for host in own.imports() {
        for candidate in sources::of_host(locations, project, host) {
            all.gather(candidate, options, earlier);
        }
    }
    all.append(own);
    let store = TrustStore::at(locations.trust());
    let (approved, trust_problem) = match store.approvals() {
        Ok(approvals) => (approvals, None),
        Err(error) => (trust::Approvals::default(), Some(error)),
    };
    let scripts = Scripts::default();
    let mut config = layers::merge(
        &all.layers,
        &Approvals {
            project_root: &project.to_string_lossy(),
            file_hashes: &|entry| scripts.coverage(entry, environment).hashes(),
            is_approved: &|hash| approved.cover(hash),
            was_approved: &|server| approved.mention(server, project),
        },
    );
    let Gathered { files, layers, stale } = all;
    // A damaged file may not show all its servers, so the names of its last valid version stay
    // reserved.
    let damaged = |layer: &&Layer| layer.source.tier == Tier::User && !is_sound(layer);
    for layer in layers.iter().filter(damaged) {
        config.reserve(known.servers(&layer.source.path), Tier::User);
    }
    known.remember(&locations.known_files(), &files, &layers);
    let good = last_good.then(layers, files.iter().map(|file| file.path.as_path()));
    config.unread_rules = unread_rules;
    Ok(Loaded { config, files, user_file, trust_problem, stale, good })
}

/// Removes temporary files that killed processes left behind.
fn sweep(own: &Path, locations: &Paths) {
    let swept = SharedFile::elsewhere(own, &locations.locks(), Privacy::Private)
        .and_then(|file| file.sweep())
        .and_then(|()| {
            locations.private().iter().try_for_each(|own| SharedFile::sweep_directory(own))
        });
    if let Err(error) = swept {
        tracing::debug!(%error, "cannot remove temporary files");
    }
    results::leftovers::sweep(&locations.results());
}

/// The configuration file that Switchboard edits for this user.
pub(crate) fn user_file(
    environment: &Environment,
    locations: &Paths,
    options: &LoadOptions,
) -> PathBuf {
    match &options.config {
        Some(path) => environment.cwd.join(path),
        None => locations.user_config(),
    }
}

/// Reads only Switchboard's own layers, not those of hosts.
pub(crate) fn own_layers(
    environment: &Environment,
    locations: &Paths,
    options: &LoadOptions,
    earlier: Earlier<'_>,
) -> Result<Gathered, LoadError> {
    let user_file = user_file(environment, locations, options);
    sweep(&user_file, locations);
    let named = options.config.as_ref().map(|_| user_file);
    let mut own = Gathered::default();
    for candidate in sources::own(locations, &options.project, named.clone()) {
        own.gather(candidate, options, earlier);
    }
    match named {
        Some(path) if own.files.iter().any(|file| file.path == path && !file.found) => {
            Err(LoadError::Missing { path })
        }
        Some(_) | None => Ok(own),
    }
}

/// The state of configuration files that earlier loads recorded.
#[derive(Clone, Copy)]
pub(crate) struct Earlier<'a> {
    pub(crate) last_good: &'a LastGood,
    pub(crate) known: &'a KnownFiles,
}

/// The configuration files that were looked for, and the layers read from them.
#[derive(Default)]
pub(crate) struct Gathered {
    files: Vec<FileState>,
    pub(crate) layers: Vec<Layer>,
    stale: Vec<ConfigOrigin>,
}

impl Gathered {
    fn gather(&mut self, candidate: Candidate, options: &LoadOptions, earlier: Earlier<'_>) {
        let Earlier { last_good, known } = earlier;
        let mut layer = match options.piped_as(&candidate.path) {
            Some(bytes) => Some(candidate.parse(bytes.to_vec(), &options.project)),
            None => candidate.read(&options.project),
        };
        // The rules of a file lapse only if the file is provably missing.
        let had_rules =
            candidate.is_the_users() && known.had_rules(&candidate.path.to_string_lossy());
        if layer.is_none() && had_rules && !is_gone(&candidate.path) {
            layer = Some(candidate.unreadable("a part of its path is not a directory"));
        }
        let (host, found) = (candidate.host(), layer.is_some());
        let Candidate { path, tier, .. } = candidate;
        self.files.push(FileState { path, tier, host, found });
        match layer {
            Some(layer) => {
                let (layer, place) = last_good.stand_in(layer);
                self.layers.push(layer);
                self.stale.extend(place);
            }
            None => self.layers.extend(self.files.last().and_then(|file| last_good.rules_of(file))),
        }
    }

    fn append(&mut self, upper: Gathered) {
        self.files.extend(upper.files);
        self.layers.extend(upper.layers);
        self.stale.extend(upper.stale);
    }

    /// The first place where a file of the user has unreadable rules, unless its last good version
    /// is used.
    fn unread_rules(&self, own: &[PathBuf], known: &KnownFiles) -> Option<ConfigOrigin> {
        let users = self.layers.iter().filter(|layer| layer.source.tier == Tier::User);
        let users = users.filter(|layer| layer.file.host.is_none());
        users.flat_map(|layer| &layer.file.diagnostics).find_map(|problem| {
            let path = problem.path.clone()?;
            let own = own.iter().any(|own| own == Path::new(&*path));
            let is_stale = self.stale.iter().any(|place| place.path == path);
            // A file that other programs use, too, is skipped if it cannot be parsed, unless it may
            // have held rules.
            let may_be_skipped = problem.kind.invalidates_file() && !known.had_rules(&path);
            let counts = problem.hides_rules() && (own || !may_be_skipped);
            let Diagnostic { line, column, .. } = *problem;
            (problem.is_error() && counts && !is_stale).then_some(ConfigOrigin {
                path,
                line,
                column,
            })
        })
    }

    /// The hosts that the files import, without duplicates.
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
