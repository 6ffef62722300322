//! The reaper: starts all keepers, and ends the processes that a killed keeper leaves.

use std::collections::HashSet;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::message::{Report, error_number};
use crate::processes::kill_below;
use crate::watch::{Children, Looks, Watch, reap_children};
use crate::{KEEPER, PROGRAM, handover, helper_environment};

/// How long keepers may take to end their servers once the gateway is gone.
const GRACE: Duration = Duration::from_secs(3);

/// Starts keepers while the gateway runs, and exits after the last keeper.
pub(crate) fn run(lifeline: UnixStream) -> io::Result<()> {
    // Detaches from the terminal, so that keys such as Ctrl-C reach neither the reaper nor a
    // server.
    let _leads_already = rustix::process::setsid();
    let watch = Watch::begin()?;
    Reaper { watch, lifeline: Some(lifeline), keepers: HashSet::new(), strays: None, end: None }
        .reap()
}

struct Reaper {
    watch: Watch,
    /// The socket to the gateway; `None` once the gateway has ended.
    lifeline: Option<UnixStream>,
    keepers: HashSet<Pid>,
    /// The schedule for killing children other than keepers; `None` while there are none.
    strays: Option<Looks>,
    /// The time at which the remaining keepers are killed; `None` while the gateway runs.
    end: Option<Instant>,
}

impl Reaper {
    fn reap(mut self) -> io::Result<()> {
        loop {
            let look = self.strays.as_mut().map(Looks::next);
            let until = look.into_iter().chain(self.end).min();
            let woken = self.watch.wait(self.lifeline.as_ref(), None, until)?;
            let left = self.reap_children();
            if woken.called {
                self.listen();
            }
            if self.lifeline.is_none() && left == Children::None {
                return Ok(());
            }
            if self.end.is_some_and(|end| end <= Instant::now()) {
                // From now on, hanging keepers are killed like other children.
                self.keepers.clear();
                self.strays.get_or_insert_with(Looks::begin);
                self.end = None;
            }
            self.kill_strays();
        }
    }

    fn reap_children(&mut self) -> Children {
        reap_children(|pid, status| {
            if self.keepers.remove(&pid) && status.exit_status() != Some(0) {
                // The descendants of the keeper became children of the reaper before its end was
                // reported.
                self.strays = Some(Looks::begin());
            }
        })
    }

    fn listen(&mut self) {
        let Some(lifeline) = &self.lifeline else { return };
        match handover::receive(lifeline) {
            Ok(Some((_, descriptors))) => {
                for keepers_lifeline in descriptors {
                    self.start_keeper(keepers_lifeline);
                }
            }
            Ok(None) | Err(_) => {
                self.lifeline = None;
                self.end = Some(Instant::now() + GRACE);
            }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "keepers are no servers: they start those")]
    fn start_keeper(&mut self, lifeline: OwnedFd) {
        let started = lifeline.try_clone().and_then(|end| {
            Command::new(PROGRAM)
                .arg0(KEEPER)
                .arg(rustix::process::getpid().to_string())
                .env_clear()
                .envs(helper_environment())
                .stdin(Stdio::from(end))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
        });
        match started {
            Ok(child) => {
                self.keepers.extend(i32::try_from(child.id()).ok().and_then(Pid::from_raw));
            }
            Err(error) => {
                let report = Report::NotStarted(error_number(&error));
                // The write fails if the gateway has ended, which needs no answer.
                let _nobody = UnixStream::from(lifeline).write_all(&report.encode());
            }
        }
    }

    /// Kills the children other than keepers, with their descendants.
    fn kill_strays(&mut self) {
        if self.strays.is_some() && !kill_below(rustix::process::getpid(), &self.keepers) {
            self.strays = None;
        }
    }
}
