//! Opens a connection, runs it to its end, and cleans it up.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use switchboard_core::name::ServerName;
use switchboard_wire::era::ServerHello;
use switchboard_wire::http_client::{self, Carrier, Endpoint};
use switchboard_wire::peer::{self, Patience, PeerLimits, StreamReader, StreamWriter};
use switchboard_wire::{Peer, RequestError, modern, pipe, websocket};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::audience::{Audience, Telling};
use super::incoming::{Incoming, News};
use super::opening::Opening;
use super::recipe::{Recipe, Transport};
use super::stderr::{self, Tail};
use super::{CLOSE_GRACE, DialError, DialStage, ExitReason, Surroundings};
use crate::dial::http::{SignedIn, Speaks};
use crate::dial::spawn::Process;
use crate::message_log::Watcher;

/// How long the server may read nothing before the connection fails.
const WRITE_DEADLINE: Duration = Duration::from_secs(10);

const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a program may run after it closed its output, before it is terminated.
pub(super) const EXIT_GRACE: Duration = Duration::from_secs(1);

/// How long the gateway waits at shutdown for a program to exit by itself; its keeper waits longer.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(250);

/// How long the gateway reads on after a program has exited: its last output may arrive late.
const LATE_OUTPUT: Duration = Duration::from_millis(50);

type ByteSource = Box<dyn AsyncRead + Send + Unpin>;
type ByteSink = Box<dyn AsyncWrite + Send + Unpin>;

/// An open connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) peer: Peer,
    pub(super) hello: Arc<ServerHello>,
    pub(super) audience: Arc<Audience>,
    pub(super) end: End,
    /// Cancelled to end the connection.
    pub(super) stop: CancellationToken,
    /// The `_meta` of the gateway's own requests to a stateless server.
    pub(super) meta: Option<Arc<RawValue>>,
    pub(super) signed_in: SignedIn,
    /// The identity of the sign-in with which the connection was opened.
    pub(super) opened_as: Option<Arc<str>>,
}

/// How a connection ended; unknown while it is open.
#[derive(Clone, Debug)]
pub(super) struct End {
    exit: watch::Receiver<Option<ExitReason>>,
    tail: Tail,
}

impl Connection {
    /// Whether the server answers a ping within five seconds.
    pub(super) async fn answers_ping(&self) -> bool {
        let patience = Patience { timeout: Some(PING_TIMEOUT), progress: None };
        let answer = match &self.meta {
            None => self.peer.request("ping", String::new(), patience).await,
            Some(meta) => {
                let params = format!("{{\"_meta\":{meta}}}");
                self.peer.request(modern::DISCOVER, params, patience).await
            }
        };
        // An error response also shows that the server is alive.
        matches!(answer, Ok(_) | Err(RequestError::Refused(_)))
    }

    /// The exit reason and the last lines of standard error, if the connection is no longer usable.
    pub(super) fn exited(&self) -> Option<DialError> {
        let closed = || {
            let closed = self.peer.is_closed();
            closed.then(|| (ExitReason::StreamClosed, self.end.last_words()))
        };
        let (exit, stderr) = self.end.known().or_else(closed)?;
        Some(DialError::Exited { exit, stderr })
    }
}

impl End {
    /// The exit reason and the last lines of standard error. Waits at most `patience` for the end
    /// of the connection.
    pub(super) async fn report(&self, patience: Duration) -> (ExitReason, Vec<String>) {
        let mut exit = self.exit.clone();
        let known = tokio::time::timeout(patience, exit.wait_for(Option::is_some)).await;
        let reason = known.ok().and_then(|reason| *reason.ok()?);
        (reason.unwrap_or(ExitReason::StreamClosed), self.tail.lines())
    }

    /// The exit reason and the last lines of standard error, if the connection has ended.
    pub(super) fn known(&self) -> Option<(ExitReason, Vec<String>)> {
        let reason = (*self.exit.borrow())?;
        Some((reason, self.tail.lines()))
    }

    pub(super) fn last_words(&self) -> Vec<String> {
        self.tail.lines()
    }
}

/// The part of a connection that transfers messages; [`Body::run`] runs until its end.
pub(super) struct Body {
    way: LiveTransport,
    incoming: Incoming,
    exit: watch::Sender<Option<ExitReason>>,
    stop: CancellationToken,
}

/// The open transport of a connection.
enum LiveTransport {
    Streams(Box<Streams>),
    Http(Box<Carrier>),
    WebSocket(Box<websocket::Carrier>),
}

struct Program {
    process: Box<dyn Process>,
    stderr: tokio::task::JoinHandle<()>,
    /// Cancelled when the gateway shuts down.
    closing: CancellationToken,
    /// The exit status of the program, if it has exited by itself.
    exited: Option<ExitStatus>,
}

struct Streams {
    reader: StreamReader<ByteSource>,
    writer: StreamWriter<ByteSink>,
    far_side: FarSide,
}

enum FarSide {
    Program(Program),
    /// An in-process server or a socket, which needs no clean-up. The future ends with the server.
    Elsewhere(std::pin::Pin<Box<dyn Future<Output = ()> + Send>>),
}

/// Which half of a connection has ended.
enum Half {
    Reading,
    Writing,
}

/// Everything that one dial of a server uses.
pub(super) struct DialContext {
    pub(super) server: ServerName,
    pub(super) recipe: Arc<Recipe>,
    pub(super) surroundings: Surroundings,
    pub(super) stage: watch::Sender<DialStage>,
    /// Sends the actor news about the server's requests and notifications.
    pub(super) news: mpsc::Sender<News>,
}

/// Opens the transport: starts the program, or connects the in-process server or socket. An HTTP
/// server is first contacted by the handshake.
pub(super) async fn open(context: &DialContext) -> Result<(Opening, Body), DialError> {
    let DialContext { server, recipe, surroundings, stage, news } = context;
    let Surroundings { spawner, accounts, tasks, closing, owner, notices, .. } = surroundings;
    let tail = Tail::default();
    let mut start_timeout = recipe.start_timeout;
    let mut signed_in = SignedIn::default();
    let watcher = Watcher::of(server, recipe.debug);
    let limits = PeerLimits {
        max_frame_bytes: recipe.max_frame_bytes,
        write_deadline: Some(WRITE_DEADLINE),
    };
    let (peer, way) = match &recipe.transport {
        Transport::Remote(remote) => match remote.speaks {
            Speaks::Http(mode) => {
                let mut endpoint;
                (endpoint, signed_in) = remote.endpoint(mode, spawner, accounts).await?;
                let Endpoint { url, headers, signer, .. } = &mut endpoint;
                watcher.iter().for_each(|watcher| watcher.learn_remote(url, headers, signer));
                let (peer, carrier) = http_client::open(endpoint, limits);
                (peer, LiveTransport::Http(Box::new(carrier)))
            }
            Speaks::WebSocket => {
                let mut endpoint;
                (endpoint, signed_in) = remote.handshake(spawner, accounts).await?;
                let websocket::Endpoint { url, headers, signer, .. } = &mut endpoint;
                watcher.iter().for_each(|watcher| watcher.learn_remote(url, headers, signer));
                let (peer, carrier) = over_websocket(endpoint, limits, start_timeout).await?;
                (peer, LiveTransport::WebSocket(Box::new(carrier)))
            }
        },
        Transport::Socket(socket) => {
            let (source, sink) = socket.connect().await?.into_split();
            let far_side = FarSide::Elsewhere(Box::pin(std::future::pending()));
            over_streams(Box::new(source), Box::new(sink), far_side, limits)
        }
        Transport::InProcess(in_process) => {
            let (near, far) = pipe::pair();
            let far_side = FarSide::Elsewhere(in_process.serve(far));
            over_streams(Box::new(near.reader), Box::new(near.writer), far_side, limits)
        }
        Transport::Program(recipe_of_program) => {
            let ready = recipe_of_program.ready(spawner, stage).await?;
            let program = ready.program;
            start_timeout = ready.start_timeout;
            watcher.iter().for_each(|w| w.learn_program(&program, &recipe_of_program.env));
            let started = spawner
                .start(&program)
                .await
                .map_err(|cause| DialError::spawn(program.command.clone(), cause))?;
            let drain = stderr::drain(started.stderr, tail.clone(), recipe.log.clone());
            let stderr = tasks.spawn(drain);
            let process = started.process;
            let closing = closing.clone();
            let far_side = FarSide::Program(Program { process, stderr, closing, exited: None });
            over_streams(started.stdout, started.stdin, far_side, limits)
        }
    };
    watcher.into_iter().for_each(|watcher| peer.observe(watcher));
    let (exit, ended) = watch::channel(None);
    let stop = CancellationToken::new();
    let telling = match &way {
        LiveTransport::Http(_) => Telling::Requests,
        LiveTransport::Streams { .. } | LiveTransport::WebSocket(_) => Telling::Nothing,
    };
    let audience = Audience::of(owner.clone(), telling);
    let era = Arc::default();
    let incoming = Incoming {
        server: server.clone(),
        era: Arc::clone(&era),
        news: news.clone(),
        notices: notices.clone(),
        audience: Arc::clone(&audience),
        askable: recipe.askable.clone(),
        questions: JoinSet::new(),
    };
    let body = Body { way, incoming, exit, stop: stop.clone() };
    let end = End { exit: ended, tail };
    Ok((Opening { peer, audience, end, stop, start_timeout, era, signed_in }, body))
}

async fn over_websocket(
    endpoint: websocket::Endpoint,
    limits: PeerLimits,
    after: Duration,
) -> Result<(Peer, websocket::Carrier), DialError> {
    let late = |_| DialError::TimedOut { stage: "upgrade", after, stderr: Vec::new() };
    let connected = tokio::time::timeout(after, websocket::connect(endpoint, limits)).await;
    Ok(connected.map_err(late)??)
}

fn over_streams(
    source: ByteSource,
    sink: ByteSink,
    far_side: FarSide,
    limits: PeerLimits,
) -> (Peer, LiveTransport) {
    let (peer, reader, writer) = peer::open(source, sink, limits);
    (peer, LiveTransport::Streams(Box::new(Streams { reader, writer, far_side })))
}

impl Body {
    /// Runs until either side closes the connection, then stops the program and all that it
    /// started.
    pub(super) async fn run(self) -> ExitReason {
        let Body { way, incoming, exit, stop } = self;
        match way {
            LiveTransport::Streams(streams) => streams.run(incoming, exit, stop).await,
            LiveTransport::Http(carrier) => {
                let (ended, traffic) = carrier.run(incoming, stop.cancelled()).await;
                exit.send_replace(Some(ended.into()));
                traffic.finish(ended, stop.cancelled()).await;
                ended.into()
            }
            LiveTransport::WebSocket(carrier) => {
                let (ended, closing) = carrier.run(incoming, stop.cancelled()).await;
                exit.send_replace(Some(ended.into()));
                closing.finish().await;
                ended.into()
            }
        }
    }
}

impl Streams {
    async fn run(
        self,
        mut incoming: Incoming,
        exit: watch::Sender<Option<ExitReason>>,
        stop: CancellationToken,
    ) -> ExitReason {
        let Streams { reader, writer, mut far_side } = self;
        // Each half has its own task, so that a frame wakes only one of them.
        let mut halves = JoinSet::new();
        halves.spawn(async move {
            let _ended = reader.run(&mut incoming).await;
            Half::Reading
        });
        let writing = halves.spawn(async move {
            let _ended = writer.run().await;
            Half::Writing
        });
        let stopped = tokio::select! {
            half = halves.join_next() => {
                read_out(&mut halves, half).await;
                false
            }
            () = far_side.ended() => {
                read_out(&mut halves, None).await;
                false
            }
            () = stop.cancelled() => true,
        };
        let reason = match far_side {
            FarSide::Elsewhere(_) if stopped => ExitReason::Stopped,
            FarSide::Elsewhere(_) => ExitReason::StreamClosed,
            FarSide::Program(program) => {
                if stopped {
                    // Closes the program's standard input. Its output is read until it has exited,
                    // so that it does not write to a closed pipe.
                    writing.abort();
                } else {
                    halves.shutdown().await;
                }
                program.end(stopped).await
            }
        };
        halves.shutdown().await;
        exit.send_replace(Some(reason));
        reason
    }
}

impl FarSide {
    /// Completes when the server has ended by itself.
    async fn ended(&mut self) {
        match self {
            FarSide::Program(program) => program.exited = program.process.exited().await.ok(),
            FarSide::Elsewhere(serving) => serving.await,
        }
    }
}

impl Program {
    /// Ends the program and everything that it started.
    async fn end(mut self, stopped: bool) -> ExitReason {
        let first_grace = if stopped { CLOSE_GRACE } else { EXIT_GRACE };
        let status = match self.exited {
            Some(status) => Some(status),
            None => {
                let gateway_closes = gateway_closes(self.closing.clone(), stopped);
                let ended = tokio::select! {
                    status = end_program(&mut *self.process, first_grace) => Some(status),
                    () = gateway_closes => None,
                };
                match ended {
                    Some(status) => status,
                    // The gateway does not wait longer: the keeper ends the program.
                    None if self.process.finish() => {
                        self.stderr.abort();
                        return ExitReason::Stopped;
                    }
                    None => end_program(&mut *self.process, first_grace).await,
                }
            }
        };
        self.process.kill();
        // A process that cannot be killed, such as one in uninterruptible sleep, must not block the
        // gateway.
        let _left = tokio::time::timeout(EXIT_GRACE, self.process.gone()).await;
        // The wait for the last lines is limited: a child that left the process group may keep the
        // pipe open indefinitely.
        let drain = self.stderr.abort_handle();
        let _last_lines = tokio::time::timeout(LATE_OUTPUT, self.stderr).await;
        drain.abort();
        match (stopped, status) {
            (true, _) => ExitReason::Stopped,
            (false, Some(status)) => status.into(),
            (false, None) => ExitReason::StreamClosed,
        }
    }
}

/// Reads on after the connection ended, unless the reader itself has ended, so that responses that
/// the server sent before the end are delivered.
async fn read_out(halves: &mut JoinSet<Half>, ended: Option<Result<Half, JoinError>>) {
    if let Some(Ok(Half::Reading)) = ended {
        return;
    }
    let read = async { while let Some(Ok(Half::Writing)) = halves.join_next().await {} };
    let _all_read = tokio::time::timeout(LATE_OUTPUT, read).await;
}

/// Completes when the gateway shuts down and has waited long enough for a program that it stopped.
/// The program may have been stopped earlier, for example after a failed start.
async fn gateway_closes(closing: CancellationToken, stopped: bool) {
    if !stopped {
        std::future::pending::<()>().await;
    }
    closing.cancelled().await;
    tokio::time::sleep(SHUTDOWN_GRACE).await;
}

/// Waits for the program to exit, then sends SIGTERM, then kills it.
async fn end_program(process: &mut dyn Process, grace: Duration) -> Option<ExitStatus> {
    if let Ok(status) = tokio::time::timeout(grace, process.exited()).await {
        return status.ok();
    }
    process.terminate();
    if let Ok(status) = tokio::time::timeout(CLOSE_GRACE, process.exited()).await {
        return status.ok();
    }
    process.kill();
    process.exited().await.ok()
}
