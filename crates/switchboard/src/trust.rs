//! The approvals of project definitions, stored as hashes of exact definitions.

mod directory;
mod meant;
mod place;
mod reader;
mod resolver;
mod runners;
mod scripts;
mod seal;
mod spelling;
mod variables;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use switchboard_core::config::trust::TrustHash;

pub use self::reader::{DefinitionReview, PendingApproval};
pub(crate) use self::scripts::{Coverage, Scripts, coverage};
pub(crate) use self::seal::{BrokenSeal, Seal};
use crate::paths::{self, Unread};
use crate::shared_file::SharedFile;

/// The file with the approvals of this user.
#[derive(Clone, Debug)]
pub struct TrustStore {
    path: PathBuf,
}

/// Why the approvals cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant documents it")]
pub enum TrustError {
    #[error("cannot read or change the approvals in `{}`", path.display())]
    Io {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    /// While other users can write the file, nothing is approved; the file is left unchanged.
    #[error(
        "the approvals in `{}` are a symbolic link, or other users can write them; make the file and its directory writable only by you",
        path.display()
    )]
    Exposed { path: PathBuf },
    /// While the file cannot be parsed, nothing is approved; the file is left unchanged.
    #[error("cannot parse the approvals in `{}`; move the file away to start without approvals", path.display())]
    Damaged { path: PathBuf },
}

/// All approvals of this user.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approvals {
    version: u32,
    /// The approvals by the hash of the definition. The values only inform the user who reads the
    /// file.
    approved: BTreeMap<String, Approval>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Approval {
    server: String,
    project: String,
}

const VERSION: u32 = 1;

impl Approvals {
    /// Whether the definition with this hash is approved.
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
    /// The store of the approvals in this file.
    pub fn at(path: PathBuf) -> TrustStore {
        TrustStore { path }
    }

    /// Stores the user's approval of this definition.
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

    /// Removes every approval of `server` in `project`; returns whether there was one.
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
        let updated = SharedFile::guarded(self.path.clone()).update(|_| {
            let mut approvals = self.approvals()?;
            changed = work(&mut approvals);
            if !changed {
                return Ok(None);
            }
            serde_json::to_vec_pretty(&approvals)
                .map(Some)
                .map_err(|error| self.failed(io::Error::other(error)))
        });
        updated.map_err(|error| error.or_io(|cause| self.failed(cause)))?;
        Ok(changed)
    }

    /// The current approvals. A damaged file is an error and approves nothing.
    pub fn approvals(&self) -> Result<Approvals, TrustError> {
        let path = || self.path.clone();
        let bytes = paths::read_private(&self.path).map_err(|unread| match unread {
            Unread::Io(cause) => self.failed(cause),
            Unread::Exposed => TrustError::Exposed { path: path() },
        })?;
        let Some(bytes) = bytes else {
            return Ok(Approvals { version: VERSION, approved: BTreeMap::new() });
        };
        // Another user who can write the directory could restore an older version of the file.
        if self.path.parent().is_some_and(|directory| paths::check_guarded(directory).is_err()) {
            return Err(TrustError::Exposed { path: path() });
        }
        match serde_json::from_slice::<Approvals>(&bytes) {
            Ok(approvals) if approvals.version == VERSION => Ok(approvals),
            Ok(_) | Err(_) => Err(TrustError::Damaged { path: path() }),
        }
    }

    fn failed(&self, cause: io::Error) -> TrustError {
        TrustError::Io { path: self.path.clone(), cause }
    }
}
