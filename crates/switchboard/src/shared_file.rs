//! The one way in which a file that several processes use is changed: under a lock, as a whole.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::paths::{self, Lock};
use crate::secret::hex;

/// How often a change starts anew because a program without our lock wrote the file meanwhile.
const TRIES: usize = 5;
/// Links that lead to links.
const MAX_LINKS: usize = 16;

/// A file, its lock, and who may see it.
#[derive(Clone, Debug)]
pub(crate) struct SharedFile {
    path: PathBuf,
    lock: PathBuf,
    privacy: Privacy,
}

/// What a new file and its new directories let others do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Privacy {
    /// Nothing.
    Private,
    /// Nothing, and nothing is written where another user could replace it.
    Guarded,
    /// What files of this user usually do.
    Usual,
}

/// Why a file is as it was.
#[derive(Debug)]
pub(crate) enum UpdateError<E> {
    Io(io::Error),
    /// The change itself failed.
    Change(E),
}

impl<E> UpdateError<E> {
    /// The error of the change, or what `of_io` makes of the other one.
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
    /// A file in a directory of ours; its lock lies beside it.
    pub(crate) fn ours(path: PathBuf) -> SharedFile {
        let lock = path.with_extension("lock");
        SharedFile { path, lock, privacy: Privacy::Private }
    }

    /// The same for a secret, or for what decides what may run.
    pub(crate) fn guarded(path: PathBuf) -> SharedFile {
        SharedFile { privacy: Privacy::Guarded, ..SharedFile::ours(path) }
    }

    /// A file that other programs use, too: its lock lies in `locks`. Where it is a symbolic link,
    /// the link stays and what it leads to is changed.
    pub(crate) fn elsewhere(path: &Path, locks: &Path, privacy: Privacy) -> io::Result<SharedFile> {
        let path = end_of_links(path)?;
        let digest = Sha256::digest(path.as_os_str().as_bytes());
        let name = hex(digest.iter().take(16));
        Ok(SharedFile { path, lock: locks.join(format!("{name}.lock")), privacy })
    }

    /// Where it lies, behind all links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Changes the file. `change` gets what is there and gives what shall be there, or `None` to
    /// leave it. A reader sees the old content or the new one, whichever process is killed.
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
            // Programs that do not know our lock may have written; what they finished stays.
            if paths::read(&self.path)? == before {
                written.persist(&self.path).map_err(|error| error.error)?;
                File::open(self.directory())?.sync_all()?;
                return Ok(());
            }
        }
        Err(UpdateError::Io(io::ErrorKind::ResourceBusy.into()))
    }

    /// Removes the file, if `agree` does to what is there.
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

    /// Removes what a killed writer left behind, unless another process is writing.
    pub(crate) fn sweep(&self) -> io::Result<()> {
        if !self.leftovers().is_empty() && paths::try_lock(&self.lock)?.is_some() {
            self.remove_leftovers()?;
        }
        Ok(())
    }

    /// Does the same for every file of a directory of ours.
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

    /// Written and on the disk, but not yet in its place.
    fn write_beside(&self, bytes: &[u8]) -> io::Result<tempfile::NamedTempFile> {
        self.make_directory()?;
        let mode = match self.privacy {
            Privacy::Guarded | Privacy::Private => 0o600,
            // As far as the umask allows.
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

    /// Only under the lock: no other process is writing then.
    fn remove_leftovers(&self) -> io::Result<()> {
        self.leftovers().iter().try_for_each(fs::remove_file)
    }
}

/// Marks what is being written.
const SUFFIX: &str = ".switchboard-new";

/// The users who could read or write the file still can, and no others.
fn keep_access(file: &File, present: &fs::Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (present.uid(), present.gid()) {
        let owner = rustix::fs::Uid::from_raw(present.uid());
        let group = rustix::fs::Gid::from_raw(present.gid());
        // Only root may give a file away; for others it was theirs or becomes theirs.
        let _refused = rustix::fs::fchown(file, Some(owner), Some(group));
    }
    file.set_permissions(Permissions::from_mode(present.mode() & 0o7777))
}

/// Follows links also where the last one leads to nothing yet.
pub(crate) fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else {
            // One file has one name, however it is reached.
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
