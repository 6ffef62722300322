//! Names of servers and tools: what they are, how they are shown, and when two spellings mean one.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::config::values::ToolPrefix;
use crate::render::words::is_unseen;

/// Longest name that hosts accept for a tool.
const SHOWN_LIMIT: usize = 64;

/// Longest name of a server or a tool that is taken from outside.
const NAME_LIMIT: usize = 256;

/// The name of a server, as the configuration spells it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(Arc<str>);

/// The name of a tool, as its server spells it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(Arc<str>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("the name is empty")]
    Empty,
    #[error("the name is longer than {NAME_LIMIT} bytes")]
    TooLong,
    #[error("the name holds a control character")]
    Control,
    #[error("the name begins or ends with a blank")]
    Blank,
    #[error("the name holds a character that cannot be seen")]
    Unseen,
}

fn checked(name: &str) -> Result<Arc<str>, NameError> {
    if name.trim().is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > NAME_LIMIT {
        return Err(NameError::TooLong);
    }
    if name.chars().any(char::is_control) {
        return Err(NameError::Control);
    }
    Ok(Arc::from(name))
}

impl ServerName {
    /// Unlike the name of a tool, this one is typed, and read by whoever is asked to trust it.
    pub fn new(name: &str) -> Result<ServerName, NameError> {
        let checked = checked(name)?;
        if name.chars().any(is_unseen) {
            return Err(NameError::Unseen);
        }
        if name.starts_with(' ') || name.ends_with(' ') {
            return Err(NameError::Blank);
        }
        Ok(ServerName(checked))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The id of a server in lists that allow nothing but plain letters, digits, `_` and `-`.
pub fn plain_id(id: &str) -> Option<ServerName> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    ServerName::new(id).ok().filter(|_| id.chars().all(plain))
}

impl ToolName {
    pub fn new(name: &str) -> Result<ToolName, NameError> {
        checked(name).map(ToolName)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a tool is everywhere inside: policy, cache and routes never go by a shown name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolId {
    pub server: ServerName,
    pub tool: ToolName,
}

impl ToolId {
    /// Every name that the tool may be called by: its own, and with each kind of prefix.
    pub fn spellings(&self) -> Vec<String> {
        let mut names: Vec<String> =
            ToolPrefix::ALL.iter().map(|mode| shown(self, *mode)).collect();
        names.push(self.tool.as_str().to_owned());
        names
    }

    /// Distinguishes tools whose shown names would be equal; depends on nothing but the id.
    fn mark(&self, digits: usize) -> String {
        let mut hash = Sha256::new();
        hash.update((self.server.as_str().len() as u64).to_le_bytes());
        hash.update(self.server.as_str());
        hash.update(self.tool.as_str());
        let hex = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        hex.chars().take(digits).collect()
    }
}

impl ToolPrefix {
    pub const ALL: [ToolPrefix; 4] =
        [ToolPrefix::Server, ToolPrefix::Short, ToolPrefix::None, ToolPrefix::Mcp];

    /// The prefix of a server's tools, without the joining `_`.
    pub fn prefix(self, server: &ServerName) -> String {
        let name = plain(server.as_str());
        match self {
            ToolPrefix::Server => name,
            ToolPrefix::Short => short(&name).to_owned(),
            ToolPrefix::None => String::new(),
            ToolPrefix::Mcp => format!("mcp__{name}"),
        }
    }
}

fn short(name: &str) -> &str {
    let Some(at) = name.len().checked_sub(3).filter(|at| name.is_char_boundary(*at)) else {
        return name;
    };
    let (stem, end) = name.split_at(at);
    if !end.eq_ignore_ascii_case("mcp") {
        return name;
    }
    match stem.trim_end_matches(['-', '_']) {
        "" => "mcp",
        stem => stem,
    }
}

/// The name with every character that a host may refuse replaced.
fn plain(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => out.push(c),
            '.' | ' ' | '/' | ':' => out.push('_'),
            other => out.push_str(&format!("_{:x}_", u32::from(other))),
        }
    }
    out
}

/// The shown name of one tool, before it is known whether another one has it too.
pub fn shown(id: &ToolId, mode: ToolPrefix) -> String {
    let prefix = mode.prefix(&id.server);
    let tool = plain(id.tool.as_str());
    let doubled = tool.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.starts_with('_'));
    let full = if prefix.is_empty() || doubled { tool } else { format!("{prefix}_{tool}") };
    if full.len() <= SHOWN_LIMIT { full } else { marked(&full, id, 8) }
}

/// Shown names for a set of tools: no two are equal, and none depends on the order of the set.
pub fn shown_names(tools: &[(ToolId, ToolPrefix)]) -> Vec<String> {
    let names: Vec<String> = tools.iter().map(|(id, mode)| shown(id, *mode)).collect();
    let mut holders: HashMap<&str, usize> = HashMap::with_capacity(names.len());
    for name in &names {
        *holders.entry(name).or_default() += 1;
    }
    let unique = |(name, (id, _)): (&String, &(ToolId, ToolPrefix))| {
        if holders.get(name.as_str()) == Some(&1) { name.clone() } else { marked(name, id, 12) }
    };
    names.iter().zip(tools).map(unique).collect()
}

fn marked(name: &str, id: &ToolId, digits: usize) -> String {
    let room = SHOWN_LIMIT - digits - 1;
    // `plain` leaves ASCII only, so any length is a character boundary.
    let kept = name.get(..room).unwrap_or(name);
    format!("{kept}_{}", id.mark(digits))
}

/// The spelling that forgives letter case and `-` for `_`.
pub fn fold(name: &str) -> String {
    plain(name).replace('-', "_").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
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
    fn each_mode_puts_its_prefix_before_the_name() {
        check("demo", "add", ["demo_add", "demo_add", "add", "mcp__demo_add"]);
        check("gh-mcp", "get", ["gh-mcp_get", "gh_get", "get", "mcp__gh-mcp_get"]);
        check("mcp", "x", ["mcp_x", "mcp_x", "x", "mcp__mcp_x"]);
    }

    #[test]
    fn a_name_that_carries_its_prefix_gets_no_second_one() {
        check("demo", "demo_add", ["demo_add", "demo_add", "demo_add", "mcp__demo_demo_add"]);
        check(
            "demo",
            "demolish",
            ["demo_demolish", "demo_demolish", "demolish", "mcp__demo_demolish"],
        );
    }

    #[test]
    fn characters_that_hosts_refuse_are_replaced() {
        check("a b", "x.y", ["a_b_x_y", "a_b_x_y", "x_y", "mcp__a_b_x_y"]);
        check(
            "s",
            "größe",
            ["s_gr_f6__df_e", "s_gr_f6__df_e", "gr_f6__df_e", "mcp__s_gr_f6__df_e"],
        );
    }

    #[test]
    fn tools_that_would_share_a_name_are_both_marked() {
        let tools = [(id("a", "b_c"), ToolPrefix::Server), (id("a_b", "c"), ToolPrefix::Server)];
        let names = shown_names(&tools);
        assert!(names.iter().all(|name| name.starts_with("a_b_c_")), "{names:?}");
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn hostile_names_are_refused() {
        assert_eq!(ToolName::new(" "), Err(NameError::Empty));
        assert_eq!(ToolName::new("a\u{1b}[31m"), Err(NameError::Control));
        assert_eq!(ToolName::new(&"x".repeat(257)), Err(NameError::TooLong));
    }

    #[test]
    fn a_servers_name_looks_like_what_it_is() {
        let check = |name: &str, expected: Option<NameError>| {
            assert_eq!(ServerName::new(name).err(), expected, "{name:?}");
        };
        for fine in ["git hub", "größe", "Сервер", "サーバー", "सर्वर", "خادم", "🦀"]
        {
            check(fine, None);
        }
        check(" github", Some(NameError::Blank));
        check("github ", Some(NameError::Blank));
        for hidden in [
            "\u{3164}", "\u{2800}", "\u{115f}", "\u{200b}", "\u{ad}", "\u{a0}", "\u{3000}",
            "\u{202e}",
        ] {
            check(&format!("git{hidden}hub"), Some(NameError::Unseen));
        }
    }

    fn any_id() -> impl Strategy<Value = ToolId> {
        let name = prop_oneof!["[a-b_.-]{1,4}", "[a-zA-Z0-9_.-]{1,90}", "\\PC{1,20}"];
        (name.clone(), name).prop_filter_map("a valid name", |(server, tool)| {
            Some(ToolId {
                server: ServerName::new(&server).ok()?,
                tool: ToolName::new(&tool).ok()?,
            })
        })
    }

    proptest! {
        #[test]
        fn shown_names_are_distinct_short_and_independent_of_order(
            ids in proptest::collection::hash_set(any_id(), 1..40),
            mode in proptest::sample::select(&ToolPrefix::ALL[..]),
        ) {
            let mut tools: Vec<_> = ids.into_iter().map(|id| (id, mode)).collect();
            let names = shown_names(&tools);
            let distinct: HashSet<_> = names.iter().collect();
            prop_assert_eq!(distinct.len(), tools.len());
            prop_assert!(names.iter().all(|name| name.len() <= SHOWN_LIMIT));
            prop_assert!(names.iter().all(|name| name.chars().all(
                |c| c.is_ascii_alphanumeric() || c == '_' || c == '-')));
            let before: HashMap<_, _> = tools.iter().cloned().zip(names).map(
                |((id, _), name)| (id, name)).collect();
            tools.reverse();
            for ((id, _), name) in tools.iter().zip(shown_names(&tools)) {
                prop_assert_eq!(&before[id], &name);
            }
        }

        #[test]
        fn folding_twice_changes_nothing_more(name in "\\PC{1,40}") {
            prop_assert_eq!(fold(&fold(&name)), fold(&name));
        }
    }
}
