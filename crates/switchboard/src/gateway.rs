//! The gateway: all servers of one process, and the sessions that use them.

mod builder;
mod changes;
mod family;
mod first_listing;
mod following;
mod guests;
mod roster;
mod sessions;
mod upstreams;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use switchboard_core::approval::Rules;
use switchboard_core::catalog::{Catalog, Standing};
use switchboard_core::config::layers::Config;
use switchboard_core::config::server::ServerEntry;
use switchboard_core::config::settings::Settings;
use switchboard_core::failure::Failure;
use switchboard_core::name::ServerName;
use switchboard_core::reply::TrustLevel;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::auth::Vault;
use crate::blueprint::{self, Blueprint, Facts, Parts};
use crate::directory::Directory;
use crate::env::Environment;
use crate::explain;
use crate::follow::Follower;
use crate::log_level::LogLevels;
use crate::notices::Notices;
use crate::upstream::{SessionId, Surroundings};

pub use builder::GatewayBuilder;
pub use changes::Changes;
use family::Family;
pub use first_listing::CheckedServer;
use guests::Guests;
pub(crate) use roster::FileNotices;
use roster::Roster;

/// The maximum number of concurrent dials, over all servers.
const CONCURRENT_DIALS: usize = 16;

/// The timeout for writing the cache before servers are stopped.
const FLUSH: Duration = Duration::from_secs(2);

/// How long a shutdown waits for the servers to stop.
const SHUTDOWN: Duration = Duration::from_secs(6);

/// All servers of this process; cheap to clone.
///
/// ```
/// use switchboard::load::{self, LoadOptions};
/// use switchboard::paths::Paths;
/// use switchboard::{Environment, Gateway, Headless};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let environment = Environment::made_of([("SWITCHBOARD_HOME", "/nowhere")], "/");
/// let options = LoadOptions { config: None, piped: None, project: "/".into() };
/// let loaded = load::load(&environment, &Paths::of(&environment), &options)?;
///
/// let gateway = Gateway::builder(environment).config(loaded.config).demo_if_empty().build();
/// let overview = gateway.session(Headless).overview();
/// assert_eq!(overview.servers.len(), 1);
/// gateway.shutdown().await;
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<GatewayState>,
}

struct GatewayState {
    blueprint: Blueprint,
    /// The shared services for upstreams that do not belong to one session.
    surroundings: Surroundings,
    /// The servers of the current configuration; replaced as a whole, never changed in place.
    roster: watch::Sender<Arc<Roster>>,
    /// When the last background listing of unlisted servers began.
    first_listing: Mutex<Option<Instant>>,
    /// The task that follows the configuration files, once it is started.
    follower: OnceLock<Follower>,
    /// The gateways for clients with other capabilities. The mutex is never locked across an
    /// `await`.
    family: Mutex<Family>,
    /// The number of sessions opened so far.
    sessions: AtomicU64,
}

impl Drop for GatewayState {
    fn drop(&mut self) {
        self.surroundings.closing.cancel();
    }
}

/// A weak reference to a gateway, for tasks that must not keep it alive.
pub(crate) struct WeakGateway {
    shared: Weak<GatewayState>,
}

impl WeakGateway {
    pub(crate) fn upgrade(&self) -> Option<Gateway> {
        self.shared.upgrade().map(|shared| Gateway { shared })
    }
}

impl Gateway {
    /// A builder for a gateway without servers.
    pub fn builder(environment: Environment) -> GatewayBuilder {
        GatewayBuilder::new(environment)
    }

    /// The listings of all servers, as far as they are known now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.shared.surroundings.directory.catalog()
    }

    /// The server of this name, if it may be used.
    pub fn usable(&self, server: &str) -> Result<ServerName, Failure> {
        self.catalog().active_server(server).map_err(explain::resolve)
    }

    /// A receiver of all changes of the catalog.
    pub fn watch(&self) -> watch::Receiver<Arc<Catalog>> {
        self.shared.surroundings.directory.watch()
    }

    /// The settings of the current configuration.
    pub fn settings(&self) -> Settings {
        self.roster().settings.clone()
    }

    /// Applies another configuration. Servers with an unchanged recipe stay connected. Changed
    /// servers are restarted and removed ones stopped, both after their calls in flight.
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
            let start = |server, recipe, policy, before: Option<&_>| {
                self.start_member(server, Arc::new(recipe), policy, before, None)
            };
            let (members, ended) = Roster::renew(&roster.members, recipes, start);
            for upstream in ended {
                upstream.retire();
            }
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
        self.shared.surroundings.directory.replace(shelves, reserved, plans);
    }

    /// Writes the cache, then stops all servers concurrently.
    pub async fn shutdown(&self) {
        self.shared.surroundings.closing.cancel();
        let all: Vec<Gateway> = self.siblings().into_iter().chain([self.clone()]).collect();
        let stopping: JoinSet<()> =
            all.into_iter().map(|gateway| async move { gateway.stop_servers().await }).collect();
        stopping.join_all().await;
        self.shared.surroundings.tasks.close();
        if tokio::time::timeout(SHUTDOWN, self.shared.surroundings.tasks.wait()).await.is_err() {
            tracing::warn!("some servers did not stop in time");
        }
        self.shared.blueprint.spawner.close().await;
    }

    async fn stop_servers(&self) {
        if tokio::time::timeout(FLUSH, self.shared.surroundings.directory.flush()).await.is_err() {
            tracing::warn!("some listings could not be stored in time");
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

    /// The vault of this user, with the storage that the settings choose.
    pub(crate) fn vault(&self) -> Vault {
        self.shared.blueprint.vault.storing(self.roster().settings.oauth_credential_store)
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.shared.blueprint.environment
    }

    pub(crate) fn directory(&self) -> &Directory {
        &self.shared.surroundings.directory
    }

    pub(crate) fn log_levels(&self) -> &LogLevels {
        &self.shared.surroundings.log_levels
    }

    pub(crate) fn notices(&self) -> &Notices {
        &self.shared.surroundings.notices
    }

    /// Runs a task in the background, until it completes, its handle is dropped, or the gateway
    /// closes.
    pub(crate) fn beside(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> AbortOnDropHandle<()> {
        AbortOnDropHandle::new(self.run_beside(work))
    }

    /// Runs a task in the background, until it completes or the gateway closes.
    pub(crate) fn run_beside(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let closing = self.shared.surroundings.closing.clone();
        self.shared.surroundings.tasks.spawn(async move {
            closing.run_until_cancelled(work).await;
        })
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
        roster.facts.get(server).cloned().unwrap_or_else(|| {
            let known = (Standing::Active, TrustLevel::User);
            blueprint::facts(&ServerEntry::default(), &roster.settings, known)
        })
    }

    pub(crate) fn file_notices(&self) -> FileNotices {
        self.roster().notices.clone()
    }

    /// Keeps the current configuration in effect, and records which files are stale.
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
}

#[cfg(test)]
mod tests;
