//! `.pi/mcp-servers.json`: the defaults of this format, and diagnostics in the words that its users
//! know.

use super::*;

fn check(text: &str, expected: &str) {
    let file = pi_servers::parse(text, &source("f", PROJECT));
    assert_eq!(summary(&file), expected.trim(), "{text}");
}

fn server(fields: &str) -> ServerEntry {
    let text = format!(r#"{{"servers": [{{"id": "s", {fields}}}]}}"#);
    let mut file = pi_servers::parse(&text, &source("f", PROJECT));
    assert_eq!(file.diagnostics, [], "{fields}");
    file.servers.remove(0).entry
}

#[test]
fn complete_pi_server_list_is_parsed() {
    check(
        r#"{
  "$schema": "./mcp-servers.schema.json", "version": "1.0", "name": "n", "description": "d",
  "servers": [
    {"id": "my-http", "name": "My", "url": "http://localhost:3000/mcp", "description": "d",
     "enabled": true, "timeout": 30000},
    {"id": "my_sse", "url": "sse://localhost:3001/sse"},
  ],
}"#,
        "
my-http description:4 enabled:5 lifecycle:5 name:4 startTimeoutMs:5 url:4
my_sse enabled:6 url:6",
    );
}

#[test]
fn pi_list_server_connects_at_start_only_if_enabled() {
    let on = server(r#""url": "npx -y x", "enabled": true"#);
    assert_eq!((on.enabled, on.lifecycle), (Some(true), Some(Lifecycle::Eager)));
    for fields in [r#""url": "npx -y x""#, r#""url": "npx -y x", "enabled": false"#] {
        let off = server(fields);
        assert_eq!((off.enabled, off.lifecycle, off.disabled), (Some(false), None, None));
    }
    let kept = server(r#""url": "x", "enabled": true, "lifecycle": "keep-alive""#);
    assert_eq!(kept.lifecycle, Some(Lifecycle::KeepAlive));
}

#[test]
fn pi_server_list_errors_keep_their_original_wording() {
    check("{\"servers\": [", "f:1:13: error: Failed to parse MCP config file: unterminated array");
    check(
        r#"{"servers": [
  {"id": "a", "url": "x"},
  {"id": "a", "url": "y"},
  {"id": "b c", "url": "x"},
  {"id": "", "url": "x"},
  {"url": "x"},
  {"id": "d"},
  {"id": "e", "url": "x", "timeout": 999},
  {"id": "f", "url": "x", "enabled": "yes"},
  {"id": "g", "url": "x", "inheritEnv": true},
  {"id": "h", "url": "x", "comand": 1},
  7,
], "server": 1}"#,
        "
a enabled:2 url:2
h enabled:11 url:11
f:3:3: error: Invalid MCP config: servers[1]: duplicate id 'a'
f:4:10: error: Invalid MCP config: servers[2].id: must contain only alphanumeric characters, \
underscores and hyphens
f:5:10: error: Invalid MCP config: servers[3].id: must contain only alphanumeric characters, \
underscores and hyphens
f:6:3: error: Invalid MCP config: `servers[4].id` is missing
f:7:3: error: Invalid MCP config: `servers[5].url` is missing
f:8:38: error: Invalid MCP config: `servers[6].timeout` must be from 1000 to 300000 (milliseconds)
f:9:38: error: Invalid MCP config: `servers[7].enabled` must be a boolean, found a string
f:10:27: error: `servers[8].inheritEnv` is not allowed in a project file
f:11:27: warning: unknown key `servers[9].comand`, did you mean `command`?
f:12:3: error: Invalid MCP config: `servers[10]` must be an object, found a number
f:13:4: warning: unknown key `server`, did you mean `servers`?",
    );
    check(
        r#"{"servers": {}}"#,
        "f:1:13: error: Invalid MCP config: `servers` must be an array of objects, found an object",
    );
}
