//! Values that a program gives, such as `!pass show token`: run when a server connects, and never
//! before.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::spawn::{Program, Spawner};
use crate::secret::Secret;
use crate::upstream::ExitReason;

/// What a value may cost.
const SECRET: ProgramLimits =
    ProgramLimits { patience: Duration::from_secs(10), output: 1024 * 1024 };

/// What a program that is asked may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramLimits {
    pub(crate) patience: Duration,
    /// In bytes.
    pub(crate) output: usize,
}

/// Says how it went, never with which words or what came out: either may be the secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    #[error("it cannot be started")]
    Start(#[source] io::Error),
    #[error("its output cannot be read")]
    Read(#[source] io::Error),
    #[error("it failed ({0})")]
    Failed(ExitReason),
    #[error("it was not done within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("its output is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("its output is not text")]
    NotText,
    #[error("it gave nothing")]
    Empty,
}

/// Runs the program and takes what it writes, without the line's end. It, and all that it started,
/// is gone when this returns or is dropped.
pub(crate) async fn ask(
    spawner: Arc<dyn Spawner>,
    program: Program,
) -> Result<Secret, SecretError> {
    // A question of the program would get no answer.
    ask_with(spawner, program, String::new(), SECRET).await
}

/// The same for a program that is told something on its standard input.
pub(crate) async fn ask_with(
    spawner: Arc<dyn Spawner>,
    program: Program,
    input: String,
    limits: ProgramLimits,
) -> Result<Secret, SecretError> {
    // Standard error is read so that the program does not block on it, and goes nowhere.
    ask_hearing(spawner, program, input, limits, drain).await
}

/// The same, with a reader of the standard error of the program.
pub(crate) async fn ask_hearing<F: Future<Output = ()>>(
    spawner: Arc<dyn Spawner>,
    program: Program,
    input: String,
    limits: ProgramLimits,
    errors: impl FnOnce(Box<dyn AsyncRead + Send + Unpin>) -> F,
) -> Result<Secret, SecretError> {
    let started = spawner.start(&program).await.map_err(SecretError::Start)?;
    let mut process = started.process;
    let told = async {
        let mut stdin = started.stdin;
        // A program that does not want to know may have closed it.
        let _unread = stdin.write_all(input.as_bytes()).await;
    };
    let ended = async {
        let status = process.exited().await;
        // A helper that stays behind would hold the pipe open.
        process.kill();
        process.gone().await;
        status
    };
    let output = read_bounded(started.stdout, limits.output);
    let conversation = async { tokio::join!(output, errors(started.stderr), told, ended) };
    let (output, (), (), status) = tokio::time::timeout(limits.patience, conversation)
        .await
        .map_err(|_| SecretError::TimedOut(limits.patience))?;
    let output = output.map_err(SecretError::Read)?;
    // First, because a program whose output is no longer read fails for that reason alone.
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

/// At most one byte more than is allowed; the rest stays unread, and its writer is ended.
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
