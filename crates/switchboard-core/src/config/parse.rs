//! One configuration file, from text to entries and diagnostics.

use jsonc_parser::ast::Value;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::diagnostic::{Diagnostic, DiagnosticKind};
use super::fields::{boolean, string, strings};
use super::layers::{Origin, Source, Tier};
use super::reader::{Member, Reader, join};
use super::server::ServerEntry;
use super::settings::SettingsEntry;

const MAX_FILE_BYTES: usize = 1024 * 1024;
const MAX_SERVERS: usize = 1_000;

/// Reads JSONC. A file with a syntax error, or without any content, comes out empty.
pub fn parse(text: &str, source: &Source) -> ParsedFile {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader::new(text, source);
    let mut file = ParsedFile::default();
    if text.len() > MAX_FILE_BYTES {
        reader.error(0, DiagnosticKind::FileTooLarge { limit: MAX_FILE_BYTES });
    } else {
        match parse_to_ast(text, &CollectOptions::default(), &STRICT) {
            Ok(parsed) => {
                if let Some(root) = &parsed.value {
                    file.read_root(&mut reader, root);
                }
            }
            Err(error) => {
                let clause = lower_first(&error.kind().to_string());
                reader.error(error.range().start, DiagnosticKind::Syntax { clause });
            }
        }
    }
    file.diagnostics = reader.into_diagnostics();
    file
}

/// JSON with comments and trailing commas, and nothing else that a parser may be lenient about.
pub(super) const STRICT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// What one file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedFile {
    /// In the order of the file, each name once.
    pub servers: Vec<ParsedServer>,
    pub settings: SettingsEntry,
    /// The hosts whose files are to be read, too.
    pub imports: Vec<String>,
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ParsedServer {
    pub name: String,
    pub entry: ServerEntry,
    /// Where its name stands.
    pub origin: Origin,
    /// The keys that a project file must not have. They are not part of `entry`.
    pub forbidden: Vec<String>,
}

impl ParsedFile {
    fn read_root(&mut self, reader: &mut Reader<'_>, root: &Value<'_>) {
        let Ok(members) = reader.members("", root) else {
            return;
        };
        for member in members {
            // A key of the wrong type is reported where it is read; the others still count.
            match member.name {
                "mcpServers" | "mcp-servers" => self.read_servers(reader, &member),
                "settings" => self.read_settings(reader, &member),
                "imports" => {
                    self.imports = strings(reader, &member.key, member.value).unwrap_or_default();
                }
                "$schema" | "version" | "name" | "description" => {
                    string(reader, &member.key, member.value).ok();
                }
                name if is_project(reader) && claims_trust(name) => forbid(reader, &member),
                _ => reader.unknown_key(&member, ROOT_KEYS),
            }
        }
    }

    fn read_servers(&mut self, reader: &mut Reader<'_>, servers: &Member<'_>) {
        let Ok(members) = reader.members(&servers.key, servers.value) else {
            return;
        };
        for member in members {
            // Both spellings of the root key may stand in one file.
            if self.servers.iter().any(|server| server.name == member.name) {
                let key = member.key.clone();
                reader.warn(member.offset, DiagnosticKind::DuplicateKey { key });
                self.servers.retain(|server| server.name != member.name);
            }
            if self.servers.len() >= MAX_SERVERS {
                let (key, limit) = (servers.key.clone(), MAX_SERVERS);
                reader.error(member.offset, DiagnosticKind::TooManyEntries { key, limit });
                return;
            }
            self.servers.extend(read_server(reader, &member));
        }
    }

    fn read_settings(&mut self, reader: &mut Reader<'_>, settings: &Member<'_>) {
        let Ok(members) = reader.members(&settings.key, settings.value) else {
            return;
        };
        for member in members {
            if is_project(reader) && setting_loosens(&member) {
                forbid(reader, &member);
                continue;
            }
            let origin = reader.origin(member.offset);
            let key = (member.name, member.key.as_str());
            let read = self.settings.read_setting(reader, key, member.value, origin);
            if read.is_none() {
                reader.unknown_key(&member, SettingsEntry::KEYS);
            }
        }
    }
}

const ROOT_KEYS: &[&str] = &[
    "mcpServers",
    "mcp-servers",
    "settings",
    "imports",
    "$schema",
    "version",
    "name",
    "description",
];

/// `None` drops the server: something in it is wrong, and the rest might mean something else.
fn read_server(reader: &mut Reader<'_>, server: &Member<'_>) -> Option<ParsedServer> {
    let mut entry = ServerEntry::default();
    let mut forbidden = Vec::new();
    let mut enabled = None;
    let mut sound = true;
    for member in reader.members(&server.key, server.value).ok()? {
        if is_project(reader) && field_loosens(&member) {
            forbid(reader, &member);
            forbidden.push(member.key);
            continue;
        }
        let origin = reader.origin(member.offset);
        let path = member.key.as_str();
        let read = match member.name {
            "enabled" => {
                let read = boolean(reader, path, member.value);
                Some(read.map(|value| enabled = Some((value, origin))))
            }
            "timeout" => entry.read_field(reader, ("startTimeoutMs", path), member.value, origin),
            name => entry.read_field(reader, (name, path), member.value, origin),
        };
        match read {
            Some(read) => sound &= read.is_ok(),
            None => reader.unknown_key(&member, &known_server_keys()),
        }
    }
    // Whichever of the two says off is heard.
    if let Some((enabled, origin)) = enabled
        && entry.disabled != Some(true)
    {
        entry.disabled = Some(!enabled);
        entry.origins.insert("disabled", origin);
    }
    let endpoints = [&entry.command, &entry.url, &entry.socket];
    if endpoints.iter().filter(|endpoint| endpoint.is_some()).count() > 1 {
        let kind = DiagnosticKind::SeveralEndpoints { server: join("", server.name) };
        reader.error(server.offset, kind);
        sound = false;
    }
    let origin = reader.origin(server.offset);
    sound.then(|| ParsedServer { name: server.name.to_owned(), entry, origin, forbidden })
}

fn known_server_keys() -> Vec<&'static str> {
    ServerEntry::KEYS.iter().copied().chain(["enabled", "timeout"]).collect()
}

fn is_project(reader: &Reader<'_>) -> bool {
    reader.source().tier == Tier::Project
}

fn forbid(reader: &mut Reader<'_>, member: &Member<'_>) {
    let key = member.key.clone();
    reader.error(member.offset, DiagnosticKind::ForbiddenInProject { key });
}

/// Whether a server's field would let a project decide how far it is trusted.
fn field_loosens(member: &Member<'_>) -> bool {
    match member.name {
        "approveTools" => is_literally(member.value, false),
        "inheritEnv" => is_literally(member.value, true),
        "autoApprove" | "caFile" => true,
        name => !ServerEntry::KEYS.contains(&name) && claims_trust(name),
    }
}

fn setting_loosens(member: &Member<'_>) -> bool {
    match member.name {
        "approveTools" => is_literally(member.value, false),
        name if SettingsEntry::KEYS.contains(&name) => SettingsEntry::is_the_users(name),
        name => claims_trust(name),
    }
}

/// Keys that other programs read as a grant. We know none of them, but a file that has one means
/// to be trusted.
fn claims_trust(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let claims =
        ["trust", "allow", "alwaysallow", "approve", "autoapprove", "bypass", "permission"];
    claims.iter().any(|claim| name.starts_with(claim)) || name == "proxy"
}

fn is_literally(value: &Value<'_>, wanted: bool) -> bool {
    matches!(value, Value::BooleanLit(literal) if literal.value == wanted)
}

pub(super) fn lower_first(clause: &str) -> String {
    let mut chars = clause.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}
