//! The keyring of the system: used on a thread of its own, and for a bounded time.

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

/// What our secrets are filed under.
const SERVICE: &str = "switchboard";

/// A keyring that is locked may wait for a user who is not there.
const PATIENCE: Duration = Duration::from_secs(3);

/// Nothing is connected and nothing runs before it is used.
pub(super) struct Keyring {
    /// `None` where this machine cannot have one.
    backend: Option<Arc<Backend>>,
    /// It did not answer once; it is not waited for again.
    silent: AtomicBool,
}

/// Says nothing that came from the keyring.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyringError {
    #[error("there is no keyring")]
    Absent,
    #[error("the keyring did not answer within {} s", PATIENCE.as_secs())]
    TimedOut,
    #[error("the keyring is locked")]
    Locked,
    #[error("the keyring did not do it")]
    Refused,
    #[error("the keyring cannot be asked")]
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

    /// Not having it is as good.
    pub(super) async fn remove(&self, account: &str) -> Result<(), KeyringError> {
        let account = account.to_owned();
        self.ask(move |backend| backend.remove(&account)).await
    }

    /// A thread that hangs is left behind, and does not delay the end of the process.
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
            let _nobody_waits = answer.send(question(&backend));
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
