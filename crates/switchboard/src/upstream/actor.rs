//! The task that alone owns and changes the state of one server.
//!
//! The loop awaits nothing but its `select!`. Dialling, listing and pinging run as tasks whose
//! outcomes become inputs; `lifecycle::Machine` decides what follows.

mod outcomes;

use std::collections::HashMap;
use std::sync::Arc;

use switchboard_core::catalog::RawListing;
use switchboard_core::lifecycle::{
    Effect, Generation, Input, Machine, Phase, Policy, Urgency, Waiter,
};
use switchboard_core::name::ServerName;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::dialler::Dialler;
use super::incoming::News;
use super::lease::Open;
use super::lifecycle_log;
use super::list;
use super::opening::{self, Dialled};
use super::recipe::Recipe;
use super::refresh::{LeaseReply, Refreshes};
use super::relisting::{Relisting, sleep_until};
use super::status::{self, LastFailure, Status};
use super::{Command, DialError, DialStage, ExitReason, LeaseError, Surroundings};

/// The capacity of the news queue. A full queue drops news; usually an item of the same kind is
/// already queued.
const WAITING_NEWS: usize = 8;

/// The outcome of a task that the actor started.
enum Done {
    Dialled {
        generation: Generation,
        dialled: Dialled,
    },
    Ended {
        generation: Generation,
        reason: ExitReason,
    },
    Pinged {
        generation: Generation,
        alive: bool,
    },
    Listed {
        generation: Generation,
        outcome: Result<RawListing, DialError>,
    },
    /// The last caller has left the connection of a retired server.
    Drained,
}

/// Whether the configuration still contains this definition of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Service {
    Active,
    /// The server gets no new calls; the actor ends once the calls in flight are finished.
    Retired,
}

pub(super) struct Actor {
    server: ServerName,
    recipe: Arc<Recipe>,
    machine: Machine,
    service: Service,
    surroundings: Surroundings,
    statuses: watch::Sender<Status>,
    began: Instant,
    /// The open connection. Calls read it here and enter through its door.
    open: watch::Sender<Option<Arc<Open>>>,
    dialler: Dialler,
    waiting: HashMap<Waiter, LeaseReply>,
    relisting: Relisting,
    /// Whether an explicit connect requested the next listing, which is then published in any case.
    listing_requested: bool,
    refreshes: Refreshes,
    next_waiter: Waiter,
    last_failure: Option<LastFailure>,
    work: JoinSet<Done>,
    news: mpsc::Receiver<News>,
}

impl Actor {
    pub(super) fn new(
        (server, recipe, policy): (ServerName, Arc<Recipe>, Policy),
        surroundings: Surroundings,
        (statuses, open, stage): (
            watch::Sender<Status>,
            watch::Sender<Option<Arc<Open>>>,
            watch::Sender<DialStage>,
        ),
    ) -> Actor {
        let (tell, news) = mpsc::channel(WAITING_NEWS);
        Actor {
            server,
            recipe,
            machine: Machine::new(policy),
            service: Service::Active,
            surroundings,
            statuses,
            began: Instant::now(),
            open,
            dialler: Dialler::new(stage, tell),
            waiting: HashMap::new(),
            relisting: Relisting::default(),
            listing_requested: false,
            refreshes: Refreshes::default(),
            next_waiter: 0,
            last_failure: None,
            work: JoinSet::new(),
            news,
        }
    }

    pub(super) async fn run(
        mut self,
        mut inbox: mpsc::Receiver<Command>,
        retired: CancellationToken,
    ) {
        let closing = self.surroundings.closing.clone();
        let mut listening = true;
        self.feed(Input::Begin);
        while self.machine.phase() != Phase::Ended {
            let active = self.service == Service::Active;
            let wake_at = self.machine.wake_at().map(|at| self.began + at);
            tokio::select! {
                command = inbox.recv(), if listening => match command {
                    Some(command) => self.handle_command(command),
                    // The handles of a retired server are gone, but its last calls may still run.
                    None if retired.is_cancelled() => listening = false,
                    None => self.feed(Input::Shutdown),
                },
                Some(done) = self.work.join_next() => self.finished(done),
                Some(news) = self.news.recv() => self.handle_news(news),
                () = retired.cancelled(), if active => self.retire(),
                () = closing.cancelled(), if !active => self.feed(Input::Shutdown),
                () = sleep_until(wake_at), if active => self.wake(),
                () = sleep_until(self.relisting.due_at()) => if self.relisting.begin() {
                    self.walk();
                },
            }
        }
        // The connection's task stops the server. Waiting for it leaves no process behind.
        while let Some(done) = self.work.join_next().await {
            self.finished(done);
        }
    }

    /// Admits no further calls, and ends the actor once the calls in flight are finished. Without a
    /// connection, the actor ends at once.
    fn retire(&mut self) {
        self.service = Service::Retired;
        match self.open().filter(|_| self.machine.phase() == Phase::Up) {
            None => self.feed(Input::Shutdown),
            Some(open) => {
                open.door.shut();
                self.work.spawn(async move {
                    tokio::select! {
                        () = open.door.emptied() => {}
                        // The wait ends early if the connection is closed for another reason.
                        () = open.connection.stop.cancelled() => {}
                    }
                    Done::Drained
                });
            }
        }
    }

    fn publish(&self, listing: RawListing) {
        self.surroundings.directory.publish(&self.server, &self.recipe.plan, listing);
    }

    /// Shuts the door while the machine decides whether the server is idle, so that no caller
    /// enters meanwhile.
    fn wake(&mut self) {
        let open = self.open();
        let usage = open.as_ref().map(|open| open.door.shut_if_empty()).unwrap_or_default();
        self.feed(Input::Wake { usage });
        if let Some(open) = open
            && self.machine.phase() == Phase::Up
        {
            open.door.reopen();
        }
    }

    fn open(&self) -> Option<Arc<Open>> {
        self.open.borrow().clone()
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::Acquire { urgency, reply } => self.acquire(urgency, reply),
            Command::Refresh { reply } => match (self.open(), self.machine.phase()) {
                (Some(_), Phase::Up) => {
                    self.refreshes.add(reply);
                    if self.relisting.begin() {
                        self.walk();
                    }
                }
                // Without a connection, no relisting is needed: a new connection is always listed.
                (_, Phase::Down | Phase::Dialling | Phase::Up | Phase::Ended) => {
                    self.listing_requested = true;
                    self.acquire(Urgency::Explicit, reply);
                }
            },
            Command::Disconnect { done } => {
                let closing = self.open().map(|open| open.connection.end.clone());
                self.feed(Input::Disconnect);
                self.surroundings.tasks.spawn(async move {
                    if let Some(end) = closing {
                        end.report(super::CLOSE_GRACE * 3).await;
                    }
                    let _asker_gone = done.send(());
                });
            }
            Command::CloseIfIdle => {
                let used = self.open().is_some_and(|open| open.door.shut_if_empty().held);
                if !used && self.machine.phase() == Phase::Up {
                    self.feed(Input::Disconnect);
                }
            }
            Command::Shutdown => self.feed(Input::Shutdown),
        }
    }

    fn acquire(&mut self, urgency: Urgency, reply: LeaseReply) {
        if self.service == Service::Retired {
            // A retired server does not connect again; its successor serves new calls.
            let _asker_gone = reply.send(Err(LeaseError::ShuttingDown));
            return;
        }
        self.detect_lost_connection();
        self.next_waiter += 1;
        let waiter = self.next_waiter;
        self.waiting.insert(waiter, reply);
        self.feed(Input::Acquire { waiter, urgency });
    }

    fn handle_news(&mut self, news: News) {
        match news {
            News::ListChanged if self.machine.phase() == Phase::Dialling => {
                self.relisting.changed_meanwhile();
            }
            News::ListChanged => {
                if self.open().is_some() && self.relisting.changed(Instant::now()) {
                    self.walk();
                }
            }
            News::AsksClient => {
                self.surroundings.directory.mark_asking(&self.server, &self.recipe.plan);
            }
        }
    }

    /// Whether `generation` is the current one and in `phase`. Outcomes of earlier generations are
    /// late and ignored.
    fn is(&self, phase: Phase, generation: Generation) -> bool {
        self.machine.phase() == phase && self.machine.generation() == generation
    }

    fn failed(&mut self, error: DialError) {
        lifecycle_log::failed(&self.server, &error);
        self.surroundings.directory.failed(&self.server, &self.recipe.plan, &error);
        self.last_failure = Some(LastFailure { at: Instant::now(), cause: Arc::new(error) });
    }

    /// Passes the input to the lifecycle machine, and carries out the effects that it returns.
    fn feed(&mut self, input: Input) {
        let now = self.began.elapsed();
        for effect in self.machine.on(now, input) {
            match effect {
                Effect::Dial { generation } => self.dial(generation),
                Effect::Grant { waiter, .. } => self.grant(waiter),
                Effect::Refuse { waiter, refusal } => {
                    let cause =
                        self.last_failure.as_ref().map(|failure| Arc::clone(&failure.cause));
                    if let Some(reply) = self.waiting.remove(&waiter) {
                        let _asker_gone = reply.send(Err(LeaseError::refused(refusal, cause)));
                    }
                }
                Effect::Close { .. } => self.close(),
                Effect::Ping { generation } => self.ping(generation),
            }
        }
        if status::update(&self.statuses, self.machine.phase(), self.last_failure.as_ref()) {
            self.surroundings.pulse.send_replace(());
        }
    }

    fn grant(&mut self, waiter: Waiter) {
        let Some(reply) = self.waiting.remove(&waiter) else { return };
        let lease = match self.open() {
            None => Err(LeaseError::Disconnected),
            Some(open) => open.lease().ok_or_else(|| match open.connection.exited() {
                Some(exited) => LeaseError::Dial(Arc::new(exited)),
                None => LeaseError::Disconnected,
            }),
        };
        // If the caller is gone, the lease is dropped and thereby released.
        let _caller_gone = reply.send(lease);
    }

    fn close(&mut self) {
        self.dialler.cancel();
        if let Some(open) = self.open() {
            open.door.shut();
            open.connection.stop.cancel();
        }
    }

    fn dial(&mut self, generation: Generation) {
        lifecycle_log::connecting(&self.server, &self.recipe);
        let (dial, run) = self.dialler.start(&self.server, &self.recipe, &self.surroundings);
        self.work.spawn(async move { Done::Dialled { generation, dialled: dial.await } });
        self.work.spawn(async move { Done::Ended { generation, reason: run.await } });
    }

    fn ping(&mut self, generation: Generation) {
        let Some(open) = self.open() else { return };
        self.work.spawn(async move {
            let alive = open.connection.answers_ping().await;
            Done::Pinged { generation, alive }
        });
    }

    /// Requests all lists of the server. The caller has already marked the relisting as running in
    /// `relisting`.
    fn walk(&mut self) {
        let Some(open) = self.open() else { return self.relisting.stop() };
        self.refreshes.walk_begins();
        let generation = self.machine.generation();
        self.work.spawn(async move {
            let query = opening::list_query(&open.connection, &open.recipe);
            let outcome = list::list_all(query).await;
            Done::Listed { generation, outcome }
        });
    }
}
