//! Where files lie, and the only ways in which they are written: private, whole, under a lock.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use switchboard_core::name::ServerName;

use crate::env::Environment;

/// A file larger than this is no configuration and no state of ours.
const LARGEST_FILE: u64 = 64 * 1024 * 1024;

/// The directories that Switchboard uses.
#[derive(Clone, Debug)]
pub struct Paths {
    pub config: PathBuf,
    pub cache: PathBuf,
    pub state: PathBuf,
    /// Files that other programs share with us, below the user's configuration directory.
    pub shared_config: PathBuf,
}

impl Paths {
    /// `SWITCHBOARD_HOME` moves everything that is ours; else the XDG variables and their defaults.
    pub fn of(environment: &Environment) -> Paths {
        let home = environment.home().unwrap_or(Path::new("/")).to_path_buf();
        let under = |variable: &str, default: &str| match environment.variable(variable) {
            Some(path) if Path::new(path).is_absolute() => PathBuf::from(path),
            Some(_) | None => home.join(default),
        };
        let config_home = under("XDG_CONFIG_HOME", ".config");
        let shared_config = config_home.join("mcp");
        if let Some(root) = environment.variable("SWITCHBOARD_HOME") {
            let root = environment.cwd.join(root);
            return Paths {
                cache: root.join("cache"),
                state: root.join("state"),
                config: root,
                shared_config,
            };
        }
        Paths {
            config: config_home.join("switchboard"),
            cache: under("XDG_CACHE_HOME", ".cache").join("switchboard"),
            state: under("XDG_STATE_HOME", ".local/state").join("switchboard"),
            shared_config,
        }
    }

    pub fn user_config(&self) -> PathBuf {
        self.config.join("mcp.json")
    }

    /// Where the lists of one definition of a server are kept.
    pub fn listing_of(&self, server: &ServerName, definition: &str) -> PathBuf {
        let short = definition.get(..16).unwrap_or(definition);
        self.cache.join("listings").join(format!("{}-{short}.listing", file_stem(server)))
    }

    /// Where the accepted definitions of a server's tools are kept.
    pub fn pins_of(&self, server: &ServerName, key: &str) -> PathBuf {
        let short = key.get(..16).unwrap_or(key);
        self.state.join("pins").join(format!("{}-{short}.pins", file_stem(server)))
    }

    /// The directories that are for nobody but the user.
    pub fn private(&self) -> [PathBuf; 5] {
        let (state, cache) = (&self.state, &self.cache);
        let below = [state.join("pins"), state.join("logs"), cache.join("listings")];
        let [pins, logs, listings] = below;
        [state.clone(), pins, logs, cache.clone(), listings]
    }

    pub fn results(&self) -> PathBuf {
        self.cache.join("results")
    }

    pub fn trust(&self) -> PathBuf {
        self.state.join("trust.json")
    }

    /// Where a server's standard error goes.
    pub fn log_of(&self, server: &ServerName) -> PathBuf {
        self.state.join("logs").join(format!("{}.log", file_stem(server)))
    }
}

/// A server's name as a part of a file's name.
pub(crate) fn file_stem(server: &ServerName) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    server.as_str().chars().map(plain).take(64).collect()
}

/// Makes a directory that only its owner can enter.
pub(crate) fn private_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Reads a whole file; `None` if there is none.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // A parent that is a file means the same: nothing is there.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(Some(bytes))
}

/// Replaces a file by `bytes` as a whole: a reader sees the old text or the new one.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    private_dir(parent)?;
    let mut temporary = tempfile::Builder::new().prefix(".new-").tempfile_in(parent)?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    File::open(parent)?.sync_all()
}

/// Holds the right to change what lies beside `path`; other processes wait.
pub(crate) fn lock(path: &Path) -> io::Result<Lock> {
    private_dir(path.parent().unwrap_or(Path::new(".")))?;
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
    Ok(Lock { _file: file })
}

/// The lock ends when its file is closed.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// A new private file; never follows or reuses what is there.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Appends to a private file and turns it over when it has grown to `limit`.
pub(crate) fn append_rotating(path: &Path, bytes: &[u8], limit: u64) -> io::Result<()> {
    private_dir(path.parent().unwrap_or(Path::new(".")))?;
    if fs::metadata(path).is_ok_and(|data| data.len() >= limit) {
        fs::rename(path, path.with_extension("log.1"))?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)?.write_all(bytes)
}
