//! Files laid over one another: who wins, what is inherited, and what waits for trust.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::diagnostic::{Diagnostic, DiagnosticKind, Level};
use super::parse::{ParsedFile, ParsedServer};
use super::reader::join;
use super::server::ServerEntry;
use super::settings::{Settings, SettingsEntry};
use super::transport::Transport;
use super::trust::{FileHash, TrustHash, too_much, trust_hash};
use crate::name::look::folded;

/// Lays the files over one another, later ones on top; within a tier the order is the caller's,
/// and projects always lie over user files. A project's entry counts only once the user approved
/// the whole definition that would run. Files of other hosts lie below all of ours in their tier,
/// and of two that have a name the first one counts.
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
                diagnostics.extend(draft.stack(server, tier));
            }
        }
        for layer in of_tier().filter(|layer| layer.file.host.is_some()) {
            for server in &layer.file.servers {
                let draft = drafts.entry(server.name.clone()).or_default();
                diagnostics.extend(draft.import(server, tier));
            }
        }
    }
    // What a refused entry of the user's would have forbidden is not known.
    let users = layers.iter().filter(|layer| layer.source.tier == Tier::User);
    let ours = users.filter(|layer| layer.file.host.is_none());
    for (name, problem) in ours.flat_map(|layer| &layer.file.refused) {
        drafts.remove(name);
        // Where the name itself is the mistake, the entry may be about one that looks like it.
        if matches!(problem.kind, DiagnosticKind::BadName { .. }) {
            drop_lookalikes(&mut drafts, name, problem, &mut refused);
        }
    }
    let orphans =
        drafts.iter().filter_map(|(name, draft)| Some((name.clone(), draft.orphan(name)?)));
    for (name, problem) in orphans.collect::<Vec<_>>() {
        drop_lookalikes(&mut drafts, &name, &problem, &mut refused);
    }
    let mut config = Config { diagnostics, refused, ..Config::default() };
    for (name, draft) in drafts {
        config.settle(name, draft, approvals);
    }
    config.settings_origins = settings.origins.clone();
    config.settings = settings.resolve();
    config.settings.own_tool_prefix = own_tool_prefix.unwrap_or_default();
    for layer in layers {
        config.reserve(layer.file.names(), layer.source.tier);
    }
    config
}

/// Drops the servers whose names differ from `name` in case, separators or characters that are not
/// seen.
fn drop_lookalikes(
    drafts: &mut BTreeMap<String, Draft>,
    name: &str,
    problem: &Diagnostic,
    refused: &mut BTreeMap<String, Diagnostic>,
) {
    let look = folded(name);
    let others = drafts.keys().filter(|other| *other != name && folded(other) == look);
    for other in others.cloned().collect::<Vec<_>>() {
        drafts.remove(&other);
        refused.entry(other).or_insert_with(|| problem.clone());
    }
}

impl Config {
    /// Keeps names that no server has for the entries that would have had them.
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

/// One file in its place.
#[derive(Clone, Debug)]
pub struct Layer {
    pub source: Source,
    pub file: ParsedFile,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
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

/// Who may set a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetBy {
    Anyone,
    /// In a project file it would let a repository decide how far it is trusted, or widen its own
    /// limits.
    User,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub path: Arc<str>,
    pub line: u32,
    pub column: u32,
}

/// `path:line:column`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path, self.line, self.column)
    }
}

/// What the user approved so far, and what is needed to tell.
#[derive(Clone, Copy)]
pub struct Approvals<'a> {
    /// The absolute path of the project.
    pub project_root: &'a str,
    /// The hashes of the files inside the project that a definition runs; see
    /// [`super::trust::words_in`].
    pub file_hashes: &'a dyn Fn(&ServerEntry) -> Vec<FileHash>,
    pub is_approved: &'a dyn Fn(&TrustHash) -> bool,
    /// Whether the user approved some definition under this name in this project before.
    pub was_approved: &'a dyn Fn(&str) -> bool,
}

/// All files together.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub servers: BTreeMap<String, Server>,
    /// Shown, but never started, connected, resolved or expanded.
    pub pending: Vec<PendingServer>,
    pub settings: Settings,
    /// Where each setting that a file names comes from, by key.
    pub settings_origins: BTreeMap<&'static str, Origin>,
    /// A place in a file of the user's because of which it is not known what they deny.
    pub unread_rules: Option<Origin>,
    /// By name, why an entry does not count; another file may have a sound one.
    pub refused: BTreeMap<String, Diagnostic>,
    /// Names of entries that cannot be used, and in whose file they stand. No other server is called
    /// by them.
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
    /// What would run: the user's entry of that name, if any, with the project's fields on top.
    pub definition: ServerEntry,
    pub transport: Transport,
    pub hash: TrustHash,
    pub cause: PendingCause,
    /// The last project file that says where it is, or else the first one that names it.
    pub origin: Origin,
}

/// Why a server waits for the user.
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

/// A server while the layers are stacked.
#[derive(Default)]
struct Draft {
    user: Option<Stacked>,
    project: Option<Stacked>,
}

#[derive(Clone)]
struct Stacked {
    entry: ServerEntry,
    /// Where the topmost file with an endpoint names it, or else the first file.
    origin: Origin,
    /// Whether a file of another host names it; each name is imported once.
    import: Import,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Import {
    None,
    Below,
    Only,
}

impl Draft {
    /// What is wrong with an entry of the user's that restricts a server which no file defines.
    fn orphan(&self, name: &str) -> Option<Diagnostic> {
        let Stacked { entry, origin, .. } = self.user.as_ref()?;
        let defined = entry.endpoints().iter().any(Option::is_some) || self.project.is_some();
        if defined || !entry.restricts() {
            return None;
        }
        let Origin { path, line, column } = origin.clone();
        let kind = DiagnosticKind::NoEndpoint { server: join("", name) };
        Some(Diagnostic { level: Level::Error, path: Some(path), line, column, kind })
    }

    /// Lays an entry of ours over what is there.
    fn stack(&mut self, server: &ParsedServer, tier: Tier) -> Option<Diagnostic> {
        let of_tier = self.face(tier).take();
        let says_where = server.entry.endpoints().iter().any(Option::is_some);
        let below = of_tier.as_ref().filter(|_| !says_where).map(|below| below.origin.clone());
        let origin = below.unwrap_or_else(|| server.origin.clone());
        let base = match tier {
            Tier::User => of_tier,
            Tier::Project => of_tier.or_else(|| self.user.clone()),
        };
        // What was only imported says nothing about a server of ours that is elsewhere.
        let base = base
            .filter(|below| below.import != Import::Only || server.entry.fits_over(&below.entry));
        let mut entry = base.map(|below| below.entry).unwrap_or_default();
        let lent = lent(&entry, server);
        entry.overlay(&server.entry);
        if tier == Tier::Project {
            entry.keep_restrictions(self.user.as_ref().map(|users| &users.entry));
        }
        *self.face(tier) = Some(Stacked { entry, origin, import: Import::None });
        lent
    }

    /// Lays an entry of another host below what is there, if it is the same server and nobody was
    /// imported under that name before. A project's file adds nothing to a server of the user's.
    fn import(&mut self, server: &ParsedServer, tier: Tier) -> Option<Diagnostic> {
        if tier == Tier::Project && self.user.is_some() {
            return None;
        }
        let face = self.face(tier);
        let Some(ours) = face.take() else {
            *face = Some(Stacked {
                entry: server.entry.clone(),
                origin: server.origin.clone(),
                import: Import::Only,
            });
            return None;
        };
        if ours.import != Import::None || !ours.entry.fits_over(&server.entry) {
            *face = Some(ours);
            return None;
        }
        let Stacked { entry, origin, .. } = ours;
        let ours = ParsedServer { name: server.name.clone(), entry, origin };
        let mut entry = server.entry.clone();
        if ours.entry.endpoints().iter().any(Option::is_some) {
            // Whether a host uses its server says nothing about ours: a moved one is off there.
            (entry.disabled, entry.enabled) = (None, None);
            entry.origins.retain(|key, _| !["disabled", "enabled"].contains(key));
        }
        let lent = lent(&entry, &ours);
        entry.overlay(&ours.entry);
        *face = Some(Stacked { entry, import: Import::Below, origin: ours.origin });
        lent
    }

    fn face(&mut self, tier: Tier) -> &mut Option<Stacked> {
        match tier {
            Tier::User => &mut self.user,
            Tier::Project => &mut self.project,
        }
    }
}

/// Says that `upper` takes over what was meant for another command line.
fn lent(lower: &ServerEntry, upper: &ParsedServer) -> Option<Diagnostic> {
    let field = lower.lends_to_other_arguments(&upper.entry)?;
    let from = lower.origins.get(field)?;
    let Origin { path, line, column } = upper.origin.clone();
    let (server, from, from_line) = (upper.name.clone(), from.path.clone(), from.line);
    let kind = DiagnosticKind::LentToOtherArguments { server, field, path: from, line: from_line };
    Some(Diagnostic { level: Level::Warning, path: Some(path), line, column, kind })
}

impl Config {
    /// Decides which of a server's two faces counts.
    fn settle(&mut self, name: String, draft: Draft, approvals: &Approvals<'_>) {
        if let Some(Stacked { entry: definition, origin, import }) = draft.project
            && let Some(transport) = self.transport(&name, &definition, &origin)
            && self.can_be_asked_about(&name, &definition, &origin)
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
        if let Some(Stacked { entry: definition, origin, import }) = draft.user
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
        origin: &Origin,
    ) -> Option<Transport> {
        let kind: DiagnosticKind = match definition.transport(name) {
            Ok(transport) => return Some(transport),
            Err(kind) => kind,
        };
        // What only turns a server off is nothing where that server is not.
        let mut keys = definition.origins.keys().peekable();
        if keys.peek().is_some() && keys.all(|key| *key == "disabled") {
            return None;
        }
        let key = ["command", "url", "socket"];
        let at = key.iter().find_map(|key| definition.origins.get(key)).unwrap_or(origin);
        self.refuse(name, at, kind);
        None
    }

    /// Warns of keys that do not go with the endpoint. Files of other hosts are not ours to correct.
    fn warn_of_unused(&mut self, name: &str, definition: &ServerEntry, import: Import) {
        if import != Import::None {
            return;
        }
        for (key, endpoint) in definition.unused() {
            let Some(Origin { path, line, column }) = definition.origins.get(key).cloned() else {
                continue;
            };
            let kind = DiagnosticKind::Unused { server: join("", name), key, endpoint };
            let path = Some(path);
            self.diagnostics.push(Diagnostic { level: Level::Warning, path, line, column, kind });
        }
    }

    fn can_be_asked_about(
        &mut self,
        name: &str,
        definition: &ServerEntry,
        origin: &Origin,
    ) -> bool {
        let Some(what) = too_much(definition) else { return true };
        let server = join("", name);
        self.refuse(name, origin, DiagnosticKind::TooMuchToApprove { server, what });
        false
    }

    fn refuse(&mut self, name: &str, at: &Origin, kind: DiagnosticKind) {
        let (path, line, column) = (Some(at.path.clone()), at.line, at.column);
        let problem = Diagnostic { level: Level::Error, path, line, column, kind };
        self.diagnostics.push(problem.clone());
        self.refused.entry(name.to_owned()).or_insert(problem);
    }
}
