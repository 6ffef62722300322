//! What the user approved of a project's files: hashes of exact definitions, nothing else.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use switchboard_core::config::trust::TrustHash;

use crate::paths;
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
        let updated = SharedFile::ours(self.path.clone()).update(|before| {
            let mut approvals = self.parse(before)?;
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
        let bytes = paths::read(&self.path).map_err(|cause| self.failed(cause))?;
        self.parse(bytes.as_deref())
    }

    fn parse(&self, bytes: Option<&[u8]>) -> Result<Approvals, TrustError> {
        let Some(bytes) = bytes else {
            return Ok(Approvals { version: VERSION, approved: BTreeMap::new() });
        };
        match serde_json::from_slice::<Approvals>(bytes) {
            Ok(approvals) if approvals.version == VERSION => Ok(approvals),
            Ok(_) | Err(_) => Err(TrustError::Damaged { path: self.path.clone() }),
        }
    }

    fn failed(&self, cause: io::Error) -> TrustError {
        TrustError::Io { path: self.path.clone(), cause }
    }
}
