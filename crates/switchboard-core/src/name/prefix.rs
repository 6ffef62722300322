//! Decides which server's prefix a name has. No tool is shown, found or called with the prefix of
//! another server.

use hashbrown::HashMap;

use super::look::{in_one_case, look};
use super::{ServerName, fold, plain, short};
use crate::config::values::ToolPrefix;

/// The prefixes of all configured servers, including pending and disabled ones.
#[derive(Clone, Debug, Default)]
pub struct Prefixes {
    user: Bearers,
    project: Bearers,
}

#[derive(Clone, Debug, Default)]
struct Bearers {
    /// The servers with each prefix, by the look of the prefix.
    by_look: HashMap<String, Vec<Bearer>>,
    longest: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Bearer {
    server: ServerName,
    /// The prefix as it appears in shown names.
    prefix: String,
    /// Whether the prefix is the full name of the server, which takes precedence, or its short
    /// form.
    weight: Weight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Name,
    Short,
}

/// Whether a file of the user or of a project defines the server. Prefixes of the user's servers
/// take precedence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameTier {
    #[default]
    User,
    Project,
}

/// The server whose prefix a name has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The name has the prefix of no server.
    None,
    Server(ServerName),
    /// All these servers have the prefix of the name, and the name is not written exactly like the
    /// prefix of one of them.
    Contested(Vec<ServerName>),
}

impl Prefixes {
    pub fn new<'a>(servers: impl Iterator<Item = (&'a ServerName, NameTier)>) -> Prefixes {
        let mut prefixes = Prefixes::default();
        for (server, tier) in servers {
            let bearers = match tier {
                NameTier::User => &mut prefixes.user,
                NameTier::Project => &mut prefixes.project,
            };
            let own = server.as_str();
            for mode in [ToolPrefix::Server, ToolPrefix::Short, ToolPrefix::Mcp] {
                let prefix = mode.prefix(server);
                let weight = if mode == ToolPrefix::Short { Weight::Short } else { Weight::Name };
                // A name that the user or model typed as in the configuration may contain
                // characters that hosts reject.
                let typed = |own: &str| match mode {
                    ToolPrefix::Mcp => look(&format!("mcp__{own}")),
                    ToolPrefix::Short => look(short(own)),
                    ToolPrefix::Server | ToolPrefix::None => look(own),
                };
                bearers.add(typed(own), server, prefix.clone(), weight);
                if let Some(own) = in_one_case(own) {
                    bearers.add(typed(&own), server, prefix.clone(), weight);
                }
                bearers.add(look(&prefix), server, prefix, weight);
            }
            let both = format!("mcp__{}", short(own));
            bearers.add(look(&both), server, plain(&both), Weight::Short);
            let unique = unique(server);
            bearers.add(look(&unique), server, unique, Weight::Name);
        }
        prefixes
    }

    /// The server whose prefix the name has. `git_hub_x` belongs to `git_hub` rather than to `git`,
    /// unless only `git` is a server of the user.
    pub fn owner(&self, name: &str) -> Owner {
        let looks = [Some(look(name)), in_one_case(name).map(|name| look(&name))];
        let bearers = self.user.of_any(&looks).or_else(|| self.project.of_any(&looks));
        bearers.map_or(Owner::None, |bearers| decide(bearers, name))
    }

    /// Whether the name has no prefix, or the prefix of this server.
    pub fn permits(&self, name: &str, server: &ServerName) -> bool {
        match self.owner(name) {
            Owner::None => true,
            Owner::Server(owner) => owner == *server,
            Owner::Contested(_) => false,
        }
    }

    /// Whether every name with this server's prefix belongs to this server.
    pub(super) fn is_settled(&self, server: &ServerName, mode: ToolPrefix) -> bool {
        let prefix = mode.prefix(server);
        if prefix.is_empty() {
            return false;
        }
        let look = look(&prefix);
        let look = look.trim_end_matches('_');
        let as_long = |other: &String| {
            let rest = other.strip_prefix(look);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        let all = self.user.by_look.iter().chain(&self.project.by_look);
        let mut rivals = all.filter(|(other, _)| as_long(other));
        let all_mine =
            |bearers: &Vec<Bearer>| bearers.iter().all(|bearer| bearer.server == *server);
        rivals.all(|(_, bearers)| all_mine(bearers))
            && self.owner(&format!("{prefix}_")) == Owner::Server(server.clone())
    }
}

impl Bearers {
    fn add(&mut self, look: String, server: &ServerName, prefix: String, weight: Weight) {
        let look = look.trim_end_matches('_');
        if look.is_empty() {
            return;
        }
        self.longest = self.longest.max(look.len());
        let bearers = self.by_look.entry(look.to_owned()).or_default();
        let bearer = Bearer { server: server.clone(), prefix, weight };
        if !bearers.contains(&bearer) {
            bearers.push(bearer);
        }
    }

    /// The servers with the longest prefix that matches one of the looks of a name.
    fn of_any(&self, looks: &[Option<String>]) -> Option<&Vec<Bearer>> {
        let longest = |bearers: &&Vec<Bearer>| {
            bearers.iter().map(|bearer| bearer.prefix.chars().count()).max()
        };
        // If prefixes of equal length match, the last look decides: that of the name as it was
        // written.
        looks.iter().rev().flatten().filter_map(|look| self.of(look)).max_by_key(longest)
    }

    /// The servers with the longest prefix that matches this look of a name.
    fn of(&self, look: &str) -> Option<&Vec<Bearer>> {
        let ends = look.match_indices('_').map(|(at, _)| at);
        let ends: Vec<usize> = ends.take_while(|at| *at <= self.longest).collect();
        ends.iter().rev().find_map(|at| self.by_look.get(look.get(..*at)?))
    }
}

/// The server whose prefix is most similar: equal, equal after folding, or with the same look.
fn decide(bearers: &[Bearer], name: &str) -> Owner {
    let (shown, folded) = (plain(name), fold(name));
    let exact = |bearer: &&Bearer| {
        shown.strip_prefix(&bearer.prefix).is_some_and(|rest| rest.starts_with(['_', '-']))
    };
    let close = |bearer: &&Bearer| {
        folded.strip_prefix(&fold(&bearer.prefix)).is_some_and(|rest| rest.starts_with('_'))
    };
    let mut found: Vec<&Bearer> = bearers.iter().filter(exact).collect();
    // The longest equal prefix decides: `a__x` belongs to `a_` rather than to `a`.
    let longest = found.iter().map(|bearer| bearer.prefix.len()).max();
    found.retain(|bearer| Some(bearer.prefix.len()) == longest);
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
        None => Owner::None,
    }
}

/// A prefix that no other server has, for tools whose usual shown name would have the prefix of
/// another server.
pub(super) fn unique(server: &ServerName) -> String {
    /// How many characters of the server's name the prefix includes, so that a hash and the tool's
    /// name fit too.
    const HEAD: usize = 32;
    let name = plain(server.as_str());
    let head = name.get(..HEAD).unwrap_or(&name);
    // The hash comes first, so that no other prefix matches. Hosts require a letter at the
    // beginning.
    format!("s{}_{head}", super::digest(server.as_str(), "", 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes(servers: &[&str]) -> Prefixes {
        let names: Vec<ServerName> =
            servers.iter().map(|name| ServerName::new(name).unwrap()).collect();
        Prefixes::new(names.iter().map(|name| (name, NameTier::User)))
    }

    fn owner(servers: &[&str], name: &str) -> String {
        match prefixes(servers).owner(name) {
            Owner::None => "-".to_owned(),
            Owner::Server(server) => server.to_string(),
            Owner::Contested(servers) => {
                servers.iter().map(ServerName::as_str).collect::<Vec<_>>().join("|")
            }
        }
    }

    #[test]
    fn every_spelling_of_tool_prefix_belongs_to_its_server() {
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
    fn tool_prefix_belongs_to_server_in_any_letter_case() {
        for server in ["файлы", "ФАЙЛЫ", "νησί", "ΝΗΣΊ", "büro", "ქართული", "հայերեն", "нυкт"]
        {
            for name in [server.to_lowercase(), server.to_uppercase()] {
                for tool in [format!("{name}_x"), format!("{name}/x"), format!("mcp__{name}__x")] {
                    assert_eq!(owner(&[server, "evil"], &tool), server, "{tool}");
                }
            }
        }
        assert_eq!(owner(&["git-νησί", "git"], "git_ΝΗΣΊ_x"), "git-νησί");
        assert_eq!(owner(&["cafe\u{301}", "evil"], "caf\u{e9}_x"), "cafe\u{301}");
        assert_eq!(owner(&["caf\u{e9}", "evil"], "CAFE\u{301}_x"), "caf\u{e9}");
        assert_eq!(owner(&["name", "evil"], "\u{39d}ame_x"), "name");
        assert_eq!(owner(&["video", "evil"], "\u{3bd}ideo_x"), "video");
    }

    #[test]
    fn longest_prefix_and_closest_spelling_decide_the_server() {
        assert_eq!(owner(&["git", "git_hub"], "git_hub_x"), "git_hub");
        assert_eq!(owner(&["git", "git_hub"], "git_status"), "git");
        assert_eq!(owner(&["git-hub", "git_hub"], "git-hub_x"), "git-hub");
        assert_eq!(owner(&["git-hub", "git_hub"], "git_hub_x"), "git_hub");
        assert_eq!(owner(&["GitHub", "github"], "GitHub_x"), "GitHub");
        assert_eq!(owner(&["GitHub", "github"], "GITHUB_x"), "GitHub|github");
        assert_eq!(owner(&["github", "github-mcp"], "github_x"), "github");
        assert_eq!(owner(&["github-mcp"], "github_x"), "github-mcp");
        assert_eq!(owner(&["github-mcp"], "mcp__github_x"), "github-mcp");
        assert_eq!(owner(&["github", "github-mcp"], "mcp__github_x"), "github");
        assert_eq!(owner(&["github", "g\u{456}thub"], "g\u{456}thub_x"), "g\u{456}thub");
        assert_eq!(owner(&["github", "g\u{456}thub"], "github_x"), "github");
        assert_eq!(owner(&["a b", "a.b"], "a_b_x"), "a b|a.b");
        assert_eq!(owner(&["app1", "appl"], "app1_x"), "app1");
    }

    #[test]
    fn project_server_cannot_take_tool_names_of_user_servers() {
        let [github, create] = ["github", "github_create"].map(|n| ServerName::new(n).unwrap());
        let tiers = [(&github, NameTier::User), (&create, NameTier::Project)];
        let prefixes = Prefixes::new(tiers.into_iter());
        assert_eq!(prefixes.owner("github_create_issue"), Owner::Server(github.clone()));
        let unique = format!("{}_issue", unique(&create));
        assert!(!prefixes.permits("github_create_issue", &create));
        assert_eq!(prefixes.owner(&unique), Owner::Server(create.clone()), "{unique}");
        let alone = Prefixes::new(std::iter::once((&create, NameTier::Project)));
        assert_eq!(alone.owner("github_create_issue"), Owner::Server(create));
    }

    #[test]
    fn each_server_has_a_unique_prefix() {
        let long = "n".repeat(200);
        let servers = ["a b", "a.b", "git", "git_hub", long.as_str()];
        for server in servers {
            let name = format!("{}_x", unique(&ServerName::new(server).unwrap()));
            assert_eq!(owner(&servers, &name), server, "{name}");
        }
    }
}
