//! The files of one session's stored results: written under two quotas, removed with the session.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use super::{Lifetime, Results, leftovers};
use crate::mutex::lock;
use crate::paths::{self, Lock};

/// The maximum number of files of one session: a file system also limits their number.
pub(super) const MOST_FILES: usize = 1_000;

/// How long the measured size of all sessions' results is reused.
const MEASURED_FOR: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct StoredFiles {
    pub(super) files: VecDeque<Stored>,
    pub(super) bytes: usize,
    /// Whether a failure to store a result has been logged.
    pub(super) failure_logged: bool,
    /// The number of files that are being written.
    pub(super) writers: usize,
    /// When the size of all sessions' results was measured, and the size, including results saved
    /// since.
    pub(super) measured: Option<(Instant, u64)>,
    /// The lock of the directory while it is in use; other processes remove unlocked directories.
    pub(super) owner: Option<Lock>,
}

#[derive(Debug)]
pub(super) struct Stored {
    pub(super) file: String,
    pub(super) size: usize,
    pub(super) at: Instant,
    pub(super) parts: Parts,
}

/// The byte ranges of the parts in the file of a result.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    pub(super) text: Range<usize>,
    /// The part that a filter reads: the text, or the JSON after it.
    pub(super) json: Option<Range<usize>>,
}

impl Results {
    pub(super) fn save(
        &self,
        name: &str,
        extension: &str,
        bytes: &[&[u8]],
        parts: Parts,
    ) -> io::Result<PathBuf> {
        let size: usize = bytes.iter().map(|part| part.len()).sum();
        self.make_room(size)?;
        let file = format!("{name}.{extension}");
        let path = self.directory.join(&file);
        let written = paths::create_private(&path)
            .and_then(|mut target| bytes.iter().try_for_each(|part| target.write_all(part)));
        let mut kept = lock(&self.kept);
        kept.writers -= 1;
        if let Err(error) = written {
            let _gone_already = fs::remove_file(path);
            self.leave_if_empty(&mut kept);
            return Err(error);
        }
        kept.bytes += size;
        kept.files.push_back(Stored { file, size, at: Instant::now(), parts });
        let is_over = |kept: &StoredFiles| kept.bytes > self.quota || kept.files.len() > MOST_FILES;
        while is_over(&kept) && kept.files.len() > 1 {
            self.drop_oldest(&mut kept);
        }
        drop(kept);
        self.forget_old();
        Ok(path)
    }

    /// Creates the directory and frees `size` bytes of the quota that all sessions share.
    fn make_room(&self, size: usize) -> io::Result<()> {
        let mut kept = lock(&self.kept);
        if kept.owner.is_none() {
            paths::private_dir(&self.directory)?;
            let lock = paths::try_lock_directory(&self.directory)?;
            kept.owner = Some(lock.ok_or(io::ErrorKind::WouldBlock)?);
        }
        let parent = self.directory.parent().unwrap_or(&self.directory);
        // The measured size is reused, because measuring reads the metadata of all files.
        let measured = kept.measured.filter(|(at, _)| at.elapsed() < MEASURED_FOR);
        let (at, all) =
            measured.unwrap_or_else(|| (Instant::now(), leftovers::size_of_all(parent)));
        let mut total = all + size as u64;
        while total > self.quota_of_all
            && let Some(oldest) = kept.files.front()
        {
            total = total.saturating_sub(oldest.size as u64);
            self.drop_oldest(&mut kept);
        }
        if total > self.quota_of_all {
            kept.measured = None;
            self.leave_if_empty(&mut kept);
            return Err(io::ErrorKind::StorageFull.into());
        }
        kept.measured = Some((at, total));
        kept.writers += 1;
        Ok(())
    }

    fn leave_if_empty(&self, kept: &mut StoredFiles) {
        if kept.files.is_empty() && kept.writers == 0 {
            let _gone_already = fs::remove_dir_all(&self.directory);
            kept.owner = None;
        }
    }

    /// Removes the results whose limited lifetime has ended.
    pub(super) fn forget_old(&self) {
        let Lifetime::Limited(time) = self.lifetime else { return };
        let mut kept = lock(&self.kept);
        while kept.files.front().is_some_and(|stored| stored.at.elapsed() >= time) {
            self.drop_oldest(&mut kept);
        }
    }

    fn drop_oldest(&self, kept: &mut StoredFiles) {
        if let Some(Stored { file, size, .. }) = kept.files.pop_front() {
            kept.bytes -= size;
            let _gone_already = fs::remove_file(self.directory.join(file));
        }
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        if lock(&self.kept).owner.is_some() {
            let _gone_already = fs::remove_dir_all(&self.directory);
        }
    }
}
