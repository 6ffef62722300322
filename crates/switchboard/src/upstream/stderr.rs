//! Reads a server's standard error: keeps the last lines for error messages and appends everything
//! to the log file, if there is one.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
use switchboard_core::render::words::clean_line;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::mutex::lock;
use crate::paths::append_rotating;

const KEPT_LINES: usize = 20;
const LONGEST_LINE: usize = 500;
const LOG_LIMIT: u64 = 1024 * 1024;
const CHUNK: usize = 16 * 1024;

/// The last lines of a server's standard error, shared between the task that reads them and the
/// error reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail {
    lines: Arc<Mutex<VecDeque<String>>>,
}

impl Tail {
    /// The last lines of standard error, escaped and bounded.
    pub(crate) fn lines(&self) -> Vec<String> {
        lock(&self.lines).iter().cloned().collect()
    }

    fn push(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = clean_line(&text, LONGEST_LINE);
        if text.trim().is_empty() {
            return;
        }
        let mut lines = lock(&self.lines);
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(text.into_owned());
    }
}

/// Inserts the time before each line of a log.
#[derive(Default)]
struct Times {
    /// Whether the last chunk of text ended within a line.
    within_line: bool,
}

impl Times {
    fn before_lines(&mut self, chunk: &[u8], now: DateTime<Utc>) -> Vec<u8> {
        let time = now.to_rfc3339_opts(SecondsFormat::Secs, true);
        let mut out = Vec::with_capacity(chunk.len() + 2 * time.len());
        for line in chunk.split_inclusive(|byte| *byte == b'\n') {
            if !self.within_line {
                out.extend_from_slice(time.as_bytes());
                out.push(b' ');
            }
            out.extend_from_slice(line);
            self.within_line = !line.ends_with(b"\n");
        }
        out
    }
}

/// Reads standard error to its end, so that a server never blocks on a full pipe.
pub(crate) async fn drain(mut source: impl AsyncRead + Unpin, tail: Tail, log: Option<PathBuf>) {
    let mut chunk = vec![0; CHUNK];
    let mut line = Vec::new();
    let mut times = Times::default();
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
        let now = DateTime::<Utc>::from(SystemTime::now());
        let written = times.before_lines(&chunk[..count], now);
        // A log that cannot be written must not stop the server.
        let _unwritten =
            tokio::task::spawn_blocking(move || append_rotating(&log, &written, LOG_LIMIT)).await;
    }
    tail.push(&line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_log_line_begins_with_its_time() {
        let at = |seconds| DateTime::<Utc>::from_timestamp(seconds, 0).unwrap();
        let mut times = Times::default();
        let mut log = Vec::new();
        for (chunk, seconds) in [("one\ntw", 0), ("o\n", 61), ("\nthree", 3_600), ("", 9_999)] {
            log.extend(times.before_lines(chunk.as_bytes(), at(seconds)));
        }
        assert_eq!(
            String::from_utf8(log).unwrap(),
            "1970-01-01T00:00:00Z one\n1970-01-01T00:00:00Z two\n1970-01-01T01:00:00Z \n\
             1970-01-01T01:00:00Z three"
        );
    }
}
