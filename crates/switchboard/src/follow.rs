//! Follows the configuration files while the gateway runs, and applies what changes.
//!
//! The metadata of the files is polled once a second. File system events would need a thread, would
//! have to follow directories that do not exist yet and replaced symbolic links, and do not work on
//! network file systems.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use switchboard_core::config::diagnostic::Diagnostic;
use switchboard_core::config::layers::{ConfigOrigin, Tier};
use switchboard_core::render::words::clean_line;
use tokio::sync::{mpsc, oneshot};

use crate::gateway::{FileNotices, Gateway, WeakGateway};
use crate::last_good::LastGood;
use crate::load::{self, LoadError, LoadOptions, Loaded};
use crate::paths;

const PERIOD: Duration = Duration::from_secs(1);

/// A changed file is read once it has been unchanged for this long.
const UNCHANGED_FOR: Duration = Duration::from_millis(250);

/// The maximum number of waits for a file that keeps changing, before it is read.
const MOST_WAITS: usize = 8;

/// The maximum number of mistakes that the status lists.
const SHOWN_MISTAKES: usize = 5;

/// The metadata of each file, `None` if it is missing; any difference means that the file changed.
type Look = Vec<Option<[i128; 4]>>;

/// A handle to the task that follows the files of a gateway.
pub(crate) struct Follower {
    /// The channel for requests to reload the configuration files at once.
    pub(crate) ask: mpsc::Sender<oneshot::Sender<ReadAgain>>,
    pub(crate) options: LoadOptions,
}

/// The outcome of a requested reload.
#[derive(Debug)]
pub(crate) struct ReadAgain {
    /// The files in effect: the project's, or the user's if the project has none. Paths within the
    /// project are relative.
    pub(crate) files: Vec<String>,
    /// The mistakes in all files, each with its position.
    pub(crate) mistakes: Vec<String>,
}

impl ReadAgain {
    fn of(loaded: &Result<Loaded, LoadError>, options: &LoadOptions) -> ReadAgain {
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                return ReadAgain { files: Vec::new(), mistakes: vec![error.to_string()] };
            }
        };
        let within =
            |path: &Path| path.strip_prefix(&options.project).unwrap_or(path).display().to_string();
        let found = |tier: Tier| {
            let ours = loaded.files.iter().filter(move |file| file.found && file.tier == tier);
            ours.map(|file| within(&file.path)).collect::<Vec<String>>()
        };
        let project = found(Tier::Project);
        let files = if project.is_empty() { found(Tier::User) } else { project };
        let mistakes = loaded.config.diagnostics.iter().filter(|problem| problem.is_error());
        let mistakes = mistakes.take(SHOWN_MISTAKES).map(|mistake| {
            let path = within(Path::new(mistake.path.as_deref().unwrap_or_default()));
            format!("{} ({path}:{}:{})", mistake.kind, mistake.line, mistake.column)
        });
        ReadAgain { files, mistakes: mistakes.collect() }
    }
}

/// Follows the files as long as the gateway runs. The first round always reads the files: they may
/// have changed since the gateway was built from them.
pub(crate) async fn follow(
    gateway: WeakGateway,
    options: LoadOptions,
    mut last_good: LastGood,
    mut requests: mpsc::Receiver<oneshot::Sender<ReadAgain>>,
) {
    let mut files = last_good.files().to_vec();
    let mut seen = None;
    // The mistakes that the previous round found; `None` before the first round, whose mistakes
    // were reported when the gateway started.
    let mut reported: Option<Vec<Diagnostic>> = None;
    loop {
        let asked = tokio::select! {
            () = tokio::time::sleep(PERIOD) => None,
            Some(asked) = requests.recv() => Some(asked),
        };
        let Some(gateway) = gateway.upgrade() else { return };
        let now = look(&gateway, &files).await;
        let now = match asked {
            // A reload is requested after the file was written, so no wait is needed.
            Some(_) => now,
            None if seen.as_ref() == Some(&now) => continue,
            None => until_unchanged(&gateway, &files, now).await,
        };
        let shortages = paths::shortages();
        let loaded = load(&gateway, &options, last_good.clone()).await;
        if paths::shortages() != shortages {
            const SHORTAGE: &str = "cannot open any file, the last configuration stays in effect";
            tracing::warn!("{SHORTAGE}");
            if let Some(asked) = asked {
                let read = ReadAgain { files: Vec::new(), mistakes: vec![SHORTAGE.to_owned()] };
                let _asker_gone = asked.send(read);
            }
            seen = None;
            continue;
        }
        let read = loaded.as_ref().map(|loaded| ReadAgain::of(loaded, &options));
        match loaded {
            Some(Ok(loaded)) => {
                // If the list of files changed, its new files have not been polled, so the next
                // round reads all files again.
                seen = (loaded.good.files() == files).then_some(now);
                files = loaded.good.files().to_vec();
                for place in &loaded.stale {
                    tracing::warn!(%place, "cannot parse the file, its last good version stays in effect");
                }
                let mistakes: Vec<Diagnostic> = loaded.mistakes().cloned().collect();
                warn_of_new(&mistakes, reported.as_deref());
                let places = mistakes.iter().take(SHOWN_MISTAKES).map(place).collect();
                let stale = loaded.stale.iter().map(ConfigOrigin::to_string);
                let notices = FileNotices { stale: stale.collect(), mistakes: places };
                gateway.apply_with(&loaded.config, notices);
                reported = Some(mistakes);
                gateway.list_missing_in_background();
                last_good = loaded.good;
                tracing::info!("configuration applied");
            }
            Some(Err(LoadError::Missing { path })) => {
                tracing::warn!(path = %path.display(), "file is missing, its last good version stays in effect");
                gateway.keep(vec![path.display().to_string()]);
                seen = Some(now);
            }
            // The task was cancelled, because the runtime is shutting down.
            None => return,
        }
        if let Some((asked, read)) = asked.zip(read) {
            let _asker_gone = asked.send(read);
        }
    }
}

fn warn_of_new(mistakes: &[Diagnostic], reported: Option<&[Diagnostic]>) {
    let Some(reported) = reported else { return };
    for mistake in mistakes.iter().filter(|mistake| !reported.contains(mistake)) {
        let problem = mistake.kind.to_string();
        tracing::warn!(
            place = place(mistake),
            problem = &*clean_line(&problem, 500),
            "entry has no effect"
        );
    }
}

fn place(mistake: &Diagnostic) -> String {
    let path = mistake.path.as_deref().unwrap_or_default();
    format!("{path}:{}:{}", mistake.line, mistake.column)
}

/// Polls until the files have not changed for a while.
async fn until_unchanged(gateway: &Gateway, files: &[PathBuf], first: Look) -> Look {
    let mut now = first;
    for _ in 0..MOST_WAITS {
        tokio::time::sleep(UNCHANGED_FOR).await;
        let later = look(gateway, files).await;
        if later == now {
            break;
        }
        now = later;
    }
    now
}

async fn load(
    gateway: &Gateway,
    options: &LoadOptions,
    last_good: LastGood,
) -> Option<Result<Loaded, LoadError>> {
    let (gateway, options) = (gateway.clone(), options.clone());
    let reading = move || {
        let blueprint = gateway.blueprint();
        load::load_again(&blueprint.environment, &blueprint.paths, &options, &last_good)
    };
    tokio::task::spawn_blocking(reading).await.ok()
}

/// The metadata of the configuration files, and of the file with the approvals.
async fn look(gateway: &Gateway, files: &[PathBuf]) -> Look {
    let mut files = files.to_vec();
    files.push(gateway.blueprint().paths.trust());
    let looking = move || files.iter().map(|file| identity(file.as_path())).collect();
    tokio::task::spawn_blocking(looking).await.unwrap_or_default()
}

/// The metadata that changes with each version of a file. Follows symbolic links: a link with a new
/// target is a changed file.
fn identity(file: &Path) -> Option<[i128; 4]> {
    let data = fs::metadata(file).ok()?;
    let changed = i128::from(data.ctime()) * 1_000_000_000 + i128::from(data.ctime_nsec());
    Some([data.dev().into(), data.ino().into(), data.len().into(), changed])
}
