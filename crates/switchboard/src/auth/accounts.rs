//! The accounts of all servers at a URL: one for each server and each way to sign in to it.

use std::sync::{Arc, Mutex, PoisonError};

use super::account::Account;
use super::terms::Terms;
use super::vault::Vault;
use crate::dial::http::Clients;
use crate::paths::Paths;

/// What servers at a URL are reached with, and as whom.
pub(crate) struct Accounts {
    clients: Arc<Clients>,
    paths: Paths,
    /// As many as the configuration has had.
    open: Mutex<Vec<Arc<Account>>>,
}

impl Accounts {
    pub(crate) fn new(clients: Clients, paths: Paths) -> Accounts {
        Accounts { clients: Arc::new(clients), paths, open: Mutex::default() }
    }

    pub(crate) fn clients(&self) -> &Clients {
        &self.clients
    }

    /// The account under these terms; connections that have the same ones share it.
    pub(crate) fn of(&self, terms: Terms, vault: &Vault) -> Arc<Account> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let known = open.iter().find(|account| account.terms == terms && account.vault == *vault);
        if let Some(account) = known {
            return Arc::clone(account);
        }
        let (vault, paths) = (vault.clone(), self.paths.clone());
        let account = Arc::new(Account::new(terms, vault, paths, Arc::clone(&self.clients)));
        open.push(Arc::clone(&account));
        account
    }
}
