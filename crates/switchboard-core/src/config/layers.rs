//! Merges configuration files: decides precedence, inheritance, and which servers are pending.

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
use crate::spelled::spelled_enum;

/// Merges the files, given in ascending precedence within a tier. Project files take precedence
/// over user files. A project's entry is used only once the user approved the whole definition that
/// would run. Files of other hosts come below our files of the same tier. If two of them define a
/// name, the first is used.
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
    // The refused entry of the user may have contained restrictions, which are now unknown.
    let users = layers.iter().filter(|layer| layer.source.tier == Tier::User);
    let ours = users.filter(|layer| layer.file.host.is_none());
    for (name, problem) in ours.flat_map(|layer| &layer.file.refused) {
        drafts.remove(name);
        // An entry with an invalid name may be meant for a server with a similar name.
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

/// Removes the servers whose names differ from `name` only in letter case, separators, invisible
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
    /// Reserves the names of refused entries that no server has.
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

/// A parsed configuration file and its source.
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

spelled_enum! {
    pub enum Tier {
        /// A file that the user wrote: trusted.
        User = "user",
        /// A file in a repository: its servers are pending until the user approves them.
        Project = "project",
    }
}

/// The files in which a key is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllowedIn {
    AllFiles,
    /// Only files of the user. A repository could otherwise extend its trust or raise its limits.
    UserFiles,
}

/// The file, line and column of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigOrigin {
    pub path: Arc<str>,
    pub line: u32,
    pub column: u32,
}

/// Formats the position as `path:line:column`.
impl fmt::Display for ConfigOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path, self.line, self.column)
    }
}

/// What the user approved so far, and how to compute what must be approved.
#[derive(Clone, Copy)]
pub struct Approvals<'a> {
    /// The absolute path of the project.
    pub project_root: &'a str,
    /// The hashes of the project's files that a definition runs; see [`super::trust::words_in`].
    pub file_hashes: &'a dyn Fn(&ServerEntry) -> Vec<FileHash>,
    pub is_approved: &'a dyn Fn(&TrustHash) -> bool,
    /// Whether the user ever approved a definition with this name in this project.
    pub was_approved: &'a dyn Fn(&str) -> bool,
}

/// The configuration that results from merging all files.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub servers: BTreeMap<String, Server>,
    /// The pending servers. They are shown, but never started, connected, resolved or expanded.
    pub pending: Vec<PendingServer>,
    pub settings: Settings,
    /// The origin of each setting that a file sets, by key.
    pub settings_origins: BTreeMap<&'static str, ConfigOrigin>,
    /// The position of a problem in a user file because of which the deny rules are unknown.
    pub unread_rules: Option<ConfigOrigin>,
    /// The reason why an entry was refused, by name. Another file may have a valid entry with that
    /// name.
    pub refused: BTreeMap<String, Diagnostic>,
    /// The names of invalid entries, with the tier of their file. No other server may have these
    /// names.
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
    /// The merged definition: the project's fields over the user's entry of that name, if there is
    /// one.
    pub definition: ServerEntry,
    pub transport: Transport,
    pub hash: TrustHash,
    pub cause: PendingCause,
    /// The last project file that sets the server's endpoint. If none sets it, the first project
    /// file with the server's name.
    pub origin: ConfigOrigin,
}

spelled_enum! {
    /// The reason why a server is pending.
    pub enum PendingCause {
        New = "was not approved",
        /// The definition changed since the user approved it, or a file changed that it runs.
        Changed = "has changed since it was approved",
    }
}

/// The state of one server while files are merged.
#[derive(Default)]
struct Draft {
    user: Option<MergedEntry>,
    project: Option<MergedEntry>,
}

#[derive(Clone)]
struct MergedEntry {
    entry: ServerEntry,
    /// The position of the server in the last file that sets an endpoint; if no file sets one, in
    /// the first file.
    origin: ConfigOrigin,
    /// Whether the entry comes from a file of another host. Each name is imported once.
    import: Import,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Import {
    None,
    Below,
    Only,
}

impl Draft {
    /// The error about an entry of the user that restricts a server without defining it. `None` if
    /// some file defines the server.
    fn undefined_restriction(&self, name: &str) -> Option<Diagnostic> {
        let MergedEntry { entry, origin, .. } = self.user.as_ref()?;
        if entry.has_endpoint() || self.project.is_some() || !entry.restricts() {
            return None;
        }
        let kind = DiagnosticKind::NoEndpoint { server: join("", name) };
        Some(Diagnostic::at(origin, Level::Error, kind))
    }

    /// Merges an entry of our files over the entry merged so far.
    fn merge_over(&mut self, server: &ParsedServer, tier: Tier) -> Option<Diagnostic> {
        let of_tier = self.version_mut(tier).take();
        let below = of_tier.as_ref().filter(|_| !server.entry.has_endpoint());
        let origin = below.map_or(&server.origin, |below| &below.origin).clone();
        let base = match tier {
            Tier::User => of_tier,
            Tier::Project => of_tier.or_else(|| self.user.clone()),
        };
        // An imported entry with another endpoint is not inherited.
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

    /// Merges an entry of another host below the entry merged so far, if both have the same
    /// endpoint and nothing else was imported with that name. A project's file adds nothing to a
    /// server of the user.
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
            // `disabled` of the host's file is dropped: a server that was moved to our file is
            // disabled there.
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

/// Warns if `upper` inherits a field that was set for another command line.
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
    /// Chooses between the project's and the user's version of a server.
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
        // An entry that only disables a server is not an error if no file defines that server.
        let mut keys = definition.origins.keys().peekable();
        if keys.peek().is_some() && keys.all(|key| *key == "disabled") {
            return None;
        }
        let key = ["command", "url", "socket"];
        let at = key.iter().find_map(|key| definition.origins.get(key)).unwrap_or(origin);
        self.refuse(name, at, kind);
        None
    }

    /// Warns of keys that have no effect with the server's endpoint. Files of other hosts are not
    /// checked.
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

    /// Whether the definition is small enough for the user to review. Refuses it otherwise.
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
