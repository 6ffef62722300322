//! Drains a server's standard error: the last lines for messages, everything into a log if there is
//! one.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use switchboard_core::render::words::clean_line;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::paths::append_rotating;

const KEPT_LINES: usize = 20;
const LONGEST_LINE: usize = 500;
const LOG_LIMIT: u64 = 1024 * 1024;
const CHUNK: usize = 16 * 1024;

/// The last lines, shared between the drain and whoever reports an error.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail {
    lines: Arc<Mutex<VecDeque<String>>>,
}

impl Tail {
    /// The last lines, escaped and bounded.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn push(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = clean_line(&text, LONGEST_LINE);
        if text.trim().is_empty() {
            return;
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(text.into_owned());
    }
}

/// Reads to the end, so that a server never blocks on a full pipe.
pub(crate) async fn drain(mut source: impl AsyncRead + Unpin, tail: Tail, log: Option<PathBuf>) {
    let mut chunk = vec![0; CHUNK];
    let mut line = Vec::new();
    while let Ok(count) = source.read(&mut chunk).await {
        if count == 0 {
            break;
        }
        for byte in &chunk[..count] {
            match byte {
                b'\n' => {
                    tail.push(&line);
                    line.clear();
                }
                _ if line.len() < LONGEST_LINE => line.push(*byte),
                _ => {}
            }
        }
        let Some(log) = log.clone() else { continue };
        let written = chunk[..count].to_vec();
        // A log that cannot be written must not stop the server.
        let _unwritten =
            tokio::task::spawn_blocking(move || append_rotating(&log, &written, LOG_LIMIT)).await;
    }
    tail.push(&line);
}
