//! Patterns that restrict tools. They match a tool in every spelling with which a call could name
//! it.
//!
//! A call finds a tool in any letter case, with any separator and any prefix, and a server chooses
//! the names of its tools. So a rule that denies `files/delete` must also match `Delete`,
//! `files-delete` and `del\u{200b}ete`. Patterns that permit something are [`Globs`], which match
//! exactly.

use globset::GlobMatcher;

use crate::config::values::ToolPrefix;
use crate::globs::{Globs, compile};
use crate::name::look::{composed, folded, in_one_case, look};
use crate::name::{NAME_LIMIT, ServerName, ToolId, short};
use crate::pattern::Case;

/// The patterns in the order of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Restriction {
    exact: Globs,
    /// All patterns of this restriction, matched in any letter case but with exact separators.
    any_case: Vec<(String, GlobMatcher)>,
    folded: Vec<FoldedPattern>,
}

/// Two restrictions are equal if their patterns are.
impl PartialEq for Restriction {
    fn eq(&self, other: &Restriction) -> bool {
        self.patterns().eq(other.patterns())
    }
}

#[derive(Clone, Debug)]
struct FoldedPattern {
    pattern: String,
    /// The pattern as globs: one for each slash at which the name of the server may end. The globs
    /// are compared with names after [`folded`].
    readings: Vec<GlobMatcher>,
    /// The same globs, compared with the look of names: `deIete` looks like `delete`.
    looks: Vec<GlobMatcher>,
    /// For a pattern with a slash: the pattern, and its look, with all slashes as separators. They
    /// are compared only with the names of a server whose own name has a slash: `a/b` may mean the
    /// server `a/b`.
    without_slashes: Vec<[GlobMatcher; 2]>,
}

impl FoldedPattern {
    fn new(pattern: &str) -> FoldedPattern {
        let mut readings = readings(&composed(pattern));
        readings.extend(in_one_case(pattern).iter().flat_map(|same| self::readings(same)));
        let looks = readings.iter().map(|text| look_of_pattern(text)).collect::<Vec<_>>();
        let looks = compiled(&looks);
        let readings = compiled(&readings);
        let whole = [Some(composed(pattern).into()), in_one_case(pattern)].into_iter().flatten();
        let whole = whole.filter(|text: &String| text.contains('/')).filter_map(|text| {
            let folded = fold_pattern(&text, None);
            let look = compile(&look_of_pattern(&folded), Case::Matters)?;
            Some([compile(&folded, Case::Matters)?, look])
        });
        let without_slashes = whole.collect();
        FoldedPattern { pattern: pattern.to_owned(), readings, looks, without_slashes }
    }

    /// Whether the pattern means the server of these names, whose own name has a slash.
    fn fits_slashed_server(&self, folded: &str) -> bool {
        self.without_slashes
            .iter()
            .any(|[glob, look_glob]| glob.is_match(folded) || look_glob.is_match(look(folded)))
    }

    fn fits(&self, folded: &str) -> bool {
        self.readings.iter().any(|glob| glob.is_match(folded)) || {
            let look = look_of_path(folded);
            self.looks.iter().any(|glob| glob.is_match(&look))
        }
    }
}

/// The folded names of a tool, with and without each prefix of its server. The original name of the
/// tool may already have the prefix.
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

/// The folded names that begin with the name of the server, with `_` for each slash.
fn with_server(names: &[String], server: &ServerName) -> Vec<String> {
    let own = server.as_str();
    let same = in_one_case(own);
    let prefixes: Vec<String> = [Some(own), same.as_deref()]
        .into_iter()
        .flatten()
        .flat_map(|name| [name.to_owned(), short(name).to_owned(), format!("mcp__{name}")])
        .map(|name| folded(&name))
        .collect();
    let names = names.iter().map(|name| name.replace('/', "_"));
    names.filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix))).collect()
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
    for (head, tail, separator) in split(tool) {
        names.extend(prefixes.iter().map(|prefix| format!("{prefix}_{head}/{tail}")));
        if separator == '/' {
            names.push(format!("{head}/{tail}"));
        }
    }
    names
}

/// The folded parts of a name around each of its separators. A pattern with a slash there reads as
/// if the first part were the name of a server: `a_b/c` for the tool `b/c` of the server `a`. A
/// text longer than any name, such as the text of a search, has no parts.
fn split(tool: &str) -> impl Iterator<Item = (String, String, char)> {
    let tool = if tool.len() > NAME_LIMIT { "" } else { tool };
    let separators = tool.char_indices().filter(|(_, c)| "/.-_ :".contains(*c));
    let parts = separators.map(|(at, c)| (folded(&tool[..at]), folded(&tool[at + 1..]), c));
    parts.filter(|(head, _, _)| !head.is_empty())
}

fn compiled(patterns: &[String]) -> Vec<GlobMatcher> {
    patterns.iter().filter_map(|text| compile(text, Case::Matters)).collect()
}

/// The folded pattern, with its literal parts replaced by their look.
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

/// Appends the look of a literal part. A leading separator is dropped if `out` ends with one.
fn push_look(out: &mut String, literal: &mut String) {
    let text = std::mem::take(literal);
    let begins = text.starts_with('_') && !out.is_empty() && !out.ends_with(['/', '_', '{', ',']);
    if begins {
        out.push('_');
    }
    out.push_str(&look(&text));
}

/// The look of a folded name. The slash after the name of the server is preserved.
fn look_of_path(folded: &str) -> String {
    match folded.split_once('/') {
        Some((server, tool)) => format!("{}/{}", look(server), look(tool)),
        None => look(folded),
    }
}

/// The meaning of a pattern that is just the name of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BareServer {
    /// The pattern matches all tools of the server.
    Restricts,
    /// The pattern matches only a tool with this name.
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

    /// The first pattern that matches the tool. `others` are its further names.
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
        self.find_folded(&names, &id.server)
    }

    /// The first pattern that matches the name in a call, read as the name of a tool of this
    /// server. A call with a denied name must not reach a tool with a similar name.
    pub fn find_written(&self, name: &str, server: &ServerName) -> Option<&str> {
        if self.is_empty() {
            return None;
        }
        self.find_folded(&spellings(server, name.trim()), server)
    }

    fn find_folded(&self, names: &[String], server: &ServerName) -> Option<&str> {
        let slashed =
            if server.as_str().contains('/') { with_server(names, server) } else { vec![] };
        let fits = |pattern: &&FoldedPattern| {
            names.iter().any(|name| pattern.fits(name))
                || slashed.iter().any(|name| pattern.fits_slashed_server(name))
        };
        self.folded.iter().find(fits).map(|folded| folded.pattern.as_str())
    }
}

/// The possible meanings of a pattern. Each slash in it may end the name of the server: `a/b/*`
/// means the tools of `a/b`, or tools of `a`.
fn readings(pattern: &str) -> Vec<String> {
    let slashes = pattern.match_indices('/').map(|(at, _)| Some(at));
    let whole = (!pattern.contains('/')).then_some(None);
    slashes.chain(whole).map(|slash| fold_pattern(pattern, slash)).collect()
}

/// Folds the literal parts of a pattern. The name of the server ends at `slash`; all other slashes
/// are separators.
fn fold_pattern(pattern: &str, slash: Option<usize>) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut literal = String::new();
    let mut set = None;
    for (at, c) in pattern.char_indices() {
        if let Some(start) = set {
            // A `]` at the beginning of a set is an element of the set.
            let begins = at - start <= 1 || (at - start == 2 && pattern[start..].starts_with("[!"));
            // All separators become `_`, in sets too.
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

/// Whether a dash in a set is a literal dash, and not part of a range.
fn is_literal_dash(pattern: &str, at: usize) -> bool {
    let before = pattern.get(..at).is_none_or(|head| head.ends_with(['[', '!']));
    before || pattern.get(at + 1..).is_none_or(|tail| tail.starts_with(']'))
}

/// Appends a folded literal part. A leading separator is dropped if `out` ends with one.
fn push_folded(out: &mut String, literal: &mut String) {
    let text = std::mem::take(literal);
    if text.is_empty() {
        return;
    }
    // A digit before the text preserves the separators at its beginning. Unlike a letter, a digit
    // is not composed with an accent.
    let folded = folded(&format!("0{text}"));
    let folded = folded.get(1..).unwrap_or_default();
    let begins = out.is_empty() || out.ends_with(['/', '_', '{', ',']);
    out.push_str(if begins { folded.trim_start_matches('_') } else { folded });
}

#[cfg(test)]
mod tests;
