//! The secrets of sign-ins and tokens, stored in the system's keyring or in one file each, with an
//! index.

mod file;
mod index;
mod keyring;

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::config::values::CredentialStore;
use tracing::warn;

pub(crate) use file::KEY_VARIABLE;
use file::{Files, SecretForm};
use index::Orphan;
pub use index::TokenKind;
pub(crate) use index::{Holder, IndexEntry, SecretPlace};
use keyring::{Keyring, KeyringError};

use crate::env::Environment;
use crate::paths::{self, Lock, Paths};
use crate::secret::{Secret, hex};
use crate::shared_file::SharedFile;

/// The timeout of a file operation; an operation that takes longer is assumed to hang.
const DISK: Duration = Duration::from_secs(10);

/// The interval between attempts to take a lock.
const TRY_AGAIN: Duration = Duration::from_millis(20);

/// The secrets of this user; cheap to clone.
#[derive(Clone)]
pub(crate) struct Vault {
    shared: Arc<SecretStores>,
    store: CredentialStore,
}

struct SecretStores {
    directory: PathBuf,
    files: Files,
    keyring: Keyring,
}

/// Equal vaults hold the same secrets and store new ones in the same place.
impl PartialEq for Vault {
    fn eq(&self, other: &Vault) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared) && self.store == other.store
    }
}

/// Why a secret cannot be read or stored. An error leaves the stored data unchanged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VaultError {
    #[error("cannot read or write `{}`", path.display())]
    Io {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("`{}` is a symbolic link, or other users can access it", path.display())]
    Exposed { path: PathBuf },
    #[error("the token storage file `{}` is damaged", path.display())]
    Damaged { path: PathBuf },
    #[error("`{}` could not be read or written within {} s", path.display(), DISK.as_secs())]
    Slow { path: PathBuf },
    #[error("other processes did not release `{}` within {} s", path.display(), patience.as_secs())]
    Held { path: PathBuf, patience: Duration },
    #[error("encrypted token files require `{KEY_VARIABLE}`, which is not set")]
    NoKey,
    #[error("`{KEY_VARIABLE}` is not the base64 of 32 bytes")]
    UnusableKey,
    #[error("`{}` was encrypted with a key other than `{KEY_VARIABLE}`", path.display())]
    OtherKey { path: PathBuf },
    #[error("cannot use the keyring")]
    Keyring(#[from] KeyringError),
}

impl VaultError {
    fn io(path: &Path, cause: io::Error) -> VaultError {
        VaultError::Io { path: path.to_path_buf(), cause }
    }
}

impl Vault {
    pub(crate) fn new(paths: &Paths, environment: &Environment, store: CredentialStore) -> Vault {
        let directory = paths.tokens();
        let shared = SecretStores {
            files: Files::new(directory.clone(), environment),
            keyring: Keyring::of(environment),
            directory,
        };
        Vault { shared: Arc::new(shared), store }
    }

    /// This vault, with `store` as the place for new secrets.
    pub(crate) fn storing(&self, store: CredentialStore) -> Vault {
        Vault { shared: Arc::clone(&self.shared), store }
    }

    /// The index entry for a holder; never accesses the keyring.
    pub(crate) async fn find(
        &self,
        holder: &Holder,
        kind: TokenKind,
    ) -> Result<Option<IndexEntry>, VaultError> {
        let mut entries = self.all().await?;
        Ok(index::find(&mut entries, holder, kind).cloned())
    }

    /// All index entries, which hold no secrets.
    pub(crate) async fn all(&self) -> Result<Vec<IndexEntry>, VaultError> {
        self.on_disk(|shared| lines(&shared.directory)).await
    }

    pub(crate) async fn read(&self, entry: &IndexEntry) -> Result<Option<Secret>, VaultError> {
        let account = entry.account.clone();
        match entry.place {
            SecretPlace::Keyring => Ok(self.shared.keyring.read(&account).await?),
            SecretPlace::File | SecretPlace::EncryptedFile => {
                self.on_disk(move |shared| shared.files.read(&account)).await
            }
        }
    }

    /// Stores the secret under `account`, and adds an index entry with its place. An earlier secret
    /// of the same holder and type is replaced and removed.
    pub(crate) async fn keep(
        &self,
        holder: &Holder,
        kind: TokenKind,
        (account, identity): (&str, Option<String>),
        secret: Secret,
    ) -> Result<IndexEntry, VaultError> {
        debug_assert!(index::is_account(account));
        let place = self.store_secret(account, secret).await?;
        let line = IndexEntry::new(holder, kind, (account, identity), place);
        let holder = holder.clone();
        let (entry, orphans) = self
            .change_index(move |entries| {
                let orphans = index::put(entries, line.clone());
                let kept = index::find(entries, &holder, kind).cloned();
                (kept.expect("the line was just put in"), orphans)
            })
            .await?;
        for orphan in orphans {
            // The new secret is stored, and the index no longer refers to the old one, so a failure
            // here is only logged.
            if let Err(error) = self.remove_secret(&orphan).await {
                warn!(%error, place = ?orphan.place, "cannot remove a secret that is no longer used");
            }
        }
        Ok(entry)
    }

    /// Records the scopes that a server required since its sign-in, in place of those recorded
    /// before. Has no effect without a sign-in.
    pub(crate) async fn want(
        &self,
        holder: &Holder,
        scopes: Vec<String>,
    ) -> Result<(), VaultError> {
        let holder = holder.clone();
        self.change_index(move |entries| {
            if let Some(entry) = index::find(entries, &holder, TokenKind::SignIn) {
                entry.wanted.clone_from(&scopes);
            }
        })
        .await
    }

    pub(crate) async fn forget(&self, entry: &IndexEntry) -> Result<(), VaultError> {
        let mut entries = self.all().await?;
        // The secret is removed before the index entry: an entry without a secret does no harm.
        let (holder, kind) = (entry.holder(), entry.kind);
        for orphan in index::take(&mut entries, &holder, kind) {
            self.remove_secret(&orphan).await?;
        }
        self.change_index(move |entries| drop(index::take(entries, &holder, kind))).await
    }

    /// Locks the secret of `account` against changes by other processes until the lock is dropped.
    /// Dropping the future cancels the wait.
    pub(crate) async fn lock(&self, account: &str, patience: Duration) -> Result<Lock, VaultError> {
        // This lock has a file of its own, because each write takes the lock beside the secret's
        // file.
        let path = self.shared.directory.join(format!("{account}.turn"));
        let waiting = async {
            loop {
                let at = path.clone();
                let tried = self.on_disk(move |shared| {
                    let made = paths::guarded_dir(&shared.directory);
                    let tried = made.and_then(|()| paths::try_lock(&at));
                    tried.map_err(|cause| VaultError::io(&at, cause))
                });
                if let Some(lock) = tried.await? {
                    return Ok(lock);
                }
                tokio::time::sleep(TRY_AGAIN).await;
            }
        };
        let waited = tokio::time::timeout(patience, waiting).await;
        waited.unwrap_or(Err(VaultError::Held { path, patience }))
    }

    /// The path of the file for this account, for messages.
    pub(crate) fn path_of(&self, account: &str) -> PathBuf {
        self.shared.files.path_of(account)
    }

    /// Stores the secret in the configured place. Only `auto` falls back to a file if the keyring
    /// fails.
    async fn store_secret(&self, account: &str, secret: Secret) -> Result<SecretPlace, VaultError> {
        let keyring = &self.shared.keyring;
        let form = match self.store {
            CredentialStore::Keyring => {
                keyring.write(account, secret).await?;
                return Ok(SecretPlace::Keyring);
            }
            CredentialStore::Auto => match keyring.write(account, secret.clone()).await {
                Ok(()) => return Ok(SecretPlace::Keyring),
                Err(_) => self.shared.files.usual_form(),
            },
            CredentialStore::File => self.shared.files.usual_form(),
            CredentialStore::EncryptedFile => SecretForm::Encrypted,
        };
        let account = account.to_owned();
        self.on_disk(move |shared| shared.files.write(&account, &secret, form)).await?;
        Ok(match form {
            SecretForm::Plain => SecretPlace::File,
            SecretForm::Encrypted => SecretPlace::EncryptedFile,
        })
    }

    async fn remove_secret(&self, orphan: &Orphan) -> Result<(), VaultError> {
        let account = orphan.account.clone();
        match orphan.place {
            SecretPlace::Keyring => Ok(self.shared.keyring.remove(&account).await?),
            SecretPlace::File | SecretPlace::EncryptedFile => {
                self.on_disk(move |shared| shared.files.remove(&account)).await
            }
        }
    }

    /// Changes the entries of the index. A malformed index is left unchanged.
    async fn change_index<T: Send + 'static>(
        &self,
        mut change: impl FnMut(&mut Vec<IndexEntry>) -> T + Send + 'static,
    ) -> Result<T, VaultError> {
        self.on_disk(move |shared| {
            let path = index_in(&shared.directory);
            // Refuses an index that other users can read or write, which the update itself does not
            // check.
            file::read(&path)?;
            let mut outcome = None;
            let changed = SharedFile::guarded(path.clone()).update(|before| {
                let mut entries = match before {
                    None => Vec::new(),
                    Some(before) => index::parse(before)
                        .ok_or_else(|| VaultError::Damaged { path: path.clone() })?,
                };
                outcome = Some(change(&mut entries));
                let after = index::print(entries);
                Ok((before != Some(&after)).then_some(after))
            });
            changed.map_err(|error| error.or_io(|cause| VaultError::io(&path, cause)))?;
            outcome.ok_or(VaultError::Damaged { path })
        })
        .await
    }

    /// Runs a file operation outside the runtime's threads, with a timeout.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SecretStores) -> Result<T, VaultError> + Send + 'static,
    ) -> Result<T, VaultError> {
        let shared = Arc::clone(&self.shared);
        let working = tokio::task::spawn_blocking(move || work(&shared));
        match tokio::time::timeout(DISK, working).await {
            Ok(worked) => worked.expect("reading and writing files does not panic"),
            Err(_) => Err(VaultError::Slow { path: self.shared.directory.clone() }),
        }
    }
}

fn index_in(directory: &Path) -> PathBuf {
    directory.join("index.json")
}

/// The entries of the index in a directory.
fn lines(directory: &Path) -> Result<Vec<IndexEntry>, VaultError> {
    let path = index_in(directory);
    match file::read(&path)? {
        None => Ok(Vec::new()),
        Some(file) => index::parse(&file).ok_or(VaultError::Damaged { path }),
    }
}

/// The identity of a holder's secret; `None` if no secret is stored or the index is malformed.
pub(crate) fn identity(directory: &Path, holder: &Holder, kind: TokenKind) -> Option<String> {
    known_identity(directory, holder, kind).ok().flatten()
}

/// The identity of a holder's secret, or the reason why the index cannot be read.
pub(crate) fn known_identity(
    directory: &Path,
    holder: &Holder,
    kind: TokenKind,
) -> Result<Option<String>, VaultError> {
    let mut lines = lines(directory)?;
    Ok(index::find(&mut lines, holder, kind).map(|entry| entry.identity()))
}

/// The identity of one version of the vault's index file; it differs after each change, because
/// each change replaces the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexVersion {
    inode: u64,
    modified: (i64, i64),
}

/// The version of the vault's index in a directory; `None` if there is no index.
pub(crate) fn index_version(directory: &Path) -> Option<IndexVersion> {
    let found = std::fs::metadata(index_in(directory)).ok()?;
    let modified = (found.mtime(), found.mtime_nsec());
    Some(IndexVersion { inode: found.ino(), modified })
}

/// An identity for the secret of a new sign-in.
pub(crate) fn new_identity() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    hex(&bytes)
}

#[cfg(test)]
mod tests;
