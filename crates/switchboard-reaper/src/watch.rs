//! Waits for the lifeline and for children, and ignores requests to terminate.

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

/// The first pause before killed processes are checked again; later pauses are longer.
const FIRST_LOOK: Duration = Duration::from_millis(10);

/// The longest pause between two checks. It also applies to root's processes, which cannot be
/// killed.
const LAST_LOOK: Duration = Duration::from_secs(1);

pub(crate) struct Watch {
    /// A socket that is readable when a child process has ended.
    children: UnixStream,
}

/// The events that ended a wait, except the end of a child.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Woken {
    /// The lifeline is readable or closed.
    pub(crate) called: bool,
    /// The watched process, the reaper of a keeper, has ended.
    pub(crate) alone: bool,
}

impl Watch {
    /// Becomes a subreaper: adopts descendants whose parent dies.
    pub(crate) fn begin() -> io::Result<Watch> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let (children, waker) = UnixStream::pair()?;
        children.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGCHLD, waker)?;
        // SIGTERM, SIGINT and SIGHUP are caught without effect. If this process ignored them, the
        // programs that it starts would ignore them, too.
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
        }
        Ok(Watch { children })
    }

    /// Waits for the lifeline, the end of `parent`, the end of a child, or the time `until`.
    /// Anything that is `None` is not waited for.
    pub(crate) fn wait(
        &mut self,
        lifeline: Option<&UnixStream>,
        parent: Option<&OwnedFd>,
        until: Option<Instant>,
    ) -> io::Result<Woken> {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        // The time is rounded up, so that the deadline has passed when the wait ends.
        let left = left.and_then(|left| Timespec::try_from(left + Duration::from_millis(1)).ok());
        let watched = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        // A missing lifeline or parent is replaced by a second poll entry for the children.
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

/// Whether this process has children left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Children {
    Left,
    None,
}

/// Reads the exit status of all children that have ended.
pub(crate) fn reap_children(mut each: impl FnMut(Pid, WaitStatus)) -> Children {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => each(pid, status),
            Err(Errno::INTR) => {}
            Ok(None) => return Children::Left,
            Err(_no_child) => return Children::None,
        }
    }
}

/// The growing pauses between checks of killed processes.
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
