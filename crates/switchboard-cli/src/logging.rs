//! Logging: levels by `-v` on standard error, and messages to the file of `--trace`.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use switchboard::failure::{Code, Failure, Subject};
use switchboard::message_log::{self, LogLimit};
use switchboard::paths;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::Command;
use crate::args::serve::Serve;

/// The maximum size of a trace file in bytes.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
#[error("cannot write the trace to `{}`", path.display())]
struct NoTrace {
    path: PathBuf,
    #[source]
    cause: io::Error,
}

/// Starts logging for a command.
pub(crate) fn start(verbose: u8, command: &Command) -> Result<(), Failure> {
    let file = match command {
        Command::Serve(Serve { trace: Some(path), .. }) => Some(open(path)?),
        _ => None,
    };
    let level = match (verbose, command) {
        // Hosts store the standard error of MCP servers, so `serve` logs warnings by default.
        (0, Command::Serve(_)) => LevelFilter::WARN,
        (0, _) => LevelFilter::OFF,
        (1, _) => LevelFilter::INFO,
        (2, _) => LevelFilter::DEBUG,
        (3.., _) => LevelFilter::TRACE,
    };
    message_log::limit(match level {
        LevelFilter::TRACE => LogLimit::Messages,
        _ if file.is_some() => LogLimit::Messages,
        LevelFilter::DEBUG => LogLimit::Requests,
        _ => LogLimit::Debugged,
    });
    let on_stderr = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_target(false)
        .with_filter(
            // Libraries log only warnings and errors: below, they log headers and payloads.
            Targets::new()
                .with_default(level.min(LevelFilter::WARN))
                .with_target("switchboard", level)
                .with_target(message_log::DEBUGGED, LevelFilter::TRACE),
        );
    let in_file = file.map(|file| {
        tracing_subscriber::fmt::layer()
            .with_writer(Arc::new(file))
            .with_ansi(false)
            .with_target(false)
            .with_filter(
                Targets::new()
                    .with_target(message_log::MESSAGES, LevelFilter::TRACE)
                    .with_target(message_log::DEBUGGED, LevelFilter::TRACE),
            )
    });
    tracing_subscriber::registry().with(on_stderr).with(in_file).init();
    Ok(())
}

fn open(path: &Path) -> Result<TraceFile, Failure> {
    let opened = paths::open_trace(path).and_then(|file| {
        let written = file.metadata()?.len();
        Ok(TraceFile { state: Mutex::new(Written { file, written }) })
    });
    opened.map_err(|cause| {
        let cause = NoTrace { path: path.to_owned(), cause };
        Failure::new(Code::Storage, Subject::Request, cause)
    })
}

/// A trace file with a bounded size.
#[derive(Debug)]
struct TraceFile {
    /// The lock is held while one line is written.
    state: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    file: File,
    written: u64,
}

impl Write for &TraceFile {
    /// Writes one line to the trace. Lines beyond the limit are dropped; the last line reports
    /// that.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.written >= MOST_BYTES {
            return Ok(line.len());
        }
        state.file.write_all(line)?;
        state.written += line.len() as u64;
        if state.written >= MOST_BYTES {
            state.file.write_all(b"the trace ends here: 64 MiB are full\n")?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn trace_file_becomes_private_and_nonregular_path_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("trace");
        fs::write(&path, "before\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let file = open(&path).unwrap();
        (&file).write_all(b"after\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before\nafter\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let link = home.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(open(&link).is_err());
        assert!(open(home.path()).is_err());
        assert!(open(Path::new("/dev/null")).is_err());
    }

    #[test]
    fn full_trace_file_ends_with_one_truncation_note() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("trace");
        File::create(&path).unwrap().set_len(MOST_BYTES - 1).unwrap();
        let file = open(&path).unwrap();
        (0..3).for_each(|_| (&file).write_all(b"line\n").unwrap());
        let length = fs::metadata(&path).unwrap().len();
        assert_eq!(length, MOST_BYTES - 1 + 5 + 37);
    }
}
