//! Files laid over one another: who wins, what is inherited, and what waits for trust.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::diagnostic::{Diagnostic, DiagnosticKind, Level};
use super::parse::ParsedFile;
use super::server::ServerEntry;
use super::settings::{Settings, SettingsEntry};
use super::transport::Transport;
use super::trust::{FileHash, TrustHash, trust_hash};

/// Lays the files over one another, later ones on top; within a tier the order is the caller's,
/// and projects always lie over user files. A project's entry counts only once the user approved
/// the whole definition that would run.
pub fn merge(layers: &[Layer], approvals: &Approvals<'_>) -> Config {
    let mut settings = SettingsEntry::default();
    let mut diagnostics = Vec::new();
    let mut drafts = BTreeMap::new();
    for tier in [Tier::User, Tier::Project] {
        for layer in layers.iter().filter(|layer| layer.source.tier == tier) {
            settings.overlay(&layer.file.settings, tier);
            diagnostics.extend(layer.file.diagnostics.iter().cloned());
            stack(&mut drafts, layer);
        }
    }
    let mut config = Config { diagnostics, ..Config::default() };
    for (name, draft) in drafts {
        config.settle(name, draft, &settings, approvals);
    }
    config.settings_origins = settings.origins.clone();
    config.settings = settings.resolve();
    config
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

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub path: Arc<str>,
    pub line: u32,
    pub column: u32,
}

/// What the user approved so far, and what is needed to tell.
#[derive(Clone, Copy)]
pub struct Approvals<'a> {
    /// The absolute path of the project.
    pub project_root: &'a str,
    /// The hashes of the files inside the project that a definition runs; see
    /// [`super::trust::scripts_in`].
    pub file_hashes: &'a dyn Fn(&ServerEntry) -> Vec<FileHash>,
    pub is_approved: &'a dyn Fn(&TrustHash) -> bool,
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
    /// The last project file that names it.
    pub origin: Origin,
    pub reason: PendingReason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PendingReason {
    NotApproved,
    /// Cannot be approved while the files have these keys.
    ForbiddenKeys(Vec<String>),
}

/// A server while the layers are stacked.
#[derive(Default)]
struct Draft {
    user: Option<(ServerEntry, Origin)>,
    project: Option<(ServerEntry, Origin)>,
    forbidden: Vec<String>,
}

fn stack(drafts: &mut BTreeMap<String, Draft>, layer: &Layer) {
    for server in &layer.file.servers {
        let draft = drafts.entry(server.name.clone()).or_default();
        let base = match layer.source.tier {
            Tier::User => draft.user.take(),
            Tier::Project => draft.project.take().or_else(|| draft.user.clone()),
        };
        let mut entry = base.map(|(entry, _)| entry).unwrap_or_default();
        entry.overlay(&server.entry);
        let stacked = Some((entry, server.origin.clone()));
        match layer.source.tier {
            Tier::User => draft.user = stacked,
            Tier::Project => draft.project = stacked,
        }
        draft.forbidden.extend(server.forbidden.iter().cloned());
    }
}

impl Config {
    /// Decides which of a server's two faces counts.
    fn settle(
        &mut self,
        name: String,
        draft: Draft,
        settings: &SettingsEntry,
        approvals: &Approvals<'_>,
    ) {
        if let Some((mut definition, origin)) = draft.project
            && let Some(transport) = self.transport(&name, &definition, &origin)
        {
            let users = draft.user.as_ref().map(|(entry, _)| entry);
            keep_asking(&mut definition, users, settings);
            // What is approved is what runs: the hash is of the definition as it will be used.
            let files = (approvals.file_hashes)(&definition);
            let hash = trust_hash(&name, &definition, approvals.project_root, &files);
            if draft.forbidden.is_empty() && (approvals.is_approved)(&hash) {
                let trust = Trust::Approved(hash);
                self.servers.insert(name, Server { definition, transport, trust });
                return;
            }
            let reason = if draft.forbidden.is_empty() {
                PendingReason::NotApproved
            } else {
                PendingReason::ForbiddenKeys(draft.forbidden)
            };
            let name = name.clone();
            self.pending.push(PendingServer { name, definition, transport, hash, origin, reason });
        }
        if let Some((definition, origin)) = draft.user
            && let Some(transport) = self.transport(&name, &definition, &origin)
        {
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
        let key = ["command", "url", "socket"];
        let at = key.iter().find_map(|key| definition.origins.get(key)).unwrap_or(origin);
        let (path, line, column) = (Some(at.path.clone()), at.line, at.column);
        self.diagnostics.push(Diagnostic { level: Level::Error, path, line, column, kind });
        None
    }
}

/// A project's `approveTools` adds to the user's rule and never replaces it.
fn keep_asking(project: &mut ServerEntry, user: Option<&ServerEntry>, settings: &SettingsEntry) {
    let Some(rule) = project.approve_tools.take() else {
        return;
    };
    let users = user.and_then(|entry| entry.approve_tools.as_ref());
    let lower = users.or(settings.approve_tools.as_ref());
    project.approve_tools = Some(match lower {
        Some(lower) if *lower != rule => rule.union(lower.clone()),
        _ => rule,
    });
}
