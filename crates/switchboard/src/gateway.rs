//! The gateway: all servers of one process, and the sessions that use them.

mod builder;
mod changes;
mod check;
mod family;
mod first_listing;
mod following;
mod guests;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use hashbrown::HashMap;
use switchboard_core::approval::Rules;
use switchboard_core::catalog::{Catalog, ResolveError, Standing};
use switchboard_core::config::layers::{Config, Origin};
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
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::auth::{Accounts, SignIn, Vault};
use crate::blueprint::{Blueprint, Facts, FirstUse, Overridden, Parts};
use crate::directory::Directory;
use crate::env::Environment;
use crate::explain;
use crate::follow::Follower;
use crate::host::Host;
use crate::log_level::LogLevels;
use crate::notices::Notices;
use crate::results::Results;
use crate::session::{Connections, Session};
use crate::upstream::{
    Lease, LeaseError, Listener, Partition, Recipe, SessionId, Surroundings, Transport, Upstream,
    UpstreamKey, Voice,
};

pub use builder::GatewayBuilder;
pub use changes::Changes;
pub use check::CheckedServer;
use family::Family;
use guests::{AllGuests, Guests};

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
    accounts: Arc<Accounts>,
    dials: Arc<Semaphore>,
    log_levels: LogLevels,
    notices: Notices,
    /// Beats when the state of some server changed.
    pulse: watch::Sender<()>,
    /// When servers that were never listed were last connected for that, in the background.
    first_listing: Mutex<Option<Instant>>,
    /// Set once the files of the configuration are followed.
    follower: OnceLock<Follower>,
    /// The gateways for clients with other capabilities.
    family: Mutex<Family>,
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
    /// A place because of which it is not known what the user denies.
    unread_rules: Option<Origin>,
    /// They stay when the configuration changes.
    guests: AllGuests,
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

impl Gateway {
    /// Begins a gateway without servers.
    pub fn builder(environment: Environment) -> GatewayBuilder {
        GatewayBuilder::new(environment)
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
        self.apply_to_family(config, &notices);
        self.apply_alone(config, notices);
    }

    fn apply_alone(&self, config: &Config, notices: FileNotices) {
        let Parts { shelves, reserved, facts, recipes, settings, limits } =
            self.shared.blueprint.parts(config);
        let unread_rules = config.unread_rules.clone();
        let plans = recipes
            .iter()
            .map(|(server, recipe, _)| (server.clone(), Arc::clone(&recipe.plan)))
            .collect();
        self.shared.roster.send_modify(|roster| {
            let members = self.renew(&roster.members, recipes);
            let guests = roster.guests.clone();
            *roster = Arc::new(Roster {
                members,
                facts,
                settings,
                limits,
                notices,
                unread_rules,
                guests,
            });
        });
        self.shared.directory.replace(shelves, reserved, plans);
    }

    /// Writes what is worth keeping, then stops every server, all at once.
    pub async fn shutdown(&self) {
        self.shared.closing.cancel();
        let all: Vec<Gateway> = self.siblings().into_iter().chain([self.clone()]).collect();
        let stopping: JoinSet<()> =
            all.into_iter().map(|gateway| async move { gateway.stop_servers().await }).collect();
        stopping.join_all().await;
        self.shared.tasks.close();
        if tokio::time::timeout(SHUTDOWN, self.shared.tasks.wait()).await.is_err() {
            tracing::warn!("some servers did not stop in time");
        }
        self.shared.blueprint.spawner.close().await;
    }

    async fn stop_servers(&self) {
        if tokio::time::timeout(FLUSH, self.shared.directory.flush()).await.is_err() {
            tracing::warn!("some listings could not be kept in time");
        }
        let roster = self.roster();
        let guests = roster.guests.values().flat_map(Guests::upstreams);
        let stopping: JoinSet<()> = roster
            .members
            .values()
            .map(|member| &member.upstream)
            .chain(guests)
            .cloned()
            .map(|upstream| async move { upstream.shutdown().await })
            .collect();
        stopping.join_all().await;
    }

    /// The secrets of this user, kept as the settings want it.
    pub(crate) fn vault(&self) -> Vault {
        self.shared.blueprint.vault.storing(self.roster().settings.oauth_credential_store)
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.shared.blueprint.environment
    }

    pub(crate) fn directory(&self) -> &Directory {
        &self.shared.directory
    }

    pub(crate) fn log_levels(&self) -> &LogLevels {
        &self.shared.log_levels
    }

    pub(crate) fn notices(&self) -> &Notices {
        &self.shared.notices
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

    /// Runs beside the servers, until it is done or the gateway goes.
    pub(crate) fn run_beside(&self, work: impl Future<Output = ()> + Send + 'static) {
        let closing = self.shared.closing.clone();
        self.shared.tasks.spawn(async move { closing.run_until_cancelled(work).await });
    }

    /// The sign-in to a server at a URL.
    pub async fn sign_in(&self, server: &ServerName) -> Result<SignIn, Failure> {
        let roster = self.roster();
        roster.shared_upstream(server)?;
        let recipe = roster.members.get(&shared_key(server)).map(|member| &member.recipe.transport);
        let Some(Transport::Remote(remote)) = recipe else {
            return Err(explain::no_sign_in(server));
        };
        let spawner = &self.shared.blueprint.spawner;
        let sign_in = remote.sign_in(spawner, &self.shared.accounts).await;
        let sign_in =
            sign_in.map_err(|error| explain::lease(LeaseError::Dial(Arc::new(error)), server))?;
        sign_in.ok_or_else(|| explain::no_sign_in(server))
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
        if let Some(guest) = self.guest(server, listener.session) {
            return Ok(guest.upstream);
        }
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
        if let Some(guest) = self.guest(server, listener.session) {
            return Ok(guest.upstream);
        }
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
        self.live(session, |partition| partition == Partition::Session(session))
    }

    /// The live connections that a session has to itself or shares.
    pub(crate) fn connected(&self, session: SessionId) -> Vec<Lease> {
        self.live(session, |partition| match partition {
            Partition::Shared => true,
            Partition::Session(owner) => owner == session,
        })
    }

    /// With the guests of the session, which are nobody else's.
    fn live(&self, session: SessionId, which: impl Fn(Partition) -> bool) -> Vec<Lease> {
        let roster = self.roster();
        let chosen = roster.members.iter().filter(|(key, _)| which(key.partition));
        let guests = roster.guests.get(&session).into_iter().flat_map(Guests::upstreams);
        let upstreams = chosen.map(|(_, member)| &member.upstream).chain(guests);
        upstreams.filter_map(Upstream::lease_if_up).collect()
    }

    /// Connections that were a session's alone are closed once nobody uses them.
    pub(crate) fn end_session(&self, session: SessionId) {
        self.shared.log_levels.forget(session);
        self.shared.notices.forget(session);
        let theirs = |key: &UpstreamKey| key.partition == Partition::Session(session);
        let roster = self.roster();
        if !roster.members.keys().any(theirs) && !roster.guests.contains_key(&session) {
            return;
        }
        drop(roster);
        self.shared.roster.send_modify(|roster| {
            let roster = Arc::make_mut(roster);
            let guests = roster.guests.remove(&session);
            guests.iter().flat_map(Guests::upstreams).for_each(|guest| drop(guest.retire()));
            roster.members.retain(|key, member| {
                let stays = !theirs(key);
                if !stays {
                    member.upstream.retire();
                }
                stays
            });
        });
    }

    pub(crate) fn approval_rules(&self, server: &ServerName, session: SessionId) -> Arc<Rules> {
        if let Some(rules) = self.guest_rules(server, session) {
            return rules;
        }
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
            transport: None,
            account: None,
        })
    }

    pub(crate) fn file_notices(&self) -> FileNotices {
        self.roster().notices.clone()
    }

    /// Goes on with the configuration that there is, and says why.
    pub(crate) fn keep(&self, stale: Vec<String>) {
        for gateway in self.siblings() {
            gateway.keep(stale.clone());
        }
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
        let surroundings = self.surroundings(predecessor.map(Upstream::retire), owner);
        let upstream = Upstream::start(server, Arc::clone(&recipe), policy, surroundings);
        Member { upstream, recipe, policy }
    }

    /// What an upstream needs to live; `after` is the end of the one whose place it takes.
    fn surroundings(
        &self,
        after: Option<CancellationToken>,
        owner: Option<Listener>,
    ) -> Surroundings {
        Surroundings {
            directory: self.shared.directory.clone(),
            offered: self.shared.blueprint.offered.clone(),
            log_levels: self.shared.log_levels.clone(),
            notices: self.shared.notices.clone(),
            pulse: self.shared.pulse.clone(),
            spawner: Arc::clone(&self.shared.blueprint.spawner),
            accounts: Arc::clone(&self.shared.accounts),
            dials: Arc::clone(&self.shared.dials),
            tasks: self.shared.tasks.clone(),
            closing: self.shared.closing.clone(),
            after,
            owner,
        }
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
