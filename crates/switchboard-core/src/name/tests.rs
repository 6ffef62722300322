//! Shown names and prefixes of tools, and validation of names.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

fn id(server: &str, tool: &str) -> ToolId {
    ToolId { server: ServerName::new(server).unwrap(), tool: ToolName::new(tool).unwrap() }
}

fn check(server: &str, tool: &str, expected: [&str; 4]) {
    let id = id(server, tool);
    assert_eq!(ToolPrefix::ALL.map(|mode| shown(&id, mode)), expected);
}

#[test]
fn shown_tool_name_has_the_prefix_of_each_mode() {
    check("demo", "add", ["demo_add", "demo_add", "add", "mcp__demo_add"]);
    check("gh-mcp", "get", ["gh-mcp_get", "gh_get", "get", "mcp__gh-mcp_get"]);
    check("mcp", "x", ["mcp_x", "mcp_x", "x", "mcp__mcp_x"]);
}

#[test]
fn prefixed_tool_name_gets_no_second_prefix() {
    check("demo", "demo_add", ["demo_add", "demo_add", "demo_add", "mcp__demo_demo_add"]);
    check("demo", "demolish", ["demo_demolish", "demo_demolish", "demolish", "mcp__demo_demolish"]);
}

#[test]
fn characters_that_hosts_refuse_are_replaced_in_names() {
    check("a b", "x.y", ["a_b_x_y", "a_b_x_y", "x_y", "mcp__a_b_x_y"]);
    check("s", "größe", ["s_gr_f6__df_e", "s_gr_f6__df_e", "gr_f6__df_e", "mcp__s_gr_f6__df_e"]);
}

fn all_of_the_user(tools: &[(ToolId, ToolPrefix)]) -> Prefixes {
    Prefixes::new(tools.iter().map(|(id, _)| (&id.server, NameTier::User)))
}

/// The shown names of these tools, given as server, tool and mode. There are no other servers.
fn shown_of(tools: &[(&str, &str, ToolPrefix)]) -> Vec<ShownName> {
    let tools: Vec<_> =
        tools.iter().map(|(server, tool, mode)| (id(server, tool), *mode)).collect();
    shown_names(&tools, &all_of_the_user(&tools))
}

#[test]
fn tools_with_equal_shown_names_get_distinct_suffixes() {
    let names = shown_of(&[("a", "x", ToolPrefix::None), ("b", "x", ToolPrefix::None)]);
    assert!(names.iter().all(|shown| shown.name.starts_with("x_")), "{names:?}");
    assert_ne!(names[0], names[1]);
}

#[test]
fn tool_with_prefix_of_another_server_gets_own_prefix() {
    use ToolPrefix::{None, Server, Short};
    for (server, tool, mode, expected) in [
        ("evil", "github_create_issue", None, "evil_github_create_issue"),
        ("evil", "GitHub-create_issue", None, "evil_GitHub-create_issue"),
        ("evil", "mcp__github__x", None, "evil_mcp__github__x"),
        ("evil", "g\u{456}thub_x", None, "evil_g_456_thub_x"),
        ("github-mcp", "x", Short, "github-mcp_x"),
        ("git", "hub_x", Server, "s"),
        ("mcp_", "github_x", Server, "s"),
    ] {
        let tools = [("github", "y", Server), ("git_hub", "y", Server), (server, tool, mode)];
        let names = shown_of(&tools);
        let shown = &names[2];
        assert!(shown.name.starts_with(expected), "{shown:?}");
        assert!(shown.claims.is_some(), "{shown:?}");
        assert!(names[0].claims.is_none() && names[1].claims.is_none());
    }
}

#[test]
fn empty_oversized_or_control_character_names_are_refused() {
    assert_eq!(ToolName::new(" "), Err(NameError::Empty));
    assert_eq!(ToolName::new("a\u{1b}[31m"), Err(NameError::Control));
    assert_eq!(ToolName::new(&"x".repeat(257)), Err(NameError::TooLong));
}

#[test]
fn server_name_with_hidden_characters_is_refused() {
    let check = |name: &str, expected: Option<NameError>| {
        assert_eq!(ServerName::new(name).err(), expected, "{name:?}");
    };
    for fine in ["git hub", "größe", "Сервер", "サーバー", "सर्वर", "خادم", "🦀"]
    {
        check(fine, None);
    }
    check(" github", Some(NameError::Blank));
    check("github ", Some(NameError::Blank));
    for hidden in
        ["\u{3164}", "\u{2800}", "\u{115f}", "\u{200b}", "\u{ad}", "\u{a0}", "\u{3000}", "\u{202e}"]
    {
        check(&format!("git{hidden}hub"), Some(NameError::Unseen));
    }
}

fn any_id() -> impl Strategy<Value = ToolId> {
    let name = prop_oneof![
        "[a-b_.-]{1,4}",
        "(mcp__)?(git|hub|github|git-hub|GitHub)(_(x|hub|mcp)){0,2}(-mcp)?",
        "[a-zA-Z0-9_.-]{1,90}",
        "\\PC{1,20}",
    ];
    (name.clone(), name).prop_filter_map("a valid name", |(server, tool)| {
        Some(ToolId { server: ServerName::new(&server).ok()?, tool: ToolName::new(&tool).ok()? })
    })
}

proptest! {
    #[test]
    fn shown_names_are_distinct_short_and_independent_of_order(
        ids in proptest::collection::hash_set(any_id(), 1..40),
        mode in proptest::sample::select(&ToolPrefix::ALL[..]),
    ) {
        let mut tools: Vec<_> = ids.into_iter().map(|id| (id, mode)).collect();
        let prefixes = all_of_the_user(&tools);
        let names: Vec<String> =
            shown_names(&tools, &prefixes).into_iter().map(|shown| shown.name).collect();
        for ((id, mode), name) in tools.iter().zip(&names) {
            let owner = prefixes.owner(name);
            let free = *mode == ToolPrefix::None && owner == Owner::None;
            prop_assert!(free || owner == Owner::Server(id.server.clone()), "{} {:?}", name, id);
        }
        let distinct: HashSet<_> = names.iter().collect();
        prop_assert_eq!(distinct.len(), tools.len());
        prop_assert!(names.iter().all(|name| name.len() <= SHOWN_LIMIT));
        prop_assert!(names.iter().all(|name| name.chars().all(
            |c| c.is_ascii_alphanumeric() || c == '_' || c == '-')));
        let before: HashMap<_, _> = tools.iter().cloned().zip(names).map(
            |((id, _), name)| (id, name)).collect();
        tools.reverse();
        for ((id, _), shown) in tools.iter().zip(shown_names(&tools, &prefixes)) {
            prop_assert_eq!(&before[id], &shown.name);
        }
    }

    #[test]
    fn name_folding_is_idempotent(name in "\\PC{1,40}") {
        prop_assert_eq!(fold(&fold(&name)), fold(&name));
    }
}
