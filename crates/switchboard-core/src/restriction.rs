//! Patterns that restrict tools: they match a tool under every spelling that a call could use.
//!
//! A call finds a tool in any letter case, with any separator and any prefix, and a server chooses
//! the names of its tools. So a rule that denies `files/delete` has to cover `Delete`,
//! `files-delete` and `del\u{200b}ete` as well. Patterns that permit something are [`Globs`], which
//! match exactly.

use globset::GlobMatcher;

use crate::config::values::ToolPrefix;
use crate::globs::{Globs, compile};
use crate::name::look::{folded, in_one_case, look};
use crate::name::{ServerName, ToolId, short};
use crate::pattern::Case;

/// Patterns in the order of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Restriction {
    exact: Globs,
    /// The same globs in any letter case, without folding separators.
    any_case: Vec<(String, GlobMatcher)>,
    folded: Vec<FoldedPattern>,
}

/// Equal patterns restrict the same tools.
impl PartialEq for Restriction {
    fn eq(&self, other: &Restriction) -> bool {
        self.patterns().eq(other.patterns())
    }
}

#[derive(Clone, Debug)]
struct FoldedPattern {
    pattern: String,
    /// The interpretations of the pattern, compared with folded names.
    readings: Vec<GlobMatcher>,
    /// The same globs for the look of names: `deIete` looks like `delete`.
    looks: Vec<GlobMatcher>,
}

impl FoldedPattern {
    fn new(pattern: &str) -> FoldedPattern {
        let mut readings = readings(pattern);
        readings.extend(in_one_case(pattern).iter().flat_map(|same| self::readings(same)));
        let looks = readings.iter().map(|text| look_of_pattern(text)).collect::<Vec<_>>();
        let looks = compiled(&looks);
        let readings = compiled(&readings);
        FoldedPattern { pattern: pattern.to_owned(), readings, looks }
    }

    fn fits(&self, folded: &str) -> bool {
        self.readings.iter().any(|glob| glob.is_match(folded)) || {
            let look = look_of_path(folded);
            self.looks.iter().any(|glob| glob.is_match(&look))
        }
    }
}

/// Folded names of a tool: with and without each prefix of its server, including a prefix that is
/// part of the tool's own name.
fn spellings(server: &ServerName, tool: &str) -> Vec<String> {
    let mcp = ToolPrefix::Mcp.prefix(server);
    let mut names = spelled(server.as_str(), &mcp, tool);
    let (same_server, same_tool) = (in_one_case(server.as_str()), in_one_case(tool));
    if same_server.is_some() || same_tool.is_some() {
        let server = same_server.as_deref().unwrap_or(server.as_str());
        names.extend(spelled(server, &mcp, same_tool.as_deref().unwrap_or(tool)));
    }
    names
}

fn spelled(server: &str, mcp: &str, tool: &str) -> Vec<String> {
    let mcp_short = format!("mcp__{}", short(server));
    let prefixes = [server, short(server), mcp, &mcp_short].map(folded);
    let whole = folded(tool);
    let bare = prefixes.iter().filter_map(|prefix| {
        let rest = whole.strip_prefix(prefix)?.strip_prefix('_')?;
        (!rest.is_empty()).then(|| rest.to_owned())
    });
    let tools: Vec<String> = bare.chain([whole.clone()]).collect();
    let mut names = Vec::new();
    for tool in tools {
        for prefix in &prefixes {
            names.extend([format!("{prefix}/{tool}"), format!("{prefix}_{tool}")]);
        }
        names.push(tool);
    }
    names
}

fn compiled(patterns: &[String]) -> Vec<GlobMatcher> {
    patterns.iter().filter_map(|text| compile(text, Case::Matters)).collect()
}

/// A folded pattern whose literal parts are replaced by their look.
fn look_of_pattern(folded: &str) -> String {
    let (mut out, mut literal, mut in_set) = (String::new(), String::new(), false);
    for c in folded.chars() {
        let special = matches!(c, '*' | '?' | '{' | '}' | ',' | '[' | ']' | '/') || in_set;
        if !special {
            literal.push(c);
            continue;
        }
        push_look(&mut out, &mut literal);
        in_set = (in_set || c == '[') && c != ']';
        out.push(c);
    }
    push_look(&mut out, &mut literal);
    out
}

/// Appends the look of a literal; keeps its leading separator unless `out` ends with one.
fn push_look(out: &mut String, literal: &mut String) {
    let text = std::mem::take(literal);
    let begins = text.starts_with('_') && !out.is_empty() && !out.ends_with(['/', '_', '{', ',']);
    if begins {
        out.push('_');
    }
    out.push_str(&look(&text));
}

/// The look of a folded name; a slash still ends the name of the server.
fn look_of_path(folded: &str) -> String {
    match folded.split_once('/') {
        Some((server, tool)) => format!("{}/{}", look(server), look(tool)),
        None => look(folded),
    }
}

/// The meaning of a pattern that is just the name of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BareServer {
    /// The pattern applies to the whole server.
    Restricts,
    /// The pattern applies only to a tool of that name.
    IsATool,
}

impl Restriction {
    pub fn new(patterns: &[String]) -> Restriction {
        let folded = patterns.iter().map(|pattern| FoldedPattern::new(pattern));
        let any_case = patterns
            .iter()
            .filter_map(|pattern| Some((pattern.clone(), compile(pattern, Case::Ignored)?)));
        let any_case = any_case.collect();
        Restriction { exact: Globs::new(patterns), any_case, folded: folded.collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.exact.is_empty()
    }

    pub fn patterns(&self) -> impl Iterator<Item = &str> {
        self.folded.iter().map(|folded| folded.pattern.as_str())
    }

    /// The first pattern that matches the tool. `others` are further names of the tool.
    pub fn find(&self, id: &ToolId, others: &[String], bare: BareServer) -> Option<&str> {
        let mut names = id.spellings();
        names.extend_from_slice(others);
        names.push(id.path());
        if let Some(pattern) = self.exact.find(&names) {
            return Some(pattern);
        }
        let fits =
            |(_, glob): &&(String, GlobMatcher)| names.iter().any(|name| glob.is_match(name));
        if let Some((pattern, _)) = self.any_case.iter().find(fits) {
            return Some(pattern);
        }
        names.extend(names.iter().filter_map(|name| in_one_case(name)).collect::<Vec<_>>());
        let mut names: Vec<String> = names.iter().map(|name| folded(name)).collect();
        names.extend(spellings(&id.server, id.tool.as_str()));
        if bare == BareServer::Restricts {
            let server = id.server.as_str();
            names.push(folded(server));
            names.extend(in_one_case(server).map(|same| folded(&same)));
        }
        self.find_folded(&names)
    }

    /// The first pattern that matches a name as the caller wrote it, taken as a name of this
    /// server: a denied name must not lead to a tool with a similar name.
    pub fn find_written(&self, name: &str, server: &ServerName) -> Option<&str> {
        if self.is_empty() {
            return None;
        }
        self.find_folded(&spellings(server, name.trim()))
    }

    fn find_folded(&self, names: &[String]) -> Option<&str> {
        let fits = |pattern: &&FoldedPattern| names.iter().any(|name| pattern.fits(name));
        self.folded.iter().find(fits).map(|folded| folded.pattern.as_str())
    }
}

/// The interpretations of a pattern. Each of its slashes may end the name of the server: `a/b/*`
/// means the tools of `a/b`, or tools of `a`.
fn readings(pattern: &str) -> Vec<String> {
    let slashes = pattern.match_indices('/').map(|(at, _)| Some(at));
    let whole = (!pattern.contains('/')).then_some(None);
    slashes.chain(whole).map(|slash| fold_pattern(pattern, slash)).collect()
}

/// Folds the literal parts of a pattern. The given slash ends the name of the server; other slashes
/// are separators.
fn fold_pattern(pattern: &str, slash: Option<usize>) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut literal = String::new();
    let mut set = None;
    for (at, c) in pattern.char_indices() {
        if let Some(start) = set {
            // A `]` at the beginning of a set is a member of it.
            let begins = at - start <= 1 || (at - start == 2 && pattern[start..].starts_with("[!"));
            // All separators are folded to `_`, also in a set.
            let separates =
                matches!(c, '/' | '.' | ' ' | ':') || (c == '-' && is_literal_dash(pattern, at));
            out.push(if separates { '_' } else { c.to_ascii_lowercase() });
            if c == ']' && !begins {
                set = None;
            }
            continue;
        }
        let special = matches!(c, '*' | '?' | '{' | '}' | ',' | '[') || Some(at) == slash;
        if !special {
            literal.push(c);
            continue;
        }
        push_folded(&mut out, &mut literal);
        if c == '[' {
            set = Some(at);
        }
        if Some(at) == slash {
            out.truncate(out.trim_end_matches('_').len());
        }
        out.push(c);
    }
    push_folded(&mut out, &mut literal);
    out
}

/// Whether a dash in a set is literal and not a range.
fn is_literal_dash(pattern: &str, at: usize) -> bool {
    let before = pattern.get(..at).is_none_or(|head| head.ends_with(['[', '!']));
    before || pattern.get(at + 1..).is_none_or(|tail| tail.starts_with(']'))
}

/// Appends a folded literal; keeps its leading separator unless `out` ends with one.
fn push_folded(out: &mut String, literal: &mut String) {
    let text = std::mem::take(literal);
    if text.is_empty() {
        return;
    }
    // A letter in front keeps separators at the beginning, which are dropped otherwise.
    let folded = folded(&format!("a{text}"));
    let folded = folded.get(1..).unwrap_or_default();
    let begins = out.is_empty() || out.ends_with(['/', '_', '{', ',']);
    out.push_str(if begins { folded.trim_start_matches('_') } else { folded });
}

#[cfg(test)]
mod tests {
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
    fn case_folding_of_any_script_restricts() {
        for word in ["файлы", "запись", "δημος", "νησί", "удалить", "ქართული", "հայերեն", "büro"]
        {
            let (small, capital) = (word.to_lowercase(), word.to_uppercase());
            for (rule, name) in [(&small, &capital), (&capital, &small), (&small, &small)] {
                assert!(denied(&format!("srv/{rule}"), "srv", name), "{rule} {name}");
                assert!(denied(rule, "srv", name), "{rule} {name}");
                assert!(
                    denied(&format!("*{rule}*"), "srv", &format!("a_{name}_b")),
                    "{rule} {name}"
                );
                assert!(denied(&format!("{rule}/*"), name, "x"), "{rule} {name}");
                assert!(denied(rule, name, "x"), "{rule} {name}");
                assert!(denied(&format!("{rule}/{rule}"), name, name), "{rule} {name}");
            }
        }
        // Letters that look like ASCII are still matched.
        assert!(denied("srv/name", "srv", "\u{39d}ame"));
        assert!(denied("srv/video", "srv", "\u{3bd}ideo"));
        assert!(!denied("srv/файлы", "srv", "файл"));
    }

    #[test]
    fn every_spelling_of_a_tool_restricts_it() {
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
            // The name of the tool already has the prefix of its server.
            ("srv/commit", "srv_commit"),
            ("commit", "srv_commit"),
            ("srv/com*", "srv-commit"),
            ("mcp__srv_commit", "SRV_COMMIT"),
            ("srv_commit", "srv_commit"),
            // Patterns with wildcards, sets and alternatives.
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
    fn written_name_is_restricted_without_a_matching_tool() {
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
        for rule in ["delete_repo", "s_mcp_delete_repo", "mcp__s-mcp_delete_repo", "s/delete_repo"]
        {
            let restriction = Restriction::new(&[rule.to_owned()]);
            for name in ["delete_repo", "s_delete_repo", "s-mcp/delete_repo", "s_mcp_delete_repo"] {
                assert_eq!(restriction.find_written(name, &server), Some(rule), "{rule} {name}");
            }
        }
        let all = Restriction::new(&["*_repo".to_owned()]);
        assert_eq!(all.find_written("delete_repo", &server), Some("*_repo"));
    }

    #[test]
    fn other_tools_and_servers_are_not_restricted() {
        assert!(!denied("git/*", "git_hub", "create"));
        assert!(!denied("git/hub_create", "git_hub", "create"));
        assert!(!denied("a/*", "a/b", "x"));
        assert!(!denied("srv/danger", "srv", "dangerous"));
        assert!(!denied("srv/danger", "other", "danger"));
        assert!(!denied("srv/d?nger", "srv", "dnger"));
        assert!(!denied("srv", "other", "danger"));
        let id = ToolId {
            server: ServerName::new("time").unwrap(),
            tool: ToolName::new("now").unwrap(),
        };
        let restriction = Restriction::new(&["time".to_owned()]);
        assert_eq!(restriction.find(&id, &[], BareServer::IsATool), None);
    }

    proptest! {
        /// A rule restricts a tool by any name that a call finds it by.
        #[test]
        fn rule_in_any_case_and_separator_restricts(
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
}
