//! Starts programs: without a shell, with a cleared environment, and in their own process group.
//! Where possible, a reaper ends the programs if this process is killed.

#[cfg(target_os = "linux")]
mod kept;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use rustix::process::{Pid, Signal};
pub use switchboard_reaper::Confinement;
use tokio::io::{AsyncRead, AsyncWrite};

/// A program to start, without a shell.
#[derive(Clone)]
pub struct Program {
    /// The program, looked up in `PATH` if it has no slash.
    pub command: String,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// The whole environment of the program.
    pub env: BTreeMap<String, String>,
    /// The working directory of the program.
    pub cwd: PathBuf,
    /// Whether the program is confined, if the system supports that.
    pub confinement: Confinement,
}

impl fmt::Debug for Program {
    /// Omits arguments and environment, because they can hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("command", &self.command).finish_non_exhaustive()
    }
}

/// A running program and its pipes.
pub struct Started {
    /// The standard input of the program.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// The standard output of the program.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// The standard error of the program.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// The control over the running program.
    pub process: Box<dyn Process>,
}

/// The future result of a method of [`Process`], [`Spawner`] or another object-safe trait.
pub type Promise<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Control over a running program. Dropping this value ends the program and its reachable child
/// processes: its process group, or with a reaper all child processes.
pub trait Process: Send {
    /// Waits for the program to exit. If the future is dropped, another call continues the wait.
    fn exited(&mut self) -> Promise<'_, io::Result<ExitStatus>>;
    /// Sends SIGTERM to the program and its process group.
    fn terminate(&self);
    /// Kills the program and all its reachable child processes.
    fn kill(&self);
    /// Leaves the program, whose input is closed, to another process that ends it; `false` if there
    /// is none.
    fn finish(&self) -> bool {
        false
    }
    /// Waits until the killed processes have exited.
    fn gone(&mut self) -> Promise<'_, ()> {
        Box::pin(async {})
    }
}

/// A way to start programs, such as a reaper or process groups.
pub trait Spawner: Send + Sync {
    /// Starts a program. If the future is dropped, the program does not run.
    fn start<'a>(&'a self, program: &'a Program) -> Promise<'a, io::Result<Started>>;
    /// Waits for the helper processes of the spawner to exit. Nothing can be started afterwards.
    fn close(&self) -> Promise<'_, ()> {
        Box::pin(async {})
    }
}

/// The best available spawner: a reaper, if `main` began with
/// [`run_if_asked`](crate::reaper::run_if_asked), otherwise process groups. Records of running
/// programs are stored in `records`; programs that a killed gateway left behind are ended now.
pub(crate) fn at_hand(records: &Path) -> Arc<dyn Spawner> {
    #[cfg(target_os = "linux")]
    if switchboard_reaper::is_at_hand() {
        if switchboard_reaper::processes::can_be_seen() {
            switchboard_reaper::records::sweep(records);
            return Arc::new(kept::Reaper::new(records.to_owned()));
        }
        tracing::warn!("/proc is unavailable: servers can outlive a gateway that is killed");
    }
    let _nothing_is_written = records;
    Arc::new(ProcessGroups)
}

/// Starts each program in a process group of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessGroups;

impl Spawner for ProcessGroups {
    fn start<'a>(&'a self, program: &'a Program) -> Promise<'a, io::Result<Started>> {
        Box::pin(async { start_group(program) })
    }
}

#[expect(clippy::disallowed_methods, reason = "programs without a reaper are started here alone")]
fn start_group(program: &Program) -> io::Result<Started> {
    let mut child = tokio::process::Command::new(&program.command)
        .args(&program.args)
        .env_clear()
        .envs(&program.env)
        .current_dir(&program.cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let missing = || io::Error::other("the program has no pipe");
    Ok(Started {
        stdin: Box::new(child.stdin.take().ok_or_else(missing)?),
        stdout: Box::new(child.stdout.take().ok_or_else(missing)?),
        stderr: Box::new(child.stderr.take().ok_or_else(missing)?),
        process: Box::new(Group {
            leader: child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)),
            child,
        }),
    })
}

/// A child process that leads its process group.
struct Group {
    /// The process group's id is the leader's pid; it stays valid while a process is in the group.
    leader: Option<Pid>,
    child: tokio::process::Child,
}

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            let _no_process_left = rustix::process::kill_process_group(leader, signal);
        }
    }
}

impl Process for Group {
    fn exited(&mut self) -> Promise<'_, io::Result<ExitStatus>> {
        Box::pin(self.child.wait())
    }

    fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    fn kill(&self) {
        self.signal(Signal::KILL);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Ends child processes that the server left in its group.
        self.signal(Signal::KILL);
    }
}
