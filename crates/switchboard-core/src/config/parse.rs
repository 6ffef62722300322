//! Parses one of our configuration files into entries and diagnostics.

use jsonc_parser::ast::Value;

use super::diagnostic::{Diagnostic, DiagnosticKind};
use super::fields::{boolean, choices, string};
use super::hosts::Host;
use super::ignored;
use super::layers::{ConfigOrigin, ConfigSource, Tier};
use super::misplaced;
use super::reader::{ConfigReader, KeyedValue, Member, Reported, join};
use super::server::ServerEntry;
use super::settings::SettingsEntry;
use super::syntax::{self, OWN_FILE_BYTES, Syntax};
use crate::name::ServerName;

const MAX_SERVERS: usize = 1_000;

/// Parses JSONC. A file with a syntax error, or without content, has no entries.
pub fn parse(text: &str, source: &ConfigSource) -> ParsedFile {
    let mut file = ParsedFile::default();
    let mut is_empty = true;
    let read = |reader: &mut ConfigReader<'_>, root: &Value<'_>| {
        is_empty = false;
        file.read_root(reader, root);
    };
    let mut diagnostics = syntax::read((text, Syntax::Jsonc), source, OWN_FILE_BYTES, read);
    // An interrupted write leaves an empty file, so an empty file of the user is an error.
    if is_empty && diagnostics.is_empty() && source.tier == Tier::User {
        let mut reader = ConfigReader::new(text, source);
        reader.error(0, DiagnosticKind::Empty);
        diagnostics = reader.into_diagnostics();
    }
    file.diagnostics = diagnostics;
    file
}

/// The content of one parsed file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedFile {
    /// The servers in the order of the file. Their names are unique.
    pub servers: Vec<ParsedServer>,
    pub settings: SettingsEntry,
    /// The hosts that `imports` of this file names.
    pub imports: Vec<Host>,
    /// The host whose file this is; `None` for one of our files.
    pub host: Option<Host>,
    /// The names of the refused entries, each with the reason.
    pub refused: Vec<(String, Diagnostic)>,
    /// The names of all ignored entries, including those in files of hosts.
    pub left_out: Vec<String>,
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ParsedServer {
    pub name: String,
    pub entry: ServerEntry,
    /// The position of the server's name.
    pub origin: ConfigOrigin,
}

impl ParsedFile {
    /// The names of all servers in the file, including those with invalid entries.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let usable = self.servers.iter().map(|server| server.name.as_str());
        let refused = self.refused.iter().map(|(name, _)| name.as_str());
        usable.chain(refused).chain(self.left_out.iter().map(String::as_str))
    }

    /// Whether the file denies, filters or disables any tool or server, or requires approval.
    pub fn has_rules(&self) -> bool {
        self.settings.has_rules() || self.servers.iter().any(|server| server.entry.restricts())
    }

    fn read_root(&mut self, reader: &mut ConfigReader<'_>, root: &Value<'_>) {
        let root = KeyedValue { key: "", value: root };
        for member in reader.members(root).into_iter().flatten() {
            // A key of the wrong type is reported when it is read. The other keys are still used.
            match member.name {
                "mcpServers" | "mcp-servers" => self.read_servers(reader, &member),
                "settings" => self.read_settings(reader, &member),
                "imports" if is_project(reader) => forbid(reader, &member),
                "imports" => {
                    self.imports = choices(reader, member.input()).unwrap_or_default();
                }
                "$schema" | "version" | "name" | "description" => {
                    string(reader, member.input()).ok();
                }
                name if is_project(reader) && claims_trust(name) => forbid(reader, &member),
                name if ignored::ROOT.contains(&name) => reader.ignored_key(&member),
                name => {
                    // Only the name is checked in a project file, because project files have no
                    // rules.
                    let meant = match is_project(reader) {
                        true => misplaced::root_by_name(name),
                        false => misplaced::in_root(name, member.value),
                    };
                    unknown_key(reader, &member, meant, ROOT_KEYS);
                }
            }
        }
    }

    fn read_servers(&mut self, reader: &mut ConfigReader<'_>, servers: &Member<'_>) {
        for member in reader.members(servers.input()).into_iter().flatten() {
            if !has_room(&self.servers, reader, (&servers.key, member.offset)) {
                return;
            }
            if !is_project(reader)
                && let Some(rule) = misplaced::among_servers(member.name, member.value)
            {
                misspelt_rule(reader, &member, rule);
                self.left_out.push(member.name.to_owned());
                continue;
            }
            let before = reader.problems();
            // A file may have the root key in both spellings, so a server may occur twice.
            let again = self.servers.iter().any(|server| server.name == member.name);
            if again {
                let key = member.key.clone();
                reader.error(member.offset, DiagnosticKind::GivenTwice { key });
                self.servers.retain(|server| server.name != member.name);
            }
            let twice = member.twice || again;
            let read = if twice { None } else { read_server(reader, &member) };
            match read {
                Some(server) => self.servers.push(server),
                None => {
                    let problem = match twice {
                        true => reader.given_twice(&member.key),
                        false => reader.error_after(before),
                    };
                    let problem = problem.cloned();
                    self.refused.extend(problem.map(|problem| (member.name.to_owned(), problem)));
                    self.left_out.push(member.name.to_owned());
                }
            }
        }
    }

    fn read_settings(&mut self, reader: &mut ConfigReader<'_>, settings: &Member<'_>) {
        for member in reader.members(settings.input()).into_iter().flatten() {
            if is_project(reader) && SettingsEntry::is_for_user_files(member.name) {
                forbid(reader, &member);
                continue;
            }
            let mut setting = SettingsEntry::default();
            match setting.read_field(reader, member.name, &member) {
                Some(Ok(())) if is_project(reader) && setting.has_too_short_time() => {
                    let expected = "at least one second in a project file";
                    reader.out_of_range(member.input(), expected);
                }
                Some(Ok(())) => self.settings.overlay(&setting),
                Some(Err(Reported)) => {}
                None if ignored::SETTINGS.contains(&member.name) => reader.ignored_key(&member),
                None => {
                    let meant = match is_project(reader) {
                        true => misplaced::setting_by_name(member.name),
                        false => misplaced::in_settings(member.name, member.value),
                    };
                    unknown_key(reader, &member, meant, SettingsEntry::KEYS);
                }
            }
        }
    }
}

/// Reports an unknown key, or a key that may be meant as `rule`.
fn unknown_key(
    reader: &mut ConfigReader<'_>,
    member: &Member<'_>,
    rule: Option<String>,
    known: &[&'static str],
) {
    match rule {
        Some(rule) => misspelt_rule(reader, member, rule),
        None => reader.unknown_key(member, known),
    }
}

fn misspelt_rule(reader: &mut ConfigReader<'_>, member: &Member<'_>, rule: String) {
    let key = member.key.clone();
    reader.error(member.offset, DiagnosticKind::MisspeltRule { key, rule });
}

pub(super) const ROOT_KEYS: &[&str] = &[
    "mcpServers",
    "mcp-servers",
    "settings",
    "imports",
    "$schema",
    "version",
    "name",
    "description",
];

/// Whether the limit allows another server under `key`. Reports the first server beyond it.
pub(super) fn has_room(
    read: &[ParsedServer],
    reader: &mut ConfigReader<'_>,
    (key, offset): (&str, usize),
) -> bool {
    let full = read.len() >= MAX_SERVERS;
    if full {
        let kind = DiagnosticKind::TooManyEntries { key: key.to_owned(), limit: MAX_SERVERS };
        reader.error(offset, kind);
    }
    !full
}

/// Reads one server. `None` if an error makes its other fields unreliable, or if the entry is our
/// own in a file that we share with a host.
fn read_server(reader: &mut ConfigReader<'_>, server: &Member<'_>) -> Option<ParsedServer> {
    if let Err(problem) = ServerName::new(server.name) {
        let key = server.key.clone();
        reader.error(server.offset, DiagnosticKind::BadName { key, problem });
        return None;
    }
    let members = reader.members(server.input()).ok()?;
    let ParsedFields { mut entry, enabled, sound } = read_fields(reader, members, &[]);
    // If `enabled` and `disabled` contradict each other, the server is disabled.
    if let Some((enabled, origin)) = enabled
        && entry.disabled != Some(true)
    {
        entry.disabled = Some(!enabled);
        entry.origins.insert("disabled", origin);
    }
    let whole = check_endpoints(reader, server, &entry) && sound && !entry.is_gateway();
    let origin = reader.origin(server.offset);
    whole.then(|| ParsedServer { name: server.name.to_owned(), entry, origin })
}

/// The fields of one entry, and whether they are valid.
pub(super) struct ParsedFields {
    pub(super) entry: ServerEntry,
    /// The value and position of `enabled`, whose meaning depends on the format of the file.
    pub(super) enabled: Option<(bool, ConfigOrigin)>,
    /// Whether every field was valid and allowed in this file.
    pub(super) sound: bool,
}

/// Reads the fields that all our file formats share. `besides` are further keys, which the caller
/// reads.
pub(super) fn read_fields(
    reader: &mut ConfigReader<'_>,
    members: Vec<Member<'_>>,
    besides: &[&'static str],
) -> ParsedFields {
    let mut fields = ParsedFields { entry: ServerEntry::default(), enabled: None, sound: true };
    for member in members {
        fields.sound &= !member.twice;
        if besides.contains(&member.name) {
            continue;
        }
        if is_project(reader) && ServerEntry::is_for_user_files(member.name) {
            forbid(reader, &member);
            fields.sound = false;
            continue;
        }
        let read = match member.name {
            "enabled" => {
                let origin = reader.origin(member.offset);
                let read = boolean(reader, member.input());
                Some(read.map(|enabled| fields.enabled = Some((enabled, origin))))
            }
            "timeout" => fields.entry.read_field(reader, "startTimeoutMs", &member),
            name => fields.entry.read_field(reader, name, &member),
        };
        match read {
            Some(read) => fields.sound &= read.is_ok(),
            None if ignored::SERVER.contains(&member.name) => reader.ignored_key(&member),
            None if let Some(rule) = misplaced_field(reader, &member) => {
                misspelt_rule(reader, &member, rule.to_owned());
                fields.sound = false;
            }
            None => {
                let known = ServerEntry::KEYS.iter().copied().chain(["timeout"]);
                let known: Vec<&str> = known.chain(besides.iter().copied()).collect();
                reader.unknown_key(&member, &known);
            }
        }
    }
    fields
}

fn misplaced_field(reader: &ConfigReader<'_>, member: &Member<'_>) -> Option<&'static str> {
    let by_name = misplaced::field_by_name(member.name);
    match is_project(reader) {
        true => by_name,
        false => by_name.or_else(|| misplaced::field(member.name, member.value)),
    }
}

/// Reports an entry that has more than one endpoint.
pub(super) fn check_endpoints(
    reader: &mut ConfigReader<'_>,
    server: &Member<'_>,
    entry: &ServerEntry,
) -> bool {
    let several = entry.endpoints().into_iter().flatten().count() > 1;
    if several {
        let kind = DiagnosticKind::SeveralEndpoints { server: join("", server.name) };
        reader.error(server.offset, kind);
    }
    !several
}

pub(super) fn is_project(reader: &ConfigReader<'_>) -> bool {
    reader.source().tier == Tier::Project
}

pub(super) fn forbid(reader: &mut ConfigReader<'_>, member: &Member<'_>) {
    let key = member.key.clone();
    reader.error(member.offset, DiagnosticKind::ForbiddenInProject { key });
}

/// Whether other programs read the key as a permission. We support no such key, but a project file
/// that contains one claims to be trusted.
pub(super) fn claims_trust(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let claims =
        ["trust", "allow", "deny", "alwaysallow", "approve", "autoapprove", "bypass", "permission"];
    claims.iter().any(|claim| name.starts_with(claim)) || name == "proxy"
}
