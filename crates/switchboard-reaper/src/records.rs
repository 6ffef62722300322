//! Servers that run, written down, so that the next start finds what a kill of everything left.

use std::fs::{self, DirBuilder, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::processes::{Identity, boot_id, end_tree, namespace};

/// More than any record has.
const LONGEST: u64 = 1024;

/// A server that runs; the file is gone when this is dropped.
pub(crate) struct Record {
    path: PathBuf,
}

impl Record {
    /// Without a disk nothing is written, and servers run all the same.
    pub(crate) fn write(folder: &Path, server: Identity) -> Option<Record> {
        let keeper = Identity::of(rustix::process::getpid().as_raw_nonzero().get())?;
        let space = namespace();
        let path = folder.join(format!("{space}-{}-{}", server.pid, server.start));
        // Takes what could be written of it along if that is not all.
        let record = Record { path };
        write(folder, &record.path, &encode(&boot_id().ok()?, space, server, keeper)).ok()?;
        Some(record)
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let _not_there = fs::remove_file(&self.path);
    }
}

fn write(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// The run of the machine, in which of its containers, the server, and who looks after it.
fn encode(boot: &str, space: u64, server: Identity, keeper: Identity) -> String {
    format!("{boot} {space} {} {} {} {}\n", server.pid, server.start, keeper.pid, keeper.start)
}

fn decode(text: &str) -> Option<(&str, u64, Identity, Identity)> {
    let words: Vec<&str> = text.strip_suffix('\n')?.split(' ').collect();
    let [boot, space, pid, start, keeper_pid, keeper_start] = words[..] else { return None };
    let identity = |pid: &str, start: &str| {
        Some(Identity { pid: pid.parse().ok().filter(|pid| *pid > 1)?, start: start.parse().ok()? })
    };
    let (server, keeper) = (identity(pid, start)?, identity(keeper_pid, keeper_start)?);
    Some((boot, space.parse().ok()?, server, keeper))
}

/// Ends the servers whose records nobody stands behind any more. Costs one look at a folder if
/// there are none.
///
/// Whoever can write there could have any process of ours ended, so it counts only if nobody else
/// can.
pub fn sweep(folder: &Path) {
    if !fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir() && is_ours_alone(&found)) {
        return;
    }
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        sweep_one(&path);
    }
}

fn is_ours_alone(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0
}

/// What a record says, if it is one of ours. Whatever else stands there is not waited for.
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

fn sweep_one(path: &Path) {
    let Some(text) = read(path) else { return };
    let Some((boot, space, server, keeper)) = decode(&text) else {
        // Its writer was killed before the end of the line, or is not there yet.
        return;
    };
    if boot_id().is_ok_and(|now| now == boot) {
        // The numbers of another container mean other processes here, and whether those that are
        // meant still run cannot be seen from here.
        if space != namespace() || keeper.is_running() {
            return;
        }
        end_tree(server);
    }
    let _somebody_else_did = fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;

    use rustix::fs::Mode;

    use super::*;

    fn own() -> Identity {
        Identity::of(rustix::process::getpid().as_raw_nonzero().get()).unwrap()
    }

    #[test]
    fn a_record_is_swept_unless_its_keeper_runs_and_nobody_else_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let boot = boot_id().unwrap();
        let here = namespace();
        let another = Identity { start: own().start + 1, ..own() };
        let check = |text: &str, stays: bool| {
            let path = folder.path().join("record");
            write(folder.path(), &path, text).unwrap();
            // Would end this test if it took another process for the recorded one.
            sweep(folder.path());
            assert_eq!(path.exists(), stays, "{text}");
            let _removed = fs::remove_file(path);
        };
        check(&encode(&boot, here, own(), own()), true);
        check(&encode(&boot, here, another, another), false);
        check(&encode("another-boot", here, own(), another), false);
        check(&encode(&boot, here + 1, own(), another), true);
        check(&encode("another-boot", here + 1, own(), another), false);
        check("garbage", true);
        check(&format!("{boot} {here} 1 1 1 1\n"), true);
    }

    #[test]
    fn a_record_that_others_could_have_written_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let boot = boot_id().unwrap();
        // Would be removed if it were read.
        let record =
            encode(&boot, namespace(), own(), Identity { start: own().start + 1, ..own() });
        let gone = encode("another-boot", namespace(), own(), own());
        let path = folder.path().join("record");
        let check = |folder_mode: u32, mode: u32, text: &str, stays: bool| {
            write(folder.path(), &path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(folder_mode)).unwrap();
            sweep(folder.path());
            assert_eq!(path.exists(), stays, "{folder_mode:o} {mode:o}");
            let _removed = fs::remove_file(&path);
        };
        check(0o777, 0o600, &record, true);
        check(0o700, 0o666, &record, true);
        check(0o777, 0o600, &gone, true);
        check(0o700, 0o600, &gone, false);
        // Nobody ever writes into this one.
        let pipe = CString::new(path.as_os_str().as_bytes()).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, pipe, Mode::from_raw_mode(0o600)).unwrap();
        sweep(folder.path());
        assert!(path.exists());
    }

    #[test]
    fn a_record_goes_with_its_server() {
        let folder = tempfile::tempdir().unwrap();
        let records = folder.path().join("running");
        let record = Record::write(&records, own()).unwrap();
        assert_eq!(fs::read_dir(&records).unwrap().count(), 1);
        drop(record);
        assert_eq!(fs::read_dir(&records).unwrap().count(), 0);
    }
}
