//! Parses `.pi/mcp-servers.json`: a list of servers with ids. A server is started only if it has
//! `enabled`.

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;

use super::diagnostic::{Diagnostic, DiagnosticKind, Level};
use super::fields::string;
use super::layers::ConfigSource;
use super::parse::{
    ParsedFields, ParsedFile, ParsedServer, check_endpoints, claims_trust, forbid, has_room,
    is_project, read_fields,
};
use super::reader::{ConfigReader, KeyedValue, MAX_ENTRIES, Member, join};
use super::syntax::{self, OWN_FILE_BYTES, Syntax};
use super::values::Lifecycle;
use crate::name::plain_id;

/// Parses the list of servers. The diagnostics begin with the error texts that users of this format
/// know.
pub fn parse(text: &str, source: &ConfigSource) -> ParsedFile {
    let mut file = ParsedFile::default();
    let read = |reader: &mut ConfigReader<'_>, root: &Value<'_>| read_root(&mut file, reader, root);
    let diagnostics = syntax::read((text, Syntax::Jsonc), source, OWN_FILE_BYTES, read);
    file.diagnostics = diagnostics.into_iter().map(in_format_wording).collect();
    let refused = std::mem::take(&mut file.refused).into_iter();
    file.refused = refused.map(|(id, why)| (id, in_format_wording(why))).collect();
    file
}

pub(super) const ROOT_KEYS: &[&str] = &["$schema", "version", "name", "description", "servers"];

fn in_format_wording(mut diagnostic: Diagnostic) -> Diagnostic {
    diagnostic.kind = match diagnostic.kind {
        DiagnosticKind::Syntax { clause } => {
            DiagnosticKind::Syntax { clause: format!("Failed to parse MCP config file: {clause}") }
        }
        kind @ DiagnosticKind::ForbiddenInProject { .. } => kind,
        kind if diagnostic.level == Level::Error => {
            DiagnosticKind::InvalidMcpConfig { problem: Box::new(kind) }
        }
        kind => kind,
    };
    diagnostic
}

fn read_root(file: &mut ParsedFile, reader: &mut ConfigReader<'_>, root: &Value<'_>) {
    let root = KeyedValue { key: "", value: root };
    for member in reader.members(root).into_iter().flatten() {
        match member.name {
            "servers" => read_servers(file, reader, &member),
            "$schema" | "version" | "name" | "description" => {
                string(reader, member.input()).ok();
            }
            name if is_project(reader) && (name == "imports" || claims_trust(name)) => {
                forbid(reader, &member);
            }
            _ => reader.unknown_key(&member, ROOT_KEYS),
        }
    }
}

fn read_servers(file: &mut ParsedFile, reader: &mut ConfigReader<'_>, servers: &Member<'_>) {
    let Value::Array(array) = servers.value else {
        reader.wrong_type(servers.input(), "an array of objects");
        return;
    };
    if array.elements.len() > MAX_ENTRIES {
        reader.too_many_entries(servers.input());
        return;
    }
    for (index, value) in array.elements.iter().enumerate() {
        if !has_room(&file.servers, reader, (&servers.key, value.start())) {
            return;
        }
        let key = format!("{}[{index}]", servers.key);
        let before = reader.problems();
        let Some(server) = read_server(reader, KeyedValue { key: &key, value }) else {
            let id = value.as_object().and_then(|server| server.get_string("id"));
            let refused = id.zip(reader.error_after(before));
            file.refused.extend(refused.map(|(id, why)| (id.value.to_string(), why.clone())));
            continue;
        };
        if file.servers.iter().any(|earlier| earlier.name == server.name) {
            let id = join("", &server.name);
            reader.error(value.start(), DiagnosticKind::DuplicateId { key, id });
        } else {
            file.servers.push(server);
        }
    }
}

fn read_server(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Option<ParsedServer> {
    let KeyedValue { key, value } = input;
    let members = reader.members(input).ok()?;
    let id = members.iter().find(|member| member.name == "id").map(|id| (id.offset, id.value));
    let Some((offset, id)) = id else {
        reader.error(value.start(), DiagnosticKind::MissingKey { key: format!("{key}.id") });
        return None;
    };
    let name = string(reader, KeyedValue { key: &format!("{key}.id"), value: id }).ok()?;
    if plain_id(&name).is_none() {
        reader.error(id.start(), DiagnosticKind::BadId { key: key.to_owned() });
        return None;
    }
    let ParsedFields { mut entry, enabled, sound } = read_fields(reader, members, &["id"]);
    let (enabled, at) = enabled.unwrap_or_else(|| (false, reader.origin(offset)));
    entry.enabled = Some(enabled);
    entry.origins.insert("enabled", at.clone());
    if enabled && entry.lifecycle.is_none() {
        entry.lifecycle = Some(Lifecycle::Eager);
        entry.origins.insert("lifecycle", at);
    }
    let member = Member { name: &name, key: key.to_owned(), offset, value, twice: false };
    if !check_endpoints(reader, &member, &entry) || !sound {
        return None;
    }
    if !entry.has_endpoint() {
        reader.error(value.start(), DiagnosticKind::MissingKey { key: format!("{key}.url") });
        return None;
    }
    let origin = reader.origin(offset);
    Some(ParsedServer { name, entry, origin })
}
