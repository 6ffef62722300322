//! The keeper: starts one server, watches it, and ends it with all its descendants.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal};

use crate::Confinement;
use crate::confine::confine;
use crate::handover;
use crate::mark::Mark;
use crate::message::{Order, Report, StartRequest, error_number, read_request};
use crate::processes::{Identity, kill_below};
use crate::records::ServerRecord;
use crate::watch::{Children, Looks, Watch, reap_children};

/// How long a server may take to exit after SIGTERM, when the gateway or the reaper is gone.
const GRACE: Duration = Duration::from_millis(400);

/// How long a server may take to exit by itself after its input ended, when the gateway shuts down.
/// Together with [`GRACE`] it is shorter than the reaper's wait for its keepers.
const FINISH: Duration = Duration::from_secs(2);

/// Starts the server that the gateway requests, and runs until all of its processes have ended.
pub(crate) fn run(lifeline: UnixStream) -> io::Result<()> {
    let watch = Watch::begin()?;
    let reaper = watch_reaper()?;
    // Without a message, the gateway has already ended.
    let Some((length, streams)) = handover::receive(&lifeline)? else { return Ok(()) };
    let request = read_request(&lifeline, length)?;
    Mark::of(&request.records).set();
    let record = ServerRecord::begin(&request.records);
    let server = match start(&request, streams.into_iter().map(Stdio::from)) {
        Ok(server) => server,
        Err(error) => return tell(&lifeline, Report::NotStarted(error_number(&error))),
    };
    let pid = server.as_raw_nonzero().get();
    let identity = Identity::of(pid).unwrap_or(Identity { pid, start: 0 });
    // A failed send means that the gateway has ended, which the lifeline reports later.
    let _nobody = tell(&lifeline, Report::Started(identity));
    let keeper = Keeper {
        watch,
        reaper: Some(reaper),
        lifeline: Some(lifeline),
        server,
        running: true,
        stage: KeeperStage::Serving,
    };
    let outcome = keeper.keep();
    drop(record);
    outcome
}

#[expect(clippy::disallowed_methods, reason = "this is where the Spawner's programs are started")]
fn start(request: &StartRequest, mut streams: impl Iterator<Item = Stdio>) -> io::Result<Pid> {
    let mut stream = || streams.next().ok_or(io::ErrorKind::InvalidData);
    let mut command = Command::new(&request.command);
    command
        .args(&request.args)
        .env_clear()
        .envs(request.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&request.cwd)
        .stdin(stream()?)
        .stdout(stream()?)
        .stderr(stream()?)
        .process_group(0);
    match request.confinement {
        Confinement::WherePossible => confine(&mut command, request),
        Confinement::Off => {}
    }
    let child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn tell(mut lifeline: &UnixStream, report: Report) -> io::Result<()> {
    lifeline.write_all(&report.encode())
}

/// A descriptor that becomes readable when the reaper has ended. The reaper passes its process id
/// as an argument.
fn watch_reaper() -> io::Result<OwnedFd> {
    let named = std::env::args().nth(1).and_then(|pid| Pid::from_raw(pid.parse().ok()?));
    let reaper = named.ok_or(io::ErrorKind::InvalidInput)?;
    let watched = rustix::process::pidfd_open(reaper, PidfdFlags::empty())?;
    // If the parent of this process is not the reaper, the reaper has ended, and its process id
    // may have been reused.
    if rustix::process::getppid() == Some(reaper) {
        Ok(watched)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

struct Keeper {
    watch: Watch,
    /// A descriptor of the reaper's process; `None` once the reaper has ended.
    reaper: Option<OwnedFd>,
    /// The socket to the gateway; `None` once the gateway has ended.
    lifeline: Option<UnixStream>,
    server: Pid,
    /// Whether the exit status of the server has not been read yet. Until then its process id
    /// cannot be reused.
    running: bool,
    stage: KeeperStage,
}

enum KeeperStage {
    Serving,
    /// The gateway shuts down; the server may exit by itself until this time.
    Finishing(Instant),
    /// The server got SIGTERM, because the gateway or the reaper has ended. It may exit until this
    /// time.
    Terminating(Instant),
    /// All processes of the server are killed, repeatedly until none is left.
    Ending(Looks),
}

impl Keeper {
    fn keep(mut self) -> io::Result<()> {
        loop {
            let until = match &mut self.stage {
                KeeperStage::Serving => None,
                KeeperStage::Finishing(until) | KeeperStage::Terminating(until) => Some(*until),
                KeeperStage::Ending(looks) => Some(looks.next()),
            };
            let (lifeline, reaper) = (self.lifeline.as_ref(), self.reaper.as_ref());
            let woken = self.watch.wait(lifeline, reaper, until)?;
            if woken.alone {
                // Without the reaper, no process would end the server if this keeper were killed.
                self.reaper = None;
                self.begin_termination();
            }
            if woken.called {
                self.listen();
            }
            let left = self.reap_children();
            if let KeeperStage::Finishing(until) = self.stage
                && (!self.running || until <= Instant::now())
            {
                self.begin_termination();
            }
            self.stage = match self.stage {
                // Descendants get no further time to exit once the server itself has ended.
                KeeperStage::Terminating(until) if !self.running || until <= Instant::now() => {
                    KeeperStage::Ending(Looks::begin())
                }
                stage => stage,
            };
            if let KeeperStage::Ending(_) = self.stage {
                if left == Children::None {
                    self.tell(Report::Gone);
                    return Ok(());
                }
                kill_below(rustix::process::getpid(), &HashSet::new());
            }
        }
    }

    fn listen(&mut self) {
        let Some(mut lifeline) = self.lifeline.as_ref() else { return };
        let mut orders = [0; 16];
        let count = match lifeline.read(&mut orders) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            Ok(count) => count,
            Err(_) => 0,
        };
        if count == 0 {
            self.lifeline = None;
            if let KeeperStage::Serving = self.stage {
                self.begin_termination();
            }
        }
        for order in orders.iter().take(count).filter_map(|byte| Order::decode(*byte)) {
            match order {
                Order::Terminate => self.terminate(),
                Order::Kill => self.stage = KeeperStage::Ending(Looks::begin()),
                Order::Finish => {
                    if let KeeperStage::Serving = self.stage {
                        self.stage = KeeperStage::Finishing(Instant::now() + FINISH);
                    }
                }
            }
        }
    }

    fn begin_termination(&mut self) {
        if let KeeperStage::Serving | KeeperStage::Finishing(_) = self.stage {
            self.terminate();
            self.stage = KeeperStage::Terminating(Instant::now() + GRACE);
        }
    }

    fn reap_children(&mut self) -> Children {
        let mut ended = None;
        let left = reap_children(|pid, status| {
            if pid == self.server {
                ended = Some(status.as_raw());
            }
        });
        if let Some(status) = ended {
            self.running = false;
            self.tell(Report::Ended(status));
        }
        left
    }

    fn terminate(&self) {
        if self.running {
            let _nobody_left = rustix::process::kill_process_group(self.server, Signal::TERM);
        }
    }

    fn tell(&self, report: Report) {
        if let Some(lifeline) = &self.lifeline {
            // A failed send is ignored: the end of the gateway is detected where its orders are
            // read.
            let _nobody = tell(lifeline, report);
        }
    }
}
