//! What is remembered of the user's configuration files between two commands: which servers they
//! name, and whether they hold rules. A file that is damaged later takes neither away.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use switchboard_core::config::diagnostic::Diagnostic;
use switchboard_core::config::layers::{Layer, Tier};

use crate::paths;
use crate::shared_file::{SharedFile, UpdateError};

/// Names beyond this number are not remembered: the file stays small.
const MOST_NAMES: usize = 1_000;

/// By path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownFiles {
    files: BTreeMap<String, KnownFile>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct KnownFile {
    servers: Vec<String>,
    rules: bool,
}

impl KnownFiles {
    /// Empty if the file is missing, malformed, or writable by other users.
    pub(crate) fn read(path: &Path) -> KnownFiles {
        let bytes = paths::read_private(path).ok().flatten();
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// The names of servers in a file when it was last sound.
    pub(crate) fn servers(&self, path: &str) -> impl Iterator<Item = &str> {
        self.files.get(path).into_iter().flat_map(|file| file.servers.iter().map(String::as_str))
    }

    /// Whether a file held rules when it was last sound.
    pub(crate) fn had_rules(&self, path: &str) -> bool {
        self.files.get(path).is_some_and(|file| file.rules)
    }

    /// Writes down what sound files say now. Files that were removed are forgotten.
    pub(crate) fn remember(&self, path: &Path, layers: &[Layer]) {
        let mut now = self.clone();
        now.update(layers);
        if now == *self {
            return;
        }
        let written = SharedFile::guarded(path.to_owned()).update(|present| {
            let mut known: KnownFiles =
                present.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
            known.update(layers);
            serde_json::to_vec(&known).map(Some).map_err(io::Error::from)
        });
        if let Err(UpdateError::Io(error) | UpdateError::Change(error)) = written {
            // A disk that is full or read-only must not keep anyone from working.
            tracing::debug!(%error, "cannot remember the names of servers");
        }
    }

    fn update(&mut self, layers: &[Layer]) {
        // A link that leads nowhere is damage, not a file that was removed.
        self.files.retain(|path, _| Path::new(path).symlink_metadata().is_ok());
        for layer in layers.iter().filter(|layer| is_sound(layer)) {
            let names = layer.file.names().take(MOST_NAMES).map(str::to_owned);
            let known = KnownFile { servers: names.collect(), rules: layer.file.has_rules() };
            if known == KnownFile::default() {
                self.files.remove(&*layer.source.path);
            } else {
                self.files.insert(layer.source.path.to_string(), known);
            }
        }
    }
}

fn is_sound(layer: &Layer) -> bool {
    let spoils = |problem: &Diagnostic| problem.is_error() && problem.hides_rules();
    layer.source.tier == Tier::User && !layer.file.diagnostics.iter().any(spoils)
}
