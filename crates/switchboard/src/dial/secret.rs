//! Secrets that a program prints, such as `!pass show token`. The program runs when the server is
//! connected, not earlier.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::spawn::{Program, Spawner};
use crate::secret::Secret;
use crate::upstream::ExitReason;

/// The limits of a program that prints a secret.
const SECRET: ProgramLimits =
    ProgramLimits { patience: Duration::from_secs(10), output: 1024 * 1024 };

/// The time and output limits of a program whose output is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramLimits {
    pub(crate) patience: Duration,
    /// The maximum size of the output, in bytes.
    pub(crate) output: usize,
}

/// Why a program returned no secret. The error contains neither arguments nor output of the
/// program: either may hold the secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    #[error("the program cannot be started")]
    Start(#[source] io::Error),
    #[error("cannot read the output of the program")]
    Read(#[source] io::Error),
    #[error("the program failed ({0})")]
    Failed(ExitReason),
    #[error("the program did not exit within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("the output of the program is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the output of the program is not UTF-8")]
    NotText,
    #[error("the program printed nothing")]
    Empty,
}

/// Runs the program and returns its output without the final line break. When the future completes
/// or is dropped, the program and its child processes have been ended.
pub(crate) async fn ask(
    spawner: Arc<dyn Spawner>,
    program: Program,
) -> Result<Secret, SecretError> {
    // The standard input is empty, so a program that prompts reads end of file.
    ask_with(spawner, program, String::new(), SECRET).await
}

/// Like `ask`, with text for the standard input of the program.
pub(crate) async fn ask_with(
    spawner: Arc<dyn Spawner>,
    program: Program,
    input: String,
    limits: ProgramLimits,
) -> Result<Secret, SecretError> {
    // Standard error is read and discarded, so that the program does not block on it.
    ask_hearing(spawner, program, input, limits, drain).await
}

/// Like `ask_with`, with a reader of the standard error of the program.
pub(crate) async fn ask_hearing<F: Future<Output = ()>>(
    spawner: Arc<dyn Spawner>,
    program: Program,
    input: String,
    limits: ProgramLimits,
    errors: impl FnOnce(Box<dyn AsyncRead + Send + Unpin>) -> F,
) -> Result<Secret, SecretError> {
    let started = spawner.start(&program).await.map_err(SecretError::Start)?;
    let mut process = started.process;
    let writing = async {
        let mut stdin = started.stdin;
        // An error is ignored: a program that reads no input may have closed the pipe.
        let _unread = stdin.write_all(input.as_bytes()).await;
    };
    let ended = async {
        let status = process.exited().await;
        // Child processes are killed, too: one that is left behind would keep the pipe open.
        process.kill();
        process.gone().await;
        status
    };
    let output = read_bounded(started.stdout, limits.output);
    let conversation = async { tokio::join!(output, errors(started.stderr), writing, ended) };
    let (output, (), (), status) = tokio::time::timeout(limits.patience, conversation)
        .await
        .map_err(|_| SecretError::TimedOut(limits.patience))?;
    let output = output.map_err(SecretError::Read)?;
    // The size is checked before the exit status: a program fails if its output is no longer read.
    if output.len() > limits.output {
        return Err(SecretError::TooLarge { limit: limits.output });
    }
    let status = status.map_err(SecretError::Read)?;
    if !status.success() {
        return Err(SecretError::Failed(status.into()));
    }
    let mut text = String::from_utf8(output).map_err(|_| SecretError::NotText)?;
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    if text.is_empty() {
        return Err(SecretError::Empty);
    }
    Ok(Secret::new(text))
}

/// Reads at most one byte more than the limit, which shows that the output is too large; the caller
/// then ends the program.
async fn read_bounded(source: impl AsyncRead + Unpin, limit: usize) -> io::Result<Vec<u8>> {
    let mut output = Vec::new();
    source.take(limit as u64 + 1).read_to_end(&mut output).await?;
    Ok(output)
}

async fn drain(mut source: Box<dyn AsyncRead + Send + Unpin>) {
    let _until_closed = tokio::io::copy(&mut source, &mut tokio::io::sink()).await;
}

#[cfg(test)]
mod tests;
