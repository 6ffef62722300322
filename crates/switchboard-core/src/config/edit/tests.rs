//! Edits of realistic files, as examples.

mod properties;

use serde_json::json;

use super::*;

const COMMENTED: &str = r#"// My servers.
{
    "settings": { "toolPrefix": "short" }, // short names
    "mcpServers": {
        // Issues and pull requests.
        "github": {
            "command": "gh-mcp", /* on the path */
            "args": ["--read-only"],
            "x-note": "kept",
        },
        "files": { "command": "files" } // local
        // "old": { "command": "old" },
    }
}
"#;

fn set(at: &[&str], value: Json) -> Edit {
    Edit { at: at.iter().map(|key| (*key).to_owned()).collect(), change: Change::Set(value) }
}

fn with(at: &[&str], change: Change) -> Edit {
    Edit { at: at.iter().map(|key| (*key).to_owned()).collect(), change }
}

/// The lines that the edits remove and add. Asserts that no other line changed.
fn diff(before: &str, edits: &[Edit]) -> String {
    let after = apply(before, edits).unwrap();
    let (old, new): (Vec<&str>, Vec<&str>) = (lines(before), lines(&after));
    let mut lengths = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            lengths[i][j] = if old[i] == new[j] {
                lengths[i + 1][j + 1] + 1
            } else {
                lengths[i + 1][j].max(lengths[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, String::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && lengths[i + 1][j] >= lengths[i][j + 1]) {
            out += &format!("-{}\n", old[i].trim_end_matches('\n').escape_debug());
            i += 1;
        } else {
            out += &format!("+{}\n", new[j].trim_end_matches('\n').escape_debug());
            j += 1;
        }
    }
    out.replace("\\\"", "\"")
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

#[test]
fn new_server_is_added_below_the_existing_ones() {
    let entry = json!({ "command": "npx", "args": ["-y", "pkg"], "env": { "TOKEN": "${TOKEN}" } });
    insta::assert_snapshot!(diff(COMMENTED, &[set(&["mcpServers", "new"], entry)]), @r#"
    -        "files": { "command": "files" } // local
    +        "files": { "command": "files" }, // local
    +        "new": {
    +            "command": "npx",
    +            "args": ["-y", "pkg"],
    +            "env": {
    +                "TOKEN": "${TOKEN}"
    +            }
    +        }
    "#);
}

#[test]
fn added_field_is_formatted_like_its_entry() {
    insta::assert_snapshot!(diff(COMMENTED, &[
        set(&["mcpServers", "github", "disabled"], json!(true)),
        set(&["mcpServers", "files", "disabled"], json!(true)),
    ]), @r#"
    +            "disabled": true,
    -        "files": { "command": "files" } // local
    +        "files": { "command": "files", "disabled": true } // local
    "#);
}

#[test]
fn removing_a_server_keeps_surrounding_comments() {
    let remove = |name| diff(COMMENTED, &[with(&["mcpServers", name], Change::Remove)]);
    insta::assert_snapshot!(remove("files"), @r#"
    -        },
    -        "files": { "command": "files" } // local
    +        }
    +        // local
    "#);
    insta::assert_snapshot!(remove("github"), @r#"
    -        "github": {
    -            "command": "gh-mcp", /* on the path */
    -            "args": ["--read-only"],
    -            "x-note": "kept",
    -        },
    "#);
}

#[test]
fn replaced_entry_keeps_unchanged_lines() {
    let entry = json!({ "command": "gh-mcp", "args": [], "cwd": "~" });
    insta::assert_snapshot!(diff(COMMENTED, &[set(&["mcpServers", "github"], entry)]), @r#"
    -            "args": ["--read-only"],
    -            "x-note": "kept",
    +            "args": [],
    +            "cwd": "~",
    "#);
}

#[test]
fn removing_an_added_allow_item_restores_the_file() {
    let allow = |text: &str, item: &str| {
        apply(text, &[with(&["settings", "allow"], Change::AddItem(item.into()))]).unwrap()
    };
    let once = allow(COMMENTED, "github_list_*");
    let twice = allow(&once, "files_read");
    assert_eq!(allow(&twice, "files_read"), twice, "it is in the list already");
    assert!(
        twice.contains(
            r#"    "settings": { "toolPrefix": "short", "allow": ["github_list_*", "files_read"] }, // short names"#
        ),
        "{twice}"
    );
    let back = with(&["settings", "allow"], Change::RemoveItem("files_read".into()));
    assert_eq!(apply(&twice, &[back]).unwrap(), once);
}

/// Each row has the text before, the edit and the text after.
#[test]
fn edit_follows_the_layout_of_the_configuration_file() {
    let put = || set(&["mcpServers", "a"], json!({ "url": "https://a" }));
    let allow = || with(&["settings", "allow"], Change::AddItem("a".into()));
    let remove = || with(&["mcpServers", "a"], Change::Remove);
    let cases = [
        (
            "",
            put(),
            "{\n  \"mcpServers\": {\n    \"a\": {\n      \"url\": \"https://a\"\n    }\n  }\n}\n",
        ),
        (
            "// only this",
            put(),
            "// only this\n{\n  \"mcpServers\": {\n    \"a\": {\n      \"url\": \"https://a\"\n    }\n  }\n}\n",
        ),
        ("{}", allow(), "{\n  \"settings\": {\n    \"allow\": [\"a\"]\n  }\n}"),
        ("{ // c\n}\n", allow(), "{ // c\n  \"settings\": {\n    \"allow\": [\"a\"]\n  }\n}\n"),
        ("{ /* c */ }", allow(), "{ /* c */ \"settings\": { \"allow\": [\"a\"] } }"),
        ("{\"mcpServers\":{}}", put(), "{\"mcpServers\":{ \"a\": { \"url\": \"https://a\" } }}"),
        (
            "{\r\n\t\"settings\": {},\r\n}\r\n",
            allow(),
            "{\r\n\t\"settings\": {\r\n\t\t\"allow\": [\"a\"]\r\n\t},\r\n}\r\n",
        ),
        (
            "\u{feff}{\n \"x\": 1 // c\n}",
            allow(),
            "\u{feff}{\n \"x\": 1, // c\n \"settings\": {\n  \"allow\": [\"a\"]\n }\n}",
        ),
        (
            "{ \"x\": 1 // c\n}",
            allow(),
            "{ \"x\": 1, // c\n\"settings\": { \"allow\": [\"a\"] }\n}",
        ),
        ("{ \"x\": 1, }", allow(), "{ \"x\": 1, \"settings\": { \"allow\": [\"a\"] }, }"),
        (
            "{ \"mcpServers\": { \"a\": 1, \"b\": 2 } }",
            remove(),
            "{ \"mcpServers\": { \"b\": 2 } }",
        ),
        (
            "{ \"mcpServers\": { \"b\": 2, \"a\": 1 } }",
            remove(),
            "{ \"mcpServers\": { \"b\": 2 } }",
        ),
        (
            "{ \"mcpServers\": { \"a\": 1, \"b\": 2, \"a\": 3, } }",
            remove(),
            "{ \"mcpServers\": { \"b\": 2, } }",
        ),
        ("{ \"mcpServers\": {\n  \"a\": 1\n} }", remove(), "{ \"mcpServers\": {} }"),
        ("{ \"other\": 1 }", remove(), "{ \"other\": 1 }"),
        ("// only this", remove(), "// only this"),
    ];
    for (before, edit, after) in cases {
        assert_eq!(
            apply(before, std::slice::from_ref(&edit)).unwrap(),
            after,
            "{before:?} {edit:?}"
        );
    }
}

#[test]
fn edit_of_malformed_file_or_wrong_type_is_refused() {
    let add = with(&["settings", "allow"], Change::AddItem("a".into()));
    let refusal = |text: &str| apply(text, std::slice::from_ref(&add)).unwrap_err().to_string();
    insta::assert_snapshot!(refusal("{ \"settings\": { \"allow\": [\"b\" } }"), @"line 1, column 31: unexpected close brace");
    insta::assert_snapshot!(refusal("{ 'settings': 1 }"), @"line 1, column 3: single-quoted strings are not allowed");
    insta::assert_snapshot!(refusal("[]"), @"`(root)` cannot be changed, because it is not an object");
    insta::assert_snapshot!(refusal("{ \"settings\": 1 }"), @"`settings` cannot be changed, because it is not an object");
    insta::assert_snapshot!(refusal("{ \"settings\": { \"allow\": \"b\" } }"), @"`settings.allow` cannot be changed, because it is not an array");
}

#[test]
fn value_lookup_returns_only_values_at_existing_paths() {
    let at = |at: &[&str]| value_at(COMMENTED, at).unwrap();
    assert_eq!(at(&["mcpServers", "github", "args"]), Some(json!(["--read-only"])));
    assert_eq!(at(&["mcpServers", "old"]), None);
    assert_eq!(at(&["settings", "toolPrefix", "deeper"]), None);
}
