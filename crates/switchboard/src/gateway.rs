//! The gateway: all servers of one process, and the sessions that use them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hashbrown::HashMap;
use switchboard_core::approval::Rules;
use switchboard_core::catalog::{Catalog, ResolveError, Standing};
use switchboard_core::config::layers::Config;
use switchboard_core::config::server::ServerEntry;
use switchboard_core::config::settings::Settings;
use switchboard_core::config::values::Lifecycle;
use switchboard_core::content::guard::Limits;
use switchboard_core::failure::Failure;
use switchboard_core::lifecycle::Policy;
use switchboard_core::name::ServerName;
use switchboard_core::reply::TrustLevel;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::blueprint::{Blueprint, Facts, FirstUse, Overridden, Parts, Starts, WhenEmpty};
use crate::demo::Demo;
use crate::dial::http::Clients;
use crate::dial::in_process::InProcess;
use crate::dial::spawn::{self, Spawner};
use crate::directory::Directory;
use crate::env::Environment;
use crate::explain;
use crate::follow;
use crate::host::Host;
use crate::last_good::LastGood;
use crate::load::LoadOptions;
use crate::log_level::LogLevels;
use crate::paths::Paths;
use crate::results::Results;
use crate::session::{Connections, Session};
use crate::upstream::{
    Lease, Listener, Partition, Recipe, SessionId, Surroundings, Upstream, UpstreamKey, Voice,
};

/// Connects at the same time, over all servers.
const CONCURRENT_DIALS: usize = 16;

/// How long the cache may take to be written before servers are stopped all the same.
const FLUSH: Duration = Duration::from_secs(2);

/// How long a large result can be read on by clients that are not told apart.
const COMMON_RESULTS: Duration = Duration::from_secs(60 * 60);

/// How long a shutdown may take before it is cut short.
const SHUTDOWN: Duration = Duration::from_secs(6);

/// All servers of this process; cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<Shared>,
}

struct Shared {
    blueprint: Blueprint,
    directory: Directory,
    /// What the present configuration comes to; replaced as a whole, never changed.
    roster: watch::Sender<Arc<Roster>>,
    clients: Arc<Clients>,
    dials: Arc<Semaphore>,
    log_levels: LogLevels,
    tasks: TaskTracker,
    /// How many sessions there have been.
    sessions: AtomicU64,
    /// Ends what runs beside the present servers.
    closing: CancellationToken,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

/// A gateway that may be gone.
pub(crate) struct WeakGateway {
    shared: Weak<Shared>,
}

impl WeakGateway {
    pub(crate) fn upgrade(&self) -> Option<Gateway> {
        self.shared.upgrade().map(|shared| Gateway { shared })
    }
}

/// The servers of one configuration, and what it says about them.
#[derive(Clone)]
struct Roster {
    members: HashMap<UpstreamKey, Member>,
    facts: HashMap<ServerName, Facts>,
    settings: Settings,
    limits: Limits,
    notices: FileNotices,
}

/// Places in configuration files that the user should look at.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileNotices {
    /// The file does not read; its last good version holds.
    pub(crate) stale: Vec<String>,
    /// The file reads, and what stands there does not count.
    pub(crate) mistakes: Vec<String>,
}

/// A server that may be used. Its actor lives by one recipe and one policy: others mean another actor.
#[derive(Clone)]
struct Member {
    upstream: Upstream,
    recipe: Arc<Recipe>,
    policy: Policy,
}

/// Gathers what a gateway is made of.
pub struct GatewayBuilder {
    blueprint: Blueprint,
    config: Config,
}

impl Gateway {
    /// Begins a gateway without servers.
    pub fn builder(environment: Environment) -> GatewayBuilder {
        let paths = Paths::of(&environment);
        let blueprint = Blueprint {
            spawner: spawn::at_hand(&paths.running()),
            paths,
            environment,
            in_process: BTreeMap::new(),
            limits: None,
            starts: Starts::AsConfigured,
            when_empty: WhenEmpty::Nothing,
        };
        GatewayBuilder { blueprint, config: Config::default() }
    }

    /// Opens a conversation; `host` answers where the user has to be asked.
    pub fn session(&self, host: impl Host + 'static) -> Session {
        self.open_session(host, Connections::Shared)
    }

    /// The same with connections that no other session uses.
    pub fn private_session(&self, host: impl Host + 'static) -> Session {
        self.open_session(host, Connections::Own)
    }

    /// One for clients that are not told apart: each of their requests stands for itself. What one
    /// of them was told of a large result is as good as a key to it, for a while.
    pub fn common_session(&self, host: impl Host + 'static) -> Session {
        let results = Results::kept_for(COMMON_RESULTS, self.results_place(), self.roster().limits);
        self.session_with(host, Connections::Shared, results)
    }

    fn open_session(&self, host: impl Host + 'static, connections: Connections) -> Session {
        let results = Results::new(self.results_place(), self.roster().limits);
        self.session_with(host, connections, results)
    }

    fn results_place(&self) -> PathBuf {
        self.shared.blueprint.paths.results()
    }

    fn session_with(
        &self,
        host: impl Host + 'static,
        connections: Connections,
        results: Results,
    ) -> Session {
        let session = SessionId(self.shared.sessions.fetch_add(1, Ordering::Relaxed));
        let listener = Listener { session, voice: Voice::Client, host: Arc::new(host) };
        Session::new(self.clone(), listener, results, connections)
    }

    /// What all servers offer, as far as it is known now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.shared.directory.catalog()
    }

    /// The server that is meant, if it may be used.
    pub fn usable(&self, server: &str) -> Result<ServerName, Failure> {
        self.catalog().active_server(server).map_err(explain::resolve)
    }

    /// Tells of every change of the catalog.
    pub fn watch(&self) -> watch::Receiver<Arc<Catalog>> {
        self.shared.directory.watch()
    }

    pub fn settings(&self) -> Settings {
        self.roster().settings.clone()
    }

    /// Takes another configuration. Servers that are reached in the same way go on as they are;
    /// changed ones start anew and removed ones stop, both after the calls that are in flight.
    pub fn apply(&self, config: &Config) {
        self.apply_with(config, FileNotices::default());
    }

    pub(crate) fn apply_with(&self, config: &Config, notices: FileNotices) {
        let Parts { shelves, facts, recipes, settings, limits } =
            self.shared.blueprint.parts(config);
        let plans = recipes
            .iter()
            .map(|(server, recipe, _)| (server.clone(), Arc::clone(&recipe.plan)))
            .collect();
        self.shared.roster.send_modify(|roster| {
            let members = self.renew(&roster.members, recipes);
            *roster = Arc::new(Roster { members, facts, settings, limits, notices });
        });
        self.shared.directory.replace(shelves, plans);
    }

    /// Follows the files of a configuration from now on: what changes in them, and in what the user
    /// approved, is applied as by [`Gateway::apply`]. A file that does not read keeps its last good
    /// version.
    pub fn follow(&self, options: LoadOptions, last_good: LastGood) {
        let gateway = WeakGateway { shared: Arc::downgrade(&self.shared) };
        let following = follow::follow(gateway, options, last_good);
        let closing = self.shared.closing.clone();
        self.shared.tasks.spawn(async move { closing.run_until_cancelled(following).await });
    }

    /// Connects every usable server that was never listed, side by side, and lists it. `report`
    /// hears each server that is done, and how many are left.
    pub async fn list_missing(&self, mut report: impl FnMut(&ServerName, Option<&Failure>, usize)) {
        let unlisted = self.catalog().not_listed_yet().into_iter();
        let by_name = |server: &ServerName| self.facts(server).first_use == FirstUse::ByName;
        let mut listings = self.connect_each(unlisted.filter(|server| !by_name(server)));
        while let Some(done) = listings.join_next().await {
            if let Ok((server, outcome)) = done {
                report(&server, outcome.as_ref().err(), listings.len());
            }
        }
    }

    /// Does the same beside everything else, unless the settings forbid it.
    pub fn list_missing_in_background(&self) {
        if self.roster().settings.first_listing {
            let gateway = self.clone();
            self.shared.tasks.spawn(async move { gateway.list_missing(|_, _, _| {}).await });
        }
    }

    /// How it goes with the servers that a list of servers turns on; those that may not be used
    /// come with the reason.
    pub async fn turned_on(&self) -> Vec<(ServerName, Result<(), Failure>)> {
        let roster = self.roster();
        let on = roster.facts.iter().filter(|(_, facts)| facts.first_use == FirstUse::Start);
        let connecting = self.connect_each(on.map(|(server, _)| server.clone()));
        let mut outcomes = connecting.join_all().await;
        outcomes.sort_by(|(one, _), (other, _)| one.cmp(other));
        outcomes
    }

    fn connect_each(
        &self,
        servers: impl Iterator<Item = ServerName>,
    ) -> JoinSet<(ServerName, Result<(), Failure>)> {
        let connect = |server: ServerName| {
            let gateway = self.clone();
            async move {
                let connected = gateway.lease_shared(&server).await.map(|_released_at_once| ());
                (server, connected)
            }
        };
        servers.map(connect).collect()
    }

    /// Writes what is worth keeping, then stops every server, all at once.
    pub async fn shutdown(&self) {
        self.shared.closing.cancel();
        if tokio::time::timeout(FLUSH, self.shared.directory.flush()).await.is_err() {
            tracing::warn!("some listings could not be kept in time");
        }
        let stopping: JoinSet<()> = self
            .roster()
            .members
            .values()
            .map(|member| member.upstream.clone())
            .map(|upstream| async move { upstream.shutdown().await })
            .collect();
        stopping.join_all().await;
        self.shared.tasks.close();
        if tokio::time::timeout(SHUTDOWN, self.shared.tasks.wait()).await.is_err() {
            tracing::warn!("some servers did not stop in time");
        }
        self.shared.blueprint.spawner.close().await;
    }

    pub(crate) fn directory(&self) -> &Directory {
        &self.shared.directory
    }

    pub(crate) fn log_levels(&self) -> &LogLevels {
        &self.shared.log_levels
    }

    /// Runs beside the servers, until it is done, dropped, or the gateway goes.
    pub(crate) fn beside(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> AbortOnDropHandle<()> {
        let closing = self.shared.closing.clone();
        let work = async move {
            closing.run_until_cancelled(work).await;
        };
        AbortOnDropHandle::new(self.shared.tasks.spawn(work))
    }

    /// A connection on behalf of nobody in particular.
    async fn lease_shared(&self, server: &ServerName) -> Result<Lease, Failure> {
        let upstream = self.roster().shared_upstream(server).cloned()?;
        upstream.lease_in_time().await.map_err(|error| explain::lease(error, server))
    }

    /// The connection that a session uses: its own, if the server asks something of its client.
    pub(crate) fn upstream(
        &self,
        server: &ServerName,
        listener: &Listener,
    ) -> Result<Upstream, Failure> {
        if self.shared.directory.asks_client(server) {
            return self.own_upstream(server, listener);
        }
        self.roster().shared_upstream(server).cloned()
    }

    /// A connection that one session has to itself, made on first use.
    pub(crate) fn own_upstream(
        &self,
        server: &ServerName,
        listener: &Listener,
    ) -> Result<Upstream, Failure> {
        let partition = Partition::Session(listener.session);
        let key = UpstreamKey { server: server.clone(), partition };
        let roster = self.roster();
        if let Some(own) = roster.members.get(&key) {
            return Ok(own.upstream.clone());
        }
        roster.shared_upstream(server)?;
        let mut made = Err(explain::unknown_server(server));
        self.shared.roster.send_modify(|roster| {
            let Some(shared) = roster.members.get(&shared_key(server)).cloned() else { return };
            if self.shared.directory.asks_client(server) {
                // What all could share has done its work: it showed what the server has.
                shared.upstream.rest();
            }
            let members = &mut Arc::make_mut(roster).members;
            let member = members.entry(key).or_insert_with(|| {
                let policy = shared.policy.of_a_session();
                self.member(server.clone(), shared.recipe, policy, None, Some(listener.clone()))
            });
            made = Ok(member.upstream.clone());
        });
        made
    }

    /// The live connections that a session has to itself.
    pub(crate) fn own_connections(&self, session: SessionId) -> Vec<Lease> {
        self.live(|partition| partition == Partition::Session(session))
    }

    /// The live connections that a session has to itself or shares.
    pub(crate) fn connected(&self, session: SessionId) -> Vec<Lease> {
        self.live(|partition| match partition {
            Partition::Shared => true,
            Partition::Session(owner) => owner == session,
        })
    }

    fn live(&self, which: impl Fn(Partition) -> bool) -> Vec<Lease> {
        let roster = self.roster();
        let chosen = roster.members.iter().filter(|(key, _)| which(key.partition));
        chosen.filter_map(|(_, member)| member.upstream.lease_if_up()).collect()
    }

    /// Connections that were a session's alone are closed once nobody uses them.
    pub(crate) fn end_session(&self, session: SessionId) {
        self.shared.log_levels.forget(session);
        let theirs = |key: &UpstreamKey| key.partition == Partition::Session(session);
        if !self.roster().members.keys().any(theirs) {
            return;
        }
        self.shared.roster.send_modify(|roster| {
            Arc::make_mut(roster).members.retain(|key, member| {
                let stays = !theirs(key);
                if !stays {
                    member.upstream.retire();
                }
                stays
            });
        });
    }

    pub(crate) fn approval_rules(&self, server: &ServerName) -> Arc<Rules> {
        let known = self.roster().facts.get(server).map(|facts| Arc::clone(&facts.rules));
        known.unwrap_or_else(|| self.facts(server).rules)
    }

    pub(crate) fn facts(&self, server: &ServerName) -> Facts {
        let roster = self.roster();
        roster.facts.get(server).cloned().unwrap_or_else(|| Facts {
            lifecycle: Lifecycle::Lazy,
            standing: Standing::Active,
            trust: TrustLevel::User,
            description: None,
            overridden: Overridden::No,
            rules: Arc::new(Rules::new(&ServerEntry::default(), &roster.settings)),
            first_use: FirstUse::Anything,
        })
    }

    pub(crate) fn file_notices(&self) -> FileNotices {
        self.roster().notices.clone()
    }

    /// Goes on with the configuration that there is, and says why.
    pub(crate) fn keep(&self, stale: Vec<String>) {
        self.shared.roster.send_modify(|roster| Arc::make_mut(roster).notices.stale = stale);
    }

    pub(crate) fn blueprint(&self) -> &Blueprint {
        &self.shared.blueprint
    }

    fn roster(&self) -> Arc<Roster> {
        Arc::clone(&self.shared.roster.borrow())
    }

    /// The members for `recipes`: those that need no other recipe stay, all others of `before` go.
    fn renew(
        &self,
        before: &HashMap<UpstreamKey, Member>,
        recipes: Vec<(ServerName, Recipe, Policy)>,
    ) -> HashMap<UpstreamKey, Member> {
        let mut members = HashMap::new();
        for (server, recipe, policy) in recipes {
            let key = shared_key(&server);
            let old = before.get(&key);
            let member = match old.filter(|old| *old.recipe == recipe && old.policy == policy) {
                Some(same) => same.clone(),
                None => {
                    let old = old.map(|old| &old.upstream);
                    self.member(server, Arc::new(recipe), policy, old, None)
                }
            };
            members.insert(key, member);
        }
        for (key, old) in before.iter().filter(|(key, _)| key.partition != Partition::Shared) {
            let shared = members.get(&shared_key(&key.server));
            if shared.is_some_and(|shared| shared.recipe == old.recipe) {
                members.insert(key.clone(), old.clone());
            }
        }
        for (key, old) in before {
            if !members.contains_key(key) {
                old.upstream.retire();
            }
        }
        members
    }

    fn member(
        &self,
        server: ServerName,
        recipe: Arc<Recipe>,
        policy: Policy,
        predecessor: Option<&Upstream>,
        owner: Option<Listener>,
    ) -> Member {
        let surroundings = Surroundings {
            directory: self.shared.directory.clone(),
            log_levels: self.shared.log_levels.clone(),
            spawner: Arc::clone(&self.shared.blueprint.spawner),
            clients: Arc::clone(&self.shared.clients),
            dials: Arc::clone(&self.shared.dials),
            tasks: self.shared.tasks.clone(),
            closing: self.shared.closing.clone(),
            after: predecessor.map(Upstream::retire),
            owner,
        };
        let upstream = Upstream::start(server, Arc::clone(&recipe), policy, surroundings);
        Member { upstream, recipe, policy }
    }
}

fn shared_key(server: &ServerName) -> UpstreamKey {
    UpstreamKey { server: server.clone(), partition: Partition::Shared }
}

impl Roster {
    fn shared_upstream(&self, server: &ServerName) -> Result<&Upstream, Failure> {
        let member = self.members.get(&shared_key(server)).map(|member| &member.upstream);
        member.ok_or_else(|| match self.facts.get(server).map(|facts| facts.standing) {
            Some(Standing::Pending(cause)) => {
                explain::resolve(ResolveError::Pending { server: server.clone(), cause })
            }
            Some(Standing::Disabled) => explain::resolve(ResolveError::Disabled(server.clone())),
            Some(Standing::Active) | None => explain::unknown_server(server),
        })
    }
}

impl GatewayBuilder {
    /// The servers and settings of a configuration.
    #[must_use]
    pub fn config(mut self, config: Config) -> GatewayBuilder {
        self.config = config;
        self
    }

    /// A server inside this process. If the configuration has one of this name, only its transport
    /// is replaced: time-outs, filters and the like hold as configured.
    #[must_use]
    pub fn server(mut self, name: &str, server: impl InProcess) -> GatewayBuilder {
        self.blueprint.in_process.insert(name.to_owned(), Arc::new(server));
        self
    }

    /// The built-in server to try things with.
    #[must_use]
    pub fn demo(self) -> GatewayBuilder {
        self.server("demo", Demo)
    }

    /// The built-in server, as long as nothing else is configured.
    #[must_use]
    pub fn demo_if_empty(mut self) -> GatewayBuilder {
        self.blueprint.when_empty = WhenEmpty::Demo;
        self
    }

    /// How programs are started, instead of with a reaper or in process groups.
    #[must_use]
    pub fn spawner(mut self, spawner: impl Spawner + 'static) -> GatewayBuilder {
        self.blueprint.spawner = Arc::new(spawner);
        self
    }

    /// Results as whole as they are, for a face that prints to a person.
    #[must_use]
    pub fn without_output_guard(mut self) -> GatewayBuilder {
        self.blueprint.limits = Some(Limits::OFF);
        self
    }

    /// Every server starts when it is first used, whatever its lifecycle says, for a face that
    /// answers one question and ends.
    #[must_use]
    pub fn on_demand(mut self) -> GatewayBuilder {
        self.blueprint.starts = Starts::OnDemand;
        self
    }

    /// Starts the gateway, and with it the servers whose lifecycle asks for that. Needs a tokio runtime.
    pub fn build(self) -> Gateway {
        let nothing = Roster {
            members: HashMap::new(),
            facts: HashMap::new(),
            settings: self.config.settings.clone(),
            limits: Limits::OFF,
            notices: FileNotices::default(),
        };
        let shared = Shared {
            clients: Arc::new(Clients::new(self.blueprint.environment.clone())),
            blueprint: self.blueprint,
            directory: Directory::empty(),
            roster: watch::Sender::new(Arc::new(nothing)),
            dials: Arc::new(Semaphore::new(CONCURRENT_DIALS)),
            log_levels: LogLevels::default(),
            tasks: TaskTracker::new(),
            sessions: AtomicU64::new(0),
            closing: CancellationToken::new(),
        };
        let gateway = Gateway { shared: Arc::new(shared) };
        gateway.apply(&self.config);
        gateway
    }
}
