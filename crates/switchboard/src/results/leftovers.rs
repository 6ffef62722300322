//! Removes results of killed sessions, and measures the results of all sessions.

use std::fs::{self, DirEntry};
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};

use crate::paths::{self, Lock};

/// The maximum number of directories that one sweep examines.
const MOST: usize = 1_000;

/// The age below which the directory of a running process is kept without a lock: a directory is
/// created before it is locked.
const YOUNG: Duration = Duration::from_secs(60);

/// Removes the directories of sessions that were killed or crashed.
pub(crate) fn sweep(all: &Path) {
    for entry in directories(all) {
        if let Some(_held) = abandoned(&entry) {
            let _gone_already = fs::remove_dir_all(entry.path());
        }
    }
}

/// The size in bytes of all results in this directory.
pub(super) fn size_of_all(all: &Path) -> u64 {
    let files = directories(all).filter_map(|entry| fs::read_dir(entry.path()).ok()).flatten();
    files.filter_map(|file| file.ok()?.metadata().ok()).map(|data| data.len()).sum()
}

fn directories(all: &Path) -> impl Iterator<Item = DirEntry> {
    let entries = fs::read_dir(all).into_iter().flatten().take(MOST).flatten();
    // Ignores symbolic links: their targets must not be removed.
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
}

/// The lock of a directory whose session has ended; `None` if the session may still run.
fn abandoned(entry: &DirEntry) -> Option<Lock> {
    let name = entry.file_name();
    let owner = name.to_str().and_then(|name| name.split_once('-')?.0.parse().ok());
    let owner = owner.and_then(Pid::from_raw)?;
    let is_alive = !matches!(test_kill_process(owner), Err(rustix::io::Errno::SRCH));
    let made = entry.metadata().and_then(|data| data.modified()).ok();
    let is_young = made.is_some_and(|made| made.elapsed().is_ok_and(|age| age < YOUNG));
    // For a directory that is not young, only the lock decides whether its session has ended: the
    // process id may have been reused, or may belong to another PID namespace.
    if is_alive && is_young {
        return None;
    }
    paths::try_lock_directory(&entry.path()).ok().flatten()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A process id that does not exist.
    const GONE: u32 = i32::MAX as u32;

    fn directory(all: &Path, name: &str) -> PathBuf {
        let directory = all.join(name);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("a.txt"), "four").unwrap();
        directory
    }

    #[test]
    fn result_directories_of_ended_sessions_are_removed() {
        let home = tempfile::tempdir().unwrap();
        let gone = directory(home.path(), &format!("{GONE}-a"));
        let held = directory(home.path(), &format!("{GONE}-c"));
        let lock = paths::try_lock_directory(&held).unwrap();
        let starting = directory(home.path(), &format!("{}-d", std::process::id()));
        let foreign = directory(home.path(), "notes");
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("kept"), "").unwrap();
        let link = home.path().join(format!("{GONE}-f"));
        std::os::unix::fs::symlink(outside.path(), &link).unwrap();
        assert_eq!(size_of_all(home.path()), 4 * 4);
        sweep(home.path());
        assert!(!gone.exists());
        for kept in [&held, &starting, &foreign, &outside.path().join("kept")] {
            assert!(kept.exists(), "{}", kept.display());
        }
        drop(lock);
        sweep(home.path());
        assert!(!held.exists());
    }
}
