//! What the user approved of a project's files: hashes of exact definitions, nothing else.

mod meant;
mod reader;
mod resolver;
mod scripts;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use switchboard_core::config::server::ServerEntry;
use switchboard_core::config::trust::{TrustHash, trust_hash};
use switchboard_core::config::values::TemplateMap;

pub use self::reader::{Reader, Waiting};
use self::resolver::CommandLine;
pub(crate) use self::scripts::{Coverage, Scripts, coverage};
use crate::dial::spawn::Program;
use crate::env::Environment;
use crate::paths::{self, Unread};
use crate::shared_file::{SharedFile, UpdateError};

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

/// Everything that was approved.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approvals {
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

impl Approvals {
    /// Whether exactly this was approved.
    pub fn cover(&self, hash: &TrustHash) -> bool {
        self.approved.contains_key(&hash.to_string())
    }

    /// Whether some definition of `server` was approved in `project`.
    pub(crate) fn mention(&self, server: &str, project: &Path) -> bool {
        let project = project.display().to_string();
        self.approved
            .values()
            .any(|approval| approval.server == server && approval.project == project)
    }
}

impl TrustStore {
    pub fn at(path: PathBuf) -> TrustStore {
        TrustStore { path }
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
            let mut approvals = self.approvals()?;
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

    /// What is approved now. A damaged file approves nothing.
    pub fn approvals(&self) -> Result<Approvals, TrustError> {
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
        "a variable or a command leads to a file of the project, which no approval covers; \
         write its path with `${{workspaceFolder}}`"
    )]
    HiddenScript,
}

impl Seal {
    /// Whether `program`, and the command lines that were or will be asked for its values, are what
    /// the user approved.
    pub(crate) fn check(&self, program: &Program, asked: &[Vec<String>]) -> Result<(), BrokenSeal> {
        let files = coverage(&self.definition, &self.environment).files;
        let project = self.environment.cwd.to_string_lossy();
        if trust_hash(&self.server, &self.definition, &project, &files) != self.hash {
            return Err(BrokenSeal::Changed);
        }
        // Nothing is approved while the approvals do not read.
        if !self.store.approvals().is_ok_and(|approvals| approvals.cover(&self.hash)) {
            return Err(BrokenSeal::Revoked);
        }
        let Ok(place) = self.environment.cwd.canonicalize() else {
            return Err(BrokenSeal::Changed);
        };
        let home = self.environment.variable("HOME").map(Path::new);
        let root = scripts::project_root(&place, home);
        let covered = |path: &Path| {
            let of_directory = |file: &str| file.ends_with('/') && path.starts_with(file);
            files.iter().any(|(file, _)| Path::new(file) == path || of_directory(file))
        };
        let hidden = self.reached(program, asked).into_iter().any(|file| {
            let path = file.canonicalize();
            path.is_ok_and(|path| path.starts_with(&root) && path.is_file() && !covered(&path))
        });
        if hidden { Err(BrokenSeal::HiddenScript) } else { Ok(()) }
    }

    /// Every place that what is about to run may take a file from, with all values filled in.
    fn reached(&self, program: &Program, asked: &[Vec<String>]) -> Vec<PathBuf> {
        let names = self.definition.env.iter().flat_map(TemplateMap::names);
        let given = names.filter_map(|name| program.env.get(name));
        let words = std::iter::once(&program.command).chain(&program.args).chain(given);
        let words = words.chain(asked.iter().flatten()).map(String::as_str);
        let own = program.env.get("PATH").map(String::as_str).unwrap_or_default();
        let line = CommandLine {
            words: words.map(str::to_owned).collect(),
            cwd: &program.cwd,
            path: Some(own),
        };
        let mut reached = resolver::candidates(&line).0;
        let helpers = asked.iter().filter_map(|words| words.first().cloned()).collect();
        let ours = self.environment.variable("PATH");
        let helpers = CommandLine { words: helpers, cwd: &program.cwd, path: ours };
        reached.extend(resolver::candidates(&helpers).0);
        reached.into_iter().map(|candidate| candidate.file).collect()
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
