//! Passes file descriptors between processes, and closes inherited ones.

use std::fs::{self, File};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

/// The maximum number of descriptors in one message: the standard streams of a server.
const MOST: usize = 3;

const SPACE: usize = rustix::cmsg_space!(ScmRights(MOST));

/// Sends a number together with descriptors, in one message.
pub fn send(socket: impl AsFd, number: u64, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let bytes = number.to_le_bytes();
    let sent =
        rustix::net::sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
    if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives a message of [`send`]; `None` at the end of the stream.
pub(crate) fn receive(socket: &UnixStream) -> io::Result<Option<(u64, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; size_of::<u64>()];
    let received = loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        match rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?.bytes,
        }
    };
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    match received {
        0 => Ok(None),
        _ if received == bytes.len() => Ok(Some((u64::from_le_bytes(bytes), descriptors))),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Whether standard input is a socket: the lifeline of a reaper or keeper.
pub(crate) fn has_lifeline() -> bool {
    rustix::net::sockopt::socket_type(io::stdin()).is_ok()
}

/// Takes the lifeline from standard input. Closes all other inherited descriptors: an open copy of
/// a pipe would delay its end for the process that reads it.
pub(crate) fn take_lifeline() -> io::Result<UnixStream> {
    close_inherited();
    let lifeline = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    continue_on_input(&lifeline)?;
    Ok(UnixStream::from(lifeline))
}

/// The `fcntl` command that selects the signal about input, from `asm-generic/fcntl.h`; the `libc`
/// crate does not define it.
const F_SETSIG: libc::c_int = 10;

/// Makes the kernel send SIGCONT to this process whenever the socket becomes readable or closes, so
/// that even a stopped process handles orders and the end of the gateway.
#[expect(unsafe_code, reason = "rustix has neither F_SETOWN nor F_SETSIG")]
fn continue_on_input(socket: &OwnedFd) -> io::Result<()> {
    let set = |command, argument: libc::c_int| {
        // SAFETY: these commands take an integer and touch no memory.
        match unsafe { libc::fcntl(socket.as_raw_fd(), command, argument) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    set(libc::F_SETOWN, rustix::process::getpid().as_raw_nonzero().get())?;
    set(F_SETSIG, libc::SIGCONT)?;
    set(libc::F_SETFL, libc::O_ASYNC)
}

/// Closes all inherited descriptors except the standard streams. Must run before the process opens
/// a descriptor itself.
#[expect(unsafe_code, reason = "descriptors without an owner here cannot be closed otherwise")]
pub fn close_inherited() {
    let open = Path::new("/proc/self/fd");
    let listed = fs::read_dir(open).into_iter().flatten().flatten();
    let inherited: Vec<RawFd> = listed
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|descriptor| *descriptor > 2)
        .collect();
    for descriptor in inherited {
        // `read_dir` listed its own descriptor, which is closed by now.
        if open.join(descriptor.to_string()).is_symlink() {
            // SAFETY: this process has just begun and uses no descriptor with this number.
            unsafe { rustix::io::close(descriptor) };
        }
    }
}
