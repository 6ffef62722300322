//! Whose prefix a name bears: no tool is shown, found or called under the prefix of another server.

use hashbrown::HashMap;

use super::look::look;
use super::{ServerName, fold, plain, short};
use crate::config::values::ToolPrefix;

/// The prefixes of all configured servers, whether they may be used or not.
#[derive(Clone, Debug, Default)]
pub struct Prefixes {
    /// By what the prefix looks like.
    bearers: HashMap<String, Vec<Bearer>>,
    longest: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Bearer {
    server: ServerName,
    /// As shown names have it.
    prefix: String,
    /// The name of a server weighs more than the short form of another one.
    weight: Weight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Name,
    Short,
}

/// The server that a name belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// It bears no prefix.
    Nobody,
    Server(ServerName),
    /// It bears a prefix of several servers, and is spelt like none of them.
    Contested(Vec<ServerName>),
}

impl Prefixes {
    pub fn new<'a>(servers: impl Iterator<Item = &'a ServerName>) -> Prefixes {
        let mut prefixes = Prefixes::default();
        for server in servers {
            let own = server.as_str();
            for mode in [ToolPrefix::Server, ToolPrefix::Short, ToolPrefix::Mcp] {
                let (prefix, weight) = (mode.prefix(server), Weight::of(mode));
                // Typed as the configuration has it, the name may hold what hosts refuse.
                let typed = match mode {
                    ToolPrefix::Mcp => look(&format!("mcp__{own}")),
                    ToolPrefix::Short => look(short(own)),
                    ToolPrefix::Server | ToolPrefix::None => look(own),
                };
                prefixes.add(typed, server, prefix.clone(), weight);
                prefixes.add(look(&prefix), server, prefix, weight);
            }
            let unique = unique(server);
            prefixes.add(look(&unique), server, unique, Weight::Name);
        }
        prefixes
    }

    fn add(&mut self, look: String, server: &ServerName, prefix: String, weight: Weight) {
        self.longest = self.longest.max(look.len());
        let bearers = self.bearers.entry(look).or_default();
        let bearer = Bearer { server: server.clone(), prefix, weight };
        if !bearers.contains(&bearer) {
            bearers.push(bearer);
        }
    }

    /// Whose prefix the name bears. `git_hub_x` is a name of `git_hub` rather than of `git`.
    pub fn owner(&self, name: &str) -> Owner {
        let look = look(name);
        let ends = look.match_indices('_').map(|(at, _)| at);
        let ends: Vec<usize> = ends.take_while(|at| *at <= self.longest).collect();
        let bearers = ends.iter().rev().find_map(|at| self.bearers.get(look.get(..*at)?));
        bearers.map_or(Owner::Nobody, |bearers| decide(bearers, name))
    }

    /// Whether the name is free, or bears the prefix of this server.
    pub fn permits(&self, name: &str, server: &ServerName) -> bool {
        match self.owner(name) {
            Owner::Nobody => true,
            Owner::Server(owner) => owner == *server,
            Owner::Contested(_) => false,
        }
    }

    /// Whether every name with this prefix of the server is its own.
    pub(super) fn is_settled(&self, server: &ServerName, mode: ToolPrefix) -> bool {
        let prefix = mode.prefix(server);
        if prefix.is_empty() {
            return false;
        }
        let look = look(&prefix);
        let longer = |other: &String| {
            other.strip_prefix(look.as_str()).is_some_and(|rest| rest.starts_with('_'))
        };
        let mine = unique(server);
        let others = self.bearers.iter().filter(|(other, _)| longer(other));
        let all_mine = |bearers: &Vec<Bearer>| {
            bearers.iter().all(|bearer| bearer.server == *server && bearer.prefix == mine)
        };
        others.into_iter().all(|(_, bearers)| all_mine(bearers))
            && self.owner(&format!("{prefix}_")) == Owner::Server(server.clone())
    }
}

impl Weight {
    fn of(mode: ToolPrefix) -> Weight {
        match mode {
            ToolPrefix::Server | ToolPrefix::Mcp | ToolPrefix::None => Weight::Name,
            ToolPrefix::Short => Weight::Short,
        }
    }
}

/// The closest spelling decides: as it is shown, then folded, then by its look.
fn decide(bearers: &[Bearer], name: &str) -> Owner {
    let (shown, folded) = (plain(name), fold(name));
    let exact = |bearer: &&Bearer| {
        shown.strip_prefix(&bearer.prefix).is_some_and(|rest| rest.starts_with(['_', '-']))
    };
    let close = |bearer: &&Bearer| {
        folded.strip_prefix(&fold(&bearer.prefix)).is_some_and(|rest| rest.starts_with('_'))
    };
    let mut found: Vec<&Bearer> = bearers.iter().filter(exact).collect();
    if found.is_empty() {
        found = bearers.iter().filter(close).collect();
    }
    if found.is_empty() {
        found = bearers.iter().collect();
    }
    let weight = found.iter().map(|bearer| bearer.weight).min();
    let mut servers: Vec<ServerName> = found
        .into_iter()
        .filter(|bearer| Some(bearer.weight) == weight)
        .map(|bearer| bearer.server.clone())
        .collect();
    servers.sort();
    servers.dedup();
    match servers.pop() {
        Some(only) if servers.is_empty() => Owner::Server(only),
        Some(last) => {
            servers.push(last);
            Owner::Contested(servers)
        }
        None => Owner::Nobody,
    }
}

/// A prefix that no other server has, for tools whose usual name would bear another's.
pub(super) fn unique(server: &ServerName) -> String {
    /// With a digest behind it, this leaves room for a tool's name.
    const HEAD: usize = 32;
    let name = plain(server.as_str());
    let head = name.get(..HEAD).unwrap_or(&name);
    format!("{head}_{}", super::digest(server.as_str(), "", 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes(servers: &[&str]) -> Prefixes {
        let names: Vec<ServerName> =
            servers.iter().map(|name| ServerName::new(name).unwrap()).collect();
        Prefixes::new(names.iter())
    }

    fn owner(servers: &[&str], name: &str) -> String {
        match prefixes(servers).owner(name) {
            Owner::Nobody => "-".to_owned(),
            Owner::Server(server) => server.to_string(),
            Owner::Contested(servers) => {
                servers.iter().map(ServerName::as_str).collect::<Vec<_>>().join("|")
            }
        }
    }

    #[test]
    fn every_spelling_of_a_prefix_is_its_servers() {
        for name in [
            "github_create_issue",
            "github/create_issue",
            "github-create_issue",
            "github.create_issue",
            "github:create_issue",
            "github create_issue",
            "GitHub_create_issue",
            "mcp__github_create_issue",
            "mcp__github__create_issue",
            "MCP__GITHUB__x",
            "g\u{456}thub_create_issue",
            "github\u{200b}_create_issue",
            "github\u{ff3f}create_issue",
            "github_",
        ] {
            assert_eq!(owner(&["github", "evil"], name), "github", "{name}");
        }
        for name in ["github", "create_issue", "githubx_create", "hub_github_x", ""] {
            assert_eq!(owner(&["github", "evil"], name), "-", "{name}");
        }
    }

    #[test]
    fn longest_prefix_and_closest_spelling_decide() {
        assert_eq!(owner(&["git", "git_hub"], "git_hub_x"), "git_hub");
        assert_eq!(owner(&["git", "git_hub"], "git_status"), "git");
        assert_eq!(owner(&["git-hub", "git_hub"], "git-hub_x"), "git-hub");
        assert_eq!(owner(&["git-hub", "git_hub"], "git_hub_x"), "git_hub");
        assert_eq!(owner(&["GitHub", "github"], "GitHub_x"), "GitHub");
        assert_eq!(owner(&["GitHub", "github"], "GITHUB_x"), "GitHub|github");
        assert_eq!(owner(&["github", "github-mcp"], "github_x"), "github");
        assert_eq!(owner(&["github-mcp"], "github_x"), "github-mcp");
        assert_eq!(owner(&["github", "g\u{456}thub"], "g\u{456}thub_x"), "g\u{456}thub");
        assert_eq!(owner(&["github", "g\u{456}thub"], "github_x"), "github");
        assert_eq!(owner(&["a b", "a.b"], "a_b_x"), "a b|a.b");
        assert_eq!(owner(&["app1", "appl"], "app1_x"), "app1");
    }

    #[test]
    fn each_server_has_a_prefix_that_only_it_bears() {
        let long = "n".repeat(200);
        let servers = ["a b", "a.b", "git", "git_hub", long.as_str()];
        for server in servers {
            let name = format!("{}_x", unique(&ServerName::new(server).unwrap()));
            assert_eq!(owner(&servers, &name), server, "{name}");
        }
    }
}
