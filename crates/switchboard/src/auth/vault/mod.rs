//! Where the secrets of sign-ins are kept: in the keyring of the system or in a file each, with an
//! index that says which there are.

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

/// A file that is not read or written by then is on a disk that hangs, or another process does.
const DISK: Duration = Duration::from_secs(10);

/// How often it is tried whether a lock is free.
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

/// The same secrets, kept in the same way.
impl PartialEq for Vault {
    fn eq(&self, other: &Vault) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared) && self.store == other.store
    }
}

/// Why a secret cannot be read or kept. What is there stays as it is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VaultError {
    #[error("cannot use `{}`", path.display())]
    Io {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("`{}` is a link, or others can read it", path.display())]
    Exposed { path: PathBuf },
    #[error("`{}` is damaged", path.display())]
    Damaged { path: PathBuf },
    #[error("`{}` did not get done within {} s", path.display(), DISK.as_secs())]
    Slow { path: PathBuf },
    #[error("other processes did not let go of `{}` within {} s", path.display(), patience.as_secs())]
    Held { path: PathBuf, patience: Duration },
    #[error("encrypted files need `{KEY_VARIABLE}`, which is not set")]
    NoKey,
    #[error("`{KEY_VARIABLE}` is not the base64 of 32 bytes")]
    UnusableKey,
    #[error("`{}` was encrypted with another key than `{KEY_VARIABLE}`", path.display())]
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

    /// The same vault, for new secrets that are to be kept there.
    pub(crate) fn storing(&self, store: CredentialStore) -> Vault {
        Vault { shared: Arc::clone(&self.shared), store }
    }

    /// What is kept for a server; reads the index alone, never the keyring.
    pub(crate) async fn find(
        &self,
        holder: &Holder,
        kind: TokenKind,
    ) -> Result<Option<IndexEntry>, VaultError> {
        let mut entries = self.all().await?;
        Ok(index::find(&mut entries, holder, kind).cloned())
    }

    /// Everything that is kept, without the secrets.
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

    /// Keeps the secret under `account`, and the line of the index; its place says where. What the
    /// same holder had of this kind is replaced, and the old secret removed.
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
            // What counts is kept; nothing leads to the old one any more.
            if let Err(error) = self.remove_secret(&orphan).await {
                warn!(%error, place = ?orphan.place, "a secret that is no longer used stays");
            }
        }
        Ok(entry)
    }

    /// Remembers which scopes a server asked for since it was signed in to, until the next time it
    /// is said. Nothing is remembered of a server that was not.
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
        // The secret first: an index line without a secret does no harm.
        let (holder, kind) = (entry.holder(), entry.kind);
        for orphan in index::take(&mut entries, &holder, kind) {
            self.remove_secret(&orphan).await?;
        }
        self.change_index(move |entries| drop(index::take(entries, &holder, kind))).await
    }

    /// Waits for the right to change what is kept under `account`, which ends with the lock. May be
    /// dropped at any time.
    pub(crate) async fn lock(&self, account: &str, patience: Duration) -> Result<Lock, VaultError> {
        // Not the one beside the file: that is taken for each write.
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

    /// Where a file of this account would be, for messages.
    pub(crate) fn path_of(&self, account: &str) -> PathBuf {
        self.shared.files.path_of(account)
    }

    /// Puts the secret where the user wants it. Only where that is left to us does a keyring that
    /// cannot be used make it a file.
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

    /// Changes the lines of the index. One that does not read stays as it is.
    async fn change_index<T: Send + 'static>(
        &self,
        mut change: impl FnMut(&mut Vec<IndexEntry>) -> T + Send + 'static,
    ) -> Result<T, VaultError> {
        self.on_disk(move |shared| {
            let path = index_in(&shared.directory);
            // Refuses a file that other users can read or write, which an update does not.
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

    /// Files are read and written beside the runtime.
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

/// The lines of the index in a directory.
fn lines(directory: &Path) -> Result<Vec<IndexEntry>, VaultError> {
    let path = index_in(directory);
    match file::read(&path)? {
        None => Ok(Vec::new()),
        Some(file) => index::parse(&file).ok_or(VaultError::Damaged { path }),
    }
}

/// The identity of what is kept in a directory; none where the index is malformed.
pub(crate) fn identity(directory: &Path, holder: &Holder, kind: TokenKind) -> Option<String> {
    known_identity(directory, holder, kind).ok().flatten()
}

/// The identity of what is kept, where the index can be read.
pub(crate) fn known_identity(
    directory: &Path,
    holder: &Holder,
    kind: TokenKind,
) -> Result<Option<String>, VaultError> {
    let mut lines = lines(directory)?;
    Ok(index::find(&mut lines, holder, kind).map(|entry| entry.identity()))
}

/// Which version of the index there is: a changed index is another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexVersion {
    inode: u64,
    modified: (i64, i64),
}

/// The version of the index in a directory; none where there is none.
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
