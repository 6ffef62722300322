//! What the user approved of a project's files: hashes of exact definitions, nothing else.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use switchboard_core::config::expand;
use switchboard_core::config::server::ServerEntry;
use switchboard_core::config::trust::{FileHash, TrustHash, paths_in, scripts_in, trust_hash};
use switchboard_core::config::values::Template;

use crate::env::Environment;
use crate::paths::{self, Unread};
use crate::shared_file::{SharedFile, UpdateError};

/// Scripts that are larger together cannot be approved: a project must not keep us busy.
const LARGEST_SCRIPTS: u64 = 32 * 1024 * 1024;

/// The approvals of this user.
#[derive(Clone, Debug)]
pub struct TrustStore {
    path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("cannot use the approvals in `{}`", path.display())]
    Io {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    /// Nothing counts as approved, and the file is left as it is.
    #[error(
        "the approvals in `{}` are a link, or others can write them; make the file yours alone",
        path.display()
    )]
    Exposed { path: PathBuf },
    /// The same.
    #[error("the approvals in `{}` do not read; move the file away to start anew", path.display())]
    Damaged { path: PathBuf },
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Approvals {
    version: u32,
    /// By hash: what it was when it was approved, for people who read the file.
    approved: BTreeMap<String, Approval>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Approval {
    server: String,
    project: String,
}

const VERSION: u32 = 1;

impl TrustStore {
    pub fn at(path: PathBuf) -> TrustStore {
        TrustStore { path }
    }

    /// The approved hashes. A damaged file approves nothing.
    pub fn approved(&self) -> Result<impl Fn(&TrustHash) -> bool + use<>, TrustError> {
        let approvals = self.read()?;
        Ok(move |hash: &TrustHash| approvals.approved.contains_key(&hash.to_string()))
    }

    /// Writes down that the user approved this definition.
    pub fn approve(
        &self,
        hash: &TrustHash,
        server: &str,
        project: &Path,
    ) -> Result<(), TrustError> {
        self.change(|approvals| {
            let approval =
                Approval { server: server.to_owned(), project: project.display().to_string() };
            approvals.approved.insert(hash.to_string(), approval);
            true
        })
        .map(|_| ())
    }

    /// Forgets every approval of `server` in `project`; says whether there was one.
    pub fn revoke(&self, server: &str, project: &Path) -> Result<bool, TrustError> {
        let project = project.display().to_string();
        self.change(|approvals| {
            let before = approvals.approved.len();
            approvals
                .approved
                .retain(|_, approval| approval.server != server || approval.project != project);
            approvals.approved.len() != before
        })
    }

    fn change(&self, mut work: impl FnMut(&mut Approvals) -> bool) -> Result<bool, TrustError> {
        let mut changed = false;
        let updated = SharedFile::ours(self.path.clone()).update(|_| {
            let mut approvals = self.read()?;
            changed = work(&mut approvals);
            if !changed {
                return Ok(None);
            }
            serde_json::to_vec_pretty(&approvals)
                .map(Some)
                .map_err(|error| self.failed(io::Error::other(error)))
        });
        match updated {
            Ok(()) => Ok(changed),
            Err(UpdateError::Io(cause)) => Err(self.failed(cause)),
            Err(UpdateError::Change(error)) => Err(error),
        }
    }

    fn read(&self) -> Result<Approvals, TrustError> {
        let path = || self.path.clone();
        let bytes = paths::read_private(&self.path).map_err(|unread| match unread {
            Unread::Io(cause) => self.failed(cause),
            Unread::Exposed => TrustError::Exposed { path: path() },
        })?;
        let Some(bytes) = bytes else {
            return Ok(Approvals { version: VERSION, approved: BTreeMap::new() });
        };
        match serde_json::from_slice::<Approvals>(&bytes) {
            Ok(approvals) if approvals.version == VERSION => Ok(approvals),
            Ok(_) | Err(_) => Err(TrustError::Damaged { path: path() }),
        }
    }

    fn failed(&self, cause: io::Error) -> TrustError {
        TrustError::Io { path: self.path.clone(), cause }
    }
}

/// The approval that a project's server runs under, checked again before each start.
#[derive(Clone)]
pub(crate) struct Seal {
    pub(crate) server: String,
    pub(crate) definition: ServerEntry,
    /// Its working directory is the project.
    pub(crate) environment: Environment,
    pub(crate) hash: TrustHash,
    pub(crate) store: TrustStore,
}

/// Why an approval does not cover what would run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BrokenSeal {
    #[error("a file of the project that the server runs has changed since it was approved")]
    Changed,
    #[error("the approval was taken back")]
    Revoked,
    #[error(
        "a variable leads to a file of the project, which no approval covers; \
         write its path with `${{workspaceFolder}}`"
    )]
    HiddenScript,
}

impl Seal {
    /// Whether `words`, which are about to be run in `cwd`, are what the user approved.
    pub(crate) fn check(&self, words: &[String], cwd: &Path) -> Result<(), BrokenSeal> {
        let files = script_hashes(&self.definition, &self.environment);
        let project = self.environment.cwd.to_string_lossy();
        if trust_hash(&self.server, &self.definition, &project, &files) != self.hash {
            return Err(BrokenSeal::Changed);
        }
        // Nothing is approved while the approvals do not read.
        if !self.store.approved().is_ok_and(|approved| approved(&self.hash)) {
            return Err(BrokenSeal::Revoked);
        }
        let Ok(root) = self.environment.cwd.canonicalize() else {
            return Err(BrokenSeal::Changed);
        };
        let covered = |path: &Path| files.iter().any(|(file, _)| Path::new(file) == path);
        let hidden = paths_in(words.iter().map(String::as_str)).into_iter().any(|word| {
            let path = cwd.join(word).canonicalize();
            path.is_ok_and(|path| path.starts_with(&root) && path.is_file() && !covered(&path))
        });
        if hidden { Err(BrokenSeal::HiddenScript) } else { Ok(()) }
    }
}

impl PartialEq for Seal {
    /// The hash is of all the rest.
    fn eq(&self, other: &Seal) -> bool {
        self.hash == other.hash
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Seal").field(&self.hash).finish()
    }
}

/// The files of the project that the definition would run, by where they really lie. No variable is
/// read for it: a word that has one names no file here.
pub fn script_hashes(entry: &ServerEntry, environment: &Environment) -> Vec<FileHash> {
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
        let expanded = |template: &Template| expand::expand(template, &places).ok();
        // Relative names are looked up where the server would run.
        let cwd = match &entry.cwd {
            Some(cwd) => match expanded(cwd) {
                Some(cwd) => root.join(cwd),
                None => return Vec::new(),
            },
            None => root.clone(),
        };
        let mut hashes = Vec::new();
        for script in scripts_in(entry) {
            let Some(named) = expanded(&Template::new(script)).map(|script| cwd.join(script))
            else {
                continue;
            };
            let Ok(path) = named.canonicalize() else { continue };
            let Some(data) = path.metadata().ok().filter(fs::Metadata::is_file) else { continue };
            let digest = if !path.starts_with(&root) {
                if !named.starts_with(&root) {
                    continue;
                }
                // A link of the project's that leads out of it: where it leads counts.
                [0; 32]
            } else {
                self.digest(&path, data.len())
            };
            hashes.push((path.to_string_lossy().into_owned(), digest));
        }
        hashes
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
