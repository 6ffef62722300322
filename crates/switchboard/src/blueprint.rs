//! Converts a configuration into the recipes, policies, shelves and facts of a gateway.

mod transport;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use switchboard_core::approval::Rules;
use switchboard_core::catalog::listing::ResourceTools;
use switchboard_core::catalog::{Era, ListingPolicy, Shelf, Standing};
use switchboard_core::config::diagnostic::Diagnostic;
use switchboard_core::config::layers::{Config, Server, Tier, Trust};
use switchboard_core::config::server::ServerEntry;
use switchboard_core::config::settings::Settings;
use switchboard_core::config::transport::Transport as Configured;
use switchboard_core::config::values::{
    ApprovePolicy, DirectTools, IdleTimeout, Lifecycle, OutputGuard, Pins, ProtocolVersion, Toolset,
};
use switchboard_core::connection::ConnectionRequest;
use switchboard_core::content::guard::TextLimits;
use switchboard_core::lifecycle::Policy;
use switchboard_core::name::{NameTier, ServerName};
use switchboard_core::reply::TrustLevel;
use switchboard_core::restriction::Restriction;

pub(crate) use self::transport::program;
use crate::auth::Vault;
use crate::capabilities::{Offer, OfferedCapabilities};
use crate::demo::Demo;
use crate::dial::in_process::InProcess;
use crate::dial::spawn::Spawner;
use crate::directory::ListingPlan;
use crate::env::Environment;
use crate::host::Topic;
use crate::listing_file::ListingFile;
use crate::paths::Paths;
use crate::pins::PinFile;
use crate::upstream::{Recipe, Transport};

/// The maximum length, in characters, of a server's description; the search indexes it with every
/// tool.
const LONGEST_DESCRIPTION: usize = 500;

/// How long a call waits for an installation: hosts time out on longer calls without progress.
const INSTALL_PATIENCE: Duration = Duration::from_secs(25);

/// The environment variable that chooses the direct tools; it takes precedence over the
/// configuration files.
const DIRECT_TOOLS_VARIABLE: &str = "MCP_DIRECT_TOOLS";

/// The parts of a gateway that stay the same when the configuration changes.
#[derive(Clone)]
pub(crate) struct Blueprint {
    pub(crate) environment: Environment,
    pub(crate) paths: Paths,
    pub(crate) vault: Vault,
    pub(crate) in_process: BTreeMap<String, Arc<dyn InProcess>>,
    pub(crate) spawner: Arc<dyn Spawner>,
    pub(crate) starts: Starts,
    pub(crate) when_empty: WhenEmpty,
    /// The toolset that takes precedence over the settings, if there is one.
    pub(crate) toolset: Option<Toolset>,
    /// The client capabilities that shared connections offer servers.
    pub(crate) offered: OfferedCapabilities,
    /// A start and request timeout that takes precedence over the settings and the servers'
    /// entries.
    pub(crate) timeout: Option<Duration>,
}

/// Whether servers start as configured or on demand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Starts {
    AsConfigured,
    OnDemand,
}

/// Whether the demo server is offered while no server is configured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenEmpty {
    Nothing,
    Demo,
}

/// The result of converting a configuration; no server is started yet.
pub(crate) struct Parts {
    pub(crate) shelves: BTreeMap<ServerName, Shelf>,
    /// The names of invalid entries, which no other server may have.
    pub(crate) reserved: Vec<(ServerName, NameTier)>,
    pub(crate) facts: HashMap<ServerName, Facts>,
    pub(crate) recipes: Vec<(ServerName, Recipe, Policy)>,
    pub(crate) settings: Settings,
    pub(crate) limits: TextLimits,
}

/// The configured facts about a server that replies use.
#[derive(Clone)]
pub(crate) struct Facts {
    pub(crate) lifecycle: Lifecycle,
    pub(crate) standing: Standing,
    pub(crate) trust: TrustLevel,
    pub(crate) description: Option<String>,
    /// Whether a pending project entry has the same name; once it is trusted, its fields override
    /// those of this server.
    pub(crate) overridden: bool,
    pub(crate) rules: Arc<Rules>,
    pub(crate) first_use: FirstUse,
    /// The configured transport; `None` for an in-process server.
    pub(crate) transport: Option<Configured>,
    /// The account that the server's tokens belong to.
    pub(crate) account: Option<String>,
}

/// Which events may connect a server for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstUse {
    Anything,
    /// The server is disabled in a list of servers (`enabled: false`): it connects only when named.
    ByName,
    /// The server is enabled in a list of servers (`enabled: true`): it connects at the start.
    Start,
}

impl Blueprint {
    pub(crate) fn parts(&self, config: &Config) -> Parts {
        let limits = match config.settings.output_guard {
            OutputGuard::Off => TextLimits::OFF,
            OutputGuard::Limits { max_bytes, max_lines } => TextLimits { max_bytes, max_lines },
        };
        let mut parts = Parts {
            shelves: BTreeMap::new(),
            reserved: reserved(config),
            facts: HashMap::new(),
            recipes: Vec::new(),
            settings: self.settings(config),
            limits,
        };
        for (name, server) in &config.servers {
            if let Ok(name) = ServerName::new(name) {
                self.add_configured(&mut parts, name, server);
            }
        }
        for pending in &config.pending {
            let Ok(name) = ServerName::new(&pending.name) else { continue };
            // Until the entry is trusted, the user's server of the same name stays unchanged.
            if let Some(facts) = parts.facts.get_mut(&name) {
                facts.overridden = true;
                continue;
            }
            let standing = standing(&pending.definition, Standing::Pending(pending.cause));
            let known = (standing, TrustLevel::Pending);
            let mut facts = facts(&pending.definition, &parts.settings, known);
            // A description that the user has not approved reaches no model.
            facts.description = None;
            parts.facts.insert(name.clone(), facts);
            parts.shelves.insert(name, shelf(&pending.definition, &parts.settings, standing));
        }
        for (name, server) in &self.in_process {
            if !config.servers.contains_key(name)
                && let Ok(name) = ServerName::new(name)
            {
                self.add_in_process(&mut parts, name, Arc::clone(server));
            }
        }
        if let Some(list) = self.environment.variable(DIRECT_TOOLS_VARIABLE) {
            let chosen = parts.shelves.into_iter().map(|(name, shelf)| {
                let direct = DirectTools::listed(list, name.as_str());
                (name, shelf.with_direct(Some(direct)))
            });
            parts.shelves = chosen.collect();
        }
        if let Some(place) = &config.unread_rules {
            let unread = Arc::new(Rules::unread(place));
            parts.facts.values_mut().for_each(|facts| facts.rules = Arc::clone(&unread));
        }
        // If a configuration file has errors, the demo server is not offered: the user's own
        // servers may be missing only because of the errors.
        let broken = config.diagnostics.iter().any(Diagnostic::is_error);
        // In the granular toolset the client connects servers itself, so an empty list is normal.
        let fillable = !broken && parts.settings.toolset != Toolset::Granular;
        if self.when_empty == WhenEmpty::Demo && parts.shelves.is_empty() && fillable {
            let name = ServerName::new("demo").expect("a plain word is a name");
            self.add_in_process(&mut parts, name, Arc::new(Demo));
        }
        parts
    }

    /// The settings of this gateway. The granular toolset requires approval for writes, unless a
    /// file sets `approve`.
    fn settings(&self, config: &Config) -> Settings {
        let mut settings = config.settings.clone();
        settings.toolset = self.toolset.unwrap_or(settings.toolset);
        if settings.toolset == Toolset::Granular && !config.settings_origins.contains_key("approve")
        {
            settings.approve = ApprovePolicy::Writes;
        }
        settings
    }

    fn add_configured(&self, parts: &mut Parts, name: ServerName, server: &Server) {
        let definition = &server.definition;
        let trust = match server.trust {
            Trust::UserFile => TrustLevel::User,
            Trust::Approved(_) => TrustLevel::Approved,
        };
        let standing = standing(definition, Standing::Active);
        let mut known = facts(definition, &parts.settings, (standing, trust));
        known.transport = Some(server.transport.clone());
        parts.facts.insert(name.clone(), known);
        let shelf = shelf(definition, &parts.settings, standing).of_tier(tier_of(&server.trust));
        parts.shelves.insert(name.clone(), shelf);
        if standing == Standing::Active {
            let askable = askable(&server.definition, &parts.settings);
            let offer = Offer { offered: self.offered.clone(), askable };
            let means = (&self.environment, &self.paths);
            let file = ListingFile::of(&name, (server, &parts.settings), means, offer.clone());
            let transport = match self.in_process.get(name.as_str()) {
                Some(server) => Transport::InProcess(Arc::clone(server)),
                None => self.transport(&name, server, &parts.settings),
            };
            let place = (self.environment.cwd.as_path(), &self.paths);
            let pins = (parts.settings.pins != Pins::Off)
                .then(|| Arc::new(PinFile::of(&name, server, place, offer)));
            self.add_recipe(parts, name, definition, transport, (Some(file), pins));
        }
    }

    fn add_in_process(&self, parts: &mut Parts, name: ServerName, server: Arc<dyn InProcess>) {
        let definition = ServerEntry::default();
        let known = (Standing::Active, TrustLevel::User);
        parts.facts.insert(name.clone(), facts(&definition, &parts.settings, known));
        parts.shelves.insert(name.clone(), shelf(&definition, &parts.settings, Standing::Active));
        self.add_recipe(parts, name, &definition, Transport::InProcess(server), (None, None));
    }

    fn add_recipe(
        &self,
        parts: &mut Parts,
        name: ServerName,
        definition: &ServerEntry,
        transport: Transport,
        (file, pins): (Option<ListingFile>, Option<Arc<PinFile>>),
    ) {
        let log = Some(self.paths.log_of(&name));
        let recipe = self.recipe(definition, &parts.settings, transport, (file, pins, log));
        let policy = match self.starts {
            Starts::AsConfigured => policy_of(definition, &parts.settings),
            Starts::OnDemand => Policy { lifecycle: Lifecycle::Lazy, idle: None },
        };
        parts.recipes.push((name, recipe, policy));
    }

    /// The shelf and recipe of a server that a session connects ad hoc. The server is treated as a
    /// user's server; no file is written for it.
    pub(crate) fn of_guest(
        &self,
        wanted: &ConnectionRequest,
        settings: &Settings,
    ) -> (Shelf, Recipe) {
        let definition = ServerEntry {
            // The launcher resolver is off: it would store package paths on disk, where an ad hoc
            // server must leave nothing.
            resolve_launcher: Some(false),
            ..wanted.definition.clone()
        };
        let server =
            Server { definition, transport: wanted.transport.clone(), trust: Trust::UserFile };
        let transport = self.transport(&wanted.id, &server, settings);
        let recipe = self.recipe(&server.definition, settings, transport, (None, None, None));
        // A call of an ad hoc server waits for the end of its installation, however long that
        // takes.
        let recipe = Recipe { install_patience: None, ..recipe };
        let shelf = shelf(&server.definition, settings, Standing::Active);
        // The model chose the name, so the name gets the lower tier.
        (shelf.of_tier(NameTier::Project), recipe)
    }

    fn recipe(
        &self,
        definition: &ServerEntry,
        settings: &Settings,
        transport: Transport,
        (file, pins, log): (Option<ListingFile>, Option<Arc<PinFile>>, Option<PathBuf>),
    ) -> Recipe {
        Recipe {
            transport,
            era: match definition.protocol_version {
                Some(ProtocolVersion::Legacy) => Some(Era::Legacy),
                Some(ProtocolVersion::Modern) => Some(Era::Modern),
                Some(ProtocolVersion::Auto) | None => None,
            },
            start_timeout: self.start_timeout(definition, settings),
            install_patience: match self.starts {
                Starts::AsConfigured => Some(INSTALL_PATIENCE),
                // A gateway that serves a single request waits for the end of an installation.
                Starts::OnDemand => None,
            },
            request_timeout: self
                .timeout
                .or(definition.request_timeout)
                .unwrap_or(settings.request_timeout),
            max_frame_bytes: settings.max_frame_bytes,
            max_pages: settings.max_pages,
            max_tools: settings.max_tools,
            log,
            askable: askable(definition, settings),
            debug: definition.debug == Some(true),
            plan: Arc::new(ListingPlan {
                policy: listing_policy(definition, settings),
                file,
                pins,
            }),
        }
    }

    fn start_timeout(&self, definition: &ServerEntry, settings: &Settings) -> Duration {
        self.timeout.or(definition.start_timeout).unwrap_or(settings.start_timeout)
    }
}

/// The standing of a server: `Disabled` takes precedence over `otherwise`.
fn standing(definition: &ServerEntry, otherwise: Standing) -> Standing {
    if definition.is_disabled() { Standing::Disabled } else { otherwise }
}

pub(crate) fn facts(
    definition: &ServerEntry,
    settings: &Settings,
    (standing, trust): (Standing, TrustLevel),
) -> Facts {
    Facts {
        lifecycle: definition.lifecycle.unwrap_or_default(),
        standing,
        trust,
        description: about(definition),
        overridden: false,
        rules: Arc::new(Rules::new(definition, settings)),
        first_use: match definition.enabled {
            Some(false) => FirstUse::ByName,
            Some(true) => FirstUse::Start,
            None => FirstUse::Anything,
        },
        transport: None,
        account: definition.account.clone(),
    }
}

pub(crate) fn shelf(definition: &ServerEntry, settings: &Settings, standing: Standing) -> Shelf {
    let prefix = definition.tool_prefix.unwrap_or(settings.tool_prefix);
    let direct = definition.direct_tools.clone();
    let of_all =
        (settings.direct_tools != DirectTools::None).then(|| settings.direct_tools.clone());
    let deny = Arc::new(Restriction::new(&settings.deny));
    Shelf::new(prefix, standing).with_direct(direct.or(of_all)).with_deny(deny)
}

/// The names of invalid entries, which no other server may have.
pub(crate) fn reserved(config: &Config) -> Vec<(ServerName, NameTier)> {
    let names = config.reserved.iter().filter_map(|(name, tier)| {
        let tier = match tier {
            Tier::User => NameTier::User,
            Tier::Project => NameTier::Project,
        };
        Some((ServerName::new(name).ok()?, tier))
    });
    names.collect()
}

pub(crate) fn tier_of(trust: &Trust) -> NameTier {
    match trust {
        Trust::UserFile => NameTier::User,
        Trust::Approved(_) => NameTier::Project,
    }
}

/// The configured title and description of a server, shortened.
fn about(definition: &ServerEntry) -> Option<String> {
    let about = match (&definition.name, &definition.description) {
        (Some(name), Some(description)) => format!("{name}: {description}"),
        (Some(one), None) | (None, Some(one)) => one.clone(),
        (None, None) => return None,
    };
    Some(about.chars().take(LONGEST_DESCRIPTION).collect())
}

pub(crate) fn listing_policy(definition: &ServerEntry, settings: &Settings) -> ListingPolicy {
    // The title and description of a server apply to all its tools (`*`), so that a search also
    // finds the tools by them.
    let mut keywords = definition.search_keywords.clone().unwrap_or_default();
    keywords.extend(about(definition).map(|about| ("*".to_owned(), vec![about])));
    ListingPolicy {
        prefix: definition.tool_prefix.unwrap_or(settings.tool_prefix),
        include: definition.include_tools.clone(),
        exclude: definition.exclude_tools.clone().unwrap_or_default(),
        keywords,
        resources: match definition.expose_resources {
            Some(false) => ResourceTools::Hidden,
            Some(true) | None => ResourceTools::Exposed,
        },
        max_tools: settings.max_tools,
    }
}

/// The kinds of server-to-client requests that the configuration permits for a server.
pub(crate) fn askable(definition: &ServerEntry, settings: &Settings) -> Vec<Topic> {
    let allowed = |topic: &Topic| match topic {
        Topic::Roots => definition.roots != Some(false),
        Topic::Sampling => settings.sampling,
        Topic::Elicitation => settings.elicitation,
    };
    Topic::ALL.into_iter().filter(allowed).collect()
}

/// The lifecycle rules of a server. By default only a lazy server has an idle timeout; a server
/// with another lifecycle has one only if its own entry sets it.
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
