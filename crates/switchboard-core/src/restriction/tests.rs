//! Which spellings of a tool's name a pattern matches.

use proptest::prelude::*;

use super::*;
use crate::name::ToolName;

fn denied(pattern: &str, server: &str, tool: &str) -> bool {
    let server = ServerName::new(server).unwrap();
    let id = ToolId { server, tool: ToolName::new(tool).unwrap() };
    let restriction = Restriction::new(&[pattern.to_owned()]);
    restriction.find(&id, &[], BareServer::Restricts).is_some()
}

#[test]
fn rule_matches_composed_and_decomposed_letters_alike() {
    for (composed, apart) in [("l\u{f6}schen", "lo\u{308}schen"), ("\u{439}", "\u{438}\u{306}")] {
        for (pattern, name) in [(composed, apart), (apart, composed)] {
            for pattern in [pattern.to_owned(), format!("srv/{pattern}"), format!("s*/{pattern}")] {
                assert!(denied(&pattern, "srv", name), "{pattern} {name}");
            }
        }
    }
    assert!(!denied("srv/l\u{f6}schen", "srv", "loschen"));
}

#[test]
fn rule_matches_tool_name_with_separators_after_any_prefix() {
    for tool in ["admin/delete", "a/b/c", "conf/", "x.y/z", "drop-all", "read_conf/secrets"] {
        for prefix in ["srv_", "srv-mcp_", "srv_mcp_", "mcp__srv-mcp__", "mcp__srv__", "SRV-"] {
            let name = format!("{prefix}{tool}");
            assert!(denied(&name, "srv-mcp", tool), "{name}");
            assert!(denied(&format!("{}*", &name[..name.len() - 2]), "srv-mcp", tool), "{name}");
        }
        assert!(denied(tool, "srv-mcp", tool), "{tool}");
    }
    assert!(denied("srv_drop/all", "srv", "drop-all"), "a call with this name finds the tool");
    assert!(denied("admin/*", "srv", "admin/delete"));
    assert!(denied("*_admin/*", "srv", "admin/delete"));
    // This is a rule for a server `admin`.
    assert!(!denied("admin/delete", "srv", "admin_delete"));
    assert!(!denied("srv_admin/delete", "srv", "admin/list"));
}

#[test]
fn overlong_tool_name_has_few_alternative_spellings() {
    let server = ServerName::new("srv").unwrap();
    assert!(spellings(&server, &"a-".repeat(NAME_LIMIT / 2)).len() > NAME_LIMIT);
    assert!(spellings(&server, &"a-".repeat(NAME_LIMIT)).len() < 20);
}

#[test]
fn rule_matches_in_any_letter_case_of_any_script() {
    for word in ["файлы", "запись", "δημος", "νησί", "удалить", "ქართული", "հայերեն", "büro"]
    {
        let (small, capital) = (word.to_lowercase(), word.to_uppercase());
        for (rule, name) in [(&small, &capital), (&capital, &small), (&small, &small)] {
            assert!(denied(&format!("srv/{rule}"), "srv", name), "{rule} {name}");
            assert!(denied(rule, "srv", name), "{rule} {name}");
            assert!(denied(&format!("*{rule}*"), "srv", &format!("a_{name}_b")), "{rule} {name}");
            assert!(denied(&format!("{rule}/*"), name, "x"), "{rule} {name}");
            assert!(denied(rule, name, "x"), "{rule} {name}");
            assert!(denied(&format!("{rule}/{rule}"), name, name), "{rule} {name}");
        }
    }
    // A letter that looks like an ASCII letter still matches.
    assert!(denied("srv/name", "srv", "\u{39d}ame"));
    assert!(denied("srv/video", "srv", "\u{3bd}ideo"));
    assert!(!denied("srv/файлы", "srv", "файл"));
}

#[test]
fn rule_matches_every_spelling_of_a_tool_name() {
    for pattern in [
        "srv/danger",
        "SRV/DANGER",
        "Srv_Danger",
        "srv-danger",
        "srv.danger",
        "srv__danger",
        "srv//danger",
        "srv:danger",
        "srv danger",
        "Danger",
        "mcp__srv__danger",
        "MCP__SRV__DANGER",
        "mcp__srv_danger",
        "srv/dan*",
        "SRV/*",
        "srv/d?nger",
        "srv/[A-D]anger",
        "srv/{danger,other}",
        "*/danger",
        "srv",
        "SRV",
        "*",
    ] {
        for tool in ["danger", "Danger", "DANGER", "dan\u{200b}ger", "d\u{430}nger"] {
            assert!(denied(pattern, "srv", tool), "{pattern} {tool:?}");
        }
    }
    for (pattern, tool) in [
        ("srv/delete-issue", "delete_issue"),
        ("srv/delete_issue", "delete-issue"),
        ("delete_issue", "delete.issue"),
        ("srv/delete.issue", "Delete Issue"),
        ("srv/delete_issue", "delete\u{2010}issue"),
        ("srv/delete_issue", "delete\u{ff3f}issue"),
        ("srv/delete_*", "delete\u{2010}issue"),
        ("srv/delete_issue", "deIete_issue"),
        ("srv/delete_issue", "de1ete_1ssue"),
        ("delete_item", "delete_itern"),
        // The original name of the tool already has the prefix of its server.
        ("srv/commit", "srv_commit"),
        ("commit", "srv_commit"),
        ("srv/com*", "srv-commit"),
        ("mcp__srv_commit", "SRV_COMMIT"),
        ("srv_commit", "srv_commit"),
        // These patterns have wildcards, sets and alternatives.
        ("srv/delete_*", "deIete_repo"),
        ("*delete*", "de1ete_repo"),
        ("*/delete_repo", "delete_rep0"),
        ("srv/{delete_repo,x}", "delete_rep0"),
        ("srv/delete_rep?", "deIete_repo"),
        ("srv/delete[-.]repo", "delete_repo"),
        ("srv/{_kill,x}", "_KILL"),
        ("srv/delete??repo", "DELETE__repo"),
    ] {
        assert!(denied(pattern, "srv", tool), "{pattern} {tool}");
    }
    assert!(denied("s/*", "s-mcp", "x"));
    assert!(denied("srv/*", "SRV", "x"));
    assert!(denied("io.github.x/srv/*", "io.github.x/srv", "x"));
    assert!(denied("a[[]b/*", "a[b", "x"));
}

#[test]
fn deny_rule_matches_a_requested_name_without_a_tool() {
    let server = ServerName::new("s-mcp").unwrap();
    let restriction = Restriction::new(&["s-mcp/delete_repo".to_owned()]);
    for name in [
        "delete_repo",
        "Delete-Repo",
        "s-mcp/delete_repo",
        "s_mcp_delete_repo",
        "s_delete_repo",
        "mcp__s-mcp__delete_repo",
        "deIete_repo",
        "delete\u{2010}repo",
        "s_delete_repo ",
    ] {
        let found = restriction.find_written(name, &server);
        assert_eq!(found, Some("s-mcp/delete_repo"), "{name}");
    }
    for name in ["delet_repo", "delete_repos", "other_delete_repo", ""] {
        assert_eq!(restriction.find_written(name, &server), None, "{name}");
    }
    for rule in ["delete_repo", "s_mcp_delete_repo", "mcp__s-mcp_delete_repo", "s/delete_repo"] {
        let restriction = Restriction::new(&[rule.to_owned()]);
        for name in ["delete_repo", "s_delete_repo", "s-mcp/delete_repo", "s_mcp_delete_repo"] {
            assert_eq!(restriction.find_written(name, &server), Some(rule), "{rule} {name}");
        }
    }
    let all = Restriction::new(&["*_repo".to_owned()]);
    assert_eq!(all.find_written("delete_repo", &server), Some("*_repo"));
}

#[test]
fn rule_does_not_match_similar_tools_or_servers() {
    assert!(!denied("git/*", "git_hub", "create"));
    assert!(!denied("git/hub_create", "git_hub", "create"));
    assert!(!denied("srv/danger", "srv", "dangerous"));
    assert!(!denied("srv/danger", "other", "danger"));
    assert!(!denied("srv/d?nger", "srv", "dnger"));
    assert!(!denied("srv", "other", "danger"));
    let id =
        ToolId { server: ServerName::new("time").unwrap(), tool: ToolName::new("now").unwrap() };
    let restriction = Restriction::new(&["time".to_owned()]);
    assert_eq!(restriction.find(&id, &[], BareServer::IsATool), None);
}

proptest! {
    /// A rule restricts a tool by every name with which a call finds it.
    #[test]
    fn tool_rule_matches_any_letter_case_and_separator(
        server in "[a-z]{1,6}([-_. ][a-z]{1,4})?",
        tool in "[a-zA-Z]{1,8}([-_. ][a-zA-Z]{1,6}){0,2}",
        seed in any::<u64>(),
    ) {
        let vary = |text: &str| -> String {
            text.char_indices()
                .map(|(at, c)| match (c, seed >> (at % 60) & 3) {
                    ('-' | '_' | '.' | ' ', 0) => '-',
                    ('-' | '_' | '.' | ' ', 1) => '_',
                    ('-' | '_' | '.' | ' ', 2) => '.',
                    (c, 3) => c.to_ascii_uppercase(),
                    (c, 0) => c.to_ascii_lowercase(),
                    (c, _) => c,
                })
                .collect()
        };
        for pattern in [
            format!("{}/{}", vary(&server), vary(&tool)),
            format!("{}_{}", vary(&server), vary(&tool)),
            format!("mcp__{}__{}", vary(&server), vary(&tool)),
            vary(&tool),
            format!("{}/*", vary(&server)),
        ] {
            prop_assert!(denied(&pattern, &server, &tool), "{}", pattern);
        }
    }
}

#[test]
fn rule_matches_a_server_whose_name_has_a_slash() {
    let check = |pattern: &str, server: &str, tool: &str, expected: bool| {
        assert_eq!(denied(pattern, server, tool), expected, "{pattern} {server} {tool}");
    };
    for server in ["io.github.github/github-mcp-server", "@scope/pkg", "a/b", "a/b/c", "Ä/ö-mcp"]
    {
        let (head, tail) = server.split_once('/').unwrap();
        let prefix = ToolPrefix::Server.prefix(&ServerName::new(server).unwrap());
        for pattern in [
            server.to_owned(),
            format!("{server}/*"),
            format!("{server}/delete_repo"),
            format!("{head}/*"),
            format!("*/{tail}"),
            format!("{server}_delete_repo"),
            format!("{server}_*"),
            format!("{server}/delete-repo"),
            format!("{prefix}_delete_repo"),
            server.to_uppercase(),
        ] {
            check(&pattern, server, "delete_repo", true);
        }
        check(&format!("{server}/delete_repo"), server, "create_repo", false);
        check(&format!("{head}/other"), server, "delete_repo", false);
        check(server, "other", "delete_repo", false);
        check(server, "other/one", "delete_repo", false);
    }
    check("c/d", "a/b", "c_d", false);
    let id = ToolId { server: ServerName::new("a/b").unwrap(), tool: ToolName::new("x").unwrap() };
    let restriction = Restriction::new(&["a/b".to_owned()]);
    assert_eq!(restriction.find(&id, &[], BareServer::IsATool), None);
}
