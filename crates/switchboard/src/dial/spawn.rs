//! Starts programs: argv only, a cleared environment, their own process group.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncRead, AsyncWrite};

/// What to run. There is no shell anywhere between this and the kernel.
#[derive(Clone)]
pub struct Program {
    pub command: String,
    pub args: Vec<String>,
    /// The whole environment of the program.
    pub env: BTreeMap<String, String>,
    pub cwd: PathBuf,
}

impl fmt::Debug for Program {
    /// Arguments and environment can hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("command", &self.command).finish_non_exhaustive()
    }
}

/// A running program and its pipes.
pub struct Started {
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    pub process: Box<dyn Process>,
}

/// Control over a running program. Dropping it ends the program and its group.
pub trait Process: Send {
    /// Waits for the end of the program.
    fn exited(&mut self) -> Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send + '_>>;
    /// Asks the program and everything in its group to end.
    fn terminate(&self);
    /// Ends the program and everything in its group.
    fn kill(&self);
}

/// The way to start programs; the seam for a broker that survives this process.
pub trait Spawner: Send + Sync {
    fn start(&self, program: &Program) -> io::Result<Started>;
}

/// Starts each program in a process group of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessGroups;

impl Spawner for ProcessGroups {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts programs")]
    fn start(&self, program: &Program) -> io::Result<Started> {
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
}

/// A child that leads its process group.
struct Group {
    /// The group's id is the leader's; it stays valid while anyone is in the group.
    leader: Option<Pid>,
    child: tokio::process::Child,
}

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            let _nobody_left = rustix::process::kill_process_group(leader, signal);
        }
    }
}

impl Process for Group {
    fn exited(&mut self) -> Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send + '_>> {
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
        // Helpers that the server left behind are in its group.
        self.signal(Signal::KILL);
    }
}
