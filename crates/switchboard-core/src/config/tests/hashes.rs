//! Which parts of a definition change its trust hash and its definition hash.

use super::*;

const BASE: &str = r#"{"command": "node", "args": ["a.js", "b"], "env": {"A": "1", "B": "2"},
    "cwd": "/w", "lifecycle": "lazy", "headers": {"H": "1"}, "approveTools": true}"#;

fn trusted(fields: &str) -> TrustHash {
    trust_hash("s", &entry(fields), "/p", &[])
}

#[test]
fn every_change_of_a_definition_changes_its_trust_hash() {
    let mutations = [
        (r#""node""#, r#""node ""#),
        (r#""node""#, r#""nоde""#),
        (r#""command": "node""#, r#""url": "node""#),
        (r#""command": "node""#, r#""socket": "node""#),
        (r#"["a.js", "b"]"#, r#"["b", "a.js"]"#),
        (r#"["a.js", "b"]"#, r#"["a.js", "b", ""]"#),
        (r#"["a.js", "b"]"#, r#"["a.jsb"]"#),
        (r#"["a.js", "b"]"#, r#"["a.js b"]"#),
        (r#""A": "1""#, r#""A": "2""#),
        (r#""A": "1""#, r#""a": "1""#),
        (r#""A": "1", "B": "2""#, r#""B": "2", "A": "1""#),
        (r#""A": "1", "B": "2""#, r#""A": "1""#),
        (r#""A": "1""#, r#""A": "${HOME}""#),
        (r#""/w""#, r#""/w/""#),
        (r#""cwd": "/w","#, ""),
        (r#""lazy""#, r#""eager""#),
        (r#""H": "1""#, r#""H": "2""#),
        (r#""H": "1""#, r#""H1": """#),
        (r#""approveTools": true"#, r#""approveTools": ["*"]"#),
        (r#""approveTools": true"#, r#""approveTools": true, "auth": "bearer""#),
        (r#""approveTools": true"#, r#""approveTools": true, "bearerToken": "t""#),
        (r#""approveTools": true"#, r#""approveTools": true, "oauth": {"scope": "s"}"#),
        (r#""approveTools": true"#, r#""approveTools": true, "timeout": 1000"#),
        (r#""approveTools": true"#, r#""approveTools": true, "idleTimeout": 1"#),
    ];
    let mut hashes = std::collections::HashSet::from([trusted(BASE)]);
    for (from, to) in mutations {
        assert!(BASE.contains(from), "{from}");
        assert!(hashes.insert(trusted(&BASE.replace(from, to))), "{from} to {to}");
    }
    let base = entry(BASE);
    let file = |path: &str, content| -> Vec<FileHash> { vec![(path.to_owned(), [content; 32])] };
    assert!(hashes.insert(trust_hash("t", &base, "/p", &[])));
    assert!(hashes.insert(trust_hash("s", &base, "/q", &[])));
    assert!(hashes.insert(trust_hash("s", &base, "/p", &file("a.js", 1))));
    assert!(hashes.insert(trust_hash("s", &base, "/p", &file("a.js", 2))));
    assert!(hashes.insert(trust_hash("s", &base, "/p", &file("b.js", 1))));
}

#[test]
fn trust_hash_ignores_layout_comments_order_and_disabled() {
    let other = r#"{ // c
        "args": ["a.js", "b",], "command": "n\u006fde", "approveTools": true,
        "headers": {"H": "1"}, "lifecycle": "lazy", "cwd": "/w", "env": {"A": "1", "B": "2"}}"#;
    assert_eq!(trusted(BASE), trusted(other));
    for switch in [r#""disabled": true"#, r#""enabled": false"#] {
        let switched = BASE.replace(r#""lifecycle""#, &format!(r#"{switch}, "lifecycle""#));
        assert_eq!(trusted(BASE), trusted(&switched), "{switch}");
    }
    assert_eq!(trusted(BASE).to_string().len(), 64);
}

#[test]
fn definition_hash_depends_on_endpoint_but_on_no_secret() {
    let hash = |from: &str, to: &str| {
        assert!(BASE.contains(from), "{from}");
        definition_hash(&entry(&BASE.replace(from, to)))
    };
    let base = hash("", "");
    for (from, to) in [
        (r#""A": "1""#, r#""A": "secret""#),
        (r#""A": "1", "B": "2""#, r#""B": "2", "A": "1""#),
        (r#""H": "1""#, r#""H": "secret""#),
        (r#""lazy""#, r#""eager""#),
        (r#""approveTools": true"#, r#""toolPrefix": "none", "timeout": 1000"#),
        (r#""approveTools": true"#, r#""includeTools": ["x"], "bearerToken": "secret""#),
    ] {
        assert_eq!(base, hash(from, to), "{from} to {to}");
    }
    for (from, to) in [
        (r#""node""#, r#""deno""#),
        (r#""b""#, r#""c""#),
        (r#""A": "1""#, r#""C": "1""#),
        (r#""H": "1""#, r#""I": "1""#),
        (r#""/w""#, r#""/v""#),
        (r#""command""#, r#""url""#),
        (r#""command""#, r#""socket""#),
        (r#""approveTools": true"#, r#""auth": "oauth""#),
        (r#""approveTools": true"#, r#""protocolVersion": "auto""#),
    ] {
        assert_ne!(base, hash(from, to), "{from} to {to}");
    }
    let key = |key: &str| {
        definition_hash(&entry(&format!(
            r#"{{"url": "http://h", "auth": {{"type": "api-key", "key": "{key}"}}}}"#
        )))
    };
    assert_eq!(key("a"), key("b"));
}

#[test]
fn entry_words_that_may_name_a_script_are_collected() {
    let check = |fields: &str, expected: &[&str]| {
        assert_eq!(words_in(&entry(fields)), expected, "{fields}");
    };
    check(
        r#"{"command": "node", "args": ["--import=./hook.mjs", "-y"],
            "env": {"T": "!./token.sh 'a b'", "U": "!!no", "V": "-r ./v.js"}}"#,
        &["node", "--import=./hook.mjs", "-y", "./token.sh", "a b", "!!no", "-r ./v.js"],
    );
    check(r#"{"url": "python run.py"}"#, &["python", "run.py"]);
    assert!(entry(r#"{"type": "stdio", "url": "https://h/mcp"}"#).transport("s").is_err());
    check(
        r#"{"url": "http://h", "requestHeadersCommand": {"command": "./sign", "args": ["k.sh"]},
            "bearerToken": "!./t", "oauth": {"clientSecret": "!./c"},
            "auth": {"type": "api-key", "key": "!./k"}}"#,
        &["./sign", "k.sh", "./t", "./k", "./c"],
    );
}

#[test]
fn path_inside_a_command_line_argument_is_found() {
    for (word, path) in [
        ("run.js", "run.js"),
        ("--import=./hook.mjs", "./hook.mjs"),
        ("-frun.awk", "run.awk"),
        ("RC=./rc.sh", "./rc.sh"),
        ("exec ./run.sh", "./run.sh"),
        ("-javaagent:a.jar", "a.jar"),
        ("@args.txt", "args.txt"),
        ("exec(open('srv.py').read())", "srv.py"),
        ("require(\"./srv\")", "./srv"),
        ("cd sub&&python srv.py", "sub"),
        ("<(./x.sh)", "./x.sh"),
        ("import 'file:///a/b.mjs'", "file:///a/b.mjs"),
    ] {
        let found = paths_in(std::iter::once(word));
        assert!(found.iter().any(|part| part == path), "{word}: {found:?}");
    }
}

#[test]
fn variables_and_commands_of_an_entry_are_found_unexpanded() {
    let check = |fields: &str, variables: &[&str], commands: &[&str]| {
        let reach = reach(&entry(fields));
        assert_eq!(
            (&reach.variables[..], &reach.commands[..]),
            (
                &variables.iter().map(ToString::to_string).collect::<Vec<_>>()[..],
                &commands.iter().map(ToString::to_string).collect::<Vec<_>>()[..],
            ),
            "{fields}"
        );
    };
    check(
        r#"{"command": "${A}", "args": ["{env:B}", "${A}"], "cwd": "$env:C",
            "env": {"T": "!pass ${D}", "U": "!!no", "V": "${E:-x}"}}"#,
        &["A", "C", "B", "D", "E"],
        &["pass ${D}"],
    );
    check(
        r#"{"url": "http://h/${A}", "headers": {"H": "${B}"}, "bearerToken": "!t",
            "bearerTokenEnv": "C", "auth": {"type": "basic", "username": "${D}", "passwordEnv": "E"},
            "oauth": {"clientId": "${F}", "clientSecret": "!s ${G}", "scope": "${H}"}}"#,
        &["A", "B", "D", "G", "F", "H", "C", "E"],
        &["t", "s ${G}"],
    );
    check(r#"{"url": "node ${A}"}"#, &[], &[]);
}
