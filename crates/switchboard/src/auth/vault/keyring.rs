//! The keyring of the system, accessed on a separate thread and with a timeout.

#[cfg(target_os = "macos")]
mod keychain;
#[cfg(not(target_os = "macos"))]
mod secret_service;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

#[cfg(target_os = "macos")]
use keychain::Keychain as Backend;
#[cfg(not(target_os = "macos"))]
use secret_service::SecretService as Backend;

use crate::env::Environment;
use crate::secret::Secret;

/// The service name under which the keyring stores Switchboard's secrets.
const SERVICE: &str = "switchboard";

/// The timeout of a keyring operation: a locked keyring may wait for a prompt that no user sees.
const PATIENCE: Duration = Duration::from_secs(3);

/// The keyring of the system. Nothing is connected or started before its first use.
pub(super) struct Keyring {
    /// The connection to the keyring service; `None` if this machine has no keyring.
    backend: Option<Arc<Backend>>,
    /// Whether an earlier keyring operation timed out; later operations then fail at once.
    silent: AtomicBool,
}

/// Why a keyring operation failed. The error contains no text of the keyring.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyringError {
    #[error("no keyring is available")]
    Absent,
    #[error("the keyring did not respond within {} s", PATIENCE.as_secs())]
    TimedOut,
    #[error("the keyring is locked")]
    Locked,
    #[error("the keyring operation failed")]
    Refused,
    #[error("cannot start a thread for the keyring")]
    Thread(#[source] io::Error),
}

impl Keyring {
    pub(super) fn of(environment: &Environment) -> Keyring {
        let backend = Backend::at_hand(environment).map(Arc::new);
        Keyring { backend, silent: AtomicBool::new(false) }
    }

    pub(super) async fn read(&self, account: &str) -> Result<Option<Secret>, KeyringError> {
        let account = account.to_owned();
        self.ask(move |backend| backend.read(&account)).await
    }

    pub(super) async fn write(&self, account: &str, secret: Secret) -> Result<(), KeyringError> {
        let account = account.to_owned();
        self.ask(move |backend| backend.write(&account, &secret)).await
    }

    /// Removes a secret from the keyring. A missing secret is not an error.
    pub(super) async fn remove(&self, account: &str) -> Result<(), KeyringError> {
        let account = account.to_owned();
        self.ask(move |backend| backend.remove(&account)).await
    }

    /// Runs one keyring operation on a thread of its own. A thread that hangs is abandoned, and
    /// does not delay the end of the process.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Backend) -> Result<T, KeyringError> + Send + 'static,
    ) -> Result<T, KeyringError> {
        let Some(backend) = &self.backend else { return Err(KeyringError::Absent) };
        if self.silent.load(Ordering::Relaxed) {
            return Err(KeyringError::Absent);
        }
        let backend = Arc::clone(backend);
        let (answer, answered) = oneshot::channel();
        let asking = move || {
            let _receiver_gone = answer.send(question(&backend));
        };
        thread::Builder::new()
            .name("keyring".to_owned())
            .spawn(asking)
            .map_err(KeyringError::Thread)?;
        match tokio::time::timeout(PATIENCE, answered).await {
            Ok(answer) => answer.unwrap_or(Err(KeyringError::Refused)),
            Err(_) => {
                self.silent.store(true, Ordering::Relaxed);
                Err(KeyringError::TimedOut)
            }
        }
    }
}
