//! For every host: its parser finds the installed entry, and the entry can be removed.

use proptest::prelude::*;

use super::moving::{HostServer, other_servers};
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

const ARRAY: &str = "# mine\nactive_model = \"x\" # stays\n\n[[mcp_servers]]\nname = \"files\"\n\
    transport = \"stdio\"\ncommand = \"files-mcp\"\nenv = { T = \"x\" }\n\n# theirs\n\
    [[mcp_servers]]\nname = \"docs\"\ntransport = \"streamable-http\"\n\
    url = \"https://docs.example/mcp\"\n\n[tools.bash]\npermission = \"ask\"\n";

fn targets() -> impl Iterator<Item = Target> {
    Target::all()
}

/// Adds our entry with only a command.
fn install(target: Target, text: &str, command: &str) -> Result<String, EditError> {
    let setup = Setup { command, variables: &[], version: None };
    super::install(target, text, &setup).map(|put| put.text)
}

fn uninstall(target: Target, text: &str) -> Result<String, EditError> {
    super::uninstall(target, text)
}

fn sample(target: Target) -> String {
    match (target.syntax(), target.format().listing) {
        (Syntax::Toml, ServerList::Array) => ARRAY.to_owned(),
        (Syntax::Toml, ServerList::ByName) => TABLES.to_owned(),
        (Syntax::Jsonc, _) => SERVERS.replace("HOLDER", target.holder()),
    }
}

/// The servers that the host would start according to its parser, and whether our entry is among
/// them.
fn active(target: Target, text: &str) -> (Vec<String>, Presence) {
    let source = ConfigSource { path: "".into(), tier: Tier::User };
    let file = match target.host() {
        Some(host) => hosts::parse(host, text, &source, "/p"),
        None => crate::config::parse::parse(text, &source),
    };
    let on = |server: ParsedServer| (!server.entry.is_disabled()).then_some(server.name);
    (file.servers.into_iter().filter_map(on).collect(), presence(target, text).unwrap())
}

#[test]
fn removing_an_added_host_entry_restores_the_file_exactly() {
    for target in targets() {
        let text = sample(target);
        let with = install(target, &text, "/opt/switchboard").unwrap();
        assert!(with.contains("/opt/switchboard"), "{target}: {with}");
        for line in text.lines().filter(|line| !line.ends_with('}')) {
            assert!(with.contains(line), "{target} lost {line}: {with}");
        }
        let servers = vec!["files".to_owned(), "docs".to_owned()];
        assert_eq!(active(target, &with), (servers.clone(), Presence::Installed), "{target}");
        assert_eq!(install(target, &with, "other").unwrap(), with, "{target}");
        assert_eq!(uninstall(target, &with).unwrap(), text, "{target}");
        let off = disable_servers(target, &with, &servers).unwrap();
        assert_eq!(active(target, &off), (vec![], Presence::Installed), "{target}: {off}");
        let back = restore_servers(target, &off, &text, &servers).unwrap();
        let (mut names, _) = active(target, &uninstall(target, &back).unwrap());
        names.sort_unstable();
        assert_eq!(names, ["docs", "files"], "{target}: {back}");
    }
}

#[test]
fn host_entry_is_added_to_an_empty_file() {
    for target in targets() {
        let with = install(target, "", "switchboard").unwrap();
        assert_eq!(active(target, &with), (vec![], Presence::Installed), "{target}: {with}");
    }
    insta::assert_snapshot!(install(Target::Host(Host::Codex), "", "switchboard").unwrap(), @r#"
    [mcp_servers.switchboard]
    command = "switchboard"
    args = ["serve", "--host", "codex"]
    default_tools_approval_mode = "approve"
    "#);
    insta::assert_snapshot!(install(Target::Host(Host::Vibe), "", "switchboard").unwrap(), @r#"
    [[mcp_servers]]
    name = "switchboard"
    transport = "stdio"
    command = "switchboard"
    args = ["serve", "--host", "vibe"]

    [tools.switchboard_mcp]
    permission = "always"

    [tools.switchboard_mcp_write]
    permission = "always"
    "#);
    insta::assert_snapshot!(install(Target::Host(Host::Cline), "", "switchboard").unwrap(), @r#"
    {
      "mcpServers": {
        "switchboard": {
          "transport": {
            "type": "stdio",
            "command": "switchboard",
            "args": ["serve", "--host", "cline"]
          }
        }
      }
    }
    "#);
    insta::assert_snapshot!(install(Target::Host(Host::Zed), "", "switchboard").unwrap(), @r#"
    {
      "context_servers": {
        "switchboard": {
          "source": "custom",
          "command": "switchboard",
          "args": ["serve", "--host", "zed"]
        }
      }
    }
    "#);
}

#[test]
fn install_keeps_comments_and_order_of_codex_tables() {
    let with = install(Target::Host(Host::Codex), TABLES, "switchboard").unwrap();
    let off = disable_servers(Target::Host(Host::Codex), &with, &["docs".to_owned()]).unwrap();
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
    args = ["serve", "--host", "codex"]
    default_tools_approval_mode = "approve"

    [projects."/p"]
    trust_level = "trusted"
    "#);
}

#[test]
fn codex_servers_are_edited_in_any_toml_form() {
    let check = |text: &str, expected: &str| {
        let with = install(Target::Host(Host::Codex), text, "switchboard").unwrap();
        assert_eq!(presence(Target::Host(Host::Codex), &with), Ok(Presence::Installed), "{with}");
        let off = disable_servers(Target::Host(Host::Codex), text, &["a".to_owned()]).unwrap();
        assert_eq!(off, expected);
        assert_eq!(active(Target::Host(Host::Codex), &off).0, Vec::<String>::new(), "{off}");
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
fn gemini_allowed_servers_include_switchboard_while_installed() {
    let text = r#"{ "mcp": { "allowed": ["a"] } }"#;
    let with = install(Target::Host(Host::GeminiCli), text, "switchboard").unwrap();
    assert!(with.contains(r#""allowed": ["a", "switchboard"]"#), "{with}");
    assert!(
        uninstall(Target::Host(Host::GeminiCli), &with).unwrap().contains(r#""allowed": ["a"]"#)
    );
}

#[test]
fn install_completes_an_entry_of_an_older_switchboard() {
    for target in targets() {
        let fresh = install(target, "", "switchboard").unwrap();
        for args in [
            format!(r#""serve", "--host", "{target}""#),
            format!("\"serve\",\n            \"--host\",\n            \"{target}\""),
        ] {
            let older = fresh.replace(&args, r#""serve""#);
            assert_eq!(presence(target, &older), Ok(Presence::Installed), "{target}: {older}");
            let renewed = install(target, &older, "other").unwrap();
            assert!(renewed.contains(r#""--host""#), "{target}: {renewed}");
            assert!(!renewed.contains("other"), "{target}: {renewed}");
        }
    }
    let text = r#"{ "mcpServers": { "mine": { "command": "switchboard", "args": ["serve", "--transparent", "x"], "trust": false } } }"#;
    assert_eq!(install(Target::Host(Host::GeminiCli), text, "x").unwrap(), text);
}

#[test]
fn host_entry_passes_environment_variables_in_host_syntax() {
    let variables = ["MY_TOKEN".to_owned(), "OTHER".to_owned()];
    let with = |target, text: &str, variables: &[String]| {
        let setup = Setup { command: "switchboard", variables, version: None };
        super::install(target, text, &setup).unwrap()
    };
    let check = |host, expected: &[&str]| {
        let target = Target::Host(host);
        let first = with(target, "", &variables[..1]);
        assert!(first.added.contains(&Added::Variables(vec!["MY_TOKEN".to_owned()])));
        assert_eq!(
            variables_not_passed_on(target, &first.text, &variables),
            Ok(vec!["OTHER".to_owned()])
        );
        let both = with(target, &first.text, &variables);
        assert_eq!(both.added, [Added::Variables(vec!["OTHER".to_owned()])]);
        assert_eq!(
            variables_not_passed_on(target, &both.text, &variables),
            Ok(vec![]),
            "{}",
            both.text
        );
        expected.iter().for_each(|part| assert!(both.text.contains(part), "{}", both.text));
        assert_eq!(with(target, &both.text, &variables[..1]).text, both.text);
    };
    check(Host::Codex, &[r#"env_vars = ["MY_TOKEN", "OTHER"]"#]);
    check(Host::GeminiCli, &[r#""MY_TOKEN": "$MY_TOKEN""#, r#""OTHER": "$OTHER""#]);
    check(Host::Roo, &[r#""MY_TOKEN": "${env:MY_TOKEN}""#]);
    for host in [Host::QwenCode, Host::Vibe] {
        assert_eq!(
            with(Target::Host(host), "", &variables).text,
            with(Target::Host(host), "", &[]).text
        );
    }
    let vibe = with(Target::Host(Host::Vibe), "", &[]).text;
    assert_eq!(
        variables_not_passed_on(Target::Host(Host::Vibe), &vibe, &variables).unwrap(),
        variables
    );
    let qwen = with(Target::Host(Host::QwenCode), "", &[]).text;
    assert_eq!(
        variables_not_passed_on(Target::Host(Host::QwenCode), &qwen, &variables),
        Ok(vec![])
    );
}

#[test]
fn codex_namespace_is_written_only_for_supporting_versions() {
    let target = Target::Host(Host::Codex);
    let with = |text: &str, version| {
        let setup = Setup { command: "switchboard", variables: &[], version };
        super::install(target, text, &setup).unwrap().text
    };
    let namespaces = r#"direct_only_tool_namespaces = ["mcp__switchboard"]"#;
    for older in [None, Some([0, 141])] {
        assert!(!with("", older).contains("code_mode"), "{older:?}");
    }
    let current = with("", Some([0, 142]));
    assert!(current.contains(&format!("[features.code_mode]\n{namespaces}\n")), "{current}");
    assert_eq!(super::uninstall(target, &current).unwrap(), "");
    let theirs =
        "[features.code_mode]\nenabled = true\ndirect_only_tool_namespaces = [\"mcp__x\"]\n";
    let both = with(theirs, Some([1, 0]));
    assert!(both.contains(r#"["mcp__x", "mcp__switchboard"]"#), "{both}");
    assert_eq!(undo(target, &both, theirs).unwrap(), theirs);
    for taken in ["[features]\ncode_mode = true\n", "features = 3\n"] {
        assert!(!with(taken, Some([0, 166])).contains("namespaces"), "{taken}");
    }
}

#[test]
fn install_adds_switchboard_to_existing_claude_code_permissions() {
    let target = Target::Host(Host::ClaudeCode);
    let check = |before: &str, part: &str| {
        let Put { text, added } = grant(target, before).unwrap();
        assert_eq!(added.len(), 1);
        assert!(text.contains(part), "{text}");
        assert_eq!(grant(target, &text).unwrap(), Put { text: text.clone(), added: vec![] });
        let value = |text: &str| root(target, text).unwrap();
        assert_eq!(value(&revoke(target, &text, before).unwrap()), value(before), "{text}");
    };
    check("", r#""allow": ["mcp__switchboard"]"#);
    check("{\n  \"model\": \"x\"\n}\n", r#""model": "x""#);
    check(r#"{ "permissions": { "deny": ["WebFetch"] } }"#, r#""deny": ["WebFetch"]"#);
    check(r#"{ "permissions": { "allow": ["Read"] } }"#, r#"["Read", "mcp__switchboard"]"#);
    let own = r#"{ "permissions": { "allow": ["mcp__switchboard"] } }"#;
    assert_eq!(revoke(target, own, own).unwrap(), own);
}

#[test]
fn install_refuses_a_malformed_host_file() {
    let refusal = |target, text| install(target, text, "x").unwrap_err().to_string();
    insta::assert_snapshot!(refusal(Target::Host(Host::Cursor), "{ \"mcpServers\": "), @"line 1, column 17: expected value after colon in object property");
    insta::assert_snapshot!(refusal(Target::Host(Host::Cursor), "[]"), @"`(root)` cannot be changed, because it is not an object");
    insta::assert_snapshot!(refusal(Target::Host(Host::VsCode), "{ \"servers\": 3 }"), @"`servers` cannot be changed, because it is not an object");
    insta::assert_snapshot!(refusal(Target::Host(Host::Codex), "a = 1\nb = = 2\n"), @"line 2, column 5: extra `=`, expected nothing");
    let taken = r#"{ "mcpServers": { "switchboard": { "command": "telephone" } } }"#;
    assert_eq!(presence(Target::Host(Host::Cursor), taken), Ok(Presence::NameTaken));
}

#[test]
fn undo_keeps_edits_made_since_the_install() {
    let target = Target::Host(Host::Cursor);
    let before = sample(target);
    let names = ["files".to_owned(), "docs".to_owned()];
    let theirs = r#"{ "mcpServers": { "files": { "command": "newer" } } }"#;
    let back = restore_servers(target, theirs, &before, &names).unwrap();
    assert!(back.contains("newer") && !back.contains("files-mcp"), "{back}");
    assert!(back.contains("docs.example"), "{back}");
    let gone = "[mcp_servers.other]\ncommand = \"x\"\n";
    assert_eq!(
        restore_servers(Target::Host(Host::Codex), gone, TABLES, &names),
        Ok(gone.to_owned())
    );
}

#[test]
fn host_entry_without_exact_equivalent_stays_in_the_host() {
    let shown = |target, text: &str| {
        let line = |HostServer { name, ours }: HostServer| match ours {
            Some(entry) => format!("{name} {}", Json::Object(entry)),
            None => format!("{name} stays"),
        };
        other_servers(target, text).unwrap().into_iter().map(line).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(shown(Target::Host(Host::Codex), r#"
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
    b {"command":"b","env":{"K":"${K}"},"includeTools":["x"],"disabled":true}
    "#);
    insta::assert_snapshot!(shown(Target::Host(Host::VsCode), r#"{ "servers": {
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
    fn install_edit_of_arbitrary_text_never_panics(text in "\\PC{0,40}|[\\[\\]{}\"=.,:a\n ]{0,40}", cut in 0..400_usize) {
        for target in targets() {
            let sample = sample(target);
            let cut: String = sample.chars().take(cut).chain(text.chars()).collect();
            for text in [&text, &cut] {
                let names = ["files".to_owned(), "a".to_owned()];
                if let Ok(with) = install(target, text, "switchboard") {
                    prop_assert_eq!(presence(target, &with), Ok(Presence::Installed));
                }
                let _ = (uninstall(target, text), other_servers(target, text));
                let _ = disable_servers(target, text, &names);
                let _ = restore_servers(target, text, &sample, &names);
            }
        }
    }
}
