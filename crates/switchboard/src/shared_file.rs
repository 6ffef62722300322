//! Changes a file that several processes use: under a lock, and atomically.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::paths::{self, Lock};
use crate::secret::hex;

/// How often a change is retried because a program that ignores the lock wrote the file in the
/// meantime.
const TRIES: usize = 5;
/// The maximum number of symbolic links that are followed in a row.
const MAX_LINKS: usize = 16;

/// A file that several processes use, its lock file, and its permissions.
#[derive(Clone, Debug)]
pub(crate) struct SharedFile {
    path: PathBuf,
    lock: PathBuf,
    privacy: Privacy,
}

/// The permissions of a new file and its new directories for other users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Privacy {
    /// Other users have no access.
    Private,
    /// Other users have no access, and must not be able to replace the file.
    Guarded,
    /// The umask of the process decides the permissions.
    Usual,
}

/// Why a shared file was not changed.
#[derive(Debug)]
pub(crate) enum UpdateError<E> {
    Io(io::Error),
    /// The function that computes the change failed.
    Change(E),
}

impl<E> UpdateError<E> {
    /// The error of the change, or the I/O error converted by `of_io`.
    pub(crate) fn or_io(self, of_io: impl FnOnce(io::Error) -> E) -> E {
        match self {
            UpdateError::Io(error) => of_io(error),
            UpdateError::Change(error) => error,
        }
    }
}

impl<E> From<io::Error> for UpdateError<E> {
    fn from(error: io::Error) -> Self {
        UpdateError::Io(error)
    }
}

impl SharedFile {
    /// A file in one of Switchboard's directories; its lock is beside it.
    pub(crate) fn ours(path: PathBuf) -> SharedFile {
        let lock = path.with_extension("lock");
        SharedFile { path, lock, privacy: Privacy::Private }
    }

    /// Like `ours`, for a secret, or for a file that decides what may run.
    pub(crate) fn guarded(path: PathBuf) -> SharedFile {
        SharedFile { privacy: Privacy::Guarded, ..SharedFile::ours(path) }
    }

    /// A file that other programs use, too; its lock is in `locks`. A symbolic link stays, and its
    /// target is changed.
    pub(crate) fn elsewhere(path: &Path, locks: &Path, privacy: Privacy) -> io::Result<SharedFile> {
        let path = end_of_links(path)?;
        let digest = Sha256::digest(path.as_os_str().as_bytes());
        let name = hex(digest.iter().take(16));
        Ok(SharedFile { path, lock: locks.join(format!("{name}.lock")), privacy })
    }

    /// The path of the file, after all symbolic links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Changes the file. `change` gets the old content and returns the new one, or `None` to leave
    /// the file unchanged. A reader sees either the old or the new content, even if a process is
    /// killed.
    pub(crate) fn update<E>(
        &self,
        mut change: impl FnMut(Option<&[u8]>) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<(), UpdateError<E>> {
        let _lock = self.locked()?;
        for _ in 0..TRIES {
            let before = paths::read(&self.path)?;
            let after = change(before.as_deref()).map_err(UpdateError::Change)?;
            let Some(after) = after else { return Ok(()) };
            let written = self.write_beside(&after)?;
            // The file is replaced only if its content is still `before`: a program that ignores
            // the lock may have written the file, and its change must not be lost.
            if paths::read(&self.path)? == before {
                written.persist(&self.path).map_err(|error| error.error)?;
                File::open(self.directory())?.sync_all()?;
                return Ok(());
            }
        }
        Err(UpdateError::Io(io::ErrorKind::ResourceBusy.into()))
    }

    /// Removes the file, if `agree` accepts its content.
    pub(crate) fn remove<E>(
        &self,
        agree: impl FnOnce(Option<&[u8]>) -> Result<(), E>,
    ) -> Result<(), UpdateError<E>> {
        let _lock = self.locked()?;
        let present = paths::read(&self.path)?;
        agree(present.as_deref()).map_err(UpdateError::Change)?;
        if present.is_some() {
            fs::remove_file(&self.path)?;
            File::open(self.directory())?.sync_all()?;
        }
        Ok(())
    }

    fn locked(&self) -> io::Result<Lock> {
        self.make_directory()?;
        let lock = paths::lock(&self.lock)?;
        self.remove_leftovers()?;
        Ok(lock)
    }

    /// Removes temporary files that killed processes left behind, unless another process is
    /// writing.
    pub(crate) fn sweep(&self) -> io::Result<()> {
        if !self.leftovers().is_empty() && paths::try_lock(&self.lock)?.is_some() {
            self.remove_leftovers()?;
        }
        Ok(())
    }

    /// Removes temporary files that killed processes left behind in one of Switchboard's
    /// directories.
    pub(crate) fn sweep_directory(directory: &Path) -> io::Result<()> {
        let Ok(entries) = fs::read_dir(directory) else { return Ok(()) };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)) else {
                continue;
            };
            let file = name.strip_prefix('.').and_then(|name| name.rsplit_once('.'));
            if let Some((file, _random)) = file {
                SharedFile::ours(directory.join(file)).sweep()?;
            }
        }
        Ok(())
    }

    fn make_directory(&self) -> io::Result<()> {
        match self.privacy {
            Privacy::Guarded => paths::guarded_dir(self.directory()),
            Privacy::Private => paths::private_dir(self.directory()),
            Privacy::Usual => fs::create_dir_all(self.directory()),
        }
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// Writes and syncs a temporary file beside the file.
    fn write_beside(&self, bytes: &[u8]) -> io::Result<tempfile::NamedTempFile> {
        self.make_directory()?;
        let mode = match self.privacy {
            Privacy::Guarded | Privacy::Private => 0o600,
            // The umask of the process removes bits from this mode.
            Privacy::Usual => 0o666,
        };
        let mut temporary = tempfile::Builder::new()
            .prefix(&self.prefix())
            .suffix(SUFFIX)
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(self.directory())?;
        if let Ok(present) = fs::metadata(&self.path) {
            keep_access(temporary.as_file(), &present)?;
        }
        temporary.write_all(bytes)?;
        temporary.as_file().sync_all()?;
        Ok(temporary)
    }

    fn prefix(&self) -> OsString {
        let mut prefix = OsString::from(".");
        prefix.push(self.path.file_name().unwrap_or_default());
        prefix.push(".");
        prefix
    }

    fn leftovers(&self) -> Vec<PathBuf> {
        let prefix = self.prefix();
        let Ok(entries) = fs::read_dir(self.directory()) else { return Vec::new() };
        let is_ours = |name: &[u8]| {
            let rest = name.strip_prefix(prefix.as_bytes());
            let random = rest.and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
            random.is_some_and(|random| random.iter().all(u8::is_ascii_alphanumeric))
        };
        entries
            .flatten()
            .filter(|entry| is_ours(entry.file_name().as_bytes()))
            .map(|entry| entry.path())
            .collect()
    }

    /// Removes temporary files that killed processes left behind. The caller holds the lock, so no
    /// other process is writing.
    fn remove_leftovers(&self) -> io::Result<()> {
        self.leftovers().iter().try_for_each(fs::remove_file)
    }
}

/// The suffix of the names of temporary files.
const SUFFIX: &str = ".switchboard-new";

/// Keeps the owner, group and mode of the file, so that the same users have access.
fn keep_access(file: &File, present: &fs::Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (present.uid(), present.gid()) {
        let owner = rustix::fs::Uid::from_raw(present.uid());
        let group = rustix::fs::Gid::from_raw(present.gid());
        // Only root can change the owner. Other users keep ownership or gain it.
        let _refused = rustix::fs::fchown(file, Some(owner), Some(group));
    }
    file.set_permissions(Permissions::from_mode(present.mode() & 0o7777))
}

/// Resolves symbolic links, even if the last target does not exist.
pub(crate) fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else {
            // The parent directory is canonicalized, so that each file has exactly one path.
            let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
            return Ok(match (parent, path.file_name()) {
                (Some(parent), Some(name)) => parent.join(name),
                _ => path,
            });
        };
        path = path.parent().unwrap_or(Path::new(".")).join(target);
    }
    Err(rustix::io::Errno::LOOP.into())
}

#[cfg(test)]
mod tests;
