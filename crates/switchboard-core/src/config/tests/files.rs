//! Parses a single file: values, diagnostics and their positions.

use super::*;

fn check(tier: Tier, text: &str, expected: &str) {
    assert_eq!(summary(&parse(text, &source("f", tier))), expected.trim(), "{text}");
}

#[test]
fn comments_trailing_commas_and_both_root_keys_are_accepted() {
    let text = "\u{feff}// head\n{ /* a */ \"mcpServers\": {\n \"a\": {\"command\": \"x\",},\n},
\"mcp-servers\": {\"b\": {\n\"url\": \"http://h\"}}, \"imports\": [\"cursor\"], \"$schema\": \"s\",
\"version\": \"1.0\", \"name\": \"n\", \"description\": \"d\"}";
    check(USER, text, "a command:3\nb url:6");
    assert_eq!(parse(text, &source("f", USER)).imports, [Host::Cursor]);
}

#[test]
fn empty_user_configuration_file_is_an_error() {
    for text in ["", " \n", "// only\n/* this */", "\u{feff}"] {
        let empty = "f:1:1: error: the file is empty; write `{}` to configure nothing";
        check(USER, text, empty);
        check(PROJECT, text, "");
    }
    check(USER, "{}", "");
}

#[test]
fn unknown_auth_error_does_not_quote_the_value() {
    let choices = "`oauth`, `oauth2`, `bearer`, `basic`, `api-key`, `custom`";
    check(
        USER,
        r#"{"mcpServers": {"a": {"url": "http://h", "auth": "hunter2"}}}"#,
        &format!("f:1:50: error: `mcpServers.a.auth` must be one of {choices}"),
    );
    check(
        USER,
        r#"{"mcpServers": {"a": {"url": "http://h", "auth": {"type": "hunter2"}}}}"#,
        &format!("f:1:59: error: `mcpServers.a.auth.type` must be one of {choices}"),
    );
}

#[test]
fn syntax_error_is_reported_once_with_its_position() {
    check(USER, "{\n  \"mcpServers\": {", "f:2:17: error: unterminated object");
    check(USER, "{\n \"é\": 1 \"b\": 2}", "f:2:8: error: expected comma");
    check(USER, "{'a': 1}", "f:1:2: error: single-quoted strings are not allowed");
    check(USER, "{} {}", "f:1:4: error: text cannot contain more than one JSON value");
}

#[test]
fn wrong_type_is_reported_and_drops_only_that_server() {
    check(
        USER,
        r#"{"mcpServers": {
  "a": {"command": 5, "args": "x"},
  "b": {"command": "x", "env": {"SECRET": 1}},
  "c": {"command": "x", "args": ["ok", null]},
  "d": [],
  "e": {"command": "x"},
  "f": {"command": " "},
}}"#,
        "
e command:6
f:2:20: error: `mcpServers.a.command` must be a string, found a number
f:2:31: error: `mcpServers.a.args` must be an array of strings, found a string
f:3:43: error: `mcpServers.b.env.SECRET` must be a string, found a number
f:4:40: error: `mcpServers.c.args[1]` must be a string, found null
f:5:8: error: `mcpServers.d` must be an object, found an array
f:7:20: error: `mcpServers.f.command` must be a string that is not empty",
    );
    check(USER, "[]", "f:1:1: error: the file must be an object, found an array");
    check(
        USER,
        r#"{"settings": 1}"#,
        "f:1:14: error: `settings` must be an object, found a number",
    );
}

#[test]
fn out_of_range_number_or_unknown_keyword_is_refused() {
    check(
        USER,
        r#"{"mcpServers": {
  "a": {"command": "x", "startTimeoutMs": 999},
  "b": {"command": "x", "timeout": 300001},
  "c": {"command": "x", "timeout": 300000, "idleTimeout": 0.5},
  "d": {"command": "x", "lifecycle": "lazzy"},
  "e": {"command": "x", "requestTimeoutMs": 0},
  "f": {"command": "x", "idleTimeout": -1},
  "g": {"command": "x", "url": "http://h"},
}, "settings": {"maxTools": 1.5, "maxPages": 7}}"#,
        "
c command:4 idleTimeout:4 startTimeoutMs:4
maxPages = 9
f:2:43: error: `mcpServers.a.startTimeoutMs` must be from 1000 to 300000 (milliseconds)
f:3:36: error: `mcpServers.b.timeout` must be from 1000 to 300000 (milliseconds)
f:5:38: error: `mcpServers.d.lifecycle` must be one of `lazy`, `eager`, `keep-alive`, \
`lazy-keep-alive`, found `lazzy`
f:6:45: error: `mcpServers.e.requestTimeoutMs` must be from 1 to 86400000 (milliseconds)
f:7:40: error: `mcpServers.f.idleTimeout` must be a number that is not negative
f:8:3: error: server `g` must have only one of `command`, `url` and `socket`
f:9:29: error: `settings.maxTools` must be a whole number from 1",
    );
}

#[test]
fn unknown_keys_warn_and_duplicate_keys_drop_the_server() {
    check(
        USER,
        r#"{"mcpServer": {}, "mcpServers": {"a": {"comand": "x", "zzz": 1, "command": "1",
"command": "2", "env": {"A": "1", "A": "2"}}, "a": {"command": "3"}}, "settings": {"idletimeout": 1}}"#,
        "
f:1:2: error: unknown key `mcpServer`, did you mean `mcpServers`?
f:2:47: error: `mcpServers.a` is given twice
f:2:84: warning: unknown key `settings.idletimeout`, did you mean `idleTimeout`?",
    );
    check(
        USER,
        r#"{"mcpServers": {"a": {"comand": "x", "zzz": 1, "command": "1",
"command": "2", "env": {"A": "1", "A": "2"}}}}"#,
        "
f:2:1: error: `mcpServers.a.command` is given twice
f:1:23: warning: unknown key `mcpServers.a.comand`, did you mean `command`?
f:1:38: warning: unknown key `mcpServers.a.zzz`
f:2:35: warning: `mcpServers.a.env.A` is given twice, the last one takes precedence",
    );
}

/// Whether the file makes the deny rules unknown, and which servers are refused.
fn spoilt(text: &str) -> (bool, Vec<String>) {
    let file = parse(text, &source("f", USER));
    let hides = file.diagnostics.iter().any(|found| found.is_error() && found.hides_rules());
    (hides, file.refused.into_iter().map(|(name, _)| name).collect())
}

/// All misspellings of `word` with one letter missing, doubled, swapped or in another case, and the
/// spellings with separators.
fn slips(word: &str) -> Vec<String> {
    let mut slips = vec![word.to_uppercase(), word.to_lowercase()];
    for at in 0..word.len() {
        let (before, after) = word.split_at(at);
        let (letter, rest) = after.split_at(1);
        slips.push(format!("{before}{rest}"));
        slips.push(format!("{before}{letter}{letter}{rest}"));
        slips.push(format!("{before}_{after}"));
        slips.push(format!("{before}-{after}"));
        slips.push(format!("{before}x{rest}"));
        slips.push(format!("{before}{}{rest}", letter.to_uppercase()));
        if let Some(next) = rest.get(..1) {
            slips.push(format!("{before}{next}{letter}{}", &rest[1..]));
        }
    }
    slips.retain(|slip| slip != word && !slip.is_empty() && slip != "mcp-servers");
    slips
}

#[test]
fn misspelt_rule_key_makes_all_rules_unparseable() {
    for slip in slips("mcpServers") {
        let text = format!(r#"{{"{slip}": {{"s": {{"excludeTools": ["ex"]}}}}}}"#);
        assert_eq!(spoilt(&text), (true, vec![]), "{text}");
    }
    for slip in slips("settings") {
        let text = format!(r#"{{"{slip}": {{"deny": ["s/del"]}}}}"#);
        assert_eq!(spoilt(&text), (true, vec![]), "{text}");
    }
    for rule in ["deny", "allow", "approve", "approveTools", "pins"] {
        for slip in slips(rule) {
            for text in
                [format!(r#"{{"settings": {{"{slip}": []}}}}"#), format!(r#"{{"{slip}": []}}"#)]
            {
                assert_eq!(spoilt(&text), (true, vec![]), "{text}");
            }
        }
    }
}

#[test]
fn misplaced_rules_make_all_rules_unparseable() {
    let deny = r#"{"deny": ["s/del"]}"#;
    let entries = [
        r#"{"s": {"excludeTools": ["ex"]}}"#,
        r#"{"s": {"disabled": true}}"#,
        r#"{"s": {"autoApprove": []}}"#,
        r#"{"s": {"command": "x"}}"#,
    ];
    let holders =
        ["mcp", "servers", "context_servers", "McpServers", "tools", "x", "s\u{435}ttings"];
    for key in holders.into_iter().chain(["permissions", "rules", "config", "options"]) {
        for value in entries.into_iter().chain([deny]) {
            for text in [
                format!(r#"{{"{key}": {value}}}"#),
                format!(r#"{{"settings": {{"{key}": {value}}}}}"#),
            ] {
                assert_eq!(spoilt(&text), (true, vec![]), "{text}");
            }
        }
        let text = format!(r#"{{"{key}": {{"a": [{{"b": {deny}}}]}}}}"#);
        assert_eq!(spoilt(&text), (true, vec![]), "{text}");
    }
    for key in [
        "approval",
        "approvals",
        "rules",
        "permissions",
        "settings",
        "excludeTools",
        "includeTools",
        "disabledTools",
        "exclude",
        "mcpServers",
    ] {
        for value in ["[]", "{}", "\"all\"", "true", deny] {
            let text = format!(r#"{{"settings": {{"{key}": {value}}}}}"#);
            assert_eq!(spoilt(&text), (true, vec![]), "{text}");
        }
    }
    for key in ["excludeTools", "disabledTools", "Deny", "permissions"] {
        let text = format!(r#"{{"{key}": ["ex"]}}"#);
        assert_eq!(spoilt(&text), (true, vec![]), "{text}");
    }
    for key in ["deny", "Deny", "allow", "settings", "mcpServers", "permissions", "excludeTools"] {
        for value in ["[\"ex\"]", deny, "\"all\"", r#"{"approveTools": true}"#, entries[0]] {
            let text = format!(r#"{{"mcpServers": {{"{key}": {value}}}}}"#);
            assert_eq!(spoilt(&text), (true, vec![]), "{text}");
        }
    }
    let nested = r#"{"mcpServers": {"x": {"s": {"excludeTools": ["ex"]}}}}"#;
    assert_eq!(spoilt(nested), (true, vec![]), "{nested}");
}

#[test]
fn entry_with_rule_keys_of_another_program_is_dropped() {
    let named = ["disabledTools", "disabled_tools", "allowedTools", "allowed-tools", "exclude"];
    let more = [
        "include",
        "deny",
        "allow",
        "denyTools",
        "permissions",
        "exclude_tools",
        "tools",
        "enabledTools",
        "excludeTool",
        "Disabled",
        "approve_tools",
    ];
    for key in named.into_iter().chain(more) {
        for endpoint in ["", r#""command": "x", "#] {
            let text = format!(r#"{{"mcpServers": {{"s": {{{endpoint}"{key}": ["ex"]}}}}}}"#);
            assert_eq!(spoilt(&text), (false, vec!["s".to_owned()]), "{text}");
        }
    }
    let text = r#"{"mcpServers": {"s": {"command": "x", "x": {"y": {"deny": ["ex"]}}}}}"#;
    assert_eq!(spoilt(text), (false, vec!["s".to_owned()]), "{text}");
}

#[test]
fn unrelated_unknown_keys_do_not_affect_the_rules() {
    for text in [
        r#"{"$schema": "x", "version": "1", "inputs": [{"id": "a", "password": true}]}"#,
        r#"{"inputs": {}, "servers": {}, "theme": "dark", "telemetry": {"enabled": false}}"#,
        r#"{"plugins": {"a": {"path": "x"}}, "hooks": {"Stop": [{"command": "x"}]}}"#,
        r#"{"settings": {"idletimeout": 1, "theme": {"dark": true}}}"#,
        r#"{"mcpServers": {"settings": {"command": "x"}, "deny": {"url": "http://h"}}}"#,
        r#"{"mcpServers": {"settings": {"disabled": true}, "allow": {"args": ["x"]}}}"#,
        r#"{"mcpServers": {"s": {"command": "x", "alwaysAllow": ["t"], "tools": ["*"]}}}"#,
        r#"{"mcpServers": {"s": {"command": "x", "zzz": 1, "env": {"deny": "x", "url": "y"}}}}"#,
    ] {
        assert_eq!(spoilt(text), (false, vec![]), "{text}");
    }
}

#[test]
fn unknown_root_key_error_suggests_mcp_servers_or_settings() {
    check(
        USER,
        "{\n \"context_servers\": {\"s\": {\"excludeTools\": []}}, \"config\": {\"deny\": []}}",
        "
f:2:2: error: unknown key `context_servers`, did you mean `mcpServers`?
f:2:50: error: unknown key `config`, did you mean `settings`?",
    );
}

#[test]
fn security_key_in_a_project_file_is_an_error() {
    let text = r#"{"mcpServers": {
  "a": {"command": "x", "approveTools": true},
  "b": {"command": "x", "autoApprove": ["t"]},
  "c": {"command": "x", "inheritEnv": false},
  "d": {"command": "x", "trust": true, "alwaysAllow": ["t"], "caFile": "f"},
  "e": {"socket": "/s"},
  "f": {"url": "http://h", "requestHeadersCommand": {"command": "c"}},
  "g": {"command": "x", "includeTools": ["t"]},
}, "settings": {
  "approve": "all", "adHocConnections": "off", "toolset": "proxy", "firstListing": true,
  "pins": "block", "approveTools": true, "sampling": false, "toolPrefix": "none",
  "directTools": true, "freezeDirectTools": true,
  "trust": true, "allow": ["x"], "deny": ["x"],
}, "imports": ["cursor"], "trusted": true}"#;
    check(
        PROJECT,
        text,
        "
g command:8 includeTools:8
toolPrefix = 11
f:2:25: error: `mcpServers.a.approveTools` is not allowed in a project file
f:3:25: error: `mcpServers.b.autoApprove` is not allowed in a project file
f:4:25: error: `mcpServers.c.inheritEnv` is not allowed in a project file
f:5:25: error: `mcpServers.d.trust` is not allowed in a project file
f:5:40: error: `mcpServers.d.alwaysAllow` is not allowed in a project file
f:5:62: error: `mcpServers.d.caFile` is not allowed in a project file
f:6:9: error: `mcpServers.e.socket` is not allowed in a project file
f:7:28: error: `mcpServers.f.requestHeadersCommand` is not allowed in a project file
f:10:3: error: `settings.approve` is not allowed in a project file
f:10:21: error: `settings.adHocConnections` is not allowed in a project file
f:10:48: error: `settings.toolset` is not allowed in a project file
f:10:68: error: `settings.firstListing` is not allowed in a project file
f:11:3: error: `settings.pins` is not allowed in a project file
f:11:20: error: `settings.approveTools` is not allowed in a project file
f:11:42: error: `settings.sampling` is not allowed in a project file
f:12:3: error: `settings.directTools` is not allowed in a project file
f:12:24: error: `settings.freezeDirectTools` is not allowed in a project file
f:13:3: error: `settings.trust` is not allowed in a project file
f:13:18: error: `settings.allow` is not allowed in a project file
f:13:34: error: `settings.deny` is not allowed in a project file
f:14:4: error: `imports` is not allowed in a project file
f:14:27: error: `trusted` is not allowed in a project file",
    );
    let user = parse(text, &source("f", USER));
    assert!(user.diagnostics.iter().all(|diagnostic| !diagnostic.is_error()));
    assert_eq!(user.servers.len(), 7);
}

#[test]
fn invalid_server_name_is_an_error() {
    check(
        USER,
        r#"{"mcpServers": {" ": {"command": "x"}, "a\u0007": {"command": "x"}}}"#,
        "
f:1:17: error: `mcpServers. ` cannot be the name of a server: the name is empty
f:1:40: error: `mcpServers.a\u{fffd}` cannot be the name of a server: the name contains a control character",
    );
}

#[test]
fn import_from_unknown_host_fails_and_names_known_hosts() {
    check(
        USER,
        r#"{"imports": ["emacs"]}"#,
        "f:1:14: error: `imports[0]` must be one of `claude-code`, `claude-desktop`, `cursor`, \
`vscode`, `codex`, `opencode`, `windsurf`, `zed`, `gemini-cli`, `copilot-cli`, `qwen-code`, `cline`, \
`vibe`, `kiro`, `amp`, `crush`, `roo`, found `emacs`",
    );
}

#[test]
fn diagnostics_are_limited_in_number_and_length() {
    let keys: String =
        (0..300).map(|n| format!("\"k{n}\\u001b{}\": 1,", "x".repeat(200))).collect();
    let file = parse(&format!("{{{keys}}}"), &source("f", USER));
    let last = file.diagnostics.last().unwrap();
    assert_eq!(file.diagnostics.len(), 201);
    assert!(last.is_error());
    assert_eq!(last.kind, DiagnosticKind::TooManyProblems { limit: 200 });
    let shown = file.diagnostics[0].to_string();
    assert!(shown.chars().count() < 120 && !shown.contains('\u{1b}'), "{shown}");
}

#[test]
fn servers_over_the_limit_cause_only_one_diagnostic() {
    let many = |entry: &str| (0..1_005).map(|n| entry.replace('N', &n.to_string())).collect();
    let named: String = many(r#""sN": {"command": "x"},"#);
    let listed: String = many(r#"{"id": "sN", "url": "x"},"#);
    let files = [
        parse(&format!(r#"{{"mcpServers": {{{named}}}}}"#), &source("f", USER)),
        pi_servers::parse(&format!(r#"{{"servers": [{listed}]}}"#), &source("f", USER)),
        hosts::parse(
            Host::Zed,
            &format!(r#"{{"context_servers": {{{named}}}}}"#),
            &source("f", USER),
            "/p",
        ),
    ];
    for file in files {
        assert_eq!((file.servers.len(), file.diagnostics.len()), (1_000, 1));
    }
}

#[test]
fn error_position_in_a_huge_line_is_found_quickly() {
    let fields = r#""command": "é", "debug": true, "roots": true, "name": "n""#;
    let servers: String = (0..990).map(|n| format!("\"s{n}\": {{{fields}}},")).collect();
    let padding = "é".repeat(400_000);
    let text = format!("{{/*{padding}*/\"mcpServers\": {{{servers}}}, \"é\": 1, \"zz\": 1}}");
    let file = parse(&text, &source("f", USER));
    let columns: Vec<u32> = file.diagnostics.iter().map(|d| d.column).collect();
    let expected = |key: &str| {
        let at = text.find(&format!("\"{key}\": 1")).unwrap();
        text[..at].chars().count() as u32 + 1
    };
    assert_eq!(columns, [expected("é"), expected("zz")]);
    assert_eq!(file.servers.len(), 990);
}

#[test]
fn error_about_url_without_scheme_does_not_quote_it() {
    for url in [
        "localhost:8080/mcp?token=hunter2",
        "h.example/mcp?key=hunter2",
        "//h.example/mcp?key=hunter2",
        "https:/h.example?token=hunter2",
        "user:hunter2@h.example/mcp",
    ] {
        let entry = entry(&serde_json::json!({ "url": url }).to_string());
        let error = entry.transport("s").unwrap_err();
        assert!(matches!(error, DiagnosticKind::InvalidProtocol { .. }), "{url}: {error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    assert!(entry(r#"{ "url": "npx -y @scope/server" }"#).transport("s").is_ok());
}
