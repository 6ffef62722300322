//! Merges files: precedence, inheritance, and pending servers.

use super::*;
use crate::render::definition::PendingDefinition;

/// Merges the files and compares the servers. `approval` decides whether the user approves every
/// pending server.
fn check(files: &[(Tier, &str)], approval: bool, expected: &str) {
    let wrapped: Vec<(Tier, String)> = files
        .iter()
        .map(|(tier, s)| (*tier, format!("{{\"mcpServers\": {{\"s\": {s}}}}}")))
        .collect();
    let files: Vec<(Tier, &str)> = wrapped.iter().map(|(t, s)| (*t, s.as_str())).collect();
    let config = merged(&files, &|_| approval);
    let show = |entry: &ServerEntry| {
        let origins = entry.origins.iter().map(|(key, at)| format!(" {key}={}", at.path));
        origins.collect::<String>()
    };
    let mut lines = Vec::new();
    for server in config.servers.values() {
        let trust = match server.trust {
            Trust::UserFile => "user",
            Trust::Approved(_) => "approved",
        };
        lines.push(format!("{trust}:{}", show(&server.definition)));
    }
    for pending in &config.pending {
        lines.push(format!("pending:{}", show(&pending.definition)));
    }
    lines.extend(config.diagnostics.iter().map(ToString::to_string));
    assert_eq!(lines.join("\n"), expected.trim(), "{files:?}");
}

#[test]
fn later_file_overrides_an_earlier_one_by_field() {
    let lower = r#"{"command": "x", "args": ["a"], "env": {"A": "1", "B": "2"}, "debug": true}"#;
    let upper = r#"{"command": "x", "env": {"B": "3"}, "enabled": false}"#;
    check(
        &[(USER, lower), (USER, upper)],
        false,
        "user: args=f0 command=f1 debug=f0 disabled=f1 env=f1",
    );
    check(
        &[(USER, upper), (USER, r#"{"enabled": true}"#)],
        false,
        "user: command=f0 disabled=f1 env=f0",
    );
}

#[test]
fn entry_with_changed_endpoint_inherits_no_credentials() {
    let remote = r#"{"url": "https://a", "headers": {"A": "1"}, "auth": "bearer",
        "bearerToken": "t", "bearerTokenEnv": "T", "bearerTokenStore": true, "type": "http", "account": "a",
        "oauth": {}, "requestHeadersCommand": {"command": "c"}, "caFile": "c", "env": {},
        "autoApprove": true, "approveTools": false, "lifecycle": "eager"}"#;
    let local = r#"{"command": "a", "args": ["x"], "cwd": "/", "env": {"A": "1"},
        "inheritEnv": true, "approveTools": true, "includeTools": []}"#;
    let other_url = r#"{"url": "https://b"}"#;
    check(&[(USER, remote), (USER, other_url)], false, "user: lifecycle=f0 type=f0 url=f1");
    check(&[(USER, remote), (PROJECT, other_url)], true, "approved: lifecycle=f0 type=f0 url=f1");
    check(&[(USER, remote), (USER, r#"{"command": "b"}"#)], false, "user: command=f1 lifecycle=f0");
    check(
        &[(USER, local), (USER, r#"{"command": "b"}"#)],
        false,
        "user: approveTools=f0 args=f0 command=f1 cwd=f0 includeTools=f0",
    );
    check(
        &[(USER, local), (USER, r#"{"socket": "/s"}"#)],
        false,
        "user: approveTools=f0 includeTools=f0 socket=f1",
    );
    // A user's entry without an endpoint is not merged into a server whose endpoint a repository
    // sets.
    check(
        &[(USER, r#"{"env": {"A": "1"}}"#), (PROJECT, r#"{"command": "a"}"#)],
        true,
        "approved: command=f1",
    );
    check(
        &[(USER, r#"{"env": {"A": "1"}}"#), (PROJECT, r#"{"command": "a"}"#)],
        false,
        "
pending: command=f1
f0:1:17: error: server `s` needs one of `command`, `url` and `socket`",
    );
}

#[test]
fn pending_project_entry_leaves_the_user_entry_active() {
    let user = r#"{"command": "mine", "env": {"A": "1"}}"#;
    let theirs = r#"{"args": ["x"]}"#;
    check(
        &[(USER, user), (PROJECT, theirs)],
        false,
        "user: command=f0 env=f0\npending: args=f1 command=f0 env=f0",
    );
    check(&[(USER, user), (PROJECT, theirs)], true, "approved: args=f1 command=f0 env=f0");
    check(&[(PROJECT, user)], false, "pending: command=f0 env=f0");
    // Two files of a project define one pending server together.
    check(&[(PROJECT, user), (PROJECT, theirs)], false, "pending: args=f1 command=f0 env=f0");
    // A project's file takes precedence over a user's file in any order of files.
    check(&[(PROJECT, theirs), (USER, user)], true, "approved: args=f0 command=f1 env=f1");
}

#[test]
fn project_entry_with_forbidden_key_leaves_user_entry_active() {
    let error = "f1:1:39: error: `mcpServers.s.inheritEnv` is not allowed in a project file";
    check(
        &[(USER, r#"{"command": "x"}"#), (PROJECT, r#"{"command": "y", "inheritEnv": true}"#)],
        true,
        &format!("user: command=f0\n{error}"),
    );
}

#[test]
fn server_without_an_endpoint_is_dropped() {
    let error = "error: server `s` needs one of `command`, `url` and `socket`";
    check(&[(USER, r#"{"debug": true}"#)], false, &format!("f0:1:17: {error}"));
    check(
        &[(USER, r#"{"command": "x"}"#), (PROJECT, r#"{"type": "sse"}"#)],
        true,
        "user: command=f0
f0:1:23: error: the `type` of server `s` does not match its `command`",
    );
}

#[test]
fn disabled_flag_without_its_server_is_ignored() {
    let off = r#"{"disabled": true}"#;
    for tier in [USER, PROJECT] {
        check(&[(tier, off)], true, "");
    }
    check(
        &[(USER, r#"{"disabled": true, "debug": true}"#)],
        true,
        "f0:1:17: error: server `s` needs one of `command`, `url` and `socket`",
    );
    let theirs = r#"{"command": "x"}"#;
    check(&[(USER, off), (PROJECT, theirs)], true, "approved: command=f1 disabled=f0");
    check(&[(USER, off), (PROJECT, theirs)], false, "pending: command=f1 disabled=f0");
    check(&[(PROJECT, theirs), (PROJECT, off)], true, "approved: command=f0 disabled=f1");
}

#[test]
fn pending_server_originates_from_the_file_with_its_endpoint() {
    let origin = |files: &[(Tier, &str)]| {
        let wrapped: Vec<(Tier, String)> = files
            .iter()
            .map(|(tier, s)| (*tier, format!("{{\"mcpServers\": {{\"s\": {s}}}}}")))
            .collect();
        let files: Vec<(Tier, &str)> = wrapped.iter().map(|(t, s)| (*t, s.as_str())).collect();
        merged(&files, &|_| false).pending[0].origin.path.to_string()
    };
    let (theirs, off) = (r#"{"command": "x"}"#, r#"{"disabled": true}"#);
    assert_eq!(origin(&[(PROJECT, theirs), (PROJECT, off)]), "f0");
    assert_eq!(origin(&[(PROJECT, off), (PROJECT, theirs)]), "f1");
    assert_eq!(origin(&[(PROJECT, theirs), (PROJECT, theirs)]), "f1");
    assert_eq!(origin(&[(USER, theirs), (PROJECT, r#"{"args": ["x"]}"#)]), "f1");
    assert_eq!(origin(&[(USER, off), (PROJECT, theirs)]), "f1");
}

#[test]
fn oversized_server_definition_cannot_be_approved() {
    let env = |count: usize| {
        let pairs: Vec<String> = (0..count).map(|index| format!(r#""A{index}": "x""#)).collect();
        format!(r#"{{"command": "x", "env": {{{}}}}}"#, pairs.join(","))
    };
    let long = |length: usize| format!(r#"{{"command": "x", "args": ["{}"]}}"#, "y".repeat(length));
    check(&[(PROJECT, &env(200))], true, "approved: command=f0 env=f0");
    check(
        &[(PROJECT, &env(201))],
        true,
        "f0:1:17: error: server `s` cannot be approved: it has more than 200 variables or headers",
    );
    check(&[(PROJECT, &long(16_000))], true, "approved: args=f0 command=f0");
    check(
        &[(PROJECT, &long(16_384))],
        true,
        "f0:1:17: error: server `s` cannot be approved: it has more than 16 KiB of text",
    );
    check(&[(USER, &env(201))], false, "user: command=f0 env=f0");
}

/// Tries every kind of invalid entry of the user that may contain rules.
#[test]
fn server_is_dropped_if_a_user_entry_is_invalid() {
    let defined = r#"{"mcpServers": {"s": {"command": "x"}, "other": {"command": "x"}}}"#;
    let rule = r#""excludeTools": ["ex"]"#;
    for entries in [
        format!(r#""s": {{{rule}}}, "s": {{{rule}}}"#),
        format!(r#""s": {{{rule}}}, "s": {{"command": "y"}}"#),
        format!(r#""s": {{"command": "y"}}, "s": {{{rule}}}"#),
        r#""s": {"approveTools": true}, "s": {"approveTools": true}"#.to_owned(),
        r#""s": {"disabled": true}, "\u0073": {}"#.to_owned(),
        format!(r#""s": {{{rule}, {rule}}}"#),
        r#""s": null"#.to_owned(),
        r#""s": ["ex"]"#.to_owned(),
        r#""s": {"excludeTools": "ex"}"#.to_owned(),
        r#""s": {"excludeTools": ["!ex"]}"#.to_owned(),
        r#""s": {"disabledTools": ["ex"]}"#.to_owned(),
        r#""s": {"args": [1], "approveTools": true}"#.to_owned(),
        format!("\"s\u{200b}\": {{{rule}}}"),
        format!(r#"" s": {{{rule}}}"#),
        format!(r#""S": {{{rule}}}"#),
        r#""S": {"disabled": true}"#.to_owned(),
    ] {
        let users = format!(r#"{{"mcpServers": {{{entries}}}}}"#);
        for files in [[defined, &users], [&users, defined]] {
            let config = merged(&files.map(|file| (USER, file)), &|_| true);
            let usable: Vec<&String> = config.servers.keys().collect();
            assert_eq!(usable, ["other"], "{users}");
            assert!(config.refused.contains_key("s"), "{users}");
        }
    }
}

#[test]
fn rejected_entry_is_listed_with_name_and_reason() {
    let file = r#"{"mcpServers": {"greedy": {"command": "x", "inheritEnv": true}, "fine": {"command": "x"},
        "none": {"args": []}, " x": {"command": "x"}}}"#;
    let config = merged(&[(PROJECT, file)], &|_| false);
    let refused = config.refused.iter().map(|(name, why)| format!("{name:?} {why}\n"));
    insta::assert_snapshot!(refused.collect::<String>(), @r#"
    " x" f0:2:31: error: `mcpServers. x` cannot be the name of a server: the name begins or ends with a blank
    "greedy" f0:1:44: error: `mcpServers.greedy.inheritEnv` is not allowed in a project file
    "none" f0:2:9: error: server `none` needs one of `command`, `url` and `socket`
    "#);
}

#[test]
fn overlong_text_value_in_configuration_is_refused() {
    let file = |length: usize| {
        format!(
            r#"{{"mcpServers": {{"s": {{"command": "x", "args": ["{}"]}}}}}}"#,
            "y".repeat(length)
        )
    };
    let report = |length: usize| {
        let config = merged(&[(USER, &file(length))], &|_| false);
        config.diagnostics.iter().map(ToString::to_string).collect::<String>()
    };
    assert_eq!(report(32 * 1024), "");
    let refused = "f0:1:48: error: `mcpServers.s.args[0]` must be at most 32 KiB long";
    assert_eq!(report(32 * 1024 + 1), refused);
}

#[test]
fn project_settings_cannot_loosen_user_settings() {
    assert_eq!(merged(&[], &|_| true).settings, Settings::default());
    let user = r#"{"settings": {"approveTools": ["a"], "toolPrefix": "mcp", "maxTools": 5,
        "outputGuard": {"maxLines": 9}}}"#;
    let project = r#"{"settings": {"approveTools": ["b"], "toolPrefix": "none", "maxTools": 9,
        "approve": "none"}}"#;
    let config = merged(&[(USER, user), (PROJECT, project)], &|_| true);
    let guard = OutputGuard::Limits { max_bytes: 51_200, max_lines: 9 };
    let expected = Settings {
        approve_tools: ToolRule::Matching(vec!["a".to_owned()]),
        tool_prefix: ToolPrefix::None,
        own_tool_prefix: ToolPrefix::Mcp,
        max_tools: 5,
        output_guard: guard,
        ..Settings::default()
    };
    assert_eq!(config.settings, expected);
    assert_eq!(config.settings_origins["toolPrefix"].path.as_ref(), "f1");
}

#[test]
fn project_timeout_under_one_second_is_refused() {
    let check = |tier, setting: &str, expected: &str| {
        let text = format!(r#"{{"settings": {{{setting}}}}}"#);
        let config = merged(&[(tier, &text)], &|_| true);
        let found: Vec<String> = config.diagnostics.iter().map(ToString::to_string).collect();
        assert_eq!(found.join("\n"), expected, "{setting}");
        assert_eq!(config.settings == Settings::default(), !expected.is_empty(), "{setting}");
    };
    let refused = |key: &str, column: u32| {
        format!(
            "f0:1:{column}: error: `settings.{key}` must be at least one second in a project file"
        )
    };
    check(PROJECT, r#""requestTimeoutMs": 999"#, &refused("requestTimeoutMs", 35));
    check(PROJECT, r#""idleTimeout": 0.016"#, &refused("idleTimeout", 30));
    check(PROJECT, r#""requestTimeoutMs": 1000"#, "");
    check(PROJECT, r#""idleTimeout": 0"#, "");
    check(USER, r#""requestTimeoutMs": 1"#, "");
}

#[test]
fn project_lifts_no_restriction_of_the_user_entry() {
    for (users, projects, expected) in [
        (r#""excludeTools": ["a"]"#, r#""excludeTools": []"#, r#"{"excludeTools":["a"]}"#),
        (r#""excludeTools": ["a"]"#, r#""excludeTools": ["b"]"#, r#"{"excludeTools":["b","a"]}"#),
        (r#""excludeTools": ["a"]"#, r#""debug": true"#, r#"{"excludeTools":["a"],"debug":true}"#),
        (r#""includeTools": ["a"]"#, r#""includeTools": ["*"]"#, r#"{"includeTools":["a"]}"#),
        (r#""includeTools": ["a"]"#, r#""includeTools": ["b"]"#, r#"{"includeTools":[]}"#),
        (
            r#""includeTools": ["a*"]"#,
            r#""includeTools": ["ab", "b"]"#,
            r#"{"includeTools":["ab"]}"#,
        ),
        (r#""includeTools": ["a*"]"#, r#""includeTools": ["a*"]"#, r#"{"includeTools":["a*"]}"#),
        (r#""includeTools": ["a*"]"#, r#""includeTools": ["*b"]"#, r#"{"includeTools":[]}"#),
        (r#""includeTools": []"#, r#""includeTools": ["a"]"#, r#"{"includeTools":[]}"#),
        (r#""debug": true"#, r#""includeTools": ["a"]"#, r#"{"includeTools":["a"],"debug":true}"#),
        (
            r#""exposeResources": false"#,
            r#""exposeResources": true"#,
            r#"{"exposeResources":false}"#,
        ),
        (
            r#""exposeResources": true"#,
            r#""exposeResources": false"#,
            r#"{"exposeResources":false}"#,
        ),
        (r#""disabled": true"#, r#""debug": true"#, r#"{"debug":true,"disabled":true}"#),
        (r#""disabled": true"#, r#""enabled": true"#, r#"{"disabled":false}"#),
        (r#""debug": true"#, r#""disabled": false"#, r#"{"debug":true}"#),
    ] {
        let endpoint = r#""command": "x""#;
        for (users, projects) in [
            (format!("{{{endpoint}, {users}}}"), format!("{{{projects}}}")),
            (format!("{{{endpoint}, {users}}}"), format!(r#"{{"command": "y", {projects}}}"#)),
            (format!("{{{users}}}"), format!("{{{endpoint}, {projects}}}")),
        ] {
            let wrap = |entry: &str| format!(r#"{{"mcpServers": {{"s": {entry}}}}}"#);
            let files = [(USER, &*wrap(&users)), (PROJECT, &*wrap(&projects))];
            let mut shown = merged(&files, &|_| true).servers["s"].definition.show();
            shown.shift_remove("command");
            assert_eq!(serde_json::Value::from(shown).to_string(), expected, "{users} {projects}");
        }
    }
}

#[test]
fn trust_prompt_shows_that_project_enables_a_disabled_server() {
    let approved = |users: &str, projects: &str| {
        let wrap = |entry: &str| format!(r#"{{"mcpServers": {{"s": {entry}}}}}"#);
        let (users, projects) = (wrap(users), wrap(projects));
        let config = merged(&[(USER, &users), (PROJECT, &projects)], &|_| false);
        config.pending[0].clone()
    };
    let off = r#"{"command": "x", "disabled": true}"#;
    let says_on = r#"{"debug": true, "enabled": true}"#;
    let [quiet, turns_on] = [r#"{"debug": true}"#, says_on].map(|entry| approved(off, entry));
    assert_ne!(quiet.hash, turns_on.hash);
    let question =
        |pending| PendingDefinition::of(pending, &|_| true, &[], &[]).text(|_, text| text.into());
    let says = "turns on     this server, which your own configuration turns off";
    assert!(question(&turns_on).contains(says), "{}", question(&turns_on));
    assert!(!question(&quiet).contains("turns on"));
    // A server that the project itself disabled and enabled again needs no further approval.
    let on = r#"{"command": "x"}"#;
    let says_off = r#"{"debug": true, "disabled": true}"#;
    let hashes = [r#"{"debug": true}"#, says_off, says_on].map(|entry| approved(on, entry).hash);
    assert!(hashes.iter().all(|hash| *hash == hashes[0]));
}
