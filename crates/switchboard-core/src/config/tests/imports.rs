//! Imported files of other hosts: precedence, merging, and entries that are ignored.

use super::*;

/// A file at the given path, of Switchboard or of a host, with one server `s`.
fn layer((place, tier, host, server): (&str, Tier, Option<Host>, &str)) -> Layer {
    let text = format!(r#"{{"mcpServers": {{"s": {server}}}}}"#);
    let source = source(place, tier);
    let file = match host {
        None => parse(&text, &source),
        Some(host) => hosts::parse(host, &text, &source, "/p"),
    };
    Layer { source, file }
}

fn check(files: &[(&str, Tier, Option<Host>, &str)], approval: bool, expected: &str) {
    let layers: Vec<Layer> = files.iter().copied().map(layer).collect();
    let approvals = Approvals {
        project_root: "/p",
        file_hashes: &|_| Vec::new(),
        is_approved: &|_| approval,
        was_approved: &|_| false,
    };
    let config = merge(&layers, &approvals);
    let show = |entry: &ServerEntry| {
        let origins = entry.origins.iter().map(|(key, at)| format!(" {key}={}", at.path));
        origins.collect::<String>()
    };
    let mut lines = Vec::new();
    for server in config.servers.values() {
        lines.push(format!("usable:{}", show(&server.definition)));
    }
    lines.extend(config.pending.iter().map(|p| format!("pending:{}", show(&p.definition))));
    lines.extend(config.diagnostics.iter().map(ToString::to_string));
    assert_eq!(lines.join("\n"), expected, "{files:?}");
}

const OURS: Option<Host> = None;
const CURSOR: Option<Host> = Some(Host::Cursor);
const GEMINI: Option<Host> = Some(Host::GeminiCli);

const IMPORTED: &str = r#"{"command": "x", "args": ["a"], "env": {"A": "1"}}"#;

#[test]
fn imported_server_needs_no_entry_in_mcp_json() {
    check(&[("c", USER, CURSOR, IMPORTED)], false, "usable: args=c command=c env=c");
    check(&[("c", PROJECT, CURSOR, IMPORTED)], false, "pending: args=c command=c env=c");
    check(&[("c", PROJECT, CURSOR, IMPORTED)], true, "usable: args=c command=c env=c");
}

#[test]
fn imported_entry_fills_unset_fields_for_the_same_endpoint() {
    let ours = r#"{"command": "x", "args": ["b"]}"#;
    let expected = "usable: args=o command=o env=c";
    check(&[("c", USER, CURSOR, IMPORTED), ("o", USER, OURS, ours)], false, expected);
    // The order of the files does not matter here.
    check(&[("o", USER, OURS, ours), ("c", USER, CURSOR, IMPORTED)], false, expected);
    let off = r#"{"disabled": true}"#;
    check(
        &[("c", USER, CURSOR, IMPORTED), ("o", USER, OURS, off)],
        false,
        "usable: args=c command=c disabled=o env=c",
    );
}

#[test]
fn own_entry_with_endpoint_overrides_disabled_flag_of_host() {
    const CLINE: Option<Host> = Some(Host::Cline);
    let off = r#"{"command": "x", "disabled": true}"#;
    check(&[("c", USER, CLINE, off)], false, "usable: command=c disabled=c");
    let ours = r#"{"command": "x"}"#;
    check(&[("c", USER, CLINE, off), ("o", USER, OURS, ours)], false, "usable: command=o");
    // An entry of ours without an endpoint only adds to the host's entry.
    let more = r#"{"args": ["b"]}"#;
    let expected = "usable: args=o command=c disabled=c";
    check(&[("c", USER, CLINE, off), ("o", USER, OURS, more)], false, expected);
}

#[test]
fn env_inherited_despite_other_arguments_causes_a_warning() {
    let theirs = r#"{"command": "npx", "args": ["-y", "a"], "env": {"T": "1"}}"#;
    let ours = r#"{"command": "npx", "args": ["-y", "b"]}"#;
    let expected = "usable: args=o command=o env=c\no:1:17: warning: server `s` inherits its `env` from \
        c:1, where it has other arguments: set `env` here too";
    check(&[("c", USER, CURSOR, theirs), ("o", USER, OURS, ours)], false, expected);
    check(&[("o", USER, OURS, ours), ("c", USER, CURSOR, theirs)], false, expected);
    let args = r#"{"args": ["-y", "b"]}"#;
    let expected = expected.replace("command=o", "command=c");
    check(&[("c", USER, CURSOR, theirs), ("o", USER, OURS, args)], false, &expected);
    for unsaid in [
        r#"{"command": "npx", "args": ["-y", "b"], "env": {}}"#,
        r#"{"command": "npx", "args": ["-y", "a"]}"#,
        r#"{"command": "npx"}"#,
        r#"{"command": "node", "args": ["b"]}"#,
    ] {
        let layers = [("c", USER, CURSOR, theirs), ("o", USER, OURS, unsaid)].map(layer);
        let approvals = Approvals {
            project_root: "/p",
            file_hashes: &|_| Vec::new(),
            is_approved: &|_| false,
            was_approved: &|_| false,
        };
        assert_eq!(merge(&layers, &approvals).diagnostics, [], "{unsaid}");
    }
}

#[test]
fn entry_with_another_endpoint_inherits_nothing_from_imports() {
    for ours in [r#"{"command": "y"}"#, r#"{"url": "http://h"}"#] {
        let key = if ours.contains("url") { "url" } else { "command" };
        check(
            &[("c", USER, CURSOR, IMPORTED), ("o", USER, OURS, ours)],
            false,
            &format!("usable: {key}=o"),
        );
        check(
            &[("c", USER, CURSOR, IMPORTED), ("p", PROJECT, OURS, ours)],
            true,
            &format!("usable: {key}=p"),
        );
    }
}

#[test]
fn only_the_first_host_defining_a_name_is_used() {
    let other = r#"{"command": "z", "cwd": "/"}"#;
    check(
        &[("c", USER, CURSOR, IMPORTED), ("z", USER, GEMINI, other)],
        false,
        "usable: args=c command=c env=c",
    );
    check(
        &[("z", USER, GEMINI, other), ("c", USER, CURSOR, IMPORTED)],
        false,
        "usable: command=z cwd=z",
    );
    // The entry of only one host is merged into ours.
    let same = r#"{"command": "x", "cwd": "/"}"#;
    check(
        &[
            ("c", USER, CURSOR, IMPORTED),
            ("z", USER, GEMINI, same),
            ("o", USER, OURS, r#"{"command": "x"}"#),
        ],
        false,
        "usable: args=c command=o env=c",
    );
}

#[test]
fn project_host_file_adds_nothing_to_user_servers() {
    let user = r#"{"command": "x"}"#;
    for (host, place) in [(OURS, "o"), (CURSOR, "c")] {
        check(
            &[(place, USER, host, user), ("p", PROJECT, CURSOR, IMPORTED)],
            true,
            &format!("usable: command={place}"),
        );
    }
    // A host's entry is merged into a project's server. The whole server is then pending.
    check(
        &[("p", PROJECT, CURSOR, IMPORTED), ("o", PROJECT, OURS, user)],
        false,
        "pending: args=p command=o env=p",
    );
}

#[test]
fn repository_cannot_hide_an_imported_user_server() {
    check(
        &[("c", USER, CURSOR, IMPORTED), ("p", PROJECT, OURS, r#"{"command": "y"}"#)],
        false,
        "usable: args=c command=c env=c\npending: command=p",
    );
}

proptest! {
    #[test]
    fn origin_of_an_imported_field_is_the_host_file(
        theirs in prop::collection::vec(any::<bool>(), 4),
        ours in prop::collection::vec(any::<bool>(), 5),
    ) {
        const FIELDS: [(&str, &str); 5] = [("args", "[]"), ("cwd", "\"/\""),
            ("disabled", "true"), ("env", "{}"), ("command", "\"x\"")];
        let server = |set: &[bool]| {
            let fields = FIELDS.iter().zip(set).filter(|(_, set)| **set);
            let fields: Vec<String> = fields.map(|((k, v), _)| format!("\"{k}\": {v}")).collect();
            format!("{{{}}}", fields.join(","))
        };
        let theirs: Vec<bool> = theirs.into_iter().chain([true]).collect();
        let (import, own) = (server(&theirs), server(&ours));
        let layers = [layer(("c", USER, CURSOR, &import)), layer(("o", USER, OURS, &own))];
        let approvals = Approvals {
            project_root: "/p",
            file_hashes: &|_| Vec::new(),
            is_approved: &|_| false, was_approved: &|_| false,
        };
        let definition = &merge(&layers, &approvals).servers["s"].definition;
        for (index, (key, _)) in FIELDS.iter().enumerate() {
            // If our file sets the endpoint, `disabled` of the host's file has no effect.
            let lent = theirs[index] && !(*key == "disabled" && ours[4]);
            let expected = if ours[index] { Some("o") } else { lent.then_some("c") };
            prop_assert_eq!(definition.origins.get(key).map(|at| &*at.path), expected);
            prop_assert_eq!(definition.has(key), expected.is_some());
        }
    }
}
