//! Keeps what was too large for an answer, so that it can be read on without calling again.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use switchboard_core::content::guard::{self, Capped, Guarded, Limits};
use switchboard_core::content::page::{self, Page, Window};
use switchboard_core::content::{Audio, CallOutput, Settled};
use switchboard_core::pattern::{Case, Pattern, PatternError};
use switchboard_core::request::ResultView;

use tokio::time::Instant;

use crate::paths;
use crate::secret::unguessable;

/// What one session may keep; the oldest results go first.
const QUOTA: usize = 256 * 1024 * 1024;

/// The result store of one session. Its files go when it does.
#[derive(Debug)]
pub(crate) struct Results {
    directory: PathBuf,
    limits: Limits,
    quota: usize,
    lifetime: Lifetime,
    /// What becomes of audio.
    pub(crate) audio: Audio,
    kept: Mutex<Kept>,
}

/// How long a result can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lifetime {
    /// By whoever has the session.
    Session,
    /// By whoever knows its id.
    Limited(Duration),
}

#[derive(Debug, Default)]
struct Kept {
    files: VecDeque<Stored>,
    bytes: usize,
    /// Somebody was told that results cannot be kept.
    told: bool,
}

#[derive(Debug)]
struct Stored {
    file: String,
    size: usize,
    at: Instant,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ResultError {
    #[error("there is no stored result `{id}` in this session")]
    Unknown { id: String },
    #[error("cannot read the stored result")]
    Io(#[source] io::Error),
    #[error("`grep` is not a regular expression that can be used")]
    Pattern(#[source] PatternError),
}

impl Results {
    pub(crate) fn new(parent: PathBuf, limits: Limits) -> Results {
        let name = format!("{}-{}", std::process::id(), random_id());
        let (directory, lifetime) = (parent.join(name), Lifetime::Session);
        let (audio, kept) = (Audio::Native, Mutex::default());
        Results { directory, limits, quota: QUOTA, lifetime, audio, kept }
    }

    /// A store for many who are not told apart: only an id leads to a result, and not for ever.
    pub(crate) fn kept_for(time: Duration, parent: PathBuf, limits: Limits) -> Results {
        let mut results = Results::new(parent, limits);
        results.lifetime = Lifetime::Limited(time);
        results
    }

    /// Brings an output to the size that a model sees; the whole is kept under an id.
    pub(crate) async fn guard(
        self: &std::sync::Arc<Self>,
        mut output: CallOutput<'static>,
    ) -> (CallOutput<'static>, Option<String>) {
        if !output.spills(self.audio).is_empty() {
            let saving = self.run(output, |results, output| results.save_blobs(output));
            output = Box::pin(saving).await;
        }
        match guard::guard(output, &self.limits) {
            Guarded::Within(output) => (output, None),
            Guarded::Over(capped) => Box::pin(self.keep(capped)).await,
        }
    }

    async fn keep(
        self: &std::sync::Arc<Self>,
        capped: Capped<'static>,
    ) -> (CallOutput<'static>, Option<String>) {
        let id = match self.lifetime {
            Lifetime::Session => random_id(),
            Lifetime::Limited(_) => unguessable(),
        };
        let results = std::sync::Arc::clone(self);
        let name = id.clone();
        let stored = tokio::task::spawn_blocking(move || {
            let kept = results.save(&name, "txt", capped.whole().as_bytes());
            (kept, capped)
        });
        match stored.await {
            Ok((Ok(_), capped)) => (capped.with_id(&id), Some(id)),
            Ok((Err(error), capped)) => {
                if !std::mem::replace(&mut self.kept().told, true) {
                    tracing::warn!(%error, "cannot keep large results");
                }
                (capped.with_id("not kept"), None)
            }
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }

    /// Reads a part of a stored result.
    pub(crate) async fn read(
        self: &std::sync::Arc<Self>,
        id: &str,
        view: ResultView,
    ) -> Result<Page, ResultError> {
        let file = format!("{id}.txt");
        self.forget_old();
        let known = self.kept().files.iter().any(|stored| stored.file == file);
        if !known {
            let shown = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            let id = id.chars().filter(shown).take(64).collect();
            return Err(ResultError::Unknown { id });
        }
        let pattern =
            view.grep.as_deref().map(|grep| Pattern::compile(grep, Case::Matters)).transpose();
        let pattern = pattern.map_err(ResultError::Pattern)?;
        let path = self.directory.join(file);
        let limits = self.limits;
        let read = tokio::task::spawn_blocking(move || {
            let bytes = paths::read(&path)?.ok_or(io::ErrorKind::NotFound)?;
            let text = String::from_utf8_lossy(&bytes);
            let window = Window { offset: view.offset, limit: view.limit };
            Ok(match pattern {
                Some(pattern) => page::grep(&text, &pattern, window, &limits),
                None => page::page(&text, window, &limits),
            })
        });
        match read.await {
            Ok(page) => page.map_err(ResultError::Io),
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }

    async fn run<T: Send + 'static>(
        self: &std::sync::Arc<Self>,
        value: T,
        work: impl FnOnce(&Results, T) -> T + Send + 'static,
    ) -> T {
        let results = std::sync::Arc::clone(self);
        match tokio::task::spawn_blocking(move || work(&results, value)).await {
            Ok(value) => value,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }

    /// Puts binary parts into private files and their paths into the text.
    fn save_blobs(&self, mut output: CallOutput<'static>) -> CallOutput<'static> {
        let blobs: Vec<_> = output
            .spills(self.audio)
            .into_iter()
            .map(|spill| (spill.block, spill.extension, spill.decode()))
            .collect();
        for (block, extension, decoded) in blobs {
            let saved = match decoded {
                Ok(bytes) => {
                    self.save(&random_id(), extension, &bytes).map_err(|error| error.to_string())
                }
                Err(error) => Err(error.to_string()),
            };
            match &saved {
                Ok(path) => output.settle(block, Settled::SavedTo(&path.to_string_lossy())),
                Err(reason) => output.settle(block, Settled::Omitted(reason)),
            }
        }
        output
    }

    fn save(&self, name: &str, extension: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        paths::private_dir(&self.directory)?;
        let file = format!("{name}.{extension}");
        let path = self.directory.join(&file);
        if let Err(error) = paths::create_private(&path)?.write_all(bytes) {
            let _gone_already = fs::remove_file(path);
            let _others_are_in_it = fs::remove_dir(&self.directory);
            return Err(error);
        }
        let mut kept = self.kept();
        kept.bytes += bytes.len();
        kept.files.push_back(Stored { file, size: bytes.len(), at: Instant::now() });
        while kept.bytes > self.quota && kept.files.len() > 1 {
            self.drop_oldest(&mut kept);
        }
        drop(kept);
        self.forget_old();
        Ok(path)
    }

    /// Removes what nobody can read any more.
    fn forget_old(&self) {
        let Lifetime::Limited(time) = self.lifetime else { return };
        let mut kept = self.kept();
        while kept.files.front().is_some_and(|stored| stored.at.elapsed() >= time) {
            self.drop_oldest(&mut kept);
        }
    }

    fn drop_oldest(&self, kept: &mut Kept) {
        if let Some(Stored { file, size, .. }) = kept.files.pop_front() {
            kept.bytes -= size;
            let _gone_already = fs::remove_file(self.directory.join(file));
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        if !self.kept().files.is_empty() {
            let _gone_already = fs::remove_dir_all(&self.directory);
        }
    }
}

/// Unguessable enough for a private directory, short enough to type.
fn random_id() -> String {
    std::iter::repeat_with(|| fastrand::char('a'..='z')).take(10).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_and_texts_share_one_quota_and_the_oldest_go_first() {
        let home = tempfile::tempdir().unwrap();
        let mut results = Results::new(home.path().to_owned(), Limits::default());
        results.quota = 10;
        let saved = [("a", "txt"), ("b", "png"), ("c", "txt")]
            .map(|(name, extension)| results.save(name, extension, b"four").unwrap());
        assert_eq!(saved.map(|path| path.exists()), [false, true, true]);
        let large = results.save("d", "bin", b"more than ten bytes").unwrap();
        assert!(large.exists(), "the newest stays, whatever its size");
        assert_eq!(fs::read_dir(large.parent().unwrap()).unwrap().count(), 1);
        drop(results);
        assert!(!large.exists());
    }

    #[tokio::test(start_paused = true)]
    async fn what_many_share_is_found_by_its_id_alone_and_not_for_ever() {
        let home = tempfile::tempdir().unwrap();
        let hour = Duration::from_secs(3_600);
        let limits = Limits { max_bytes: 1_000, ..Limits::default() };
        let results = Results::kept_for(hour, home.path().to_owned(), limits);
        let results = std::sync::Arc::new(results);
        let text = "words ".repeat(1_000);
        let answer = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
        let (_, id) = results.guard(CallOutput::of_call(answer)).await;
        let id = id.expect("it is too large");
        assert!(id.len() >= 43, "{id}");
        tokio::time::advance(hour - Duration::from_secs(1)).await;
        assert!(results.read(&id, ResultView::default()).await.is_ok());
        tokio::time::advance(Duration::from_secs(1)).await;
        let read = results.read(&id, ResultView::default()).await;
        assert!(matches!(read, Err(ResultError::Unknown { .. })), "{read:?}");
        let left = fs::read_dir(&results.directory).unwrap().count();
        assert_eq!(left, 0, "the file is gone, too");
    }
}
