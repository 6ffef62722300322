//! The owner of one upstream: everything that changes about a server changes here.
//!
//! The loop awaits nothing but its `select!`. Dialling, listing and pinging run as tasks and come
//! back as inputs; what to do about them is decided by `lifecycle::Machine`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use switchboard_core::catalog::RawListing;
use switchboard_core::lifecycle::{
    Effect, Generation, Input, Machine, Phase, Policy, Urgency, Waiter,
};
use switchboard_core::name::ServerName;
use switchboard_wire::handshake::Greeting;
use switchboard_wire::modern;
use switchboard_wire::peer::Patience;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connection::{self, Connection};
use super::door::Door;
use super::incoming::News;
use super::lease::{Lease, Open};
use super::lifecycle_log;
use super::list::{self, Bounds};
use super::opening::{self, Dialled};
use super::recipe::Recipe;
use super::relisting::{Relisting, sleep_until};
use super::{
    Command, DialError, ExitReason, LastFailure, LeaseError, Stage, State, Status, Surroundings,
};

/// News that may wait; of more than one kind that waits, each stands for any number.
const WAITING_NEWS: usize = 8;

const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// What a task of the actor brings back.
enum Done {
    Dialled {
        generation: Generation,
        outcome: Result<(Connection, RawListing), DialError>,
        taught: Option<Greeting>,
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
    /// Nobody uses the connection of a retired server any more.
    Drained,
}

/// Whether the server is still the one that its name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Service {
    Active,
    /// It ends with the calls that are in flight.
    Retired,
}

pub(super) struct Actor {
    server: ServerName,
    recipe: Arc<Recipe>,
    machine: Machine,
    service: Service,
    surroundings: Surroundings,
    publish: watch::Sender<Status>,
    began: Instant,
    /// The connection that is up; calls find it here and enter by its door.
    open: watch::Sender<Option<Arc<Open>>>,
    /// How far the present dial has come.
    stage: watch::Sender<Stage>,
    /// Ends the dial that is under way.
    dialling: Option<CancellationToken>,
    waiting: HashMap<Waiter, oneshot::Sender<Result<Lease, LeaseError>>>,
    relisting: Relisting,
    /// Somebody wants what the next dial lists to count for all.
    wanted: bool,
    /// Explicit connects that want fresh lists before they are answered.
    refreshing: Vec<oneshot::Sender<Result<Lease, LeaseError>>>,
    /// How many of `refreshing` were waiting when the current walk began.
    asked_before_walk: usize,
    next_waiter: Waiter,
    last_failure: Option<LastFailure>,
    /// The greeting that the server bears, where it did not bear another one.
    taught: Option<Greeting>,
    work: JoinSet<Done>,
    tell: mpsc::Sender<News>,
    news: mpsc::Receiver<News>,
}

impl Actor {
    pub(super) fn new(
        (server, recipe, policy): (ServerName, Arc<Recipe>, Policy),
        surroundings: Surroundings,
        (publish, open, stage): (
            watch::Sender<Status>,
            watch::Sender<Option<Arc<Open>>>,
            watch::Sender<Stage>,
        ),
    ) -> Actor {
        let (tell, news) = mpsc::channel(WAITING_NEWS);
        Actor {
            server,
            recipe,
            machine: Machine::new(policy),
            service: Service::Active,
            surroundings,
            publish,
            began: Instant::now(),
            open,
            stage,
            dialling: None,
            waiting: HashMap::new(),
            relisting: Relisting::default(),
            asked_before_walk: 0,
            wanted: false,
            refreshing: Vec::new(),
            next_waiter: 0,
            last_failure: None,
            taught: None,
            work: JoinSet::new(),
            tell,
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
                    Some(command) => self.obey(command),
                    // The handles of a retired server go before its last calls do.
                    None if retired.is_cancelled() => listening = false,
                    None => self.feed(Input::Shutdown),
                },
                Some(done) = self.work.join_next() => self.finished(done),
                Some(news) = self.news.recv() => self.heard(news),
                () = retired.cancelled(), if active => self.retire(),
                () = closing.cancelled(), if !active => self.feed(Input::Shutdown),
                () = sleep_until(wake_at), if active => self.wake(),
                () = sleep_until(self.relisting.due_at()) => if self.relisting.begin() {
                    self.walk();
                },
            }
        }
        // The connection's task closes the server; nothing of it is left when this returns.
        while let Some(done) = self.work.join_next().await {
            self.finished(done);
        }
    }

    /// Calls in flight are finished; then, or if there is nothing to finish, it is over.
    fn retire(&mut self) {
        self.service = Service::Retired;
        match self.open().filter(|_| self.machine.phase() == Phase::Up) {
            None => self.feed(Input::Shutdown),
            Some(open) => {
                open.door.shut();
                self.work.spawn(async move {
                    tokio::select! {
                        () = open.door.emptied() => {}
                        // Something else ends it first.
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

    /// What one session is offered may depend on what its client can do. For a client with other
    /// capabilities than the gateway offers, it stands for the server only where nothing better is
    /// known, or where somebody asked for it; what changes later counts for all.
    fn publish_first(&mut self, listing: RawListing) {
        let wanted = std::mem::take(&mut self.wanted);
        let known = self.surroundings.directory.has_listed(&self.server);
        if self.surroundings.offer_the_usual() || !known || wanted {
            self.publish(listing);
        }
    }

    /// Nobody can enter while the machine decides whether the server is idle.
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

    fn obey(&mut self, command: Command) {
        match command {
            Command::Acquire { urgency, reply } => self.acquire(urgency, reply),
            Command::Refresh { reply } => match (self.open(), self.machine.phase()) {
                (Some(_), Phase::Up) => {
                    self.refreshing.push(reply);
                    if self.relisting.begin() {
                        self.walk();
                    }
                }
                // A dial lists anyway.
                (_, Phase::Down | Phase::Dialling | Phase::Up | Phase::Ended) => {
                    self.wanted = true;
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
            Command::Rest => {
                let used = self.open().is_some_and(|open| open.door.shut_if_empty().held);
                if !used && self.machine.phase() == Phase::Up {
                    self.feed(Input::Disconnect);
                }
            }
            Command::Shutdown => self.feed(Input::Shutdown),
        }
    }

    fn acquire(&mut self, urgency: Urgency, reply: oneshot::Sender<Result<Lease, LeaseError>>) {
        if self.service == Service::Retired {
            // Nothing is dialled any more; the successor is where to ask.
            let _asker_gone = reply.send(Err(LeaseError::ShuttingDown));
            return;
        }
        self.notice_the_end();
        self.next_waiter += 1;
        let waiter = self.next_waiter;
        self.waiting.insert(waiter, reply);
        self.feed(Input::Acquire { waiter, urgency });
    }

    fn heard(&mut self, news: News) {
        match news {
            News::ListChanged => self.lists_changed(),
            News::AsksClient => {
                self.surroundings.directory.mark_asking(&self.server, &self.recipe.plan);
            }
        }
    }

    fn finished(&mut self, done: Result<Done, tokio::task::JoinError>) {
        // A task that was aborted, or panicked: its connection ends with it and is reported then.
        let Ok(done) = done else { return };
        let jitter = fastrand::f64();
        match done {
            Done::Dialled { generation, outcome, taught } => {
                self.taught = taught.or(self.taught);
                self.dialled(generation, outcome, jitter);
            }
            Done::Ended { generation, reason } => self.ended(generation, reason, jitter),
            Done::Pinged { generation, alive: true } => self.feed(Input::Pong { generation }),
            Done::Pinged { generation, alive: false } => {
                let busy = self.open().is_some_and(|open| open.door.usage().held);
                if self.is(Phase::Up, generation) && !busy {
                    self.failed(DialError::Unresponsive);
                    self.feed(Input::PingFailed { generation, jitter });
                }
            }
            Done::Listed { generation, outcome } => self.listed(generation, outcome),
            Done::Drained => self.feed(Input::Shutdown),
        }
    }

    fn dialled(
        &mut self,
        generation: Generation,
        outcome: Result<(Connection, RawListing), DialError>,
        jitter: f64,
    ) {
        if !self.is(Phase::Dialling, generation) {
            // Nobody waits for this one any more, and how it went is nobody's news.
            if let Ok((connection, _)) = outcome {
                connection.stop.cancel();
            }
            return;
        }
        self.dialling = None;
        // What it asked while it was listed is known before anybody uses it.
        while let Ok(news) = self.news.try_recv() {
            self.heard(news);
        }
        let error = match outcome {
            Ok((connection, mut listing)) => {
                if self.surroundings.era_of_owner().is_some() {
                    // That it can speak so does not tell what it is to others.
                    listing.era = self.surroundings.directory.era(&self.server);
                }
                let took = self.publish.borrow().connecting_for();
                lifecycle_log::connected(&self.server, &connection.hello, &listing, took);
                self.publish_first(listing);
                match connection.exited() {
                    None => {
                        self.last_failure = None;
                        // What it is stands in the directory now, unless that was not told.
                        let known = self.surroundings.directory.era(&self.server);
                        self.taught = self.taught.filter(|_| known.is_none());
                        let open = Open {
                            connection,
                            door: Door::new(self.began),
                            server: self.server.clone(),
                            recipe: Arc::clone(&self.recipe),
                            log_levels: self.surroundings.log_levels.clone(),
                            unwelcome: AtomicBool::new(false),
                        };
                        self.open.send_replace(Some(Arc::new(open)));
                        self.feed(Input::Dialled { generation });
                        return self.catch_up();
                    }
                    // It ended before it was of use to anyone.
                    Some(exited) => exited,
                }
            }
            Err(error) => error,
        };
        self.relisting.stop();
        let input = match error.needs_sign_in() {
            true => Input::NotSignedIn { generation },
            false => Input::DialFailed { generation, jitter },
        };
        self.failed(error);
        self.feed(input);
    }

    /// Lists once more if the lists changed while they were read for the first time.
    fn catch_up(&mut self) {
        if self.relisting.catch_up() {
            self.walk();
        }
    }

    fn ended(&mut self, generation: Generation, exit: ExitReason, jitter: f64) {
        if self.is(Phase::Up, generation) {
            self.lost(exit, jitter);
        } else if self.open().is_some_and(|closing| closing.connection.stop.is_cancelled()) {
            self.open.send_replace(None);
            lifecycle_log::stopped(&self.server);
        }
    }

    /// A connection whose stream has ended is lost, also while its program is still being buried.
    fn notice_the_end(&mut self) {
        let open = self.open().filter(|_| self.machine.phase() == Phase::Up);
        if let Some(closed) = open.filter(|open| open.connection.peer.is_closed()) {
            let known = closed.connection.end.known().map(|(exit, _)| exit);
            self.lost(known.unwrap_or(ExitReason::StreamClosed), fastrand::f64());
        }
    }

    fn lost(&mut self, exit: ExitReason, jitter: f64) {
        let lost = self.open.send_replace(None);
        let usage = lost.as_ref().map(|lost| lost.door.usage()).unwrap_or_default();
        let generation = self.machine.generation();
        if exit == ExitReason::Forgotten {
            return self.feed(Input::Forgotten { generation, usage, jitter });
        }
        let stderr = lost.map(|lost| lost.connection.end.last_words()).unwrap_or_default();
        self.failed(DialError::Lost { exit, stderr });
        self.feed(Input::Lost { generation, usage, jitter });
    }

    fn listed(&mut self, generation: Generation, outcome: Result<RawListing, DialError>) {
        if let Ok(listing) = outcome
            && self.is(Phase::Up, generation)
        {
            lifecycle_log::listed(&self.server, &listing);
            self.publish(listing);
        }
        let mut answered = std::mem::take(&mut self.asked_before_walk);
        if self.machine.phase() == Phase::Up {
            self.relisting.ended(Instant::now());
        } else {
            self.relisting.stop();
            answered = self.refreshing.len();
        }
        // A walk over an earlier connection may end late.
        answered = answered.min(self.refreshing.len());
        let later = self.refreshing.split_off(answered);
        for reply in std::mem::replace(&mut self.refreshing, later) {
            self.acquire(Urgency::Explicit, reply);
        }
        if !self.refreshing.is_empty() && self.relisting.begin() {
            self.walk();
        }
    }

    /// Whether `generation` is the present one and in `phase`; what belongs to another is late.
    fn is(&self, phase: Phase, generation: Generation) -> bool {
        self.machine.phase() == phase && self.machine.generation() == generation
    }

    fn failed(&mut self, error: DialError) {
        lifecycle_log::failed(&self.server, &error);
        self.surroundings.directory.failed(&self.server, &self.recipe.plan, &error);
        self.last_failure = Some(LastFailure { at: Instant::now(), cause: Arc::new(error) });
    }

    /// Lets the machine decide, then does what it says.
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
        self.announce();
    }

    fn dial(&mut self, generation: Generation) {
        lifecycle_log::connecting(&self.server, &self.recipe);
        let recipe = Arc::clone(&self.recipe);
        let means = connection::Means {
            spawner: Arc::clone(&self.surroundings.spawner),
            accounts: Arc::clone(&self.surroundings.accounts),
            tasks: self.surroundings.tasks.clone(),
            stage: self.stage.clone(),
            closing: self.surroundings.closing.clone(),
        };
        self.stage.send_replace(Stage::Starting);
        let dials = Arc::clone(&self.surroundings.dials);
        let hearing = connection::Hearing {
            server: self.server.clone(),
            news: self.tell.clone(),
            owner: self.surroundings.owner.clone(),
            notices: self.surroundings.notices.clone(),
        };
        let log_levels = self.surroundings.log_levels.clone();
        let after = self.surroundings.after.clone();
        let give_up = CancellationToken::new();
        self.dialling = Some(give_up.clone());
        let (wanted_era, taught) = (self.surroundings.era_of_owner(), self.taught);
        let Surroundings { directory, offered, .. } = &self.surroundings;
        let (directory, offered) = (directory.clone(), offered.clone());
        let (body_out, mut body_in) = mpsc::channel::<connection::Body>(1);
        self.work.spawn(async move {
            let dialled = async {
                if let Some(predecessor) = after {
                    predecessor.cancelled().await;
                }
                let capabilities = opening::capabilities(&recipe, &hearing, &offered).await;
                let known = wanted_era.or_else(|| directory.era(&hearing.server));
                let greeting = taught.unwrap_or_else(|| opening::greeting(&recipe, known));
                let _turn = dials.acquire().await;
                let how = (greeting, capabilities.as_str());
                opening::dial(&recipe, &means, hearing, &log_levels, how, body_out).await
            };
            let Dialled { outcome, taught } = tokio::select! {
                dialled = dialled => dialled,
                () = give_up.cancelled() => Dialled {
                    outcome: Err(DialError::Lost { exit: ExitReason::Stopped, stderr: Vec::new() }),
                    taught: None,
                },
            };
            Done::Dialled { generation, outcome, taught }
        });
        self.work.spawn(async move {
            // None if the dial fails before there is anything to run, two if it starts anew.
            let mut reason = ExitReason::Stopped;
            while let Some(body) = body_in.recv().await {
                reason = body.run().await;
            }
            Done::Ended { generation, reason }
        });
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
        // A caller that went away drops the lease, which ends it.
        let _caller_gone = reply.send(lease);
    }

    fn close(&mut self) {
        if let Some(dialling) = self.dialling.take() {
            dialling.cancel();
        }
        if let Some(open) = self.open() {
            open.door.shut();
            open.connection.stop.cancel();
        }
    }

    fn ping(&mut self, generation: Generation) {
        let Some(open) = self.open() else { return };
        self.work.spawn(async move {
            let patience = Patience { timeout: Some(PING_TIMEOUT), progress: None };
            let Connection { peer, meta, .. } = &open.connection;
            let answer = match meta {
                None => peer.request("ping", |_| String::new(), patience).await,
                Some(meta) => {
                    let params = format!("{{\"_meta\":{meta}}}");
                    peer.request(modern::DISCOVER, |_| params, patience).await
                }
            };
            // An error is an answer: the server lives.
            let alive = matches!(answer, Ok(_) | Err(switchboard_wire::RequestError::Refused(_)));
            Done::Pinged { generation, alive }
        });
    }

    fn lists_changed(&mut self) {
        if self.machine.phase() == Phase::Dialling {
            self.relisting.changed_meanwhile();
        } else if self.open().is_some() && self.relisting.changed(Instant::now()) {
            self.walk();
        }
    }

    /// Asks for all lists. The caller has said so to `relisting`.
    fn walk(&mut self) {
        let Some(open) = self.open() else { return self.relisting.stop() };
        self.asked_before_walk = self.refreshing.len();
        let generation = self.machine.generation();
        self.work.spawn(async move {
            let asking = opening::asking(&open.connection, &open.recipe);
            let outcome = list::list_all(asking, Bounds::of(&open.recipe)).await;
            Done::Listed { generation, outcome }
        });
    }

    fn announce(&self) {
        let state = match self.machine.phase() {
            Phase::Up => State::Connected,
            Phase::Dialling => match self.publish.borrow().state {
                connecting @ State::Connecting { .. } => connecting,
                State::Down | State::Connected | State::Unwelcome => {
                    State::Connecting { since: Instant::now() }
                }
            },
            Phase::Down | Phase::Ended => State::Down,
        };
        let last_failure = self.last_failure.clone();
        let modified = self.publish.send_if_modified(|status| {
            let changed = status.state != state
                || status.last_failure.as_ref().map(|f| f.at)
                    != last_failure.as_ref().map(|f| f.at);
            *status = Status { state, last_failure };
            changed
        });
        if modified {
            self.surroundings.pulse.send_replace(());
        }
    }
}
