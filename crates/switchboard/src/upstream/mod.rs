//! One server behind the gateway: a handle to the actor that owns everything about it.

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

/// Commands that may wait for the actor.
const QUEUE: usize = 64;

/// What an upstream is keyed by: one connection of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UpstreamKey {
    pub(crate) server: ServerName,
    pub(crate) partition: Partition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Partition {
    /// Every session uses it.
    Shared,
    /// A server that asks something of its client has one for each session.
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
    /// The connection that is up, if there is one.
    open: watch::Receiver<Option<Arc<Open>>>,
    stage: watch::Receiver<DialStage>,
    /// How long a caller waits for an installation; for its end, if nothing is said.
    install_patience: Option<Duration>,
    retired: CancellationToken,
    ended: CancellationToken,
}

/// What the actor is asked to do.
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

/// What an upstream needs to live.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) directory: Directory,
    /// What a connection that no session has to itself offers the server.
    pub(crate) offered: OfferedCapabilities,
    pub(crate) log_levels: LogLevels,
    pub(crate) notices: Notices,
    /// Told when the state changed.
    pub(crate) pulse: watch::Sender<()>,
    pub(crate) spawner: Arc<dyn Spawner>,
    pub(crate) accounts: Arc<Accounts>,
    /// Connects at the same time, over all servers.
    pub(crate) dials: Arc<tokio::sync::Semaphore>,
    pub(crate) tasks: TaskTracker,
    /// The gateway goes, and with it what is left of retired servers.
    pub(crate) closing: CancellationToken,
    /// The end of the upstream that this one takes the place of; nothing is dialled before it.
    pub(crate) after: Option<CancellationToken>,
    /// The session that has the connection to itself.
    pub(crate) owner: Option<Listener>,
}

impl Surroundings {
    /// The era that the session wants which has the server to itself.
    fn era_of_owner(&self) -> Option<Era> {
        self.owner.as_ref().and_then(|owner| owner.host.era())
    }

    /// Whether a connection offers the same capabilities as those that no session has to itself.
    fn offer_the_usual(&self) -> bool {
        self.owner.as_ref().is_none_or(|owner| {
            self.offered.get() == Some(CapabilitySet::of(&owner.host.declares()))
        })
    }
}

impl Upstream {
    /// Starts the actor.
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
        let (tell_stage, stage) = watch::channel(DialStage::Starting);
        let install_patience = recipe.install_patience;
        let tasks = surroundings.tasks.clone();
        let (retired, ended) = (CancellationToken::new(), CancellationToken::new());
        let actor = actor::Actor::new(
            (server, recipe, policy),
            surroundings,
            (publish, opened, tell_stage),
        );
        let (retire, end) = (retired.clone(), ended.clone().drop_guard());
        tasks.spawn(async move {
            actor.run(inbox, retire).await;
            drop(end);
        });
        let handle = Handle { commands, status, open, stage, install_patience, retired, ended };
        Upstream { handle: Arc::new(handle) }
    }

    /// Ends the actor once no call uses its connection any more; no further call gets in. The token
    /// is cancelled at the end.
    pub(crate) fn retire(&self) -> CancellationToken {
        self.handle.retired.cancel();
        self.handle.ended.clone()
    }

    /// Completes when another definition took the place of this one, or none.
    pub(crate) async fn retiring(&self) {
        self.handle.retired.cancelled().await;
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.handle.retired.is_cancelled()
    }

    /// A connection, held while the lease lives. Connects if it must, and does not wait for the end
    /// of a long installation.
    pub(crate) async fn lease(&self) -> Result<Lease, LeaseError> {
        if let Some(lease) = self.lease_if_up() {
            return Ok(lease);
        }
        Box::pin(self.soon(self.lease_in_time())).await
    }

    /// The same, with a wait for the end of any installation.
    pub(crate) async fn lease_in_time(&self) -> Result<Lease, LeaseError> {
        self.acquire(|reply| Command::Acquire { urgency: Urgency::Call, reply }).await
    }

    /// A connection whose lists are fresh, whatever failed before.
    pub(crate) async fn refresh(&self) -> Result<Lease, LeaseError> {
        self.soon(self.acquire(|reply| Command::Refresh { reply })).await
    }

    /// Gives up waiting, and nothing else, once an installation takes long.
    async fn soon(
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

    /// Closes the connection, unless a call uses it just now.
    pub(crate) fn close_if_idle(&self) {
        let _busy_with_others = self.handle.commands.try_send(Command::CloseIfIdle);
    }

    /// Ends the actor; joining the gateway's tasks waits for the end.
    pub(crate) async fn shutdown(&self) {
        let _already_gone = self.handle.commands.send(Command::Shutdown).await;
    }

    /// The connection that is up, if there is one.
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

    /// How far a connect has come, if one is under way.
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

/// Waits until one installation has taken that long.
async fn installs_for(patience: Duration, mut stage: watch::Receiver<DialStage>) -> Duration {
    loop {
        let installing =
            stage.wait_for(|stage| *stage != DialStage::Starting).await.map(|stage| *stage);
        let Ok(DialStage::Installing { since }) = installing else {
            // The actor is gone, and answers so.
            return std::future::pending().await;
        };
        tokio::time::sleep_until(since + patience).await;
        if *stage.borrow() == (DialStage::Installing { since }) {
            return since.elapsed();
        }
    }
}

/// How long a closing server has at each step before the next, harder one.
pub(crate) const CLOSE_GRACE: Duration = Duration::from_secs(2);
