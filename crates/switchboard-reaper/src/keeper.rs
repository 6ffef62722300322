//! One server and everything below it: started, watched, and ended to the last process.

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
use crate::watch::{Children, Looks, Watch, bury};

/// What a server may use to end in order when there is no gateway or no reaper any more.
const GRACE: Duration = Duration::from_millis(400);

/// What a server may use to end by itself, for its input has ended, when the gateway leaves. With
/// [`GRACE`] it is less than the reaper waits for its keepers.
const FINISH: Duration = Duration::from_secs(2);

/// Looks after the server that the gateway asks for, until nothing of it is left.
pub(crate) fn run(lifeline: UnixStream) -> io::Result<()> {
    let watch = Watch::begin()?;
    let reaper = watch_reaper()?;
    // A gateway that is gone already wants nothing.
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
    // The gateway may have ended, which the lifeline says as well.
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

/// Readable when the reaper, which says who it is, has ended.
fn watch_reaper() -> io::Result<OwnedFd> {
    let named = std::env::args().nth(1).and_then(|pid| Pid::from_raw(pid.parse().ok()?));
    let reaper = named.ok_or(io::ErrorKind::InvalidInput)?;
    let watched = rustix::process::pidfd_open(reaper, PidfdFlags::empty())?;
    // Otherwise it has ended already, and another process may have its number.
    if rustix::process::getppid() == Some(reaper) {
        Ok(watched)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

struct Keeper {
    watch: Watch,
    /// `None` once the reaper is gone.
    reaper: Option<OwnedFd>,
    /// `None` once the gateway is gone.
    lifeline: Option<UnixStream>,
    server: Pid,
    /// Whether the server is not buried yet, so that its number is still its own.
    running: bool,
    stage: KeeperStage,
}

enum KeeperStage {
    Serving,
    /// The gateway leaves; the server may end by itself until then.
    Finishing(Instant),
    /// The gateway or the reaper is gone; the server was asked to end and may take until then.
    Asked(Instant),
    /// Everything is killed until nothing is left.
    Ending(Looks),
}

impl Keeper {
    fn keep(mut self) -> io::Result<()> {
        loop {
            let until = match &mut self.stage {
                KeeperStage::Serving => None,
                KeeperStage::Finishing(until) | KeeperStage::Asked(until) => Some(*until),
                KeeperStage::Ending(looks) => Some(looks.next()),
            };
            let (lifeline, reaper) = (self.lifeline.as_ref(), self.reaper.as_ref());
            let woken = self.watch.wait(lifeline, reaper, until)?;
            if woken.alone {
                // No reaper would end the server after us.
                self.reaper = None;
                self.ask_to_end();
            }
            if woken.called {
                self.listen();
            }
            let left = self.bury();
            if let KeeperStage::Finishing(until) = self.stage
                && (!self.running || until <= Instant::now())
            {
                self.ask_to_end();
            }
            self.stage = match self.stage {
                // Its own helpers get no time: the process that managed them has ended.
                KeeperStage::Asked(until) if !self.running || until <= Instant::now() => {
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
                self.ask_to_end();
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

    fn ask_to_end(&mut self) {
        if let KeeperStage::Serving | KeeperStage::Finishing(_) = self.stage {
            self.terminate();
            self.stage = KeeperStage::Asked(Instant::now() + GRACE);
        }
    }

    fn bury(&mut self) -> Children {
        let mut ended = None;
        let left = bury(|pid, status| {
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
            // A gateway that is gone is noticed where its orders are read.
            let _nobody = tell(lifeline, report);
        }
    }
}
