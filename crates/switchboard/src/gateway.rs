//! The gateway: all servers of one process, and the sessions that use them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use switchboard_core::approval::Rules;
use switchboard_core::catalog::listing::ResourceTools;
use switchboard_core::catalog::{Catalog, ListingPolicy, Shelf, Standing};
use switchboard_core::config::layers::{Config, Server, Trust};
use switchboard_core::config::server::ServerEntry;
use switchboard_core::config::settings::Settings;
use switchboard_core::config::transport::Transport as Configured;
use switchboard_core::config::trust::definition_hash;
use switchboard_core::config::values::{IdleTimeout, Lifecycle, OutputGuard, Pins};
use switchboard_core::content::guard::Limits;
use switchboard_core::failure::Failure;
use switchboard_core::lifecycle::Policy;
use switchboard_core::name::ServerName;
use switchboard_core::reply::TrustLevel;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

use crate::demo::Demo;
use crate::dial::in_process::InProcess;
use crate::dial::spawn::{ProcessGroups, Spawner};
use crate::directory::{CacheFile, Directory, Plan};
use crate::env::Environment;
use crate::explain;
use crate::host::Host;
use crate::paths::Paths;
use crate::pins::PinFile;
use crate::results::Results;
use crate::session::Session;
use crate::upstream::{
    Partition, ProgramRecipe, Recipe, Surroundings, Transport, Upstream, UpstreamKey, Words,
};

/// Connects at the same time, over all servers.
const CONCURRENT_DIALS: usize = 16;

/// How long the cache may take to be written before servers are stopped all the same.
const FLUSH: Duration = Duration::from_secs(2);

/// How long a shutdown may take before it is cut short.
const SHUTDOWN: Duration = Duration::from_secs(6);

/// All servers of this process; cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<Shared>,
}

struct Shared {
    directory: Directory,
    upstreams: HashMap<UpstreamKey, Upstream>,
    facts: HashMap<ServerName, Facts>,
    settings: Settings,
    limits: Limits,
    results: PathBuf,
    tasks: TaskTracker,
}

/// What the configuration says about a server, as far as answers need it.
#[derive(Clone)]
pub(crate) struct Facts {
    pub(crate) lifecycle: Lifecycle,
    pub(crate) trust: TrustLevel,
    pub(crate) description: Option<String>,
    rules: Arc<Rules>,
}

/// Gathers what a gateway is made of.
pub struct GatewayBuilder {
    environment: Environment,
    paths: Paths,
    config: Config,
    in_process: BTreeMap<String, Arc<dyn InProcess>>,
    spawner: Arc<dyn Spawner>,
    limits: Option<Limits>,
    starts: Starts,
}

/// When servers start and stop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Starts {
    AsConfigured,
    OnDemand,
}

impl Gateway {
    /// Begins a gateway without servers.
    pub fn builder(environment: Environment) -> GatewayBuilder {
        GatewayBuilder {
            paths: Paths::of(&environment),
            environment,
            config: Config::default(),
            in_process: BTreeMap::new(),
            spawner: Arc::new(ProcessGroups),
            limits: None,
            starts: Starts::AsConfigured,
        }
    }

    /// Opens a conversation; `host` answers where the user has to be asked.
    pub fn session(&self, host: impl Host + 'static) -> Session {
        let results = Results::new(self.shared.results.clone(), self.shared.limits);
        Session::new(self.clone(), Arc::new(host), results)
    }

    /// What all servers offer, as far as it is known now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.shared.directory.catalog()
    }

    /// Tells of every change of the catalog.
    pub fn watch(&self) -> watch::Receiver<Arc<Catalog>> {
        self.shared.directory.watch()
    }

    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Connects every usable server that was never listed, side by side, and lists it. `report`
    /// hears each server that is done, and how many are left.
    pub async fn list_missing(&self, mut report: impl FnMut(&ServerName, Option<&Failure>, usize)) {
        let mut listings = JoinSet::new();
        for server in self.catalog().not_listed_yet() {
            let Ok(upstream) = self.upstream(&server).cloned() else { continue };
            listings.spawn(async move {
                let listed = upstream.lease().await.map(|_released_at_once| ());
                (server.clone(), listed.map_err(|error| explain::lease(error, &server)))
            });
        }
        while let Some(done) = listings.join_next().await {
            if let Ok((server, outcome)) = done {
                report(&server, outcome.as_ref().err(), listings.len());
            }
        }
    }

    /// Does the same beside everything else, unless the settings forbid it.
    pub fn list_missing_in_background(&self) {
        if self.shared.settings.first_listing {
            let gateway = self.clone();
            self.shared.tasks.spawn(async move { gateway.list_missing(|_, _, _| {}).await });
        }
    }

    /// Writes what is worth keeping, then stops every server, all at once.
    pub async fn shutdown(&self) {
        if tokio::time::timeout(FLUSH, self.shared.directory.flush()).await.is_err() {
            tracing::warn!("some listings could not be kept in time");
        }
        let stopping: JoinSet<()> = self
            .shared
            .upstreams
            .values()
            .cloned()
            .map(|upstream| async move { upstream.shutdown().await })
            .collect();
        stopping.join_all().await;
        self.shared.tasks.close();
        if tokio::time::timeout(SHUTDOWN, self.shared.tasks.wait()).await.is_err() {
            tracing::warn!("some servers did not stop in time");
        }
    }

    pub(crate) fn directory(&self) -> &Directory {
        &self.shared.directory
    }

    pub(crate) fn upstream(&self, server: &ServerName) -> Result<&Upstream, Failure> {
        let key = UpstreamKey { server: server.clone(), partition: Partition::Shared };
        self.shared.upstreams.get(&key).ok_or_else(|| explain::unknown_server(server))
    }

    pub(crate) fn approval_rules(&self, server: &ServerName) -> Arc<Rules> {
        self.facts(server).rules
    }

    pub(crate) fn facts(&self, server: &ServerName) -> Facts {
        self.shared.facts.get(server).cloned().unwrap_or_else(|| Facts {
            lifecycle: Lifecycle::Lazy,
            trust: TrustLevel::User,
            description: None,
            rules: Arc::new(Rules::new(&ServerEntry::default(), &self.shared.settings)),
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
        self.in_process.insert(name.to_owned(), Arc::new(server));
        self
    }

    /// The built-in server to try things with.
    #[must_use]
    pub fn demo(self) -> GatewayBuilder {
        self.server("demo", Demo)
    }

    /// The built-in server, if nothing else is configured.
    #[must_use]
    pub fn demo_if_empty(self) -> GatewayBuilder {
        let empty = self.config.servers.is_empty()
            && self.config.pending.is_empty()
            && self.in_process.is_empty();
        if empty { self.demo() } else { self }
    }

    /// How programs are started; process groups unless something better is at hand.
    #[must_use]
    pub fn spawner(mut self, spawner: impl Spawner + 'static) -> GatewayBuilder {
        self.spawner = Arc::new(spawner);
        self
    }

    /// Results as whole as they are, for a face that prints to a person.
    #[must_use]
    pub fn without_output_guard(mut self) -> GatewayBuilder {
        self.limits = Some(Limits::OFF);
        self
    }

    /// Every server starts when it is first used, whatever its lifecycle says, for a face that
    /// answers one question and ends.
    #[must_use]
    pub fn on_demand(mut self) -> GatewayBuilder {
        self.starts = Starts::OnDemand;
        self
    }

    /// Starts the gateway, and with it the servers whose lifecycle asks for that. Needs a tokio runtime.
    pub fn build(self) -> Gateway {
        let mut parts = Parts::default();
        for (name, server) in &self.config.servers {
            if let Ok(name) = ServerName::new(name) {
                self.add_configured(&mut parts, name, server);
            }
        }
        for pending in &self.config.pending {
            // Until it is trusted, a user's own server of the same name stands unchanged.
            if let Ok(name) = ServerName::new(&pending.name)
                && !parts.shelves.contains_key(&name)
            {
                let facts = self.facts(&pending.definition, TrustLevel::Pending);
                parts.facts.insert(name.clone(), facts);
                parts
                    .shelves
                    .insert(name, shelf(&pending.definition, self.settings(), Standing::Pending));
            }
        }
        for (name, server) in &self.in_process {
            if !self.config.servers.contains_key(name)
                && let Ok(name) = ServerName::new(name)
            {
                self.add_in_process(&mut parts, name, Arc::clone(server));
            }
        }
        self.start(parts)
    }

    fn add_configured(&self, parts: &mut Parts, name: ServerName, server: &Server) {
        let definition = &server.definition;
        let trust = match server.trust {
            Trust::UserFile => TrustLevel::User,
            Trust::Approved(_) => TrustLevel::Approved,
        };
        parts.facts.insert(name.clone(), self.facts(definition, trust));
        let standing = if definition.is_disabled() { Standing::Disabled } else { Standing::Active };
        parts.shelves.insert(name.clone(), shelf(definition, self.settings(), standing));
        if standing == Standing::Active {
            let hash = definition_hash(definition).to_string();
            let file = CacheFile { path: self.paths.listing_of(&name, &hash), definition: hash };
            let policy = listing_policy(definition, self.settings());
            let pins = self.pin_file(&name, server);
            parts.plans.insert(name.clone(), Plan { policy, file: Some(file), pins });
            let transport = match self.in_process.get(name.as_str()) {
                Some(server) => Transport::InProcess(Arc::clone(server)),
                None => self.transport(server),
            };
            parts.recipes.push((
                name.clone(),
                self.recipe(&name, definition, transport),
                self.policy(definition),
            ));
        }
    }

    fn add_in_process(&self, parts: &mut Parts, name: ServerName, server: Arc<dyn InProcess>) {
        let definition = ServerEntry::default();
        parts.facts.insert(name.clone(), self.facts(&definition, TrustLevel::User));
        parts.shelves.insert(name.clone(), shelf(&definition, self.settings(), Standing::Active));
        let policy = listing_policy(&definition, self.settings());
        parts.plans.insert(name.clone(), Plan { policy, file: None, pins: None });
        let recipe = self.recipe(&name, &definition, Transport::InProcess(server));
        parts.recipes.push((name, recipe, self.policy(&definition)));
    }

    fn pin_file(&self, name: &ServerName, server: &Server) -> Option<Arc<PinFile>> {
        if self.settings().pins == Pins::Off {
            return None;
        }
        Some(Arc::new(PinFile::of(name, server, &self.environment.cwd, &self.paths)))
    }

    fn start(self, parts: Parts) -> Gateway {
        let directory = Directory::new(parts.shelves, parts.plans);
        let tasks = TaskTracker::new();
        let dials = Arc::new(Semaphore::new(CONCURRENT_DIALS));
        let upstreams = parts.recipes.into_iter().map(|(server, recipe, policy)| {
            let surroundings = Surroundings {
                directory: directory.clone(),
                spawner: Arc::clone(&self.spawner),
                dials: Arc::clone(&dials),
                tasks: tasks.clone(),
            };
            let key = UpstreamKey { server: server.clone(), partition: Partition::Shared };
            (key, Upstream::start(server, recipe, policy, surroundings))
        });
        let upstreams = upstreams.collect();
        let limits = self.limits.unwrap_or(match self.config.settings.output_guard {
            OutputGuard::Off => Limits::OFF,
            OutputGuard::Limits { max_bytes, max_lines, .. } => Limits { max_bytes, max_lines },
        });
        let shared = Shared {
            directory,
            upstreams,
            facts: parts.facts,
            limits,
            results: self.paths.results(),
            settings: self.config.settings,
            tasks,
        };
        Gateway { shared: Arc::new(shared) }
    }

    fn settings(&self) -> &Settings {
        &self.config.settings
    }

    fn policy(&self, definition: &ServerEntry) -> Policy {
        match self.starts {
            Starts::AsConfigured => policy_of(definition, self.settings()),
            Starts::OnDemand => Policy { lifecycle: Lifecycle::Lazy, idle: None },
        }
    }

    fn facts(&self, definition: &ServerEntry, trust: TrustLevel) -> Facts {
        Facts {
            lifecycle: definition.lifecycle.unwrap_or_default(),
            trust,
            description: definition.description.clone(),
            rules: Arc::new(Rules::new(definition, self.settings())),
        }
    }

    fn transport(&self, server: &Server) -> Transport {
        let definition = &server.definition;
        let program = |words| {
            Transport::Program(Box::new(ProgramRecipe {
                words,
                env: definition.env.clone().unwrap_or_default(),
                cwd: definition.cwd.clone(),
                inherit_env: definition.inherit_env == Some(true),
                environment: self.environment.clone(),
            }))
        };
        match &server.transport {
            Configured::Stdio { command, args } => {
                program(Words::Templates { command: command.clone(), args: args.clone() })
            }
            Configured::CommandLine { words } => program(Words::Literal(words.clone())),
            other @ (Configured::Http { .. }
            | Configured::WebSocket { .. }
            | Configured::Socket { .. }) => {
                Transport::Unsupported(unspoken(other).unwrap_or_default())
            }
        }
    }

    fn recipe(&self, name: &ServerName, definition: &ServerEntry, transport: Transport) -> Recipe {
        let settings = self.settings();
        Recipe {
            transport,
            start_timeout: definition.start_timeout.unwrap_or(settings.start_timeout),
            request_timeout: definition.request_timeout.unwrap_or(settings.request_timeout),
            max_frame_bytes: settings.max_frame_bytes,
            max_pages: settings.max_pages,
            max_tools: settings.max_tools,
            log: self.paths.log_of(name),
        }
    }
}

/// The transport by name, if this version does not speak it.
pub(crate) fn unspoken(transport: &Configured) -> Option<&'static str> {
    match transport {
        Configured::Stdio { .. } | Configured::CommandLine { .. } => None,
        Configured::Http { .. } => Some("HTTP"),
        Configured::WebSocket { .. } => Some("WebSocket"),
        Configured::Socket { .. } => Some("a Unix socket"),
    }
}

/// What `build` collects before anything starts.
#[derive(Default)]
struct Parts {
    shelves: BTreeMap<ServerName, Shelf>,
    plans: BTreeMap<ServerName, Plan>,
    facts: HashMap<ServerName, Facts>,
    recipes: Vec<(ServerName, Recipe, Policy)>,
}

fn shelf(definition: &ServerEntry, settings: &Settings, standing: Standing) -> Shelf {
    let prefix = definition.tool_prefix.unwrap_or(settings.tool_prefix);
    Shelf::new(prefix, standing)
}

fn listing_policy(definition: &ServerEntry, settings: &Settings) -> ListingPolicy {
    ListingPolicy {
        prefix: definition.tool_prefix.unwrap_or(settings.tool_prefix),
        include: definition.include_tools.clone().unwrap_or_default(),
        exclude: definition.exclude_tools.clone().unwrap_or_default(),
        keywords: definition.search_keywords.clone().unwrap_or_default(),
        resources: match definition.expose_resources {
            Some(false) => ResourceTools::Hidden,
            Some(true) | None => ResourceTools::Exposed,
        },
        max_tools: settings.max_tools,
    }
}

/// Only a lazy server idles out by default; an eager one if its own entry says so.
fn policy_of(definition: &ServerEntry, settings: &Settings) -> Policy {
    let lifecycle = definition.lifecycle.unwrap_or_default();
    let general = match lifecycle {
        Lifecycle::Lazy => settings.idle_timeout,
        Lifecycle::Eager | Lifecycle::KeepAlive | Lifecycle::LazyKeepAlive => IdleTimeout::Never,
    };
    let idle = match definition.idle_timeout.unwrap_or(general) {
        IdleTimeout::Never => None,
        IdleTimeout::After(idle) => Some(idle),
    };
    Policy { lifecycle, idle }
}
