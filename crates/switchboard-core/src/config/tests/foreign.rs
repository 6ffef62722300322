//! Files of other hosts: what each key means, which servers are ignored, and that no text causes a
//! panic.

use super::*;

const ROOT: &str = "/p";

/// A text for snapshots: every server with its values and their lines, then the diagnostics.
fn read(host: Host, text: &str) -> String {
    let file = hosts::parse(host, text, &source("f", USER), ROOT);
    let mut lines = Vec::new();
    for server in &file.servers {
        let fields = server.entry.show().into_iter().map(|(key, value)| {
            let line = server.entry.origins.get(key.as_str()).map_or(0, |at| at.line);
            format!("\n  {key}:{line} {value}")
        });
        lines.push(format!("{}{}", server.name, fields.collect::<String>()));
    }
    lines.extend(file.diagnostics.iter().map(ToString::to_string));
    lines.join("\n")
}

#[test]
fn list_of_host_names_contains_every_host() {
    assert_eq!(Host::ALL.map(Host::as_str), Host::WORDS);
}

#[test]
fn claude_code_user_and_directory_servers_are_parsed() {
    let text = r#"{
  "numStartups": 12, "history": [{"display": "x"}],
  "mcpServers": {
    "github": {"type": "http", "url": "https://api.example.com/mcp/", "headers": {"Authorization": "Bearer ${TOKEN}"}},
    "both": {"command": "user"},
    "off": {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {}}
  },
  "projects": {
    "/elsewhere": {"mcpServers": {"other": {"command": "x"}}},
    "/p": {
      "allowedTools": [],
      "mcpServers": {"both": {"type": "sse", "url": "https://example.com/sse"}, "gone": null},
      "disabledMcpServers": ["off"], "enabledMcpjsonServers": ["x"]
    }
  }
}"#;
    insta::assert_snapshot!(read(Host::ClaudeCode, text), @r#"
    both
      url:12 "https://example.com/sse"
      type:12 "sse"
    github
      url:4 "https://api.example.com/mcp/"
      headers:4 {"Authorization":"Bearer ${TOKEN}"}
      type:4 "http"
    off
      command:6 "npx"
      args:6 ["-y","x"]
      env:6 {}
      type:6 "stdio"
      disabled:13 true
    f:12:89: error: `mcpServers.gone` must be an object, found null
    "#);
}

#[test]
fn cursor_file_expands_editor_variables() {
    let text = r#"{"mcpServers": {
  "a": {"command": "${workspaceFolder}/run", "args": ["${userHome}/x", "${env:HOME}", "${workspaceFolderBasename}"],
        "env": {"PORT": 8080, "OFF": null}, "envFile": "${workspaceFolder}/.env"},
  "b": {"url": "https://example.com/mcp", "headers": null, "disabled": true},
  "switchboard": {"command": "/usr/local/bin/switchboard", "args": ["serve"]},
  "nothing": {"note": 1},
}}"#;
    insta::assert_snapshot!(read(Host::Cursor, text), @r#"
    a
      command:2 "/p/run"
      args:2 ["${HOME}/x","${env:HOME}","p"]
      env:3 {"PORT":"…"}
    b
      url:4 "https://example.com/mcp"
      disabled:4 true
    f:3:56: warning: `mcpServers.a.envFile` is unsupported: this server starts without the variables in the file that it names
    "#);
}

#[test]
fn vs_code_input_variables_are_unsupported() {
    let text = r#"{
  // Comments are common here.
  "inputs": [{"type": "promptString", "id": "key", "password": true}],
  "servers": {
    "asks": {"type": "stdio", "command": "npx", "env": {"KEY":
        "${input:key}"}},
    "docs": {"type": "http", "url": "https://example.com/mcp"},
    "old": {"type": "sse", "url": "https://example.com/sse", "gallery": true, "version": "1.0.0"}
  }
}"#;
    insta::assert_snapshot!(read(Host::VsCode, text), @r#"
    docs
      url:7 "https://example.com/mcp"
      type:7 "http"
    old
      url:8 "https://example.com/sse"
      type:8 "sse"
    f:6:9: warning: `servers.asks.env` uses `${input:key}`, which only VS Code can expand: this server is ignored
    "#);
}

#[test]
fn codex_server_tables_and_codex_only_keys_are_parsed() {
    let text = r#"
model = "gpt-5"
[mcp_servers.files]
command = "npx"
args = ["-y", "server-files"]
env_vars = ["TOKEN", { name = "OTHER", source = "local" }]
startup_timeout_sec = 0.5
tool_timeout_sec = 120
enabled_tools = ["read"]
disabled_tools = ["write"]
required = true

[mcp_servers.files.env]
LOG = "debug"

[mcp_servers.remote]
url = "https://example.com/mcp"
bearer_token_env_var = "REMOTE_TOKEN"
http_headers = { "X-Region" = "eu" }
env_http_headers = { "X-Key" = "REMOTE_KEY" }
startup_timeout_ms = 20_000
enabled = false

[mcp_servers.switchboard]
command = "switchboard"
args = ["serve"]
"#;
    insta::assert_snapshot!(read(Host::Codex, text), @r#"
    files
      command:4 "npx"
      args:5 ["-y","server-files"]
      env:6 {"TOKEN":"${TOKEN}","OTHER":"${OTHER}","LOG":"…"}
      requestTimeoutMs:8 120000
      startTimeoutMs:7 1000
      includeTools:9 ["read"]
      excludeTools:10 ["write"]
    remote
      url:17 "https://example.com/mcp"
      headers:19 {"X-Region":"…","X-Key":"${REMOTE_KEY}"}
      auth:18 "bearer"
      bearerTokenEnv:18 "REMOTE_TOKEN"
      startTimeoutMs:21 20000
      disabled:22 true
    "#);
    let broken = "[mcp_servers.a]\ncommand = ";
    insta::assert_snapshot!(read(Host::Codex, broken), @r#"f:2:11: error: string values must be quoted, expected literal string"#);
    let wrong =
        "[mcp_servers.a]\ncommand = 1979-05-27\ntool_timeout_sec = 0x10\n[mcp_servers.b]\nurl = 5";
    insta::assert_snapshot!(read(Host::Codex, wrong), @r#"
    f:3:20: error: `mcp_servers.a.tool_timeout_sec` must be a number that is not negative
    f:5:7: error: `mcp_servers.b.url` must be a string, found a number
    "#);
}

#[test]
fn claude_desktop_program_entry_is_parsed() {
    let text = r#"{"globalShortcut": "", "mcpServers": {"files": {"command": "node", "args": ["s.js"], "env": {"KEY": "sk-1"}}}}"#;
    insta::assert_snapshot!(read(Host::ClaudeDesktop, text), @r#"
    files
      command:1 "node"
      args:1 ["s.js"]
      env:1 {"KEY":"…"}
    "#);
}

#[test]
fn opencode_command_list_is_split_into_arguments() {
    let text = r#"{"$schema": "https://opencode.ai/config.json", "mcp": {
  "local": {"type": "local", "command": ["bun", "x", "server"], "environment": {"A": "{env:A}"}, "timeout": 5000},
  "remote": {"type": "remote", "url": "https://example.com/mcp", "headers": {"K": "{env:K}"}, "enabled": false,
    "oauth": {"clientId": "id", "scope": "read"}},
  "file": {"type": "remote", "url": "https://example.com/mcp", "headers": {"K": "{file:~/.key}"}},
  "override": {"enabled": true},
  "self": {"type": "local", "command": ["switchboard", "serve"]}
}}"#;
    insta::assert_snapshot!(read(Host::OpenCode, text), @r#"
    local
      command:2 "bun"
      args:2 ["x","server"]
      env:2 {"A":"{env:A}"}
      type:2 "stdio"
    remote
      url:3 "https://example.com/mcp"
      headers:3 {"K":"{env:K}"}
      oauth:4 {"grantType":"authorization_code","clientId":"id","scope":"read"}
      disabled:3 true
    f:5:81: warning: `mcp.file.headers` uses `{file:~/.key}`, which only OpenCode can expand: this server is ignored
    "#);
}

#[test]
fn windsurf_server_url_key_is_read() {
    let text = r#"{"mcpServers": {
  "remote": {"serverUrl": "https://example.com/mcp", "disabledTools": ["rm"], "alwaysAllow": ["x"]},
  "off": {"command": "uvx", "args": ["x"], "disabled": true}
}}"#;
    insta::assert_snapshot!(read(Host::Windsurf, text), @r#"
    remote
      url:2 "https://example.com/mcp"
      excludeTools:2 ["rm"]
    off
      command:3 "uvx"
      args:3 ["x"]
      disabled:3 true
    "#);
}

#[test]
fn zed_command_forms_are_parsed_and_extensions_ignored() {
    let text = r#"{
  "theme": "One Dark", // settings of an editor
  "context_servers": {
    "old": {"command": {"path": "node", "args": ["s.js"], "env": {"A": "1"}}, "settings": {}},
    "new": {"source": "custom", "enabled": false, "command": "uvx", "args": ["x"]},
    "remote": {"url": "https://example.com/mcp", "headers": {"A": "b"}},
    "extension": {"source": "extension", "settings": {"token": "t"}},
  },
}"#;
    insta::assert_snapshot!(read(Host::Zed, text), @r#"
    old
      command:4 "node"
      args:4 ["s.js"]
      env:4 {"A":"…"}
    new
      command:5 "uvx"
      args:5 ["x"]
      disabled:5 true
    remote
      url:6 "https://example.com/mcp"
      headers:6 {"A":"…"}
    "#);
}

#[test]
fn gemini_cli_url_key_decides_the_transport() {
    let text = r#"{
  "mcp": {"excluded": ["b"], "allowed": ["a", "b", "c", "d"]},
  "mcpServers": {
    "a": {"httpUrl": "https://example.com/mcp", "url": "https://example.com/sse", "timeout": 5000, "trust": true},
    "b": {"url": "https://example.com/sse", "includeTools": ["x"], "excludeTools": ["y"]},
    "c": {"url": "https://example.com/mcp", "type": "http", "headers": {"A": "Bearer $TOKEN"}},
    "d": {"command": "$HOME/bin/x", "args": ["$$", "$1", "a$B_2c/$", "${C}"]},
    "e": {"command": "x"}
  }
}"#;
    insta::assert_snapshot!(read(Host::GeminiCli, text), @r#"
    a
      url:4 "https://example.com/mcp"
      type:4 "streamable-http"
      requestTimeoutMs:4 5000
    b
      url:5 "https://example.com/sse"
      type:5 "sse"
      includeTools:5 ["x"]
      excludeTools:5 ["y"]
      disabled:2 true
    c
      url:6 "https://example.com/mcp"
      headers:6 {"A":"Bearer ${TOKEN}"}
      type:6 "http"
    d
      command:7 "${HOME}/bin/x"
      args:7 ["$$","$1","a${B_2c}/$","${C}"]
    e
      command:8 "x"
      disabled:2 true
    "#);
}

#[test]
fn size_limit_of_host_files_is_lower_in_projects() {
    let text = format!(
        r#"{{"mcpServers": {{"a": {{"command": "x"}}}}, "history": "{}"}}"#,
        "x".repeat(2 << 20)
    );
    let read = |tier| hosts::parse(Host::ClaudeCode, &text, &source("f", tier), ROOT);
    assert_eq!((read(USER).servers.len(), read(USER).diagnostics), (1, Vec::new()));
    let problems: Vec<String> = read(PROJECT).diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["f:1:1: error: the file is larger than 1048576 bytes"]);
}

#[test]
fn thousands_of_codex_env_vars_are_parsed_without_duplicates() {
    let names: Vec<String> = (0..9_000).map(|n| format!("\"n{n}\"")).collect();
    let names = names.join(",");
    let codex = format!("[mcp_servers.a]\ncommand = 'x'\nenv_vars = [{names}]\nenv = {{n1 = '1'}}");
    let file = hosts::parse(Host::Codex, &codex, &source("f", USER), ROOT);
    assert_eq!(file.diagnostics, []);
    let env = file.servers[0].entry.env.as_ref().unwrap();
    assert_eq!(env.names().count(), 9_000);
}

#[test]
fn deeply_nested_toml_is_refused() {
    let dotted = format!("{}a = 1", "a.".repeat(200_000));
    let header = format!("[{}a]", "a.".repeat(200_000));
    let quoted = format!("{}a = 1", "\"=\".".repeat(100_000));
    let inline = format!("a = {}", "{a=".repeat(100_000));
    let arrays = format!("a = {}", "[".repeat(100_000));
    let inside = format!("a = {{ {}a = 1 }}", "a.".repeat(200_000));
    for text in [dotted, header, quoted, inline, arrays, inside] {
        let file = hosts::parse(Host::Codex, &text, &source("f", USER), ROOT);
        assert!(file.diagnostics.iter().any(|d| d.is_error()), "{}", &text[..20]);
    }
}

const CODEX: &str = r#"[mcp_servers."a b"]
command = 'x'
args = ["é", """multi
line"""]
env = { A = "1", "B.C" = "2" }
tool_timeout_sec = 1.5
"#;

proptest! {
    #[test]
    fn parsing_host_text_never_panics(text in "\\PC*|[\\[\\]{}\"'=.:,/*#a1\\\\ \\n-]{0,200}") {
        for host in Host::ALL {
            hosts::parse(host, &text, &source("f", PROJECT), ROOT);
        }
        pi_servers::parse(&text, &source("f", PROJECT));
    }

    #[test]
    fn parsing_a_mutated_host_file_never_panics(
        (text, host) in prop_oneof![
            Just((CODEX, Host::Codex)),
            Just((VALID, Host::Cursor)),
            Just((r#"{"servers": {"s": {"command": ["a", "$é"], "env": {"A": "${input:x}"}}}}"#, Host::VsCode)),
            Just((r#"{"mcp": {"s": {"command": ["a", "{file:"], "environment": {"A": 1}}}}"#, Host::OpenCode)),
            Just((r#"{"mcpServers": {"s": {"url": "$é", "headers": {"A": "$A$"}}}, "mcp": {"allowed": []}}"#, Host::GeminiCli)),
            Just((r#"{"projects": {"/p": {"mcpServers": {"s": {"command": "x"}}, "disabledMcpServers": ["s"]}}}"#, Host::ClaudeCode)),
        ],
        cuts in prop::collection::vec((0..400usize, 0..8usize, "[\\PC\"{}\\[\\]:,.=$]{0,3}"), 1..6),
    ) {
        let mut chars: Vec<char> = text.chars().collect();
        for (at, length, put) in cuts {
            let at = at.min(chars.len());
            let end = (at + length).min(chars.len());
            chars.splice(at..end, put.chars());
        }
        let text: String = chars.into_iter().collect();
        for diagnostic in hosts::parse(host, &text, &source("f", PROJECT), ROOT).diagnostics {
            prop_assert!(diagnostic.line >= 1 && diagnostic.column >= 1);
        }
    }
}

#[test]
fn copilot_cli_and_qwen_code_expand_dollar_variables() {
    let text = r#"{ "mcpServers": {
      "files": { "type": "local", "command": "npx", "args": ["$DIR"], "tools": ["*"], "timeout": 900 }
    } }"#;
    insta::assert_snapshot!(read(Host::CopilotCli, text), @r#"
    files
      command:2 "npx"
      args:2 ["${DIR}"]
      type:2 "stdio"
      requestTimeoutMs:2 900
    "#);
    let text = r#"{ "mcpServers": { "docs": { "httpUrl": "https://docs.example/mcp", "trust": true },
      "off": { "command": "off" } }, "mcp": { "excluded": ["off"] } }"#;
    insta::assert_snapshot!(read(Host::QwenCode, text), @r#"
    docs
      url:1 "https://docs.example/mcp"
      type:1 "streamable-http"
    off
      command:2 "off"
      disabled:2 true
    "#);
}

#[test]
fn cline_transport_may_be_nested_or_flat() {
    let text = r#"{ "mcpServers": {
      "new": { "transport": { "type": "stdio", "command": "npx", "args": ["x"], "env": { "T": "${env:T}" } }, "disabled": true },
      "remote": { "transport": { "type": "streamableHttp", "url": "https://docs.example/mcp" } },
      "old": { "command": "node", "args": ["x.js"], "timeout": 30 },
      "bad": { "transport": 3 }
    } }"#;
    insta::assert_snapshot!(read(Host::Cline, text), @r#"
    new
      command:2 "npx"
      args:2 ["x"]
      env:2 {"T":"${env:T}"}
      type:2 "stdio"
      disabled:2 true
    remote
      url:3 "https://docs.example/mcp"
      type:3 "streamable-http"
    old
      command:4 "node"
      args:4 ["x.js"]
      requestTimeoutMs:4 30000
    f:5:29: error: `mcpServers.bad.transport` must be an object, found a number
    "#);
}

#[test]
fn vibe_array_of_tables_is_parsed() {
    let text = r#"
[[mcp_servers]]
name = "files"
transport = "stdio"
command = ["npx", "-y", "files"]
startup_timeout_sec = 20.0

[[mcp_servers]]
name = "docs"
transport = "streamable-http"
url = "https://docs.example/mcp"
api_key_env = "DOCS_KEY"
disabled = true

[[mcp_servers]]
command = "nameless"
"#;
    insta::assert_snapshot!(read(Host::Vibe, text), @r#"
    files
      command:5 "npx"
      args:5 ["-y","files"]
      type:4 "stdio"
      startTimeoutMs:6 20000
    docs
      url:11 "https://docs.example/mcp"
      type:10 "streamable-http"
      auth:12 "bearer"
      bearerTokenEnv:12 "DOCS_KEY"
      disabled:13 true
    "#);
}

#[test]
fn crush_command_substitution_is_unsupported() {
    let text = r#"{ "mcp": {
      "files": { "type": "stdio", "command": "node", "env": { "T": "$TOKEN" }, "timeout": 60 },
      "docs": { "type": "http", "url": "https://docs.example/mcp", "headers": { "A": "$(echo a)" } }
    } }"#;
    insta::assert_snapshot!(read(Host::Crush, text), @r#"
    files
      command:2 "node"
      env:2 {"T":"${TOKEN}"}
      type:2 "stdio"
      requestTimeoutMs:2 60000
    f:3:86: warning: `mcp.docs.headers` uses `$(echo a)`, which only Crush can expand: this server is ignored
    "#);
}

#[test]
fn kiro_amp_and_roo_entries_are_parsed() {
    for (host, holder) in
        [(Host::Kiro, "mcpServers"), (Host::Amp, "amp.mcpServers"), (Host::Roo, "mcpServers")]
    {
        let text = format!(r#"{{ "{holder}": {{ "files": {{ "command": "npx" }} }} }}"#);
        assert_eq!(read(host, &text), "files\n  command:1 \"npx\"", "{host}");
    }
}
