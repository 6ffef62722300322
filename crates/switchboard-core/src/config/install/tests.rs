//! Every host's form: what is put in is found by the host's own reader, and comes out again.

use proptest::prelude::*;

use super::moving::{Other, others};
use super::*;
use crate::config::hosts;
use crate::config::parse::ParsedServer;

const SERVERS: &str = r#"// mine
{
  "before": 1, // stays
  "HOLDER": {
    "files": { "command": "files-mcp", "env": { "T": "x" } }, // theirs
    "docs": { "url": "https://docs.example/mcp" }
  },
  "after": [2]
}
"#;

const TABLES: &str = "# mine\nmodel = \"x\" # stays\n\n[mcp_servers.files]\ncommand = \"files-mcp\"\n\
    env = { T = \"x\" }\n\n# theirs\n[mcp_servers.docs]\nurl = \"https://docs.example/mcp\"\n\n\
    [projects.\"/p\"]\ntrust_level = \"trusted\"\n";

fn targets() -> impl Iterator<Item = Target> {
    Target::WORDS.iter().map(|word| Target::from_word(word).unwrap())
}

fn sample(target: Target) -> String {
    match target.syntax() {
        Syntax::Toml => TABLES.to_owned(),
        Syntax::Jsonc => SERVERS.replace("HOLDER", target.holder()),
    }
}

/// The servers that the host would start, by its own reader, and whether ours is among them.
fn active(target: Target, text: &str) -> (Vec<String>, Presence) {
    let source = Source { path: "".into(), tier: Tier::User };
    let file = match target.host() {
        Some(host) => hosts::parse(host, text, &source, "/p"),
        None => crate::config::parse::parse(text, &source),
    };
    let on = |server: ParsedServer| (!server.entry.is_disabled()).then_some(server.name);
    (file.servers.into_iter().filter_map(on).collect(), presence(target, text).unwrap())
}

#[test]
fn our_entry_goes_into_every_host_and_comes_out_to_the_byte() {
    for target in targets() {
        let text = sample(target);
        let with = put_in(target, &text, "/opt/switchboard").unwrap();
        assert!(with.contains("/opt/switchboard"), "{target}: {with}");
        for line in text.lines().filter(|line| !line.ends_with('}')) {
            assert!(with.contains(line), "{target} lost {line}: {with}");
        }
        let servers = vec!["files".to_owned(), "docs".to_owned()];
        assert_eq!(active(target, &with), (servers.clone(), Presence::Installed), "{target}");
        assert_eq!(put_in(target, &with, "other").unwrap(), with, "{target}");
        assert_eq!(take_out(target, &with).unwrap(), text, "{target}");
        let off = switch_off(target, &with, &servers).unwrap();
        assert_eq!(active(target, &off), (vec![], Presence::Installed), "{target}: {off}");
        let back = switch_back(target, &off, &text, &servers).unwrap();
        let (mut names, _) = active(target, &take_out(target, &back).unwrap());
        names.sort_unstable();
        assert_eq!(names, ["docs", "files"], "{target}: {back}");
    }
}

#[test]
fn our_entry_goes_into_an_empty_file_of_every_host() {
    for target in targets() {
        let with = put_in(target, "", "switchboard").unwrap();
        assert_eq!(active(target, &with), (vec![], Presence::Installed), "{target}: {with}");
    }
    insta::assert_snapshot!(put_in(Target::Codex, "", "switchboard").unwrap(), @r#"
    [mcp_servers.switchboard]
    command = "switchboard"
    args = ["serve"]
    "#);
    insta::assert_snapshot!(put_in(Target::Zed, "", "switchboard").unwrap(), @r#"
    {
      "context_servers": {
        "switchboard": {
          "source": "custom",
          "command": "switchboard",
          "args": ["serve"]
        }
      }
    }
    "#);
}

#[test]
fn codex_tables_are_changed_in_their_place() {
    let with = put_in(Target::Codex, TABLES, "switchboard").unwrap();
    let off = switch_off(Target::Codex, &with, &["docs".to_owned()]).unwrap();
    insta::assert_snapshot!(off, @r#"
    # mine
    model = "x" # stays

    [mcp_servers.files]
    command = "files-mcp"
    env = { T = "x" }

    # theirs
    [mcp_servers.docs]
    url = "https://docs.example/mcp"
    enabled = false

    [mcp_servers.switchboard]
    command = "switchboard"
    args = ["serve"]

    [projects."/p"]
    trust_level = "trusted"
    "#);
}

#[test]
fn codex_servers_in_any_form_of_toml_take_a_change() {
    let check = |text: &str, expected: &str| {
        let with = put_in(Target::Codex, text, "switchboard").unwrap();
        assert_eq!(presence(Target::Codex, &with), Ok(Presence::Installed), "{with}");
        let off = switch_off(Target::Codex, text, &["a".to_owned()]).unwrap();
        assert_eq!(off, expected);
        assert_eq!(active(Target::Codex, &off).0, Vec::<String>::new(), "{off}");
    };
    check(
        "[mcp_servers.a]\ncommand = \"a\"\nenabled = true # mine\n",
        "[mcp_servers.a]\ncommand = \"a\"\nenabled = false # mine\n",
    );
    check(
        "mcp_servers = { a = { command = \"a\" } }\n",
        "mcp_servers = { a = { command = \"a\" , enabled = false } }\n",
    );
    check(
        "mcp_servers.a.command = \"a\"\n",
        "mcp_servers.a.command = \"a\"\nmcp_servers.a.enabled = false\n",
    );
}

#[test]
fn a_list_of_allowed_servers_gets_our_name() {
    let text = r#"{ "mcp": { "allowed": ["a"] } }"#;
    let with = put_in(Target::GeminiCli, text, "switchboard").unwrap();
    assert!(with.contains(r#""allowed": ["a", "switchboard"]"#), "{with}");
    assert!(take_out(Target::GeminiCli, &with).unwrap().contains(r#""allowed": ["a"]"#));
}

#[test]
fn a_text_that_cannot_be_changed_is_refused() {
    let refusal = |target, text| put_in(target, text, "x").unwrap_err().to_string();
    insta::assert_snapshot!(refusal(Target::Cursor, "{ \"mcpServers\": "), @"line 1, column 17: expected value after colon in object property");
    insta::assert_snapshot!(refusal(Target::Cursor, "[]"), @"`(root)` must be an object before it can be changed");
    insta::assert_snapshot!(refusal(Target::VsCode, "{ \"servers\": 3 }"), @"`servers` must be an object before it can be changed");
    insta::assert_snapshot!(refusal(Target::Codex, "a = 1\nb = = 2\n"), @"line 2, column 5: extra `=`, expected nothing");
    let taken = r#"{ "mcpServers": { "switchboard": { "command": "telephone" } } }"#;
    assert_eq!(presence(Target::Cursor, taken), Ok(Presence::NameTaken));
}

#[test]
fn what_somebody_changed_in_between_stays() {
    let target = Target::Cursor;
    let before = sample(target);
    let names = ["files".to_owned(), "docs".to_owned()];
    let theirs = r#"{ "mcpServers": { "files": { "command": "newer" } } }"#;
    let back = switch_back(target, theirs, &before, &names).unwrap();
    assert!(back.contains("newer") && !back.contains("files-mcp"), "{back}");
    assert!(back.contains("docs.example"), "{back}");
    let gone = "[mcp_servers.other]\ncommand = \"x\"\n";
    assert_eq!(switch_back(Target::Codex, gone, TABLES, &names), Ok(gone.to_owned()));
}

#[test]
fn servers_of_a_host_come_in_our_form_and_only_if_they_mean_the_same() {
    let shown = |target, text: &str| {
        let line = |Other { name, ours }: Other| match ours {
            Some(entry) => format!("{name} {}", Json::Object(entry)),
            None => format!("{name} stays"),
        };
        others(target, text).unwrap().into_iter().map(line).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(shown(Target::Codex, r#"
        [mcp_servers.switchboard]
        command = "/usr/bin/switchboard"
        args = ["serve"]
        [mcp_servers.a]
        url = "https://a"
        bearer_token_env_var = "T"
        env_http_headers = { X = "Y" }
        startup_timeout_sec = 20
        [mcp_servers.b]
        command = "b"
        args = []
        env_vars = ["K"]
        enabled_tools = ["x"]
        enabled = false
    "#), @r#"
    a {"url":"https://a","headers":{"X":"${Y}"},"auth":"bearer","bearerTokenEnv":"T","startTimeoutMs":20000}
    b {"command":"b","env":{"K":"${K:-}"},"includeTools":["x"],"disabled":true}
    "#);
    insta::assert_snapshot!(shown(Target::VsCode, r#"{ "servers": {
        "a": { "type": "stdio", "command": "${workspaceFolder}/a", "env": {} },
        "b": { "command": "b", "env": { "K": "${input:key}" } }
    } }"#), @r#"
    a {"type":"stdio","command":"${workspaceFolder}/a"}
    b stays
    "#);
    insta::assert_snapshot!(shown(Target::Pi, r#"{ "mcpServers": {
        "a": { "command": "a", "lifecycle": "eager", "auth": { "type": "api-key", "key": "k" } },
        "b": { "command": 3 }
    } }"#), @r#"
    a {"command":"a","lifecycle":"eager","auth":{"type":"api-key","key":"k"}}
    b stays
    "#);
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,40}|[\\[\\]{}\"=.,:a\n ]{0,40}", cut in 0..400_usize) {
        for target in targets() {
            let sample = sample(target);
            let cut: String = sample.chars().take(cut).chain(text.chars()).collect();
            for text in [&text, &cut] {
                let names = ["files".to_owned(), "a".to_owned()];
                if let Ok(with) = put_in(target, text, "switchboard") {
                    prop_assert_eq!(presence(target, &with), Ok(Presence::Installed));
                }
                let _ = (take_out(target, text), others(target, text));
                let _ = switch_off(target, text, &names);
                let _ = switch_back(target, text, &sample, &names);
            }
        }
    }
}
