//! The accounts of all servers at a URL: one for each server and each way to sign in to it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::task::TaskTracker;

use super::account::Account;
use super::terms::Terms;
use super::vault::Vault;
use crate::dial::http::Clients;
use crate::paths::Paths;

/// The accounts of the servers at a URL, and what they share.
pub(crate) struct Accounts {
    clients: Arc<Clients>,
    paths: Paths,
    tasks: TaskTracker,
    /// Accounts stay for the life of the process; their number is bounded by the configurations it
    /// loads.
    open: Mutex<Vec<Arc<Account>>>,
}

impl Accounts {
    /// The refreshes of all accounts are joined with `tasks`.
    pub(crate) fn new(clients: Clients, paths: Paths, tasks: TaskTracker) -> Accounts {
        Accounts { clients: Arc::new(clients), paths, tasks, open: Mutex::default() }
    }

    pub(crate) fn clients(&self) -> &Clients {
        &self.clients
    }

    /// The account under these terms; connections with equal terms share it.
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
