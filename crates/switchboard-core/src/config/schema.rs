//! The JSON Schemas of our files, generated from the tables that parse them.
//!
//! Each reader of `fields.rs` has a function of the same name here; the tables call both.

use serde_json::{Map, Value, json};

use super::auth::{self, AuthWord, GrantType};
use super::hosts::Host;
use super::server::ServerEntry;
use super::settings::SettingsEntry;

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema of `mcp.json`.
pub fn file() -> Value {
    let mut server = ServerEntry::schema();
    server.insert("timeout".to_owned(), start_timeout());
    let servers = json!({ "type": "object", "additionalProperties": { "$ref": "#/$defs/server" } });
    json!({
        "$schema": DRAFT,
        "title": "Switchboard: mcp.json",
        "type": "object",
        "properties": {
            "$schema": string(),
            "version": string(),
            "name": string(),
            "description": string(),
            "mcpServers": servers,
            "mcp-servers": servers,
            "imports": { "type": "array", "items": words(Host::WORDS) },
            "settings": object(SettingsEntry::schema()),
        },
        "additionalProperties": false,
        "$defs": { "server": object(server) },
    })
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
    json!({
        "$schema": DRAFT,
        "title": "Switchboard: .pi/mcp-servers.json",
        "type": "object",
        "properties": {
            "$schema": string(),
            "version": string(),
            "name": string(),
            "description": string(),
            "servers": { "type": "array", "items": { "$ref": "#/$defs/server" } },
        },
        "additionalProperties": false,
        "$defs": { "server": server },
    })
}

fn object(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// The schema of a table row: an enum for choices, and otherwise the function of its reader.
macro_rules! row_schema {
    (choice, $kind:ty) => {
        $crate::config::schema::words(<$kind>::WORDS)
    };
    ($read:ident, $kind:ty) => {
        $crate::config::schema::$read()
    };
}
pub(super) use row_schema;

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

pub(super) fn patterns() -> Value {
    strings()
}

pub(super) fn template() -> Value {
    string()
}

pub(super) fn secret() -> Value {
    string()
}

pub(super) fn endpoint() -> Value {
    json!({ "type": "string", "pattern": "\\S" })
}

pub(super) fn url() -> Value {
    endpoint()
}

pub(super) fn templates() -> Value {
    strings()
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
    let keys = auth::OAUTH_KEYS.iter().map(|key| {
        let schema = match *key {
            "grantType" => words(GrantType::WORDS),
            "authorizationParams" => template_map(),
            "skipIssuerMetadataValidation" => boolean(),
            _ => string(),
        };
        ((*key).to_owned(), schema)
    });
    json!({ "anyOf": [{ "const": false }, object(keys.collect())] })
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
