//! The output of `config show`, and the JSON Schemas of the configuration files.

use serde_json::json;

use super::*;
use crate::config::{schema, show};

#[test]
fn config_show_masks_literal_secrets_but_keeps_variables() {
    let check = |fields: &str, expected: serde_json::Value| {
        assert_eq!(serde_json::Value::from(entry(fields).show()), expected, "{fields}");
    };
    check(
        r#"{"command": "x", "env": {"A": "hunter2", "B": "${B}", "C": "!pass show c", "D": "${D:-hunter2}",
            "E": "!!hunter2", "F": "hunter${F}", "G": ""}}"#,
        json!({"command": "x", "env": {"A": "…", "B": "${B}", "C": "!pass …", "D": "…",
            "E": "…", "F": "…", "G": "…"}}),
    );
    check(
        r#"{"url": "https://u:hunter2@h/p?key=hunter2&q=${Q}&hunter2", "bearerToken": "hunter2",
            "headers": {"Authorization": "Bearer ${T}", "X": "Bearer hunter2"}}"#,
        json!({"url": "https://…@h/p?key=…&q=${Q}&…", "bearerToken": "…",
            "headers": {"Authorization": "Bearer ${T}", "X": "…"}}),
    );
    check(
        r#"{"command": "x", "args": ["--token", "hunter2", "--api-key=hunter2", "-v", "plain",
            "--header", "Authorization: Bearer hunter2", "--token=${T}", "https://h?k=hunter2",
            "--secret"]}"#,
        json!({"command": "x", "args": ["--token", "…", "--api-key=…", "-v", "plain",
            "--header", "Authorization:…", "--token=${T}", "https://h?k=…", "--secret"]}),
    );
    check(
        r#"{"url": "npx  -y 'a b' --key hunter2 ${X}"}"#,
        json!({"url": "npx  -y 'a b' --key … ${X}"}),
    );
    check(
        r#"{"url": "http://h", "auth": {"type": "api-key", "key": "hunter2"},
            "oauth": {"clientSecret": "hunter2", "clientId": "id"}}"#,
        json!({"url": "http://h", "auth": {"key": "…", "type": "api-key", "header": "X-API-Key"},
            "oauth": {"grantType": "authorization_code", "clientId": "id", "clientSecret": "…"}}),
    );
    check(
        r#"{"url": "http://h", "bearerToken": "!sh -c \"echo hunter2\"", "requestHeadersCommand":
            {"command": "sh -x", "args": ["-c", "echo hunter2", "!hunter2", "${T}"]}}"#,
        json!({"url": "http://h", "bearerToken": "!sh …", "requestHeadersCommand":
            {"command": "sh …", "args": ["…", "…", "…", "${T}"], "env": {}, "timeoutMs": 10_000}}),
    );
    check(
        r#"{"url": "http://h", "auth": {"type": "basic", "username": "u", "passwordEnv": "P"},
            "idleTimeout": 1.5, "timeout": 2000}"#,
        json!({"url": "http://h", "auth": {"passwordEnv": "P", "type": "basic", "username": "u"},
            "idleTimeout": 1.5, "startTimeoutMs": 2000}),
    );
}

#[test]
fn diff_masks_an_entry_like_config_show() {
    for fields in [
        r#"{"command": "x --key s3cret", "args": ["--token", "s3cret", "Cookie: s3cret"],
            "env": {"A": "!get --token s3cret", "B": "s3cret${B}"}}"#,
        r#"{"url": "https://s3cret@h?k=s3cret", "headers": {"A": "Bearer ${A}", "B": "s3cret"}}"#,
        r#"{"url": "http://h", "bearerToken": "!sh -c 's3cret'", "requestHeadersCommand": {
            "command": "sh s3cret", "args": ["-c", "s3cret", "!s3cret"], "env": {"A": "s3cret"},
            "timeoutMs": 5}}"#,
    ] {
        let diffed = mask::masked(fields).unwrap();
        assert!(!diffed.contains("s3cret"), "{diffed}");
        let diffed: serde_json::Value = serde_json::from_str(&diffed).unwrap();
        assert_eq!(diffed, serde_json::Value::from(entry(fields).show()));
    }
}

#[test]
fn config_show_lists_field_origins_and_pending_changes() {
    let user =
        "{\"mcpServers\": {\"s\": {\"command\": \"mine\"}},\n\"settings\": {\"maxTools\": 5}}";
    let project = r#"{"mcpServers": {"s": {"args": ["x"]}, "t": {"url": "http://h"}}}"#;
    let shown = show::config(&merged(&[(USER, user), (PROJECT, project)], &|_| false));
    let at = |file: &str| json!({"file": file, "line": 1});
    let expected = json!({
        "s": {"command": "mine", "origin": {"command": at("f0")}, "trust": "user", "pending": {
            "command": "mine", "args": ["x"], "origin": {"args": at("f1"), "command": at("f0")},
            "trust": "pending",
        }},
        "t": {"url": "http://h", "origin": {"url": at("f1")}, "trust": "pending"},
    });
    assert_eq!(shown["servers"], expected);
    assert_eq!(shown["settings"]["maxTools"], 5);
    assert_eq!(shown["settings"]["outputGuard"]["maxLines"], 2_000);
    assert_eq!(shown["settings"]["origin"], json!({"maxTools": {"file": "f0", "line": 2}}));
    let settings = shown["settings"].as_object().unwrap();
    assert_eq!(settings.len(), crate::config::settings::SettingsEntry::KEYS.len() + 1);
}

#[test]
fn configuration_schema_and_parser_accept_the_same_files() {
    let file = schema::file();
    let keys = |value: &serde_json::Value| -> Vec<String> {
        value["properties"].as_object().unwrap().keys().cloned().collect()
    };
    let server = keys(&file["$defs"]["server"]);
    assert!(ServerEntry::KEYS.iter().all(|key| server.iter().any(|known| known == key)));
    let validator = jsonschema::validator_for(&file).unwrap();
    let check = |text: &str, valid: bool| {
        let instance = serde_json::from_str(text).unwrap();
        assert_eq!(validator.is_valid(&instance), valid, "{text}");
        let sound = parse(text, &source("f", USER)).diagnostics.is_empty();
        assert_eq!(sound, valid, "{text}");
    };
    for (fields, valid) in [
        (r#"{"command": "x", "args": ["a"], "env": {"A": "1"}, "timeout": 1000}"#, true),
        (r#"{"command": "x", "timeout": 999}"#, false),
        (r#"{"command": ""}"#, false),
        (r#"{"comand": "x"}"#, false),
        (r#"{"url": "http://h", "auth": false, "oauth": {"scope": "s"}, "type": "sse"}"#, true),
        (r#"{"url": "http://h", "auth": "magic"}"#, false),
        (r#"{"url": "http://h", "oauth": {"scop": "s"}}"#, false),
        (r#"{"command": "x", "directTools": "search", "approveTools": ["a"]}"#, true),
        (r#"{"command": "x", "enabled": false, "searchKeywords": {"a": ["b"]}}"#, true),
    ] {
        check(&format!(r#"{{"mcpServers": {{"s": {fields}}}}}"#), valid);
    }
    check(
        r#"{"settings": {"outputGuard": {"maxBytes": 1}, "pins": "warn"}, "imports": ["zed"]}"#,
        true,
    );
    check(r#"{"settings": {"pins": "never"}}"#, false);
    check(r#"{"imports": ["emacs"]}"#, false);
}

#[test]
fn pi_server_list_schema_and_parser_accept_equal_files() {
    let validator = jsonschema::validator_for(&schema::pi_servers()).unwrap();
    for (server, valid) in [
        (r#"{"id": "a", "url": "npx x", "enabled": true, "timeout": 1000, "name": "n"}"#, true),
        (r#"{"id": "a b", "url": "x"}"#, false),
        (r#"{"id": "a"}"#, false),
        (r#"{"url": "x"}"#, false),
    ] {
        let text = format!(r#"{{"version": "1.0", "servers": [{server}]}}"#);
        let instance = serde_json::from_str(&text).unwrap();
        assert_eq!(validator.is_valid(&instance), valid, "{text}");
        let sound = pi_servers::parse(&text, &source("f", USER)).diagnostics.is_empty();
        assert_eq!(sound, valid, "{text}");
    }
}
