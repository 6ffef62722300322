//! The accounts of all servers at a URL: one for each server and each way to sign in to it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::task::TaskTracker;

use super::account::Account;
use super::terms::Terms;
use super::vault::Vault;
use crate::dial::http::Clients;
use crate::paths::Paths;

/// The accounts of the servers at a URL, and the HTTP clients, paths and task tracker that they
/// share.
pub(crate) struct Accounts {
    clients: Arc<Clients>,
    paths: Paths,
    tasks: TaskTracker,
    /// All accounts. None is removed while the process runs; the loaded configurations bound their
    /// number.
    open: Mutex<Vec<Arc<Account>>>,
}

impl Accounts {
    /// Creates an empty set of accounts. `tasks` tracks the refreshes of all accounts.
    pub(crate) fn new(clients: Clients, paths: Paths, tasks: TaskTracker) -> Accounts {
        Accounts { clients: Arc::new(clients), paths, tasks, open: Mutex::default() }
    }

    pub(crate) fn clients(&self) -> &Clients {
        &self.clients
    }

    /// The account for sign-ins with these terms. Connections with equal terms share an account.
    pub(crate) fn of(&self, terms: Terms, vault: &Vault) -> Arc<Account> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let known = open.iter().find(|account| account.terms == terms && account.vault == *vault);
        if let Some(account) = known {
            return Arc::clone(account);
        }
        let (clients, tasks) = (Arc::clone(&self.clients), self.tasks.clone());
        let account = Account::new(terms, vault.clone(), self.paths.clone(), clients, tasks);
        open.push(Arc::clone(&account));
        account
    }
}
