//! Merges configuration files: precedence, inheritance, and servers that are pending.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::diagnostic::{Diagnostic, DiagnosticKind, Level};
use super::parse::{ParsedFile, ParsedServer};
use super::reader::join;
use super::server::ServerEntry;
use super::settings::{Settings, SettingsEntry};
use super::transport::Transport;
use super::trust::{FileHash, TrustHash, review_obstacle, trust_hash};
use crate::name::look::{folded, in_one_case};

/// Merges the files. Later ones take precedence; within a tier the order is the caller's, and
/// project files always take precedence over user files. A project's entry is used only once the
/// user approved the whole definition that would run. Files of other hosts are below all of ours in
/// their tier; if two of them define a name, the first one is used.
pub fn merge(layers: &[Layer], approvals: &Approvals<'_>) -> Config {
    let mut settings = SettingsEntry::default();
    let (mut diagnostics, mut refused) = (Vec::new(), BTreeMap::new());
    let mut drafts: BTreeMap<String, Draft> = BTreeMap::new();
    let mut own_tool_prefix = None;
    for tier in [Tier::User, Tier::Project] {
        let of_tier = || layers.iter().filter(|layer| layer.source.tier == tier);
        for layer in of_tier() {
            diagnostics.extend(layer.file.diagnostics.iter().cloned());
            for (name, problem) in &layer.file.refused {
                refused.entry(name.clone()).or_insert_with(|| problem.clone());
            }
        }
        for layer in of_tier().filter(|layer| layer.file.host.is_none()) {
            settings.overlay(&layer.file.settings);
            if tier == Tier::User {
                own_tool_prefix = settings.tool_prefix;
            }
            for server in &layer.file.servers {
                let draft = drafts.entry(server.name.clone()).or_default();
                diagnostics.extend(draft.merge_over(server, tier));
            }
        }
        for layer in of_tier().filter(|layer| layer.file.host.is_some()) {
            for server in &layer.file.servers {
                let draft = drafts.entry(server.name.clone()).or_default();
                diagnostics.extend(draft.merge_below(server, tier));
            }
        }
    }
    // A refused entry of the user may have had restrictions, which are now unknown.
    let users = layers.iter().filter(|layer| layer.source.tier == Tier::User);
    let ours = users.filter(|layer| layer.file.host.is_none());
    for (name, problem) in ours.flat_map(|layer| &layer.file.refused) {
        drafts.remove(name);
        // If the name itself is invalid, the entry may be meant for a server with a similar name.
        if matches!(problem.kind, DiagnosticKind::BadName { .. }) {
            drop_lookalikes(&mut drafts, name, problem, &mut refused);
        }
    }
    let undefined = drafts
        .iter()
        .filter_map(|(name, draft)| Some((name.clone(), draft.undefined_restriction(name)?)));
    for (name, problem) in undefined.collect::<Vec<_>>() {
        drop_lookalikes(&mut drafts, &name, &problem, &mut refused);
    }
    let mut config = Config { diagnostics, refused, ..Config::default() };
    for (name, draft) in drafts {
        config.choose_version(name, draft, approvals);
    }
    config.settings_origins = settings.origins.clone();
    config.settings = settings.resolve();
    config.settings.own_tool_prefix = own_tool_prefix.unwrap_or_default();
    for layer in layers {
        config.reserve(layer.file.names(), layer.source.tier);
    }
    config
}

/// Drops the servers whose names differ from `name` only in letter case, separators, invisible
/// characters or lookalikes of ASCII letters.
fn drop_lookalikes(
    drafts: &mut BTreeMap<String, Draft>,
    name: &str,
    problem: &Diagnostic,
    refused: &mut BTreeMap<String, Diagnostic>,
) {
    let keys = |name: &str| {
        let same = in_one_case(name);
        [folded(name), folded(same.as_deref().unwrap_or(name))]
    };
    let own = keys(name);
    let is_same = |other: &str| keys(other).iter().any(|key| own.contains(key));
    let others = drafts.keys().filter(|other| *other != name && is_same(other));
    for other in others.cloned().collect::<Vec<_>>() {
        drafts.remove(&other);
        refused.entry(other).or_insert_with(|| problem.clone());
    }
}

impl Config {
    /// Reserves the names of refused entries, unless a server has them.
    pub fn reserve<'n>(&mut self, names: impl Iterator<Item = &'n str>, tier: Tier) {
        for name in names {
            let pending = self.pending.iter().any(|pending| pending.name == name);
            if pending || self.servers.contains_key(name) {
                continue;
            }
            let of = self.reserved.entry(name.to_owned()).or_insert(tier);
            *of = tier.min(*of);
        }
    }
}

/// One file with its source.
#[derive(Clone, Debug)]
pub struct Layer {
    pub source: ConfigSource,
    pub file: ParsedFile,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigSource {
    pub path: Arc<str>,
    pub tier: Tier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Written by the user: trusted.
    User,
    /// Found in a repository: pending until approved.
    Project,
}

/// The files that may have a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllowedIn {
    AllFiles,
    /// A project file must not set it, because a repository could extend its own trust or its own
    /// limits.
    UserFiles,
}

/// The position of a value in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigOrigin {
    pub path: Arc<str>,
    pub line: u32,
    pub column: u32,
}

/// `path:line:column`.
impl fmt::Display for ConfigOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path, self.line, self.column)
    }
}

/// The user's approvals so far, and the values that are needed to check them.
#[derive(Clone, Copy)]
pub struct Approvals<'a> {
    /// The absolute path of the project.
    pub project_root: &'a str,
    /// The hashes of the files inside the project that a definition runs; see
    /// [`super::trust::words_in`].
    pub file_hashes: &'a dyn Fn(&ServerEntry) -> Vec<FileHash>,
    pub is_approved: &'a dyn Fn(&TrustHash) -> bool,
    /// Whether the user approved any definition of this name in this project before.
    pub was_approved: &'a dyn Fn(&str) -> bool,
}

/// The configuration merged from all files.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub servers: BTreeMap<String, Server>,
    /// The pending servers. They are shown, but never started, connected, resolved or expanded.
    pub pending: Vec<PendingServer>,
    pub settings: Settings,
    /// The origin of each setting that a file sets, by key.
    pub settings_origins: BTreeMap<&'static str, ConfigOrigin>,
    /// The position of a problem in a user file that makes the deny rules uncertain.
    pub unread_rules: Option<ConfigOrigin>,
    /// The reason why an entry was refused, by name; another file may have a valid one.
    pub refused: BTreeMap<String, Diagnostic>,
    /// Names of unusable entries, with the tier of their file. No other server gets these names.
    pub reserved: BTreeMap<String, Tier>,
    pub diagnostics: Vec<Diagnostic>,
}

/// A server that may be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    pub definition: ServerEntry,
    pub transport: Transport,
    pub trust: Trust,
}

/// Why a server may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    UserFile,
    Approved(TrustHash),
}

#[derive(Clone, Debug, PartialEq)]
pub struct PendingServer {
    pub name: String,
    /// The merged definition: the user's entry of that name, if any, under the project's fields.
    pub definition: ServerEntry,
    pub transport: Transport,
    pub hash: TrustHash,
    pub cause: PendingCause,
    /// The last project file that gives the server's endpoint, or else the first project file with
    /// its name.
    pub origin: ConfigOrigin,
}

/// The reason why a server is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PendingCause {
    New,
    /// The definition, or a file that it runs.
    Changed,
}

impl fmt::Display for PendingCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PendingCause::New => "was not approved",
            PendingCause::Changed => "has changed since it was approved",
        })
    }
}

/// A server while the layers are merged.
#[derive(Default)]
struct Draft {
    user: Option<MergedEntry>,
    project: Option<MergedEntry>,
}

#[derive(Clone)]
struct MergedEntry {
    entry: ServerEntry,
    /// The position in the topmost file that gives an endpoint, or else in the first file.
    origin: ConfigOrigin,
    /// Whether a file of another host defines it; each name is imported once.
    import: Import,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Import {
    None,
    Below,
    Only,
}

impl Draft {
    /// The diagnostic for an entry of the user that restricts a server, if no file defines that
    /// server.
    fn undefined_restriction(&self, name: &str) -> Option<Diagnostic> {
        let MergedEntry { entry, origin, .. } = self.user.as_ref()?;
        if entry.has_endpoint() || self.project.is_some() || !entry.restricts() {
            return None;
        }
        let kind = DiagnosticKind::NoEndpoint { server: join("", name) };
        Some(Diagnostic::at(origin, Level::Error, kind))
    }

    /// Merges an entry of ours over the current one.
    fn merge_over(&mut self, server: &ParsedServer, tier: Tier) -> Option<Diagnostic> {
        let of_tier = self.version_mut(tier).take();
        let below = of_tier.as_ref().filter(|_| !server.entry.has_endpoint());
        let origin = below.map_or(&server.origin, |below| &below.origin).clone();
        let base = match tier {
            Tier::User => of_tier,
            Tier::Project => of_tier.or_else(|| self.user.clone()),
        };
        // Our entry inherits nothing from an imported entry with another endpoint.
        let base = base
            .filter(|below| below.import != Import::Only || server.entry.fits_over(&below.entry));
        let mut entry = base.map(|below| below.entry).unwrap_or_default();
        let warning = warn_of_inherited_field(&entry, &server.name, &server.entry, &server.origin);
        entry.overlay(&server.entry);
        if tier == Tier::Project {
            entry.keep_restrictions(self.user.as_ref().map(|users| &users.entry));
        }
        *self.version_mut(tier) = Some(MergedEntry { entry, origin, import: Import::None });
        warning
    }

    /// Merges an entry of another host below the current one, if it is the same server and nothing
    /// was imported under that name before. A project's file adds nothing to a server of the user.
    fn merge_below(&mut self, server: &ParsedServer, tier: Tier) -> Option<Diagnostic> {
        if tier == Tier::Project && self.user.is_some() {
            return None;
        }
        let mut entry = server.entry.clone();
        let version = self.version_mut(tier);
        let Some(ours) = version else {
            *version =
                Some(MergedEntry { entry, origin: server.origin.clone(), import: Import::Only });
            return None;
        };
        if ours.import != Import::None || !ours.entry.fits_over(&server.entry) {
            return None;
        }
        if ours.entry.has_endpoint() {
            // A host's `disabled` does not apply: servers that were moved here are disabled there.
            (entry.disabled, entry.enabled) = (None, None);
            entry.origins.retain(|key, _| !["disabled", "enabled"].contains(key));
        }
        let warning = warn_of_inherited_field(&entry, &server.name, &ours.entry, &ours.origin);
        entry.overlay(&ours.entry);
        (ours.entry, ours.import) = (entry, Import::Below);
        warning
    }

    fn version_mut(&mut self, tier: Tier) -> &mut Option<MergedEntry> {
        match tier {
            Tier::User => &mut self.user,
            Tier::Project => &mut self.project,
        }
    }
}

/// Warns that `upper` inherits a field that was set for another command line.
fn warn_of_inherited_field(
    lower: &ServerEntry,
    name: &str,
    upper: &ServerEntry,
    origin: &ConfigOrigin,
) -> Option<Diagnostic> {
    let field = lower.inherited_despite_other_arguments(upper)?;
    let ConfigOrigin { path, line, .. } = lower.origins.get(field)?.clone();
    let server = name.to_owned();
    let kind = DiagnosticKind::InheritedDespiteOtherArguments { server, field, path, line };
    Some(Diagnostic::at(origin, Level::Warning, kind))
}

impl Config {
    /// Decides whether the project's or the user's version of a server is used.
    fn choose_version(&mut self, name: String, draft: Draft, approvals: &Approvals<'_>) {
        if let Some(MergedEntry { entry: definition, origin, import }) = draft.project
            && let Some(transport) = self.transport(&name, &definition, &origin)
            && self.is_reviewable(&name, &definition, &origin)
        {
            self.warn_of_unused(&name, &definition, import);
            let files = (approvals.file_hashes)(&definition);
            let hash = trust_hash(&name, &definition, approvals.project_root, &files);
            if (approvals.is_approved)(&hash) {
                let trust = Trust::Approved(hash);
                self.servers.insert(name, Server { definition, transport, trust });
                return;
            }
            let before = (approvals.was_approved)(&name);
            let cause = if before { PendingCause::Changed } else { PendingCause::New };
            let name = name.clone();
            self.pending.push(PendingServer { name, definition, transport, hash, cause, origin });
        }
        if let Some(MergedEntry { entry: definition, origin, import }) = draft.user
            && let Some(transport) = self.transport(&name, &definition, &origin)
        {
            self.warn_of_unused(&name, &definition, import);
            let trust = Trust::UserFile;
            self.servers.insert(name, Server { definition, transport, trust });
        }
    }

    fn transport(
        &mut self,
        name: &str,
        definition: &ServerEntry,
        origin: &ConfigOrigin,
    ) -> Option<Transport> {
        let kind: DiagnosticKind = match definition.transport(name) {
            Ok(transport) => return Some(transport),
            Err(kind) => kind,
        };
        // An entry that only disables a server has no effect if that server is not defined.
        let mut keys = definition.origins.keys().peekable();
        if keys.peek().is_some() && keys.all(|key| *key == "disabled") {
            return None;
        }
        let key = ["command", "url", "socket"];
        let at = key.iter().find_map(|key| definition.origins.get(key)).unwrap_or(origin);
        self.refuse(name, at, kind);
        None
    }

    /// Warns of keys that have no effect with the endpoint, except in files of other hosts.
    fn warn_of_unused(&mut self, name: &str, definition: &ServerEntry, import: Import) {
        if import != Import::None {
            return;
        }
        for (key, endpoint) in definition.unused() {
            let Some(origin) = definition.origins.get(key) else { continue };
            let kind = DiagnosticKind::Unused { server: join("", name), key, endpoint };
            self.diagnostics.push(Diagnostic::at(origin, Level::Warning, kind));
        }
    }

    /// Whether a user can review the definition; if not, refuses it.
    fn is_reviewable(
        &mut self,
        name: &str,
        definition: &ServerEntry,
        origin: &ConfigOrigin,
    ) -> bool {
        let Some(what) = review_obstacle(definition) else { return true };
        let server = join("", name);
        self.refuse(name, origin, DiagnosticKind::TooMuchToApprove { server, what });
        false
    }

    fn refuse(&mut self, name: &str, at: &ConfigOrigin, kind: DiagnosticKind) {
        let problem = Diagnostic::at(at, Level::Error, kind);
        self.diagnostics.push(problem.clone());
        self.refused.entry(name.to_owned()).or_insert(problem);
    }
}
