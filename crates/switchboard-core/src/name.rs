//! Names of servers and tools: what they are, how they are shown, and when two spellings mean one.

pub(crate) mod look;
mod prefix;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::config::values::ToolPrefix;
use crate::render::words::is_unseen;

pub(crate) use look::{is_look, look};
pub use prefix::{NameTier, Owner, Prefixes};

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

    /// `server/tool`, which no prefix and no collision changes. The first slash ends the server, so
    /// that a pattern for `a/*` says nothing about a server `a/b`.
    pub fn path(&self) -> String {
        format!("{}/{}", segment(&self.server), self.tool)
    }

    /// Distinguishes tools whose shown names would be equal.
    fn mark(&self, digits: usize) -> String {
        digest(self.server.as_str(), self.tool.as_str(), digits)
    }
}

/// The name of a server in front of a slash.
pub(crate) fn segment(server: &ServerName) -> String {
    server.as_str().replace('%', "%25").replace('/', "%2F")
}

/// Depends on nothing but both names; the length keeps `a`, `bc` and `ab`, `c` apart.
fn digest(server: &str, tool: &str, digits: usize) -> String {
    let mut hash = Sha256::new();
    hash.update((server.len() as u64).to_le_bytes());
    hash.update(server);
    hash.update(tool);
    let hex = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    hex.chars().take(digits).collect()
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

pub(crate) fn short(name: &str) -> &str {
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

/// The name of a tool among all tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownName {
    pub name: String,
    /// The server whose prefix the tool's usual name bears, so that it has another one.
    pub claims: Option<ServerName>,
}

/// Shown names for a set of tools: no two are equal, none depends on the order of the set, and none
/// bears the prefix of another server.
pub fn shown_names(tools: &[(ToolId, ToolPrefix)], prefixes: &Prefixes) -> Vec<ShownName> {
    let mut settled: HashMap<(&ServerName, ToolPrefix), bool> = HashMap::new();
    let mut names = Vec::with_capacity(tools.len());
    for (id, mode) in tools {
        let settled = *settled
            .entry((&id.server, *mode))
            .or_insert_with(|| prefixes.is_settled(&id.server, *mode));
        names.push(permitted(id, *mode, prefixes, settled));
    }
    let mut holders: HashMap<&str, usize> = HashMap::with_capacity(names.len());
    for shown in &names {
        *holders.entry(&shown.name).or_default() += 1;
    }
    let is_unique = |shown: &ShownName| holders.get(shown.name.as_str()) == Some(&1);
    let uniques: Vec<bool> = names.iter().map(is_unique).collect();
    let tools = tools.iter().zip(uniques);
    let distinct = names.into_iter().zip(tools).map(|(mut shown, ((id, _), is_unique))| {
        if !is_unique {
            shown.name = marked(&shown.name, id, 12);
            if !prefixes.permits(&shown.name, &id.server) {
                shown.name = marked(&under_unique_prefix(id), id, 12);
            }
        }
        shown
    });
    distinct.collect()
}

/// The usual name, unless it bears the prefix of another server.
fn permitted(id: &ToolId, mode: ToolPrefix, prefixes: &Prefixes, settled: bool) -> ShownName {
    let usual = shown(id, mode);
    // A name that was cut may have lost its prefix.
    let bears_own = |name: &str| prefixes.owner(name) == Owner::Server(id.server.clone());
    let is_permitted = match mode {
        _ if settled && starts_with_prefix(&usual, &mode.prefix(&id.server)) => true,
        // As its server spells it, the name may look like another's.
        ToolPrefix::None => {
            prefixes.permits(&usual, &id.server)
                && (id.tool.as_str().is_ascii() || prefixes.permits(id.tool.as_str(), &id.server))
        }
        ToolPrefix::Server | ToolPrefix::Short | ToolPrefix::Mcp => bears_own(&usual),
    };
    if is_permitted {
        return ShownName { name: usual, claims: None };
    }
    let other = |name: &str| match prefixes.owner(name) {
        Owner::Server(owner) => Some(owner).filter(|owner| *owner != id.server),
        Owner::Contested(servers) => servers.into_iter().find(|owner| *owner != id.server),
        Owner::None => None,
    };
    let claims = other(&usual).or_else(|| other(id.tool.as_str()));
    let named = shown(id, ToolPrefix::Server);
    let name = if bears_own(&named) { named } else { under_unique_prefix(id) };
    ShownName { name, claims }
}

fn starts_with_prefix(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('_'))
}

fn under_unique_prefix(id: &ToolId) -> String {
    let full = format!("{}_{}", prefix::unique(&id.server), plain(id.tool.as_str()));
    if full.len() <= SHOWN_LIMIT { full } else { marked(&full, id, 8) }
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
mod tests;
