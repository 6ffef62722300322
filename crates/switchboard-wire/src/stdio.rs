//! The standard streams of this process, polled where possible.
//!
//! Hosts use pipes or sockets, and polling them directly takes a third of the CPU time of a
//! blocking reader thread. A terminal or a file cannot be polled, and must not become non-blocking
//! because the shell shares it, so a thread reads it.

use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream as StdUnixStream;

use rustix::fs::FileType;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

pub type Input = Box<dyn AsyncRead + Send + Unpin>;
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Opens standard input.
pub fn input() -> Input {
    let stdin = rustix::stdio::stdin();
    polled_input(stdin).unwrap_or_else(|| Box::new(tokio::io::stdin()))
}

/// Opens standard output.
pub fn output() -> Output {
    let stdout = rustix::stdio::stdout();
    // If standard error is the same pipe, it would also become non-blocking and lose lines.
    if same_file(stdout, rustix::stdio::stderr()) {
        return Box::new(tokio::io::stdout());
    }
    polled_output(stdout).unwrap_or_else(|| Box::new(tokio::io::stdout()))
}

fn polled_input(stream: BorrowedFd<'_>) -> Option<Input> {
    match kind(stream)? {
        FileType::Fifo => {
            let owned = stream.try_clone_to_owned().ok()?;
            Some(Box::new(pipe::Receiver::from_owned_fd(owned).ok()?))
        }
        FileType::Socket => Some(Box::new(socket(stream)?)),
        _ => None,
    }
}

fn polled_output(stream: BorrowedFd<'_>) -> Option<Output> {
    match kind(stream)? {
        FileType::Fifo => {
            let owned = stream.try_clone_to_owned().ok()?;
            Some(Box::new(pipe::Sender::from_owned_fd(owned).ok()?))
        }
        FileType::Socket => Some(Box::new(socket(stream)?)),
        _ => None,
    }
}

/// Opens the stream as a socket, because some hosts use a socket pair instead of a pipe.
fn socket(stream: BorrowedFd<'_>) -> Option<UnixStream> {
    let socket = StdUnixStream::from(stream.try_clone_to_owned().ok()?);
    socket.set_nonblocking(true).ok()?;
    UnixStream::from_std(socket).ok()
}

fn kind(stream: BorrowedFd<'_>) -> Option<FileType> {
    Some(FileType::from_raw_mode(rustix::fs::fstat(stream).ok()?.st_mode))
}

fn same_file(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    match (rustix::fs::fstat(one), rustix::fs::fstat(other)) {
        (Ok(one), Ok(other)) => one.st_dev == other.st_dev && one.st_ino == other.st_ino,
        _ => false,
    }
}
