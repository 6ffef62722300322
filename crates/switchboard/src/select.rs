//! jq filters over results.
//!
//! Even a filter of one line can run forever or exhaust memory, and the interpreter has no step
//! limit. So each filter runs in a process of its own (`child`), which executes this program again.

mod child;
mod language;
mod natives;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Socket;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::sync::Semaphore;

use child::FilterExit;
pub(crate) use child::run_if_asked;

/// The maximum length of a filter, in bytes.
const LONGEST: usize = 8 << 10;

/// The maximum processor time of a filter.
const PROCESSOR: Duration = Duration::from_secs(2);

/// The maximum wall-clock time of a filter.
const PATIENCE: Duration = Duration::from_secs(5);

/// The maximum memory of a filter process, in bytes, including the result that it reads.
const MEMORY: u64 = 256 << 20;

/// The maximum size of a filter's output, in bytes.
const OUTPUT: usize = 16 << 20;

/// The maximum number of filters that run at the same time; further filters wait.
const AT_ONCE: usize = 4;

static TURNS: Semaphore = Semaphore::const_new(AT_ONCE);

/// Why a filter failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SelectError {
    #[error("`select` is longer than {} KiB", LONGEST >> 10)]
    TooLong,
    #[error("`select` is not a jq filter: {why}")]
    Invalid { why: String },
    #[error("`select` failed: {why}")]
    Failed { why: String },
    #[error("the result is not JSON, so `select` cannot be used on it")]
    NotJson,
    #[error("the output of `select` exceeds {} MiB", OUTPUT >> 20)]
    TooLarge,
    #[error(
        "`select` exceeded {} s of processor time, or {} s in total",
        PROCESSOR.as_secs(), PATIENCE.as_secs()
    )]
    TooSlow,
    #[error("too many filters are running; try again")]
    Busy,
    #[error("`select` recursed too deeply, or needs more than {} MiB", MEMORY >> 20)]
    TooHungry,
    #[error("filters cannot run here: `main` does not begin with `reaper::run_if_asked`")]
    NotAtHand,
    #[error("`select` was aborted")]
    Broken,
    #[error("cannot run the process of `select`")]
    Process(#[source] io::Error),
}

/// A filter that has been parsed successfully.
#[derive(Debug)]
pub(crate) struct JqFilter(Box<str>);

impl JqFilter {
    /// Parses a filter without running it.
    pub(crate) async fn read(text: String) -> Result<JqFilter, SelectError> {
        run(&text, None).await?;
        Ok(JqFilter(text.into()))
    }

    /// Applies the filter to `json`. Each output is a line; strings are not quoted.
    pub(crate) async fn run(&self, json: &str) -> Result<String, SelectError> {
        run(&self.0, Some(json)).await
    }
}

/// Parses a filter, and applies it to `json` if there is any.
pub(crate) async fn run(filter: &str, json: Option<&str>) -> Result<String, SelectError> {
    if filter.len() > LONGEST {
        return Err(SelectError::TooLong);
    }
    if !child::is_at_hand() {
        return Err(SelectError::NotAtHand);
    }
    let turn = tokio::time::timeout(PATIENCE, TURNS.acquire()).await;
    let _turn = turn.map_err(|_| SelectError::Busy)?.map_err(|_| SelectError::Broken)?;
    let request = child::request(filter, json);
    let (status, output) = tokio::time::timeout(PATIENCE, converse(&request))
        .await
        .map_err(|_| SelectError::TooSlow)?
        .map_err(SelectError::Process)?;
    let output_text = || String::from_utf8_lossy(&output).into_owned();
    match filter_exit(status)? {
        FilterExit::Done => Ok(output_text()),
        FilterExit::Invalid => Err(SelectError::Invalid { why: output_text() }),
        FilterExit::Failed => Err(SelectError::Failed { why: output_text() }),
        FilterExit::TooLarge => Err(SelectError::TooLarge),
        FilterExit::Broken => Err(SelectError::Broken),
    }
}

/// Converts the exit status of the filter process. Exhausted memory and stack overflow both kill
/// the process by a signal.
fn filter_exit(status: ExitStatus) -> Result<FilterExit, SelectError> {
    match (status.code(), status.signal()) {
        (Some(code), _) => FilterExit::of(code).ok_or(SelectError::Broken),
        (None, Some(signal)) if signal == Signal::XCPU.as_raw() => Err(SelectError::TooSlow),
        (None, _) => Err(SelectError::TooHungry),
    }
}

/// Starts the filter process, sends the request and reads the output. Dropping the future kills the
/// process.
async fn converse(request: &[u8]) -> io::Result<(ExitStatus, Vec<u8>)> {
    let (ours, theirs) = Socket::pair()?;
    ours.set_nonblocking(true)?;
    // Closing the socket ends the filter process, so the socket stays open until the process has
    // exited.
    let mut lifeline = UnixStream::from_std(ours)?;
    let mut process = start(theirs)?;
    let sending = async {
        // If the process has already ended, its exit status gives the reason.
        let _unread = lifeline.write_all(request).await;
    };
    let mut output = Vec::new();
    let reading = async {
        match &mut process.stdout {
            Some(stdout) => stdout.take(OUTPUT as u64).read_to_end(&mut output).await,
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    };
    let ((), reading) = tokio::join!(sending, reading);
    reading?;
    Ok((process.wait().await?, output))
}

#[expect(
    clippy::disallowed_methods,
    reason = "this starts Switchboard itself, not another program"
)]
fn start(lifeline: Socket) -> io::Result<Child> {
    #[cfg(target_os = "linux")]
    let program = switchboard_reaper::PROGRAM;
    #[cfg(not(target_os = "linux"))]
    let program = std::env::current_exe()?;
    tokio::process::Command::new(program)
        .arg0(child::NAME)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(lifeline)))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}
