//! The JSON Schemas of our files, generated from the tables that parse them.
//!
//! For each reader in `fields.rs`, a function of the same name here describes its schema. The key
//! tables in `server.rs` and `settings.rs` use the name for both.

use serde_json::{Map, Value, json};

use super::auth::{self, AuthWord, OAuthOptions};
use super::hosts::Host;
use super::server::ServerEntry;
use super::settings::SettingsEntry;

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema of `mcp.json`.
pub fn file() -> Value {
    let mut server = ServerEntry::schema();
    server.insert("timeout".to_owned(), start_timeout());
    let servers = json!({ "type": "object", "additionalProperties": { "$ref": "#/$defs/server" } });
    let content = [
        ("mcpServers", servers.clone()),
        ("mcp-servers", servers),
        ("imports", json!({ "type": "array", "items": words(Host::WORDS) })),
        ("settings", object(SettingsEntry::schema())),
    ];
    document("mcp.json", content, object(server))
}

/// The schema of `.pi/mcp-servers.json`.
pub fn pi_servers() -> Value {
    let mut server = ServerEntry::schema();
    let id = json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,256}$" });
    server.insert("id".to_owned(), id);
    server.insert("timeout".to_owned(), start_timeout());
    let mut server = object(server);
    server["required"] = json!(["id"]);
    server["anyOf"] =
        json!([{ "required": ["url"] }, { "required": ["command"] }, { "required": ["socket"] }]);
    let servers = json!({ "type": "array", "items": { "$ref": "#/$defs/server" } });
    document(".pi/mcp-servers.json", [("servers", servers)], server)
}

fn document<const N: usize>(file: &str, content: [(&str, Value); N], server: Value) -> Value {
    let unused = ["$schema", "version", "name", "description"].map(|key| (key, string()));
    let properties = unused.into_iter().chain(content);
    let properties: Map<_, _> = properties.map(|(key, value)| (key.to_owned(), value)).collect();
    json!({
        "$schema": DRAFT,
        "title": format!("Switchboard: {file}"),
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "$defs": { "server": server },
    })
}

fn object(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// The schema of a table row. For a choice, it comes from the enum, and otherwise from the function
/// named like the reader.
macro_rules! row_schema {
    (choice, $kind:ty) => {
        $crate::config::schema::words(<$kind>::WORDS)
    };
    ($read:ident, $kind:ty) => {
        $crate::config::schema::$read()
    };
}
pub(super) use row_schema;

pub(super) use self::{
    endpoint as url, string as secret, string as template, string as text, strings as patterns,
    strings as templates,
};

pub(super) fn words(words: &[&str]) -> Value {
    json!({ "enum": words })
}

pub(super) fn string() -> Value {
    json!({ "type": "string" })
}

pub(super) fn account() -> Value {
    json!({ "type": "string", "pattern": "^[A-Za-z0-9._@+-]{1,64}$" })
}

pub(super) fn strings() -> Value {
    json!({ "type": "array", "items": string() })
}

pub(super) fn variable_names() -> Value {
    json!({ "type": "array", "items": { "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" } })
}

pub(super) fn endpoint() -> Value {
    json!({ "type": "string", "pattern": "\\S" })
}

pub(super) fn template_map() -> Value {
    json!({ "type": "object", "additionalProperties": string() })
}

pub(super) fn keywords() -> Value {
    json!({ "type": "object", "additionalProperties": strings() })
}

pub(super) fn boolean() -> Value {
    json!({ "type": "boolean" })
}

pub(super) fn count() -> Value {
    json!({ "type": "integer", "minimum": 1 })
}

pub(super) fn collapsed_lines() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": 3 })
}

pub(super) fn milliseconds() -> Value {
    json!({ "type": "number", "minimum": 1, "maximum": 86_400_000 })
}

pub(super) fn start_timeout() -> Value {
    json!({ "type": "number", "minimum": 1_000, "maximum": 300_000 })
}

pub(super) fn idle_timeout() -> Value {
    json!({ "type": "number", "minimum": 0, "maximum": 525_600 })
}

pub(super) fn tool_rule() -> Value {
    json!({ "anyOf": [boolean(), strings()] })
}

pub(super) fn direct_tools() -> Value {
    json!({ "anyOf": [boolean(), words(&["search"]), strings()] })
}

pub(super) fn output_guard() -> Value {
    let limits = json!({ "maxBytes": count(), "maxLines": count() });
    json!({ "anyOf": [boolean(), { "type": "object", "properties": limits, "additionalProperties": false }] })
}

pub(super) fn auth() -> Value {
    let keys = auth::AUTH_KEYS.iter().map(|key| match *key {
        "type" => ("type".to_owned(), words(AuthWord::WORDS)),
        key => (key.to_owned(), string()),
    });
    let mut details = object(keys.collect());
    details["required"] = json!(["type"]);
    json!({ "anyOf": [{ "const": false }, words(AuthWord::WORDS), details] })
}

pub(super) fn oauth() -> Value {
    json!({ "anyOf": [{ "const": false }, object(OAuthOptions::schema())] })
}

pub(super) fn request_headers_command() -> Value {
    let timeout = json!({ "type": "number", "minimum": 1, "maximum": 60_000 });
    let keys = json!({
        "command": endpoint(), "args": templates(), "env": template_map(), "timeoutMs": timeout,
    });
    json!({
        "type": "object",
        "properties": keys,
        "additionalProperties": false,
        "required": ["command"],
    })
}
