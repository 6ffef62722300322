//! The locations of files, and the creation, reading and locking of private files.

mod others;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use switchboard_core::config::install::Target;
use switchboard_core::name::ServerName;
use switchboard_core::pi::settings::PACKAGE;

use crate::env::Environment;
pub use others::Others;

/// The maximum size of a configuration or state file.
const LARGEST_FILE: u64 = 64 * 1024 * 1024;

/// The directories that Switchboard uses.
#[derive(Clone, Debug)]
pub struct Paths {
    /// The directory of configuration files.
    pub config: PathBuf,
    /// The directory of cached files, which can be recreated.
    pub cache: PathBuf,
    /// The directory of files that belong to this machine only, such as logs and approvals.
    pub state: PathBuf,
    /// The directory of files that other programs load, such as the package for Pi.
    pub data: PathBuf,
    /// The directories of other programs whose files Switchboard reads.
    pub others: Others,
}

impl Paths {
    /// The paths for this environment. `SWITCHBOARD_HOME` replaces all of Switchboard's
    /// directories; otherwise the XDG variables or their defaults apply.
    pub fn of(environment: &Environment) -> Paths {
        let home = environment.home().unwrap_or(Path::new("/")).to_path_buf();
        let under = |variable: &str, default: &str| match environment.variable(variable) {
            Some(path) if Path::new(path).is_absolute() => PathBuf::from(path),
            Some(_) | None => home.join(default),
        };
        let config_home = under("XDG_CONFIG_HOME", ".config");
        let others = Others::of(environment, home.clone(), config_home.clone());
        if let Some(root) = environment.variable("SWITCHBOARD_HOME") {
            let root = environment.cwd.join(root);
            return Paths {
                cache: root.join("cache"),
                state: root.join("state"),
                data: root.join("data"),
                config: root,
                others,
            };
        }
        Paths {
            config: config_home.join("switchboard"),
            cache: under("XDG_CACHE_HOME", ".cache").join("switchboard"),
            state: under("XDG_STATE_HOME", ".local/state").join("switchboard"),
            data: under("XDG_DATA_HOME", ".local/share").join("switchboard"),
            others,
        }
    }

    /// The user's own configuration file.
    pub fn user_config(&self) -> PathBuf {
        self.config.join("mcp.json")
    }

    /// The directory of the cached listings.
    pub(crate) fn listings(&self) -> PathBuf {
        self.cache.join("listings")
    }

    /// The key with which the names of the cached listings are hashed.
    pub(crate) fn listing_key(&self) -> PathBuf {
        self.state.join("listings.key")
    }

    /// The pin file of a server.
    pub fn pins_of(&self, server: &ServerName, key: &str) -> PathBuf {
        let short = key.get(..16).unwrap_or(key);
        self.state.join("pins").join(format!("{}-{short}.pins", file_stem(server)))
    }

    /// The directories that only the user may enter.
    pub fn private(&self) -> [PathBuf; 8] {
        let (state, cache) = (&self.state, &self.cache);
        let [pins, logs] = ["pins", "logs"].map(|name| state.join(name));
        let (running, tokens, installed) = (self.running(), self.tokens(), self.installed());
        [state.clone(), pins, logs, running, tokens, installed, cache.clone(), self.listings()]
    }

    /// The directory of stored results.
    pub fn results(&self) -> PathBuf {
        self.cache.join("results")
    }

    /// The directory with the locations of installed packages.
    pub fn launchers(&self) -> PathBuf {
        self.cache.join("launchers")
    }

    /// The file with the approvals of project servers.
    pub fn trust(&self) -> PathBuf {
        self.state.join("trust.json")
    }

    /// The file that records which servers each configuration file named, and whether that file
    /// held rules. The records are used if a configuration file is damaged later.
    pub(crate) fn known_files(&self) -> PathBuf {
        self.state.join("known-files.json")
    }

    /// The file with the token of the HTTP face.
    pub fn http_token(&self) -> PathBuf {
        self.state.join("http-token")
    }

    /// The directory of the token index, and of tokens that are not in a keyring.
    pub(crate) fn tokens(&self) -> PathBuf {
        self.state.join("tokens")
    }

    /// The directory of the installation records.
    pub(crate) fn installed(&self) -> PathBuf {
        self.state.join("installed")
    }

    /// The installation record of one host, as earlier versions wrote it.
    pub(crate) fn installed_earlier(&self, target: Target) -> PathBuf {
        self.state.join(format!("installed-{target}.json"))
    }

    /// The directory of the package that Pi loads.
    pub(crate) fn pi_package(&self) -> PathBuf {
        self.data.join(PACKAGE)
    }

    /// The directory with the records of running servers.
    pub fn running(&self) -> PathBuf {
        self.state.join("running")
    }

    /// The directory with the locks of files outside Switchboard's directories.
    pub fn locks(&self) -> PathBuf {
        self.state.join("locks")
    }

    /// The log file for a server's standard error.
    pub fn log_of(&self, server: &ServerName) -> PathBuf {
        self.state.join("logs").join(format!("{}.log", file_stem(server)))
    }
}

/// A server's name as part of a file name.
pub(crate) fn file_stem(server: &ServerName) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    server.as_str().chars().map(plain).take(64).collect()
}

/// Creates a directory that only its owner can enter.
pub(crate) fn private_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a directory for secrets and decisions, and checks that no other user can change it.
pub(crate) fn guarded_dir(path: &Path) -> io::Result<()> {
    private_dir(path)?;
    check_guarded(path)
}

/// Checks that no other user can change a directory: this user owns it and only this user can write
/// to it, and its parent does not allow others to replace it. Symbolic links to such a directory
/// are permitted.
pub(crate) fn check_guarded(path: &Path) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    let user = rustix::process::geteuid().as_raw();
    let own = path.canonicalize()?;
    let data = fs::metadata(&own)?;
    if data.uid() != user || data.mode() & 0o022 != 0 {
        return Err(exposed(&own));
    }
    let Some(above) = own.parent() else { return Ok(()) };
    let data = fs::metadata(above)?;
    let is_closed = data.mode() & 0o002 == 0 || data.mode() & STICKY != 0;
    if [user, 0].contains(&data.uid()) && is_closed { Ok(()) } else { Err(exposed(above)) }
}

fn exposed(directory: &Path) -> io::Error {
    let message = format!(
        "other users can write to the directory `{}`; own it, and run `chmod go-w` on it",
        directory.display()
    );
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}

/// The number of times that this process lacked a file descriptor or memory to open a file. The
/// counter is global, because the readers of files handle the errors, and a load only compares the
/// number before and after.
static SHORTAGES: AtomicU64 = AtomicU64::new(0);

/// How often this process lacked a file descriptor or memory to open a file. During such a
/// shortage, a file that seems to be missing may exist.
pub(crate) fn shortages() -> u64 {
    SHORTAGES.load(Ordering::Relaxed)
}

/// Opens a regular file; `None` if it does not exist. Other files are refused: a pipe could block,
/// and a device may never end.
pub fn open_regular(path: &Path) -> io::Result<Option<File>> {
    match open_with(path, OFlags::empty()) {
        // If a parent of the path is a file, nothing exists at the path.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(None),
        opened => opened,
    }
}

fn open_with(path: &Path, flags: OFlags) -> io::Result<Option<File>> {
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        // `ENXIO` means that the path is a socket.
        Err(Errno::NXIO) => return Err(not_regular()),
        Err(error) => {
            if matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM) {
                SHORTAGES.fetch_add(1, Ordering::Relaxed);
            }
            return Err(error.into());
        }
    };
    if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(not_regular()) }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

/// Reads a pipe to its end; `None` if `path` is not a pipe. Called only for a path that the user
/// typed, because the read waits for the writer.
pub fn read_pipe(path: &Path) -> Option<io::Result<Vec<u8>>> {
    let is_pipe = fs::metadata(path).is_ok_and(|data| data.file_type().is_fifo());
    is_pipe.then(|| read_all(File::open(path)?))
}

/// Reads a whole regular file; `None` if it does not exist.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    open_regular(path)?.map(read_all).transpose()
}

fn read_all(file: File) -> io::Result<Vec<u8>> {
    // The buffer is larger than the file, so that one read returns everything and the next detects
    // the end.
    let size = file.metadata().map_or(0, |data| data.len().min(LARGEST_FILE));
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 64);
    file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Why a file with a secret, or one that decides what may run, was not read.
#[derive(Debug)]
pub(crate) enum Unread {
    Io(io::Error),
    /// A symbolic link, or a file that another user could have written, or read if it is secret.
    Exposed,
}

/// Reads a whole file that only its owner can write; `None` if it does not exist.
pub(crate) fn read_private(path: &Path) -> Result<Option<Vec<u8>>, Unread> {
    read_unless_others(path, 0o022)
}

/// Like `read_private`, for a file that only its owner can read and write.
pub(crate) fn read_secret(path: &Path) -> Result<Option<Vec<u8>>, Unread> {
    read_unless_others(path, 0o077)
}

/// Reads a file of this user, unless its mode has one of the `forbidden` bits.
fn read_unless_others(path: &Path, forbidden: u32) -> Result<Option<Vec<u8>>, Unread> {
    let file = match open_with(path, OFlags::NOFOLLOW) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(None),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => {
            return Err(Unread::Exposed);
        }
        Err(error) => return Err(Unread::Io(error)),
    };
    let data = file.metadata().map_err(Unread::Io)?;
    let ours = data.uid() == rustix::process::geteuid().as_raw();
    if !ours || data.mode() & forbidden != 0 {
        return Err(Unread::Exposed);
    }
    read_all(file).map(Some).map_err(Unread::Io)
}

/// The timeout for taking a lock. A process holds a lock for milliseconds, while it changes a file.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// The maximum pause between two attempts to take a lock.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

#[derive(Debug, thiserror::Error)]
#[error("another process has held the lock file `{}` for {} s", path.display(), LOCK_WAIT.as_secs())]
struct LockHeld {
    path: PathBuf,
}

/// Locks the lock file at `path`, and creates it if necessary. The wait is limited, because a
/// server could hold the lock.
pub(crate) fn lock(path: &Path) -> io::Result<Lock> {
    private_dir(path.parent().unwrap_or(Path::new(".")))?;
    lock_within(path, LOCK_WAIT)
}

fn lock_within(path: &Path, limit: Duration) -> io::Result<Lock> {
    let began = Instant::now();
    let mut pause = Duration::from_micros(100);
    loop {
        if let Some(lock) = try_lock(path)? {
            return Ok(lock);
        }
        if began.elapsed() >= limit {
            let held = LockHeld { path: path.to_owned() };
            return Err(io::Error::new(io::ErrorKind::TimedOut, held));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LOCK_PAUSE);
    }
}

/// Like `lock`, without waiting: `None` if another process holds the lock.
pub(crate) fn try_lock(path: &Path) -> io::Result<Option<Lock>> {
    flock_now(open_to_append(path)?)
}

/// Like `try_lock`, for a directory; nothing is written to it.
pub(crate) fn try_lock_directory(path: &Path) -> io::Result<Option<Lock>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    flock_now(file)
}

fn flock_now(file: File) -> io::Result<Option<Lock>> {
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Lock { _file: file })),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// An advisory lock, which ends when its file is closed.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Creates a private file; fails if the path exists, even as a symbolic link.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Appends to a private file. A file of at least `limit` bytes is renamed first, and a new one
/// begun.
pub(crate) fn append_rotating(path: &Path, bytes: &[u8], limit: u64) -> io::Result<()> {
    private_dir(path.parent().unwrap_or(Path::new(".")))?;
    if fs::metadata(path).is_ok_and(|data| data.len() >= limit) {
        fs::rename(path, path.with_extension("log.1"))?;
    }
    open_to_append(path)?.write_all(bytes)
}

/// Opens a private file of the user to append to it; removes the permissions of other users.
pub fn open_trace(path: &Path) -> io::Result<File> {
    let file = open_to_append(path)?;
    if file.metadata()?.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Opens a private file to append to, and creates it if necessary. A pipe in its place is refused,
/// because it would block.
fn open_to_append(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => File::from(file),
        // `ENXIO` means that the path is a pipe without a reader, or a socket.
        Err(Errno::NXIO) => return Err(not_regular()),
        Err(error) => return Err(error.into()),
    };
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_timeout_error_names_the_lock_file() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("lock");
        let held = lock(&path).unwrap();
        let error = lock_within(&path, Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        drop(held);
        lock_within(&path, Duration::ZERO).unwrap();
    }
}
