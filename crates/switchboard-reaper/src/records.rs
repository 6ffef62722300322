//! A file for each running server. A leftover file makes the next start search for orphans.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::mark::Mark;
use crate::processes::{Identity, boot_id, end_orphans, namespace, own_pid};

/// The maximum size of a record in bytes.
const LONGEST: u64 = 1024;

/// The record of a starting or running server; dropping it removes the file.
pub(crate) struct ServerRecord {
    path: PathBuf,
}

impl ServerRecord {
    /// Writes a record before the server starts, so that no server runs without a record. `None` if
    /// the record cannot be written: the server then runs without a record.
    pub(crate) fn begin(folder: &Path) -> Option<ServerRecord> {
        let keeper = Identity::of(own_pid())?;
        let (boot, space) = (boot_id().ok()?, namespace());
        let path = folder.join(file_name(space, keeper));
        let mut file = create(folder, &path).ok()?;
        // This guard is created before the write, so that the file is removed if the write fails.
        let record = ServerRecord { path };
        file.write_all(format!("{boot}\n").as_bytes()).ok()?;
        Some(record)
    }
}

impl Drop for ServerRecord {
    fn drop(&mut self) {
        let _not_there = fs::remove_file(&self.path);
    }
}

fn create(folder: &Path, path: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// The name of a record: the PID namespace, and the identity of the keeper.
fn file_name(space: u64, keeper: Identity) -> String {
    format!("{space}-{}-{}", keeper.pid, keeper.start)
}

fn read_name(path: &Path) -> Option<(u64, Identity)> {
    let mut words = path.file_name()?.to_str()?.split('-');
    let space = words.next()?.parse().ok()?;
    let keeper = identity(&mut words)?;
    words.next().is_none().then_some((space, keeper))
}

fn identity<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Identity> {
    let pid = words.next()?.parse().ok().filter(|pid| *pid > 1)?;
    Some(Identity { pid, start: words.next()?.parse().ok()? })
}

/// Ends orphaned server processes if there is a leftover record. Without one, this only reads the
/// directory.
///
/// A directory that another user owns or can write is ignored: that user could place leftover
/// records in it, and every command would then search all processes.
pub fn sweep(folder: &Path) {
    if !fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir() && is_ours_alone(&found)) {
        return;
    }
    let Ok(entries) = fs::read_dir(folder) else { return };
    let records: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    let left: Vec<_> = records.iter().filter(|path| left_by(path).is_some()).collect();
    if left.iter().any(|path| left_by(path) == Some(Run::This)) {
        search(folder);
    }
    for path in left {
        let _already_removed = fs::remove_file(path);
    }
}

/// Ends orphaned server processes of this home directory, regardless of records: a server could
/// have removed its own record.
pub fn search(folder: &Path) {
    end_orphans(Mark::of(folder));
}

fn is_ours_alone(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0
}

/// The content of a record; `None` if the file is not a regular file of this user. The file is
/// opened without blocking, because it could be a named pipe.
fn read(path: &Path) -> Option<String> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let found = file.metadata().ok()?;
    if !found.is_file() || !is_ours_alone(&found) {
        return None;
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The boot in which a record was written.
#[derive(Debug, PartialEq, Eq)]
enum Run {
    This,
    Earlier,
}

/// The boot in which a keeper left this record; `None` if the keeper may still run.
fn left_by(path: &Path) -> Option<Run> {
    let (space, keeper) = read_name(path)?;
    let text = read(path)?;
    // Without a complete line, the keeper was killed before it started a server, or has not written
    // the line yet.
    let written = text.split_once('\n').map(|(boot, _)| boot);
    if written.is_some_and(|boot| boot_id().is_ok_and(|now| now != boot)) {
        return Some(Run::Earlier);
    }
    // A process id of another PID namespace is meaningless here, so it is unknown whether that
    // keeper still runs.
    (space == namespace() && !keeper.is_running()).then_some(Run::This)
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;

    use rustix::fs::Mode;

    use super::*;

    fn own() -> Identity {
        Identity::of(own_pid()).unwrap()
    }

    /// Whether a record with this name and text remains after a sweep.
    fn stays(folder: &Path, name: &str, text: &str, mode: u32) -> bool {
        let path = folder.join(name);
        create(folder, &path).unwrap().write_all(text.as_bytes()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        // A sweep that confuses the processes would kill this test.
        sweep(folder);
        let stays = path.exists();
        let _removed = fs::remove_file(path);
        stays
    }

    #[test]
    fn server_record_is_removed_unless_its_keeper_may_run() {
        let folder = tempfile::tempdir().unwrap();
        let boot = boot_id().unwrap();
        let here = namespace();
        let ended = Identity { start: own().start + 1, ..own() };
        let check = |name: &str, text: &str, expected: bool| {
            assert_eq!(stays(folder.path(), name, text, 0o600), expected, "{name} {text}");
        };
        let whole = format!("{boot}\n");
        check(&file_name(here, own()), &whole, true);
        check(&file_name(here, ended), &whole, false);
        check(&file_name(here, own()), "another-boot\n", false);
        check(&file_name(here + 1, ended), &whole, true);
        check(&file_name(here + 1, ended), "another-boot\n", false);
        // The keeper was killed during the write.
        check(&file_name(here, ended), &boot, false);
        check(&file_name(here, ended), "", false);
        check(&file_name(here, own()), "", true);
        check(&file_name(here + 1, ended), "", true);
        check("garbage", &whole, true);
        check(&format!("{here}-1-1"), &whole, true);
    }

    #[test]
    fn server_record_writable_by_other_users_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let name = file_name(namespace(), Identity { start: own().start + 1, ..own() });
        let text = format!("{}\n", boot_id().unwrap());
        let check = |folder_mode: u32, mode: u32, expected: bool| {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(folder_mode)).unwrap();
            let stayed = stays(folder.path(), &name, &text, mode);
            assert_eq!(stayed, expected, "{folder_mode:o} {mode:o}");
        };
        check(0o777, 0o600, true);
        check(0o700, 0o666, true);
        check(0o700, 0o600, false);
        // No process ever writes into this pipe.
        let path = folder.path().join(&name);
        let pipe = CString::new(path.as_os_str().as_bytes()).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, pipe, Mode::from_raw_mode(0o600)).unwrap();
        sweep(folder.path());
        assert!(path.exists());
    }

    #[test]
    fn server_record_is_removed_when_its_server_ends() {
        let folder = tempfile::tempdir().unwrap();
        let records = folder.path().join("running");
        let record = ServerRecord::begin(&records).unwrap();
        assert_eq!(fs::read_dir(&records).unwrap().count(), 1);
        drop(record);
        assert_eq!(fs::read_dir(&records).unwrap().count(), 0);
    }
}
