//! The last good version of each file, used while the file is invalid.

use std::path::{Path, PathBuf};

use switchboard_core::config::diagnostic::Diagnostic;
use switchboard_core::config::layers::{ConfigOrigin, Layer, Tier};
use switchboard_core::config::parse::ParsedFile;

use crate::load::FileState;

/// The last good version of each file.
#[derive(Clone, Debug, Default)]
pub struct LastGood {
    layers: Vec<Layer>,
    files: Vec<PathBuf>,
}

impl LastGood {
    /// All configuration files that the last load looked for.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The layer to use for a file: `read`, or if that is unusable, the last good version with the
    /// problems of `read`, and the place of the first problem.
    pub(crate) fn stand_in(&self, read: Layer) -> (Layer, Option<ConfigOrigin>) {
        let Some(place) = unusable(&read) else { return (read, None) };
        match self.layers.iter().find(|layer| layer.source == read.source) {
            None => (read, None),
            Some(good) => {
                let diagnostics = read.file.diagnostics;
                let file = ParsedFile { diagnostics, ..good.file.clone() };
                (Layer { source: read.source, file }, Some(place))
            }
        }
    }

    /// The settings of a user's file before it was removed. Its servers are dropped, but its rules
    /// stay in effect: some editors remove a file before they rewrite it, and a running gateway
    /// must not call denied tools in between.
    pub(crate) fn rules_of(&self, missing: &FileState) -> Option<Layer> {
        let good =
            self.layers.iter().find(|layer| Path::new(&*layer.source.path) == missing.path)?;
        if good.source.tier != Tier::User || !good.file.settings.has_rules() {
            return None;
        }
        let file = ParsedFile { settings: good.file.settings.clone(), ..ParsedFile::default() };
        Some(Layer { source: good.source.clone(), file })
    }

    /// The last good versions for the next load: the `layers` that are valid, or replaced by their
    /// last good version.
    pub(crate) fn then<'f>(
        &self,
        layers: Vec<Layer>,
        files: impl Iterator<Item = &'f Path>,
    ) -> LastGood {
        let known = |layer: &Layer| self.layers.iter().any(|good| good.source == layer.source);
        let ever_good = |layer: &Layer| unusable(layer).is_none() || known(layer);
        LastGood {
            layers: layers.into_iter().filter(ever_good).collect(),
            files: files.map(Path::to_owned).collect(),
        }
    }
}

/// The first error of a file that is invalid as a whole, or whose rules are unreadable; `None` for
/// any other file.
fn unusable(layer: &Layer) -> Option<ConfigOrigin> {
    let spoils = |problem: &&Diagnostic| match layer.source.tier {
        Tier::User => problem.is_error() && problem.hides_rules(),
        Tier::Project => problem.kind.invalidates_file(),
    };
    let problem = layer.file.diagnostics.iter().find(spoils)?;
    let Diagnostic { line, column, .. } = *problem;
    Some(ConfigOrigin { path: problem.path.clone().unwrap_or_default(), line, column })
}
