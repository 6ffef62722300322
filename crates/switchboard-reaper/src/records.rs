//! Servers that run, written down, so that the next start finds what a kill of everything left.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::processes::{Identity, boot_id, end_tree};

/// A server that runs; the file is gone when this is dropped.
pub(crate) struct Record {
    path: PathBuf,
}

impl Record {
    /// Without a disk nothing is written, and servers run all the same.
    pub(crate) fn write(folder: &Path, server: Identity) -> Option<Record> {
        let keeper = Identity::of(rustix::process::getpid().as_raw_nonzero().get())?;
        let path = folder.join(format!("{}-{}", server.pid, server.start));
        write(folder, &path, &encode(&boot_id().ok()?, server, keeper)).ok()?;
        Some(Record { path })
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

/// The run of the machine, the server, and who looks after it.
fn encode(boot: &str, server: Identity, keeper: Identity) -> String {
    format!("{boot} {} {} {} {}\n", server.pid, server.start, keeper.pid, keeper.start)
}

fn decode(text: &str) -> Option<(&str, Identity, Identity)> {
    let words: Vec<&str> = text.strip_suffix('\n')?.split(' ').collect();
    let [boot, pid, start, keeper_pid, keeper_start] = words[..] else { return None };
    let identity = |pid: &str, start: &str| {
        Some(Identity { pid: pid.parse().ok().filter(|pid| *pid > 1)?, start: start.parse().ok()? })
    };
    Some((boot, identity(pid, start)?, identity(keeper_pid, keeper_start)?))
}

/// Ends the servers whose records nobody stands behind any more. Costs one look at a folder if
/// there are none.
pub fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        sweep_one(&path);
    }
}

fn sweep_one(path: &Path) {
    let Ok(text) = fs::read_to_string(path) else { return };
    let Some((boot, server, keeper)) = decode(&text) else {
        // Its writer was killed before the end of the line, or is not there yet.
        return;
    };
    if boot_id().is_ok_and(|now| now == boot) {
        if keeper.is_running() {
            return;
        }
        end_tree(server);
    }
    let _somebody_else_did = fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Identity {
        Identity::of(rustix::process::getpid().as_raw_nonzero().get()).unwrap()
    }

    #[test]
    fn a_record_is_swept_unless_its_keeper_runs_and_nobody_else_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let boot = boot_id().unwrap();
        let another = Identity { start: own().start + 1, ..own() };
        let check = |text: &str, stays: bool| {
            let path = folder.path().join("record");
            write(folder.path(), &path, text).unwrap();
            // Would end this test if it took another process for the recorded one.
            sweep(folder.path());
            assert_eq!(path.exists(), stays, "{text}");
            let _removed = fs::remove_file(path);
        };
        check(&encode(&boot, own(), own()), true);
        check(&encode(&boot, another, another), false);
        check(&encode("another-boot", own(), another), false);
        check("garbage", true);
        check(&format!("{boot} 1 1 1 1\n"), true);
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
