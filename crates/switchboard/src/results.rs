//! The result store: keeps results that are too large for a reply, so that they can be read without
//! another call.

mod files;
pub(crate) mod leftovers;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use switchboard_core::content::guard::{self, Capped, Guarded, TextLimits, Whole};
use switchboard_core::content::page::{self, ResultPage, Window};
use switchboard_core::content::{CallOutput, ResultForm, Settled, Spacing, outline};
use switchboard_core::pattern::{Case, Pattern, PatternError, TooSlow};
use switchboard_core::render::words;
use switchboard_core::request::ResultView;

use tokio::sync::Semaphore;

use self::files::{Parts, StoredFiles};
use crate::blocking::blocking;
use crate::mutex::lock;
use crate::paths;
use crate::secret::unguessable;
use crate::select::{self, JqFilter, SelectError};

/// The maximum size of one session's results, in bytes; the oldest are removed first.
const QUOTA: usize = 256 * 1024 * 1024;

/// The maximum size of the results of all sessions of this user, in bytes.
const QUOTA_OF_ALL: u64 = 1024 * 1024 * 1024;

/// The maximum number of binary parts of one result that are stored.
const MOST_BLOBS: usize = 100;

/// The result store of one session. Its files are removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Results {
    directory: PathBuf,
    limits: TextLimits,
    quota: usize,
    quota_of_all: u64,
    lifetime: Lifetime,
    kept: Mutex<StoredFiles>,
    /// The permit to decode and write a result: one at a time.
    saving: Semaphore,
}

/// How long a result can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// A result can be read until its session ends.
    Session,
    /// A result can be read for this time, by every client that has its id: stateless clients
    /// cannot be told apart.
    Limited(Duration),
    /// Results are not stored, but passed on in full.
    Unstored,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ResultError {
    #[error("there is no stored result `{id}` in this session")]
    Unknown { id: String },
    #[error("cannot read the stored result")]
    Io(#[source] io::Error),
    #[error("`grep` is not a supported regular expression")]
    Pattern(#[source] PatternError),
    #[error("`grep` took longer than {} s: use a simpler pattern", GREP_TIME.as_secs())]
    Slow(#[source] TooSlow),
    #[error(transparent)]
    Select(#[from] SelectError),
}

/// The time limit of `grep`. A complex pattern takes long on a large result.
const GREP_TIME: Duration = Duration::from_secs(2);

/// A filter that failed on the result of a call.
#[derive(Debug)]
pub(crate) struct Unselected {
    pub(crate) error: SelectError,
    /// The output beside the error of the filter: the parts of the result that a filter leaves
    /// unchanged, such as images, or the whole result if it is not stored.
    pub(crate) shown: CallOutput<'static>,
    /// The id of the stored result; `None` if it is not stored.
    pub(crate) id: Option<String>,
}

impl Results {
    pub(crate) fn new(lifetime: Lifetime, parent: &Path, limits: TextLimits) -> Results {
        let name = format!("{}-{}", std::process::id(), random_id());
        let (directory, kept) = (parent.join(name), Mutex::default());
        let (quota, quota_of_all, saving) = (QUOTA, QUOTA_OF_ALL, Semaphore::new(1));
        Results { directory, limits, quota, quota_of_all, lifetime, kept, saving }
    }

    pub(crate) fn is_unstored(&self) -> bool {
        self.lifetime == Lifetime::Unstored
    }

    /// Cuts an output to the size limit for the model, and stores the full output under an id.
    pub(crate) async fn guard(
        self: &Arc<Self>,
        mut output: CallOutput<'static>,
        form: ResultForm,
    ) -> (CallOutput<'static>, Option<String>) {
        if !output.spills(&form).is_empty() {
            output = Box::pin(self.settled(output, form)).await;
        }
        self.space(&mut output, form);
        match guard::guard(output, &self.limits.fitted(form.max_bytes)) {
            Guarded::Within(output) => (output, None),
            Guarded::Over(capped) => Box::pin(self.keep_beside(capped.whole(), capped)).await,
        }
    }

    /// Stores the full text of a cut output, and puts its id into the output.
    async fn keep_beside(
        self: &Arc<Self>,
        whole: Arc<Whole>,
        capped: Capped<'static>,
    ) -> (CallOutput<'static>, Option<String>) {
        let id = self.keep(whole).await;
        (capped.with_id(id.as_deref().unwrap_or("not kept")), id)
    }

    /// Like [`Results::guard`], for a text of Switchboard. The text is cut only if the host would
    /// cut it, and then to the size of a page.
    pub(crate) async fn guard_text(self: &Arc<Self>, text: String, form: ResultForm) -> String {
        let limits = self.limits.fitted(form.max_bytes);
        if text.len() <= limits.max_bytes.max(form.max_bytes.unwrap_or(usize::MAX)) {
            return text;
        }
        let whole = Arc::new(Whole::of_text(text));
        let id = self.keep(Arc::clone(&whole)).await;
        whole.shortened(&limits, id.as_deref().unwrap_or("not kept"))
    }

    /// Like [`Results::guard`], for the output of a filter. An error of a tool is shown unfiltered.
    /// The full result is stored if another filter may follow.
    pub(crate) async fn select(
        self: &Arc<Self>,
        output: CallOutput<'static>,
        filter: &JqFilter,
        form: ResultForm,
    ) -> Result<(CallOutput<'static>, Option<String>), Unselected> {
        if output.is_error() {
            return Ok(self.guard(output, form).await);
        }
        let mut output = self.settled(output, form).await;
        self.space(&mut output, form);
        let whole = Arc::new(Whole::of(&output));
        let selected = match whole.json() {
            Some(json) => filter.run(json).await,
            None => Err(SelectError::NotJson),
        };
        let selected = match selected {
            Ok(selected) => selected,
            Err(error) => {
                let (shown, id) = match self.keep(whole).await {
                    Some(id) => (output.without_text(), Some(id)),
                    None => self.guard(output, form).await,
                };
                return Err(Unselected { error, shown, id });
            }
        };
        let nothing = is_nothing(&selected).then(|| shape(whole.json().unwrap_or_default()));
        let limits = self.limits.fitted(form.max_bytes);
        match (guard::guard(output.select(selected), &limits), nothing) {
            (Guarded::Within(output), None) => Ok((output, None)),
            (Guarded::Within(mut output), Some(shape)) => {
                let id = self.keep(whole).await;
                if let Some(id) = &id {
                    output
                        .note(format!("[result: {id} · {shape} · try another select with result]"));
                }
                Ok((output, id))
            }
            (Guarded::Over(capped), _) => Ok(self.keep_beside(whole, capped).await),
        }
    }

    /// Compacts the output, if the host's form permits that. Without a size limit, white space is
    /// preserved.
    fn space(&self, output: &mut CallOutput<'static>, form: ResultForm) {
        if form.spacing == Spacing::Compact && self.limits != TextLimits::OFF {
            output.compact();
        }
    }

    /// Stores the binary parts of an output in files, and returns the output with the paths of the
    /// files.
    async fn settled(
        self: &Arc<Self>,
        output: CallOutput<'static>,
        form: ResultForm,
    ) -> CallOutput<'static> {
        if self.is_unstored() {
            return output;
        }
        let _turn = self.saving.acquire().await;
        let results = Arc::clone(self);
        blocking(move || results.save_blobs(output, form)).await
    }

    /// Stores a result and returns its id; `None` if that fails.
    async fn keep(self: &Arc<Self>, whole: Arc<Whole>) -> Option<String> {
        let id = match self.lifetime {
            Lifetime::Unstored => return None,
            Lifetime::Session => random_id(),
            Lifetime::Limited(_) => unguessable(),
        };
        let results = Arc::clone(self);
        let name = id.clone();
        let stored = blocking(move || {
            let beside = whole.json_beside().unwrap_or_default();
            let text = 0..whole.text.len();
            let behind = text.end..text.end + beside.len();
            let json = whole.json_beside().map(|_| behind);
            let json = json.or(whole.json().map(|_| text.clone()));
            let bytes = [whole.text.as_bytes(), beside.as_bytes()];
            results.save(&name, "txt", &bytes, Parts { text, json })
        });
        match stored.await {
            Ok(_) => Some(id),
            Err(error) => {
                if !std::mem::replace(&mut lock(&self.kept).failure_logged, true) {
                    tracing::warn!(%error, "cannot store large results");
                }
                None
            }
        }
    }

    /// Reads a part of a stored result, or applies a filter to it and reads a part of the output.
    pub(crate) async fn read(
        self: &Arc<Self>,
        id: &str,
        view: ResultView,
        form: ResultForm,
    ) -> Result<ResultPage, ResultError> {
        let file = format!("{id}.txt");
        self.forget_old();
        let known = lock(&self.kept)
            .files
            .iter()
            .find(|stored| stored.file == file)
            .map(|s| s.parts.clone());
        let Some(parts) = known else {
            let shown = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            let id = id.chars().filter(shown).take(64).collect();
            return Err(ResultError::Unknown { id });
        };
        let pattern =
            view.grep.as_deref().map(|grep| Pattern::compile(grep, Case::Matters)).transpose();
        let pattern = pattern.map_err(ResultError::Pattern)?;
        let path = self.directory.join(file);
        let stored = blocking(move || {
            let bytes = paths::read(&path)?.ok_or(io::ErrorKind::NotFound)?;
            String::from_utf8(bytes).map_err(io::Error::other)
        });
        let mut text = stored.await.map_err(ResultError::Io)?;
        match &view.select {
            Some(filter) => {
                let json =
                    parts.json.and_then(|json| text.get(json)).ok_or(SelectError::NotJson)?;
                let mut selected = select::run(filter, Some(json)).await?;
                if is_nothing(&selected) {
                    selected.push_str(&format!("[nothing of {}]", shape(json)));
                }
                text = selected;
            }
            None => text.truncate(parts.text.end),
        }
        let limits = self.limits.fitted(form.max_bytes);
        let page = blocking(move || {
            let window = Window { offset: view.offset, limit: view.limit };
            let began = Instant::now();
            let is_over = || began.elapsed() > GREP_TIME;
            match pattern {
                Some(pattern) => page::grep(&text, &pattern, window, &limits, &is_over),
                None => Ok(page::page(&text, window, &limits)),
            }
        });
        page.await.map_err(ResultError::Slow)
    }

    /// Puts binary parts into private files and their paths into the text.
    fn save_blobs(&self, mut output: CallOutput<'static>, form: ResultForm) -> CallOutput<'static> {
        let blobs: Vec<usize> = output.spills(&form).iter().map(|spill| spill.block).collect();
        let (written, left_out) = blobs.split_at(blobs.len().min(MOST_BLOBS));
        for block in left_out {
            let reason = format!("only {MOST_BLOBS} files of one result are kept");
            output.settle(*block, Settled::Omitted(&reason));
        }
        // The parts are decoded one at a time, because decoding copies each part.
        for block in written {
            let spills = output.spills(&form);
            let Some(spill) = spills.iter().find(|spill| spill.block == *block) else { continue };
            let saved = spill.decode().map_err(|error| error.to_string()).and_then(|bytes| {
                let saved = self.save(&random_id(), spill.extension, &[&bytes], Parts::default());
                saved.map_err(|error| error.to_string())
            });
            match &saved {
                Ok(path) => output.settle(*block, Settled::SavedTo(&path.to_string_lossy())),
                Err(reason) => output.settle(*block, Settled::Omitted(reason)),
            }
        }
        output
    }
}

/// Whether a filter selected nothing: all its outputs are `null`, or it has none.
fn is_nothing(selected: &str) -> bool {
    selected.lines().all(|line| line == "null")
}

/// The size and outline of a JSON value, as a hint for another filter.
fn shape(json: &str) -> String {
    let size = words::bytes(json.len());
    match outline(json) {
        Some(outline) => format!("{size} of JSON: {outline}"),
        None => format!("{size} of JSON"),
    }
}

/// An id that is random enough for a private directory, and short enough to type.
fn random_id() -> String {
    std::iter::repeat_with(|| fastrand::char('a'..='z')).take(10).collect()
}

#[cfg(test)]
mod tests;
