//! How a process that looks after others waits: for its lifeline and for its children, and deaf to
//! requests to end itself.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

/// The next look at processes that were killed, if none of them is heard of before.
const FIRST_LOOK: Duration = Duration::from_millis(10);

/// Not even root's processes, which cannot be killed, are looked at more seldom.
const LAST_LOOK: Duration = Duration::from_secs(1);

pub(crate) struct Watch {
    /// Readable when a child has ended.
    children: UnixStream,
}

/// What there is to do, besides a look at the children.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Woken {
    /// The lifeline has something to say.
    pub(crate) called: bool,
    /// The process that is watched besides has ended.
    pub(crate) alone: bool,
}

impl Watch {
    /// Becomes the one to whom the descendants fall whose parents die.
    pub(crate) fn begin() -> io::Result<Watch> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let (children, waker) = UnixStream::pair()?;
        children.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGCHLD, waker)?;
        // Caught and without effect. Ignored signals would be ignored in the programs that we start, too.
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
        }
        Ok(Watch { children })
    }

    /// Waits for the lifeline and for the end of `parent`, as far as they are still there, for a
    /// child, or until `until`.
    pub(crate) fn wait(
        &mut self,
        lifeline: Option<&UnixStream>,
        parent: Option<&OwnedFd>,
        until: Option<Instant>,
    ) -> io::Result<Woken> {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        // Rounded up, so that the time is over when it is said to be.
        let left = left.and_then(|left| Timespec::try_from(left + Duration::from_millis(1)).ok());
        let watched = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        // In place of a missing lifeline or parent, the children are watched once more.
        let children = self.children.as_fd();
        let mut all = [
            watched(children),
            watched(lifeline.map_or(children, AsFd::as_fd)),
            watched(parent.map_or(children, AsFd::as_fd)),
        ];
        match rustix::event::poll(&mut all, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [_, line, parents] = all.map(|one| !one.revents().is_empty());
        let mut noted = [0; 64];
        while let Ok(1..) = self.children.read(&mut noted) {}
        Ok(Woken { called: line && lifeline.is_some(), alone: parents && parent.is_some() })
    }
}

/// Whether there are children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Children {
    Left,
    None,
}

/// Waits for every child that has ended.
pub(crate) fn bury(mut each: impl FnMut(Pid, WaitStatus)) -> Children {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => each(pid, status),
            Err(Errno::INTR) => {}
            Ok(None) => return Children::Left,
            Err(_no_child) => return Children::None,
        }
    }
}

/// When killed processes are looked at again.
pub(crate) struct Looks {
    pause: Duration,
}

impl Looks {
    pub(crate) fn begin() -> Looks {
        Looks { pause: FIRST_LOOK }
    }

    pub(crate) fn next(&mut self) -> Instant {
        let pause = self.pause;
        self.pause = (pause * 2).min(LAST_LOOK);
        Instant::now() + pause
    }
}
