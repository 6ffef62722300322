//! Finds rules that match no known tool, resource or prompt: a misspelt `deny` rule protects
//! nothing.

use hashbrown::HashMap;

use super::Catalog;
use super::resolve::{Resolved, nearest};
use crate::approval::{allowing, denying, pattern_of, pattern_of_server};
use crate::globs::Globs;
use crate::name::{ServerName, fold};
use crate::restriction::Restriction;

/// The setting that contains a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleList {
    Allow,
    Deny,
}

/// A rule that matches no known tool, resource or prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// The similar pattern that the user probably meant.
    pub nearest: Option<String>,
    /// Servers that were never listed, and so may have a matching tool.
    pub not_listed: Vec<ServerName>,
}

impl Catalog {
    /// Whether every server was listed. A rule without a match is then an error.
    pub fn is_complete(&self) -> bool {
        let mut shelves = self.shelves.values();
        self.reserved.is_empty() && shelves.all(|it| it.is_active() && it.listing.is_some())
    }

    /// Describes a pattern that matches no known tool, resource or prompt; `None` if it matches
    /// one.
    pub fn unmatched(&self, list: RuleList, pattern: &str) -> Option<Unmatched> {
        let patterns = [pattern.to_owned()];
        let (allow, deny) = (Globs::new(&patterns), Restriction::new(&patterns));
        let covers = |target: &Resolved| match list {
            RuleList::Allow => allowing(&allow, target),
            RuleList::Deny => denying(&deny, target).is_some(),
        };
        let targets = self.targets();
        if targets.iter().any(covers) {
            return None;
        }
        let not_listed = self.not_listed_yet();
        let names = |server: &ServerName| {
            let of = pattern.split_once('/').map(|(of, _)| fold(of));
            of == Some(fold(server.as_str()))
        };
        // The pattern names a server that was never listed, so it may match one of its tools.
        let is_unknown = not_listed.iter().any(names);
        let nearest = if is_unknown { None } else { self.nearest_pattern(pattern, &targets) };
        Some(Unmatched { nearest, not_listed })
    }

    /// The first `deny` pattern that applies if `deny` matches every known tool that `allow`
    /// matches; `None` if a tool remains.
    pub fn denied_throughout(&self, deny: &[String], allow: &str) -> Option<String> {
        if deny.iter().any(|denied| denied == allow) {
            return Some(allow.to_owned());
        }
        let (allow, deny) = (Globs::new(&[allow.to_owned()]), Restriction::new(deny));
        let targets = self.targets();
        let allowed = targets.iter().filter(|target| allowing(&allow, target));
        let mut denied = allowed.map(|target| denying(&deny, target));
        let first = denied.next().flatten()?;
        denied.all(|other| other.is_some()).then(|| first.to_owned())
    }

    /// All tools, prompts and resources of all servers, which rules can match.
    fn targets(&self) -> Vec<Resolved> {
        let mut targets = self.tools.clone();
        for (server, shelf) in self.shelves.iter().filter(|(_, shelf)| shelf.is_active()) {
            let prompts = self.prompts_of(server).map(|item| item.prompt.name.clone());
            targets.extend(prompts.filter_map(|name| self.prompt(server, &name)));
            let resources = shelf.listing.iter().flat_map(|listing| &listing.resources);
            targets.extend(resources.filter_map(|row| self.resource(server, &row.uri)));
        }
        targets
    }

    /// A pattern for the beginning of a known name that is most similar to `start`, up to the end
    /// of a word.
    fn nearest_start(&self, start: &str, spelled: &HashMap<String, String>) -> Option<String> {
        let servers = self.shelves.keys().map(|server| format!("{server}/"));
        let starts = spelled.keys().flat_map(|name| {
            let ends = name.match_indices(['_', '-', '/', '.']).map(|(at, _)| at + 1);
            ends.filter_map(|end| name.get(..end)).map(str::to_owned).collect::<Vec<_>>()
        });
        let mut starts: Vec<String> = starts.chain(servers).collect();
        // The pattern may end with or without a separator: `write*` or `write_*`.
        let bare = |start: &String| start.trim_end_matches(['_', '-', '/', '.']).to_owned();
        starts.extend(starts.iter().map(bare).collect::<Vec<_>>());
        starts.sort();
        starts.dedup();
        nearest(start, starts.into_iter()).first().map(|found| format!("{found}*"))
    }

    /// A pattern for the known tool or server of which `pattern` is probably a misspelling.
    fn nearest_pattern(&self, pattern: &str, targets: &[Resolved]) -> Option<String> {
        let mut spelled: HashMap<String, String> = HashMap::new();
        for target in targets {
            let own = target.entry.name.as_str().to_owned();
            for name in [pattern_of(target), target.shown.to_string(), own] {
                spelled.entry(name).or_insert_with(|| pattern_of(target));
            }
        }
        if let Some(start) = pattern.strip_suffix('*').filter(|start| !start.contains('*')) {
            return self.nearest_start(start, &spelled);
        }
        for server in self.shelves.keys() {
            let whole = pattern_of_server(server);
            spelled.entry(server.to_string()).or_insert_with(|| whole.clone());
            spelled.entry(whole.clone()).or_insert(whole);
        }
        let same = spelled.iter().filter(|(name, _)| fold(name) == fold(pattern));
        let same = same.map(|(_, meant)| meant.clone()).min();
        same.or_else(|| {
            let close = nearest(pattern, spelled.keys().cloned());
            spelled.get(close.first()?).cloned()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;
    use crate::catalog::{Listing, ListingPolicy, RawListing, Shelf, Standing};
    use crate::config::values::ToolPrefix;

    fn catalog() -> Catalog {
        let raw = |value: serde_json::Value| RawValue::from_string(value.to_string()).unwrap();
        let tools =
            ["read_file", "write_file"].map(|name| raw(json!({ "name": name, "inputSchema": {} })));
        let listing = RawListing {
            tools: tools.into(),
            prompts: vec![raw(json!({ "name": "review" }))],
            ..RawListing::default()
        };
        let files = ServerName::new("files").unwrap();
        let policy = ListingPolicy { max_tools: 10, ..ListingPolicy::default() };
        let listing = Arc::new(Listing::build(files.clone(), &listing, &policy));
        let shelf = || Shelf::new(ToolPrefix::default(), Standing::Active);
        Catalog::new(BTreeMap::from([
            (files, shelf().with_listing(listing)),
            (ServerName::new("new").unwrap(), shelf()),
        ]))
    }

    #[test]
    fn rule_that_matches_a_tool_is_not_reported_unmatched() {
        let catalog = catalog();
        for pattern in ["files/write_file", "files/*", "files_write_file", "files/review"] {
            assert_eq!(catalog.unmatched(RuleList::Allow, pattern), None, "{pattern}");
            assert_eq!(catalog.unmatched(RuleList::Deny, pattern), None, "{pattern}");
        }
        for pattern in ["write_file", "files", "Files/Write-File"] {
            assert_eq!(catalog.unmatched(RuleList::Deny, pattern), None, "{pattern}");
        }
    }

    #[test]
    fn allow_pattern_denied_entirely_is_reported_with_deny_pattern() {
        let check = |deny: &[&str], allow: &str, expected: Option<&str>| {
            let deny: Vec<String> = deny.iter().map(|pattern| (*pattern).to_owned()).collect();
            let found = catalog().denied_throughout(&deny, allow);
            assert_eq!(found.as_deref(), expected, "{deny:?} {allow}");
        };
        check(&["files/*"], "files/write_file", Some("files/*"));
        check(&["write-file"], "files/write_file", Some("write-file"));
        check(&["elsewhere/thing"], "elsewhere/thing", Some("elsewhere/thing"));
        check(&["files/write_file"], "files/*", None);
        check(&["files/write_file"], "files/read_file", None);
        check(&["files/*"], "elsewhere/thing", None);
    }

    #[test]
    fn unmatched_rule_suggests_the_nearest_pattern() {
        let check = |list, pattern: &str, expected: Option<&str>| {
            let found = catalog().unmatched(list, pattern).expect(pattern);
            assert_eq!(found.nearest.as_deref(), expected, "{pattern}");
            assert_eq!(found.not_listed, [ServerName::new("new").unwrap()]);
        };
        check(RuleList::Allow, "write_file", Some("files/write_file"));
        check(RuleList::Allow, "files", Some("files/*"));
        for list in [RuleList::Allow, RuleList::Deny] {
            check(list, "fils/write_file", Some("files/write_file"));
            check(list, "files/wirte_file", Some("files/write_file"));
            check(list, "wirte_file", Some("files/write_file"));
            check(list, "files_wirte_file", Some("files/write_file"));
            check(list, "fils/*", Some("files/*"));
            check(list, "files/wirte*", Some("files/write*"));
            check(list, "wirte_*", Some("write_*"));
            check(list, "elsewhere*", None);
            check(list, "elsewhere/thing", None);
            check(list, "New/tool", None);
        }
    }
}
