//! Collects the parts of a gateway, and starts it.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use hashbrown::HashMap;
use switchboard_core::config::layers::Config;
use switchboard_core::config::settings::Settings;
use switchboard_core::config::values::{CredentialStore, Toolset};
use switchboard_core::content::guard::TextLimits;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::guests::AllGuests;
use super::{CONCURRENT_DIALS, FileNotices, Gateway, GatewayState, Roster};
use crate::auth::{Accounts, Vault};
use crate::blueprint::{Blueprint, Starts, WhenEmpty};
use crate::capabilities::{CapabilitySet, OfferedCapabilities};
use crate::demo::Demo;
use crate::dial::http::Clients;
use crate::dial::in_process::InProcess;
use crate::dial::names::{Names, SystemNames};
use crate::dial::spawn::{self, Spawner};
use crate::directory::Directory;
use crate::env::Environment;
use crate::log_level::LogLevels;
use crate::notices::Notices;
use crate::paths::Paths;
use crate::upstream::Surroundings;

/// Collects the parts of a gateway. [`Gateway`] has an example with configuration files.
///
/// ```
/// use std::time::Duration;
///
/// use switchboard::demo::Demo;
/// use switchboard::{Environment, Gateway};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let environment = Environment::made_of([("SWITCHBOARD_HOME", "/nowhere")], "/");
/// let gateway = Gateway::builder(environment)
///     .server("tools", Demo)
///     .timeout(Duration::from_secs(30))
///     .build();
/// assert!(gateway.usable("tools").is_ok());
/// gateway.shutdown().await;
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct GatewayBuilder {
    blueprint: Blueprint,
    names: Arc<dyn Names>,
    config: Config,
}

impl GatewayBuilder {
    pub(super) fn new(environment: Environment) -> GatewayBuilder {
        let paths = Paths::of(&environment);
        let blueprint = Blueprint {
            spawner: spawn::at_hand(&paths.running()),
            vault: Vault::new(&paths, &environment, CredentialStore::default()),
            paths,
            environment,
            in_process: BTreeMap::new(),
            starts: Starts::AsConfigured,
            when_empty: WhenEmpty::Nothing,
            toolset: None,
            offered: OfferedCapabilities::known(CapabilitySet::USUAL),
            timeout: None,
        };
        GatewayBuilder { blueprint, names: Arc::new(SystemNames), config: Config::default() }
    }

    /// Sets the servers and settings of a configuration.
    #[must_use]
    pub fn config(mut self, config: Config) -> GatewayBuilder {
        self.config = config;
        self
    }

    /// Adds a server inside this process. If the configuration has one of this name, only its
    /// transport is replaced; its timeouts, filters and other settings apply.
    #[must_use]
    pub fn server(mut self, name: &str, server: impl InProcess) -> GatewayBuilder {
        self.blueprint.in_process.insert(name.to_owned(), Arc::new(server));
        self
    }

    /// Adds the built-in demo server.
    #[must_use]
    pub fn demo(self) -> GatewayBuilder {
        self.server("demo", Demo)
    }

    /// Adds the built-in demo server, unless a server is configured.
    #[must_use]
    pub fn demo_if_empty(mut self) -> GatewayBuilder {
        self.blueprint.when_empty = WhenEmpty::Demo;
        self
    }

    /// Sets how programs are started, in place of a reaper or process groups.
    #[must_use]
    pub fn spawner(mut self, spawner: impl Spawner + 'static) -> GatewayBuilder {
        self.blueprint.spawner = Arc::new(spawner);
        self
    }

    /// Sets how hostnames are resolved, in place of the system's resolver.
    #[must_use]
    pub fn names(mut self, names: impl Names + 'static) -> GatewayBuilder {
        self.names = Arc::new(names);
        self
    }

    /// Starts every server when it is first used, whatever its lifecycle, for a face that handles
    /// one request and exits.
    #[must_use]
    pub fn on_demand(mut self) -> GatewayBuilder {
        self.blueprint.starts = Starts::OnDemand;
        self
    }

    /// Sets the client capabilities that servers are offered. All sessions must support these
    /// capabilities, so that listed tools can be called. The default is all capabilities.
    #[must_use]
    pub fn capabilities(mut self, capabilities: CapabilitySet) -> GatewayBuilder {
        self.blueprint.offered = OfferedCapabilities::known(capabilities);
        self
    }

    /// Offers servers the capabilities of the first client; see [`Gateway::declare`]. No server
    /// starts before they are declared.
    #[must_use]
    pub fn capabilities_of_first_client(mut self) -> GatewayBuilder {
        self.blueprint.offered = OfferedCapabilities::of_first_client();
        self
    }

    /// Sets the toolset for hosts, in place of the configured one.
    #[must_use]
    pub fn toolset(mut self, toolset: Toolset) -> GatewayBuilder {
        self.blueprint.toolset = Some(toolset);
        self
    }

    /// Sets the timeout of every start and every request, in place of the configured ones.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> GatewayBuilder {
        self.blueprint.timeout = Some(timeout);
        self
    }

    /// Starts the gateway, and the servers whose lifecycle requires it. Must be called in a tokio
    /// runtime.
    pub fn build(self) -> Gateway {
        let clients = Clients::new(self.blueprint.environment.clone(), self.names);
        let tasks = TaskTracker::new();
        let surroundings = Surroundings {
            directory: Directory::default(),
            offered: self.blueprint.offered.clone(),
            log_levels: LogLevels::default(),
            notices: Notices::default(),
            pulse: watch::Sender::new(()),
            spawner: Arc::clone(&self.blueprint.spawner),
            accounts: Arc::new(Accounts::new(clients, self.blueprint.paths.clone(), tasks.clone())),
            dials: Arc::new(Semaphore::new(CONCURRENT_DIALS)),
            tasks,
            closing: CancellationToken::new(),
            after: None,
            owner: None,
        };
        let settings = self.config.settings.clone();
        let gateway = Gateway::without_servers(self.blueprint, surroundings, settings);
        gateway.apply(&self.config);
        gateway
    }
}

impl Gateway {
    pub(super) fn without_servers(
        blueprint: Blueprint,
        surroundings: Surroundings,
        settings: Settings,
    ) -> Gateway {
        let roster = Roster {
            members: HashMap::new(),
            facts: HashMap::new(),
            settings,
            limits: TextLimits::OFF,
            notices: FileNotices::default(),
            unread_rules: None,
            guests: AllGuests::default(),
        };
        let state = GatewayState {
            blueprint,
            surroundings,
            roster: watch::Sender::new(Arc::new(roster)),
            first_listing: Mutex::default(),
            follower: OnceLock::new(),
            family: Mutex::default(),
            sessions: AtomicU64::new(0),
        };
        Gateway { shared: Arc::new(state) }
    }
}
