//! A handle to one server: the actor behind it owns all state of the server.

mod actor;
mod audience;
mod classify;
mod connection;
mod dialler;
mod door;
mod incoming;
pub(crate) mod lease;
mod lifecycle_log;
mod list;
mod opening;
mod recipe;
mod refresh;
mod relisting;
pub(crate) mod stateless;
mod status;
pub(crate) mod stderr;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use switchboard_core::catalog::Era;
use switchboard_core::lifecycle::{Policy, Urgency};
use switchboard_core::name::ServerName;
use switchboard_core::reply::{self, Underway};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use audience::{CallerId, Listener, SessionId};
pub(crate) use classify::{CallError, DialError, ExitReason, LeaseError, Unreachable};
pub(crate) use lease::Lease;
pub(crate) use recipe::{CommandWords, ProgramRecipe, Recipe, Transport, secret_program};
pub(crate) use status::{DialStage, Status, UpstreamState};

use crate::auth::Accounts;
use crate::capabilities::{CapabilitySet, OfferedCapabilities};
use crate::dial::spawn::Spawner;
use lease::Open;

use crate::directory::Directory;
use crate::log_level::LogLevels;
use crate::notices::Notices;

/// The capacity of the actor's command queue.
const QUEUE: usize = 64;

/// Identifies an upstream: the server, and the sessions that share its connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UpstreamKey {
    pub(crate) server: ServerName,
    pub(crate) partition: Partition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Partition {
    /// All sessions share the connection.
    Shared,
    /// One session owns the connection: a server that sends requests to its client has one
    /// connection for each session.
    Session(SessionId),
}

/// A handle to one upstream. Every call clones it, so it is one pointer.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    commands: mpsc::Sender<Command>,
    status: watch::Receiver<Status>,
    /// The open connection, if there is one.
    open: watch::Receiver<Option<Arc<Open>>>,
    stage: watch::Receiver<DialStage>,
    /// How long a caller waits for an installation; `None` waits for its end.
    install_patience: Option<Duration>,
    retired: CancellationToken,
    ended: CancellationToken,
}

/// Commands to the actor.
#[derive(Debug)]
enum Command {
    Acquire {
        urgency: Urgency,
        reply: oneshot::Sender<Result<Lease, LeaseError>>,
    },
    Refresh {
        reply: oneshot::Sender<Result<Lease, LeaseError>>,
    },
    Disconnect {
        done: oneshot::Sender<()>,
    },
    /// Closes a connection that no call uses.
    CloseIfIdle,
    Shutdown,
}

/// The parts of the gateway that an upstream uses.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) directory: Directory,
    /// The client capabilities that a shared connection offers the server.
    pub(crate) offered: OfferedCapabilities,
    pub(crate) log_levels: LogLevels,
    pub(crate) notices: Notices,
    /// Notifies watchers when the state of an upstream changes.
    pub(crate) pulse: watch::Sender<()>,
    pub(crate) spawner: Arc<dyn Spawner>,
    pub(crate) accounts: Arc<Accounts>,
    /// The permits for dials, which limit the concurrent dials of all servers.
    pub(crate) dials: Arc<tokio::sync::Semaphore>,
    pub(crate) tasks: TaskTracker,
    /// Cancelled when the gateway shuts down, which also closes retired servers.
    pub(crate) closing: CancellationToken,
    /// Cancelled when the upstream that this one replaces has ended; no dial begins earlier.
    pub(crate) after: Option<CancellationToken>,
    /// The session that owns the connection; `None` if sessions share it.
    pub(crate) owner: Option<Listener>,
}

impl Surroundings {
    /// The era that the owning session prescribes.
    fn era_of_owner(&self) -> Option<Era> {
        self.owner.as_ref().and_then(|owner| owner.host.era())
    }

    /// Whether this connection offers the same capabilities as shared connections.
    fn offer_the_usual(&self) -> bool {
        self.owner.as_ref().is_none_or(|owner| {
            self.offered.get() == Some(CapabilitySet::of(&owner.host.declares()))
        })
    }
}

impl Upstream {
    /// Starts the actor of a server, and returns the handle to it.
    pub(crate) fn start(
        server: ServerName,
        recipe: Arc<Recipe>,
        policy: Policy,
        surroundings: Surroundings,
    ) -> Upstream {
        let (commands, inbox) = mpsc::channel(QUEUE);
        let (publish, status) =
            watch::channel(Status { state: UpstreamState::Down, last_failure: None });
        let (opened, open) = watch::channel(None);
        let (stage_sender, stage) = watch::channel(DialStage::Starting);
        let install_patience = recipe.install_patience;
        let tasks = surroundings.tasks.clone();
        let (retired, ended) = (CancellationToken::new(), CancellationToken::new());
        let actor = actor::Actor::new(
            (server, recipe, policy),
            surroundings,
            (publish, opened, stage_sender),
        );
        let (retire, end) = (retired.clone(), ended.clone().drop_guard());
        tasks.spawn(async move {
            actor.run(inbox, retire).await;
            drop(end);
        });
        let handle = Handle { commands, status, open, stage, install_patience, retired, ended };
        Upstream { handle: Arc::new(handle) }
    }

    /// Admits no further calls and ends the actor once the calls in flight are finished. The
    /// returned token is cancelled at the end of the actor.
    pub(crate) fn retire(&self) -> CancellationToken {
        self.handle.retired.cancel();
        self.handle.ended.clone()
    }

    /// Completes when the configuration has replaced or removed this definition.
    pub(crate) async fn retiring(&self) {
        self.handle.retired.cancelled().await;
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.handle.retired.is_cancelled()
    }

    /// Leases a connection and connects if necessary. Does not wait for the end of a long
    /// installation.
    pub(crate) async fn lease(&self) -> Result<Lease, LeaseError> {
        if let Some(lease) = self.lease_if_up() {
            return Ok(lease);
        }
        Box::pin(self.unless_installing(self.lease_in_time())).await
    }

    /// Like [`Upstream::lease`], but waits for the end of any installation.
    pub(crate) async fn lease_in_time(&self) -> Result<Lease, LeaseError> {
        self.acquire(|reply| Command::Acquire { urgency: Urgency::Call, reply }).await
    }

    /// Lists the server again and leases its connection. Connects if necessary, regardless of
    /// back-off.
    pub(crate) async fn refresh(&self) -> Result<Lease, LeaseError> {
        self.unless_installing(self.acquire(|reply| Command::Refresh { reply })).await
    }

    /// Stops waiting once an installation takes longer than `install_patience`; the installation
    /// continues.
    async fn unless_installing(
        &self,
        acquired: impl Future<Output = Result<Lease, LeaseError>>,
    ) -> Result<Lease, LeaseError> {
        let Some(patience) = self.handle.install_patience else { return acquired.await };
        tokio::select! {
            lease = acquired => lease,
            since = installs_for(patience, self.handle.stage.clone()) => {
                Err(LeaseError::Installing { since })
            }
        }
    }

    /// Closes the connection and waits until it is closed.
    pub(crate) async fn disconnect(&self) {
        let (done, closed) = oneshot::channel();
        if self.handle.commands.send(Command::Disconnect { done }).await.is_ok() {
            let _actor_gone = closed.await;
        }
    }

    /// Closes the connection, unless a call uses it.
    pub(crate) fn close_if_idle(&self) {
        let _busy_with_others = self.handle.commands.try_send(Command::CloseIfIdle);
    }

    /// Requests the end of the actor; the gateway waits for it by joining its tasks.
    pub(crate) async fn shutdown(&self) {
        let _already_gone = self.handle.commands.send(Command::Shutdown).await;
    }

    /// The open connection, if there is one.
    pub(crate) fn lease_if_up(&self) -> Option<Lease> {
        self.handle.open.borrow().as_ref().and_then(Open::lease)
    }

    pub(crate) fn status(&self) -> Status {
        let mut status = self.handle.status.borrow().clone();
        let open = self.handle.open.borrow();
        let unwelcome = open.as_ref().is_some_and(|open| open.unwelcome.load(Ordering::Relaxed));
        if status.state == UpstreamState::Connected && unwelcome {
            status.state = UpstreamState::AuthRequired;
        }
        status
    }

    /// The progress of the dial under way, if there is one.
    pub(crate) fn underway(&self) -> Option<Underway> {
        let UpstreamState::Connecting { since } = self.handle.status.borrow().state else {
            return None;
        };
        let (stage, since) = match *self.handle.stage.borrow() {
            DialStage::Starting => (reply::ConnectStage::Starting, since),
            DialStage::Installing { since } => (reply::ConnectStage::Installing, since),
        };
        Some(Underway { stage, since: since.elapsed() })
    }

    async fn acquire(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<Lease, LeaseError>>) -> Command,
    ) -> Result<Lease, LeaseError> {
        let (reply, answer) = oneshot::channel();
        let answered = match self.handle.commands.send(command(reply)).await {
            Ok(()) => answer.await.unwrap_or(Err(LeaseError::ShuttingDown)),
            Err(_) => Err(LeaseError::ShuttingDown),
        };
        match answered {
            Err(LeaseError::ShuttingDown | LeaseError::Disconnected) if self.is_retired() => {
                Err(LeaseError::Replaced)
            }
            answered => answered,
        }
    }
}

/// Completes once an installation has taken this long.
async fn installs_for(patience: Duration, mut stage: watch::Receiver<DialStage>) -> Duration {
    loop {
        let installing =
            stage.wait_for(|stage| *stage != DialStage::Starting).await.map(|stage| *stage);
        let Ok(DialStage::Installing { since }) = installing else {
            // The actor has ended; the other branch of the caller's `select!` reports that.
            return std::future::pending().await;
        };
        tokio::time::sleep_until(since + patience).await;
        if *stage.borrow() == (DialStage::Installing { since }) {
            return since.elapsed();
        }
    }
}

/// How long a server may take to exit after each step of closing it, before the next step: end of
/// input, SIGTERM, SIGKILL.
pub(crate) const CLOSE_GRACE: Duration = Duration::from_secs(2);
