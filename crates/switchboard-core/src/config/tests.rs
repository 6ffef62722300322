//! Tests of parsing, merging, importing and hashing configuration files.

use std::time::Duration;

use proptest::prelude::*;

use super::auth::{Auth, Credential, OAuth};
use super::diagnostic::DiagnosticKind;
use super::hosts::{self, Host};
use super::install::Target;
use super::layers::{Approvals, Config, ConfigSource, Layer, Tier, Trust, merge};
use super::mask;
use super::parse::{ParsedFile, parse};
use super::pi_servers;
use super::server::ServerEntry;
use super::settings::Settings;
use super::transport::{HttpMode, Transport};
use super::trust::{FileHash, TrustHash, definition_hash, paths_in, reach, trust_hash, words_in};
use super::values::*;

mod files;
mod foreign;
mod hashes;
mod imports;
mod merging;
mod pi_list;
mod shown;

const USER: Tier = Tier::User;
const PROJECT: Tier = Tier::Project;

fn source(path: &str, tier: Tier) -> ConfigSource {
    ConfigSource { path: path.into(), tier }
}

pub(super) fn entry(fields: &str) -> ServerEntry {
    let text = format!(r#"{{"mcpServers": {{"s": {fields}}}}}"#);
    let mut file = parse(&text, &source("f", USER));
    assert_eq!(file.diagnostics, [], "{fields}");
    file.servers.remove(0).entry
}

/// A text for snapshots: each server with its keys and their lines, then the diagnostics.
fn summary(file: &ParsedFile) -> String {
    let mut lines = Vec::new();
    for server in &file.servers {
        let keys = server.entry.origins.iter().map(|(key, at)| format!(" {key}:{}", at.line));
        lines.push(format!("{}{}", server.name, keys.collect::<String>()));
    }
    let settings = file.settings.origins.iter().map(|(key, at)| format!("{key} = {}", at.line));
    lines.extend(settings);
    lines.extend(file.diagnostics.iter().map(ToString::to_string));
    lines.join("\n")
}

#[test]
fn every_server_field_is_parsed_into_its_type() {
    let read = entry(
        r#"{
        "command": "npx", "args": ["-y", "p"], "env": {"B": "$env:B", "A": "1"}, "cwd": "~",
        "resolveLauncher": false, "inheritEnv": false, "confine": false, "headers": {"H": "v"}, "type": "stdio",
        "auth": {"type": "basic", "username": "u", "passwordEnv": "P"}, "bearerToken": "t",
        "bearerTokenEnv": "E", "bearerTokenStore": true, "account": "w@x.io", "oauth": false,
        "requestHeadersCommand": {"command": "sign", "args": ["a"], "timeoutMs": 5},
        "caFile": "ca.pem", "lifecycle": "keep-alive", "idleTimeout": 0, "requestTimeoutMs": 5000,
        "timeout": 2000, "protocolVersion": "auto", "exposeResources": false,
        "directTools": ["a"], "toolPrefix": "short", "includeTools": ["a*"], "excludeTools": [],
        "searchKeywords": {"a*": ["k"]}, "roots": false, "approveTools": ["rm*"], "autoApprove": true,
        "debug": true, "enabled": false, "name": "n", "description": "d" }"#,
    );
    let template = |text: &str| Some(Template::new(text));
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let pairs = |pairs: &[(&str, &str)]| {
        TemplateMap(pairs.iter().map(|(n, v)| ((*n).to_owned(), Template::new(*v))).collect())
    };
    let expected = ServerEntry {
        command: template("npx"),
        args: Some(vec![Template::new("-y"), Template::new("p")]),
        env: Some(pairs(&[("B", "$env:B"), ("A", "1")])),
        cwd: template("~"),
        resolve_launcher: Some(false),
        inherit_env: Some(false),
        confine: Some(false),
        headers: Some(pairs(&[("H", "v")])),
        transport_type: Some(TransportType::Stdio),
        auth: Some(Auth::Basic {
            username: Template::new("u"),
            password: Credential::Variable("P".into()),
        }),
        bearer_token: template("t"),
        bearer_token_env: Some("E".into()),
        bearer_token_store: Some(true),
        account: Some("w@x.io".into()),
        oauth: Some(OAuth::Off),
        request_headers_command: read.request_headers_command.clone(),
        ca_file: template("ca.pem"),
        lifecycle: Some(Lifecycle::KeepAlive),
        idle_timeout: Some(IdleTimeout::Never),
        request_timeout: Some(Duration::from_secs(5)),
        start_timeout: Some(Duration::from_secs(2)),
        protocol_version: Some(ProtocolVersion::Auto),
        expose_resources: Some(false),
        direct_tools: Some(DirectTools::Named(words(&["a"]))),
        tool_prefix: Some(ToolPrefix::Short),
        include_tools: Some(words(&["a*"])),
        exclude_tools: Some(Vec::new()),
        search_keywords: Some(vec![("a*".into(), words(&["k"]))]),
        approve_tools: Some(ToolRule::Matching(words(&["rm*"]))),
        roots: Some(false),
        auto_approve: Some(ToolRule::All),
        debug: Some(true),
        disabled: Some(true),
        name: Some("n".into()),
        description: Some("d".into()),
        url: None,
        socket: None,
        enabled: None,
        origins: read.origins.clone(),
    };
    assert_eq!(read, expected);
    assert_eq!(read.origins.len(), ServerEntry::KEYS.len() - 3);
    let program = read.request_headers_command.unwrap();
    assert_eq!(program.timeout, Duration::from_millis(5));
}

#[test]
fn debug_output_of_an_entry_hides_possible_secrets() {
    let secret = r#"{"url": "http://h?k=hunter2", "env": {"A": "hunter2"}, "bearerToken": "hunter2",
        "headers": {"A": "hunter2"}, "oauth": {"clientSecret": "hunter2"}, "args": ["hunter2"],
        "auth": {"type": "api-key", "key": "hunter2"}}"#;
    let printed = format!("{:?}", entry(secret));
    assert!(printed.contains("api_key") || printed.contains("ApiKey"), "{printed}");
    assert!(!printed.contains("hunter2"), "{printed}");
}

#[test]
fn transport_is_chosen_by_type_and_url_scheme() {
    fn check(fields: &str, expected: Result<Transport, &str>) {
        let transport = entry(fields).transport("s").map_err(|kind| kind.to_string());
        assert_eq!(transport, expected.map_err(str::to_owned), "{fields}");
    }
    let http = |url: &str, mode| Ok(Transport::Http { url: Template::new(url), mode });
    let words = |words: &[&str]| {
        Ok(Transport::CommandLine { words: words.iter().map(ToString::to_string).collect() })
    };
    check(r#"{"url": "HTTPS://h/mcp"}"#, http("HTTPS://h/mcp", HttpMode::Negotiated));
    check(r#"{"url": "sse://h/s"}"#, http("http://h/s", HttpMode::Sse));
    check(r#"{"url": "https+sse://h/s"}"#, http("https://h/s", HttpMode::Sse));
    check(r#"{"url": "${BASE}/mcp"}"#, http("${BASE}/mcp", HttpMode::Negotiated));
    check(r#"{"url": "http://h", "type": "sse"}"#, http("http://h", HttpMode::Sse));
    check(r#"{"url": "wss://h"}"#, Ok(Transport::WebSocket { url: Template::new("wss://h") }));
    check(r#"{"url": "npx -y 'a b' http://h"}"#, words(&["npx", "-y", "a b", "http://h"]));
    check(
        r#"{"url": "ftp://h"}"#,
        Err("the `url` of server `s` must begin with http://, https://, sse://, ws:// or wss://"),
    );
    check(
        r#"{"url": "npx 'a"}"#,
        Err("the `url` of server `s` is a command line with an open quote"),
    );
    check(
        r#"{"command": "x", "type": "http"}"#,
        Err("the `type` of server `s` does not match its `command`"),
    );
    check(r#"{"env": {}}"#, Err("server `s` needs one of `command`, `url` and `socket`"));
    check(r#"{"socket": "/s"}"#, Ok(Transport::Socket { path: Template::new("/s") }));
}

/// Merges the texts of files named `f0`, `f1` … in these tiers. `approved` decides whether the user
/// approved a trust hash.
fn merged(files: &[(Tier, &str)], approved: &dyn Fn(&TrustHash) -> bool) -> Config {
    let layer = |(index, (tier, text)): (usize, &(Tier, &str))| {
        let source = source(&format!("f{index}"), *tier);
        Layer { file: parse(text, &source), source }
    };
    let layers: Vec<Layer> = files.iter().enumerate().map(layer).collect();
    let file_hashes = |_: &ServerEntry| Vec::new();
    merge(
        &layers,
        &Approvals {
            project_root: "/p",
            file_hashes: &file_hashes,
            is_approved: approved,
            was_approved: &|_| false,
        },
    )
}

const VALID: &str = r#"{ // a file with a bit of everything
  "mcpServers": {"s": {"command": "npx", "args": ["-y", "p"], "env": {"A": "${A:-d}"},
  "auth": {"type": "basic", "username": "u", "password": "p"}, "oauth": {"scope": "x"},
  "idleTimeout": 1.5e1, "approveTools": ["a*"], "searchKeywords": {"é": ["k"]}, "name": "\u00e9"}},
  "settings": {"outputGuard": {"maxBytes": 10}, "directTools": "search", "approve": "all"},
  "imports": ["cursor"], }"#;

#[test]
fn valid_configuration_has_no_diagnostic_but_deep_nesting_has() {
    assert_eq!(parse(VALID, &source("f", USER)).diagnostics, []);
    for open in ["[", "{\"a\":"] {
        let deep = parse(&open.repeat(100_000), &source("f", USER));
        let clauses: Vec<String> = deep.diagnostics.iter().map(|d| d.kind.to_string()).collect();
        assert_eq!(clauses, ["maximum nesting depth exceeded"]);
    }
}

proptest! {
    #[test]
    fn parsing_and_masking_arbitrary_text_never_panics(text in "\\PC*|[\\[\\]{}\":,/*a1\\\\ \\n-]{0,200}") {
        for tier in [USER, PROJECT] {
            merged(&[(tier, &text)], &|_| true);
        }
        mask::masked(&text);
        mask::masked_of_host(&text, Target::Host(Host::Codex));
    }

    #[test]
    fn parsing_and_masking_a_mutated_configuration_never_panics(
        cuts in prop::collection::vec((0..VALID.len(), 0..8usize, "[\\PC\"{}\\[\\]:,]{0,3}"), 1..6)
    ) {
        let mut chars: Vec<char> = VALID.chars().collect();
        for (at, length, put) in cuts {
            let at = at.min(chars.len());
            let end = (at + length).min(chars.len());
            chars.splice(at..end, put.chars());
        }
        let text: String = chars.into_iter().collect();
        if let Some(shown) = mask::masked(&text) {
            prop_assert_eq!(shown.lines().count(), text.lines().count());
        }
        for diagnostic in merged(&[(USER, VALID), (PROJECT, &text)], &|_| true).diagnostics {
            prop_assert!(diagnostic.line >= 1 && diagnostic.column >= 1);
        }
    }

    #[test]
    fn merged_field_origin_is_the_last_file_setting_it(
        layers in prop::collection::vec(prop::collection::vec(any::<bool>(), 5), 1..5)
    ) {
        const FIELDS: [(&str, &str); 5] = [("command", "\"x\""), ("debug", "true"),
            ("cwd", "\"/\""), ("lifecycle", "\"eager\""), ("args", "[]")];
        let text = |set: &Vec<bool>| {
            let fields = FIELDS.iter().zip(set).filter(|(_, set)| **set);
            let fields: Vec<String> = fields.map(|((k, v), _)| format!("\"{k}\": {v}")).collect();
            format!("{{\"mcpServers\": {{\"s\": {{{}}}}}}}", fields.join(","))
        };
        let mut layers = layers;
        layers[0][0] = true;
        let texts: Vec<String> = layers.iter().map(text).collect();
        let files: Vec<(Tier, &str)> = texts.iter().map(|text| (USER, text.as_str())).collect();
        let config = merged(&files, &|_| false);
        let origins = &config.servers["s"].definition.origins;
        for (index, (key, _)) in FIELDS.iter().enumerate() {
            let last = layers.iter().rposition(|layer| layer[index]).map(|at| format!("f{at}"));
            prop_assert_eq!(origins.get(key).map(|at| at.path.to_string()), last);
        }
    }
}

#[test]
fn direct_tools_list_selects_servers_or_single_tools() {
    let some = |names: &[&str]| DirectTools::Named(names.iter().map(|it| (*it).into()).collect());
    for (list, expected) in [
        ("git", DirectTools::All),
        (" files , git ", DirectTools::All),
        ("git/log,git", DirectTools::All),
        ("git/log, files/read, git/a/b", some(&["log", "a/b"])),
        ("github", DirectTools::None),
        ("github/log", DirectTools::None),
        ("__none__", DirectTools::None),
        ("", DirectTools::None),
    ] {
        assert_eq!(DirectTools::listed(list, "git"), expected, "{list}");
    }
}
