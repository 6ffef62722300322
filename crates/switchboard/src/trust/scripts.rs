//! Which files of a project a definition runs, and what is in them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use switchboard_core::config::expand::{self, Expanded, Surroundings};
use switchboard_core::config::server::ServerEntry;
use switchboard_core::config::trust::{FileHash, programs_in, scripts_in};
use switchboard_core::config::values::Template;

use super::meant;
use crate::dial::lookup;
use crate::env::Environment;
use crate::paths;

/// Scripts that are larger together cannot be approved: a project must not keep us busy.
const LARGEST_SCRIPTS: u64 = 32 * 1024 * 1024;

/// The files of the project that the definition would run, by where they really lie. No variable
/// but `PATH` is read for it: a word that has one names no file here.
pub(crate) fn script_hashes(entry: &ServerEntry, environment: &Environment) -> Vec<FileHash> {
    Scripts::default().hashes(entry, environment)
}

/// The scripts of many definitions: each file is read once, and all of them together have one limit.
pub(crate) struct Scripts {
    left: Cell<u64>,
    read: RefCell<HashMap<PathBuf, [u8; 32]>>,
}

impl Default for Scripts {
    fn default() -> Scripts {
        Scripts { left: Cell::new(LARGEST_SCRIPTS), read: RefCell::default() }
    }
}

impl Scripts {
    pub(crate) fn hashes(&self, entry: &ServerEntry, environment: &Environment) -> Vec<FileHash> {
        let Ok(root) = environment.cwd.canonicalize() else { return Vec::new() };
        let places = environment.places();
        let expanded = |text: &str| expand::expand(&Template::new(text), &places).ok();
        // Relative names are looked up where the server would run.
        let cwd = match &entry.cwd {
            Some(cwd) => match expanded(cwd.source()) {
                Some(cwd) => root.join(cwd),
                None => return Vec::new(),
            },
            None => root.clone(),
        };
        let named: Vec<String> =
            scripts_in(entry).into_iter().filter_map(|script| expanded(&script)).collect();
        let mut files: Vec<PathBuf> = Vec::new();
        for word in &named {
            files.extend(meant::by_path(cwd.join(word)));
            files.extend(meant::by_module(word, &cwd));
        }
        let programs = programs_in(entry);
        let runners = programs.server.iter().chain(&programs.asked);
        files.extend(runners.filter_map(|program| meant::by_runner(program, &cwd)));
        if let Some(path) = own_path(entry, environment) {
            let server = programs.server.as_deref().and_then(expanded);
            files.extend(server.iter().flat_map(|name| lookup::candidates(name, &path, &cwd)));
        }
        let ours = environment.variable("PATH").unwrap_or_default();
        let asked = programs.asked.iter().filter_map(|name| expanded(name));
        files.extend(asked.flat_map(|name| lookup::candidates(&name, ours, &cwd)));
        let mut hashes: Vec<FileHash> = Vec::new();
        for file in files {
            let Some((path, digest)) = self.hash(&file, &root) else { continue };
            if hashes.iter().all(|(known, _)| *known != path) {
                hashes.push((path, digest));
            }
        }
        hashes
    }

    /// What `file` is, if the project decides that.
    fn hash(&self, file: &Path, root: &Path) -> Option<FileHash> {
        let path = file.canonicalize().ok()?;
        let data = path.metadata().ok().filter(fs::Metadata::is_file)?;
        let digest = if path.starts_with(root) {
            self.digest(&path, data.len())
        } else if file.starts_with(root) {
            // A link of the project's that leads out of it: where it leads counts.
            [0; 32]
        } else {
            return None;
        };
        Some((path.to_string_lossy().into_owned(), digest))
    }

    fn digest(&self, path: &Path, length: u64) -> [u8; 32] {
        if let Some(known) = self.read.borrow().get(path) {
            return *known;
        }
        let fits = self.left.get().checked_sub(length);
        self.left.set(fits.unwrap_or(0));
        let digest = match fits.map(|_| paths::read(path)) {
            Some(Ok(Some(bytes))) => Sha256::digest(&bytes).into(),
            // What cannot be hashed can never match an approval.
            Some(Ok(None) | Err(_)) | None => std::array::from_fn(|_| fastrand::u8(..)),
        };
        self.read.borrow_mut().insert(path.to_owned(), digest);
        digest
    }
}

/// The `PATH` that the server itself is looked for on; `None` if only a start would tell.
fn own_path(entry: &ServerEntry, environment: &Environment) -> Option<String> {
    let ours = environment.variable("PATH").unwrap_or_default();
    let Some(path) = entry.env.as_ref().and_then(|env| env.get("PATH")) else {
        return Some(ours.to_owned());
    };
    let variable = |name: &str| (name == "PATH").then(|| ours.to_owned());
    let with = Surroundings { variable: &variable, ..environment.places() };
    match expand::expand_value(path, &with) {
        Ok(Expanded::Text(path)) => Some(path),
        Ok(Expanded::Command(_)) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests;
