//! Programs behind a reaper. The first program starts the reaper; each program has its own keeper.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as Socket;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use switchboard_reaper::message::{Order, Report, StartRequest};
use switchboard_reaper::processes::{Identity, end_tree};
use switchboard_reaper::{PROGRAM, REAPER, handover, helper_environment, records};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;

use super::{Process, Program, Promise, Spawner, Started};

/// The timeout for starting a program through the reaper.
const START: Duration = Duration::from_secs(20);

/// The timeout for a keeper to kill its server. A keeper that takes longer is treated as killed or
/// stopped.
const KILL: Duration = Duration::from_millis(500);

/// The timeout for the reaper to exit when it has nothing left to do.
const CLOSE: Duration = Duration::from_secs(2);

/// The socket to the reaper, which ends when all clones of the socket are closed.
type Lifeline = Arc<Socket>;

pub(super) struct Reaper {
    /// The directory for the records of running programs.
    records: PathBuf,
    /// The socket to the reaper; `None` before the first program. The mutex is never locked across
    /// an `await`.
    lifeline: Mutex<Option<Lifeline>>,
    /// Whether a program still ran when the gateway left it to its keeper.
    left: Arc<AtomicBool>,
    /// The task that searches for programs of earlier gateways, started with the reaper.
    searching: Mutex<Option<JoinHandle<()>>>,
}

impl Reaper {
    pub(super) fn new(records: PathBuf) -> Reaper {
        Reaper {
            records,
            lifeline: Mutex::default(),
            left: Arc::default(),
            searching: Mutex::default(),
        }
    }

    /// Makes the reaper start a keeper at the other end of `keepers_end`.
    fn request_keeper(&self, keepers_end: &Socket) -> io::Result<Lifeline> {
        let mut lifeline = self.lifeline.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*lifeline {
            match handover::send(&**known, 0, &[keepers_end.as_fd()]) {
                Ok(()) => return Ok(Arc::clone(known)),
                // The reaper was killed, and its keepers end with it: a new reaper is started.
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let new = Arc::new(start_reaper()?);
        self.search();
        handover::send(&*new, 0, &[keepers_end.as_fd()])?;
        *lifeline = Some(Arc::clone(&new));
        Ok(new)
    }

    fn search(&self) {
        let mut searching = self.searching.lock().unwrap_or_else(PoisonError::into_inner);
        let records = self.records.clone();
        searching
            .get_or_insert_with(|| tokio::task::spawn_blocking(move || records::search(&records)));
    }

    async fn start_kept(&self, program: &Program) -> io::Result<Started> {
        let (stdin, their_stdin) = pipe::pipe()?;
        let (their_stdout, stdout) = pipe::pipe()?;
        let (their_stderr, stderr) = pipe::pipe()?;
        let streams = [
            their_stdin.into_blocking_fd()?,
            their_stdout.into_blocking_fd()?,
            their_stderr.into_blocking_fd()?,
        ];
        let (ours, theirs) = Socket::pair()?;
        ours.set_nonblocking(true)?;
        let reaper = self.request_keeper(&theirs)?;
        drop(theirs);
        let mut keeper = Keeper {
            socket: UnixStream::from_std(ours)?,
            buffer: [0; Report::LENGTH],
            filled: 0,
            server: None,
            records: self.records.clone(),
            ended: None,
            gone: false,
            left: Arc::clone(&self.left),
            _reaper: reaper,
        };
        keeper.ask(self.request(program), streams).await?;
        Ok(Started {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            process: Box::new(keeper),
        })
    }

    fn request(&self, program: &Program) -> StartRequest {
        let env = program.env.iter().map(|(name, value)| (name.into(), value.into()));
        StartRequest {
            command: program.command.clone().into(),
            args: program.args.iter().map(Into::into).collect(),
            env: env.collect(),
            cwd: program.cwd.clone(),
            records: self.records.clone(),
            confinement: program.confinement,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the reaper starts the programs of the spawner")]
fn start_reaper() -> io::Result<Socket> {
    let (ours, theirs) = Socket::pair()?;
    ours.set_nonblocking(true)?;
    let child = tokio::process::Command::new(PROGRAM)
        .arg0(REAPER)
        .env_clear()
        .envs(helper_environment())
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // The runtime reaps the child if it exits before this process.
    drop(child);
    Ok(ours)
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

impl Spawner for Reaper {
    fn start<'a>(&'a self, program: &'a Program) -> Promise<'a, io::Result<Started>> {
        Box::pin(async move {
            let starting = async {
                match self.start_kept(program).await {
                    // The reaper or keeper was killed before the program ran: retry once with new
                    // ones.
                    Err(error) if is_gone(&error) => self.start_kept(program).await,
                    outcome => outcome,
                }
            };
            let hangs = |_| Err(io::ErrorKind::TimedOut.into());
            tokio::time::timeout(START, starting).await.unwrap_or_else(hangs)
        })
    }

    fn close(&self) -> Promise<'_, ()> {
        Box::pin(async {
            let lifeline = self.lifeline.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(lifeline) = lifeline else { return };
            let searching = self.searching.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(searching) = searching {
                let _searched = tokio::time::timeout(CLOSE, searching).await;
            }
            let ended = async {
                lifeline.shutdown(std::net::Shutdown::Write)?;
                let mut socket = UnixStream::from_std(lifeline.try_clone()?)?;
                socket.read(&mut [0]).await
            };
            if self.left.load(Ordering::Relaxed) {
                // The reaper exits only after the keepers of such programs, so the gateway does not
                // wait for it.
                return;
            }
            // The reaper also exits if this wait times out.
            let _ended = tokio::time::timeout(CLOSE, ended).await;
        })
    }
}

/// The gateway's side of a keeper process.
struct Keeper {
    /// Dropping the socket makes the keeper terminate the program, and kill it a moment later: an
    /// interrupted launcher needs time to release its locks.
    socket: UnixStream,
    /// The bytes of the next report that were read so far.
    buffer: [u8; Report::LENGTH],
    filled: usize,
    server: Option<Identity>,
    /// The directory for the keeper's records.
    records: PathBuf,
    ended: Option<ExitStatus>,
    gone: bool,
    left: Arc<AtomicBool>,
    _reaper: Lifeline,
}

impl Keeper {
    /// Sends the start request, and waits until the program has started.
    async fn ask(&mut self, request: StartRequest, streams: [OwnedFd; 3]) -> io::Result<()> {
        let request = request.encode();
        let descriptors = streams.each_ref().map(AsFd::as_fd);
        handover::send(&self.socket, request.len() as u64, &descriptors)?;
        drop(streams);
        self.socket.write_all(&request).await?;
        match self.report().await? {
            Report::Started(server) => {
                self.server = Some(server);
                Ok(())
            }
            Report::NotStarted(error) => Err(io::Error::from_raw_os_error(error)),
            Report::Ended(_) | Report::Gone => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// The next report of the keeper. If the future is dropped, the bytes read so far stay in
    /// `buffer`.
    async fn report(&mut self) -> io::Result<Report> {
        while self.filled < Report::LENGTH {
            match self.socket.read(&mut self.buffer[self.filled..]).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.filled += count,
            }
        }
        self.filled = 0;
        Report::decode(self.buffer).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Reads the keeper's reports until the program has exited.
    async fn end(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.ended {
                return Ok(status);
            }
            match self.report().await {
                Ok(report) => self.record(report),
                Err(error) => {
                    self.end_orphans().await;
                    return Err(error);
                }
            }
        }
    }

    fn record(&mut self, report: Report) {
        match report {
            Report::Ended(status) => self.ended = Some(ExitStatus::from_raw(status)),
            Report::Gone => self.gone = true,
            Report::Started(_) | Report::NotStarted(_) => {}
        }
    }

    /// Ends the processes that a killed keeper leaves behind. The reaper does that, too. In case
    /// the reaper is also gone, this function ends the server's process tree, and finds processes
    /// outside the tree by the records.
    async fn end_orphans(&mut self) {
        self.gone = true;
        if let Some(server) = self.server.take() {
            let records = self.records.clone();
            let ending = tokio::task::spawn_blocking(move || {
                end_tree(server);
                records::sweep(&records);
            });
            let _ended = ending.await;
        }
    }

    fn order(&self, order: Order) {
        // If the order cannot be sent, the keeper has exited, and so has its program.
        let _gone = self.socket.try_write(&order.encode());
    }
}

impl Process for Keeper {
    fn exited(&mut self) -> Promise<'_, io::Result<ExitStatus>> {
        Box::pin(self.end())
    }

    fn terminate(&self) {
        self.order(Order::Terminate);
    }

    fn kill(&self) {
        self.order(Order::Kill);
    }

    fn finish(&self) -> bool {
        self.left.store(true, Ordering::Relaxed);
        self.order(Order::Finish);
        true
    }

    fn gone(&mut self) -> Promise<'_, ()> {
        Box::pin(async {
            while !self.gone {
                match tokio::time::timeout(KILL, self.report()).await {
                    Ok(Ok(report)) => self.record(report),
                    // The keeper is gone or does not respond: a server that is not confined can
                    // stop its keeper with signals.
                    Ok(Err(_)) | Err(_) => self.end_orphans().await,
                }
            }
        })
    }
}
