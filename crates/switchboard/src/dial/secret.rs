//! Values that a program gives, such as `!pass show token`: run when a server connects, and never
//! before.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::spawn::{Program, Spawner};
use crate::upstream::ExitReason;

const PATIENCE: Duration = Duration::from_secs(10);
const LARGEST_SECRET: usize = 1024 * 1024;

/// What a program wrote. Not to be printed.
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn reveal(self) -> String {
        self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
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
    let started = spawner.start(&program).map_err(SecretError::Start)?;
    // Nobody is there to answer a question.
    drop(started.stdin);
    let mut process = started.process;
    let ended = async {
        let status = process.exited().await;
        // A helper that stays behind would hold the pipe open.
        process.kill();
        status
    };
    // Standard error is read so that the program does not block on it, and goes nowhere.
    let conversation =
        async { tokio::join!(read_bounded(started.stdout), drain(started.stderr), ended) };
    let (output, (), status) = tokio::time::timeout(PATIENCE, conversation)
        .await
        .map_err(|_| SecretError::TimedOut(PATIENCE))?;
    let output = output.map_err(SecretError::Read)?;
    // First, because a program whose output is no longer read fails for that reason alone.
    if output.len() > LARGEST_SECRET {
        return Err(SecretError::TooLarge { limit: LARGEST_SECRET });
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
    Ok(Secret(text))
}

/// At most one byte more than is allowed; the rest stays unread, and its writer is ended.
async fn read_bounded(source: impl AsyncRead + Unpin) -> io::Result<Vec<u8>> {
    let mut output = Vec::new();
    source.take(LARGEST_SECRET as u64 + 1).read_to_end(&mut output).await?;
    Ok(output)
}

async fn drain(mut source: impl AsyncRead + Unpin) {
    let _until_closed = tokio::io::copy(&mut source, &mut tokio::io::sink()).await;
}

#[cfg(test)]
mod tests;
