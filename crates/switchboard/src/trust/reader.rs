//! Approvals while the gateway runs: the user can approve only pending definitions that the review
//! has shown.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use switchboard_core::config::trust::TrustHash;
use switchboard_core::failure::{Code, Failure, Hint, Subject};
use switchboard_core::name::ServerName;
use switchboard_core::render::definition::PendingDefinition;
use switchboard_core::render::words::clean_line;

use super::{TrustError, TrustStore};
use crate::explain::nothing_to_reload as going;
use crate::gateway::Gateway;
use crate::load::{self, Loaded};

/// A review of pending definitions by the user.
pub struct DefinitionReview {
    gateway: Gateway,
    /// Name and hash of the shown definitions. The mutex is locked only briefly, never across an
    /// `await`.
    shown: Mutex<HashSet<(String, String)>>,
}

/// A pending server that the user can approve.
#[derive(Debug)]
pub struct PendingApproval {
    /// The name of the server.
    pub server: String,
    /// The hash of the shown definition.
    pub hash: TrustHash,
    /// The current definition of the server.
    pub definition: PendingDefinition,
}

#[derive(Debug, thiserror::Error)]
enum ApprovalRefusal {
    #[error("`{server}` is not pending in this project")]
    NotPending { server: String },
    #[error("not approved: this definition of `{server}` was not shown")]
    NotShown { server: String },
    #[error("not approved: `{server}` has changed since it was shown")]
    Changed { server: String },
    #[error("cannot change the approvals")]
    Store(#[source] TrustError),
}

impl Gateway {
    /// Begins a review. The user can approve each definition that it shows.
    pub fn reader(&self) -> DefinitionReview {
        DefinitionReview { gateway: self.clone(), shown: Mutex::default() }
    }
}

impl DefinitionReview {
    /// The pending definitions in the current files; marks them as shown.
    pub async fn pending(&self) -> Result<Vec<PendingApproval>, Failure> {
        let (loaded, environment) = (self.load().await?, self.gateway.environment());
        let waiting = loaded.config.pending.iter().map(|pending| PendingApproval {
            server: pending.name.clone(),
            hash: pending.hash,
            definition: loaded.definition(pending, environment),
        });
        let waiting: Vec<PendingApproval> = waiting.collect();
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.extend(waiting.iter().map(|one| (one.server.clone(), one.hash.to_string())));
        Ok(waiting)
    }

    /// Approves a shown definition by name and hash, if the files still contain it. The server is
    /// usable when this returns.
    pub async fn approve(&self, server: &str, hash: &str) -> Result<(), Failure> {
        let name = || clean_line(server, 100).into_owned();
        let loaded = self.load().await?;
        let Some(pending) = loaded.config.pending.iter().find(|one| one.name == server) else {
            let refused = ApprovalRefusal::NotPending { server: name() }.with(Code::BadRequest);
            return Err(refused.hint(Hint::ListServers));
        };
        let look = |refusal: ApprovalRefusal| {
            let failure = refusal.with(Code::BadRequest);
            match ServerName::new(server) {
                Ok(server) => failure.hint(Hint::Trust(server)),
                Err(_) => failure,
            }
        };
        let asked = (server.to_owned(), hash.to_owned());
        if !self.shown.lock().unwrap_or_else(PoisonError::into_inner).contains(&asked) {
            return Err(look(ApprovalRefusal::NotShown { server: name() }));
        }
        if pending.hash.to_string() != hash {
            return Err(look(ApprovalRefusal::Changed { server: name() }));
        }
        let store = TrustStore::at(self.gateway.blueprint().paths.trust());
        let project = self.gateway.environment().cwd.clone();
        let (server, hash) = (server.to_owned(), pending.hash);
        let writing = move || store.approve(&hash, &server, &project);
        let written = tokio::task::spawn_blocking(writing).await.map_err(|_| going())?;
        written.map_err(|error| ApprovalRefusal::Store(error).with(Code::Storage))?;
        // Reloads at once, instead of at the next check of the files.
        self.gateway.reload().await.map(drop)
    }

    async fn load(&self) -> Result<Loaded, Failure> {
        let options = self.gateway.followed().ok_or_else(going)?.clone();
        let gateway = self.gateway.clone();
        let reading = move || {
            let blueprint = gateway.blueprint();
            load::load(&blueprint.environment, &blueprint.paths, &options)
        };
        let loaded = tokio::task::spawn_blocking(reading).await.map_err(|_| going())?;
        loaded.map_err(|error| {
            Failure::new(Code::Config, Subject::Request, error).hint(Hint::ListFiles)
        })
    }
}

impl ApprovalRefusal {
    fn with(self, code: Code) -> Failure {
        Failure::new(code, Subject::Request, self)
    }
}
