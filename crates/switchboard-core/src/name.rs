//! Names of servers and tools: validation, shown names with prefixes, and other spellings of a
//! name.

pub(crate) mod look;
mod prefix;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::config::values::ToolPrefix;
use crate::render::words::is_unseen;

pub(crate) use look::{is_look, look};
pub use prefix::{NameTier, Owner, Prefixes};

/// The maximum length of a tool's name that hosts accept.
const SHOWN_LIMIT: usize = 64;

/// The maximum length of a server's or tool's name that is read from a file or a server.
pub(crate) const NAME_LIMIT: usize = 256;

/// The name of a server, as it is written in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ServerName(Arc<str>);

/// The name of a tool, as its server defines it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(Arc<str>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("the name is empty")]
    Empty,
    #[error("the name is longer than {NAME_LIMIT} bytes")]
    TooLong,
    #[error("the name contains a control character")]
    Control,
    #[error("the name begins or ends with a blank")]
    Blank,
    #[error("the name contains an invisible character")]
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
    /// Validates a name. Unlike the name of a tool, it must not contain invisible characters: users
    /// type it, and read it before they trust the server.
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

/// A server name made of ASCII letters, digits, `_` and `-`, for formats that allow no other names;
/// `None` if `id` has other characters.
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

/// The identity of a tool. Rules, cache and calls use it instead of the shown name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolId {
    pub server: ServerName,
    pub tool: ToolName,
}

impl ToolId {
    /// All names with which the tool may be called: the original name, and that with each kind of
    /// prefix.
    pub fn spellings(&self) -> Vec<String> {
        let mut names: Vec<String> =
            ToolPrefix::ALL.iter().map(|mode| shown(self, *mode)).collect();
        names.push(self.tool.as_str().to_owned());
        names
    }

    /// The name as `server/tool`, which does not depend on prefixes or on other tools. The first
    /// slash ends the server's name, so that a pattern `a/*` does not match a server `a/b`.
    pub fn path(&self) -> String {
        format!("{}/{}", segment(&self.server), self.tool)
    }
}

/// The name of a server with its slashes escaped, for use before a slash.
pub(crate) fn segment(server: &ServerName) -> String {
    server.as_str().replace('%', "%25").replace('/', "%2F")
}

/// A hash of both names. It includes the length of the server's name, so that `a`, `bc` and `ab`,
/// `c` differ.
fn digest(server: &str, tool: &str, digits: usize) -> String {
    let mut hash = Sha256::new();
    hash.update((server.len() as u64).to_le_bytes());
    hash.update(server);
    hash.update(tool);
    let hex = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    hex.chars().take(digits).collect()
}

impl ToolPrefix {
    /// The prefix of a server's tools, without the `_` that follows it.
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

/// The name with every character replaced that a host may reject.
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

/// The usual shown name of a tool, which other tools may have too.
pub fn shown(id: &ToolId, mode: ToolPrefix) -> String {
    let prefix = mode.prefix(&id.server);
    let tool = plain(id.tool.as_str());
    let doubled = starts_with_prefix(&tool, &prefix);
    let full = if prefix.is_empty() || doubled { tool } else { format!("{prefix}_{tool}") };
    bounded(full, id)
}

/// The unique shown name of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownName {
    pub name: String,
    /// Another server whose prefix the usual shown name has. The tool therefore gets another shown
    /// name.
    pub claims: Option<ServerName>,
}

/// The shown names of all tools. They are unique, do not depend on the order of the tools, and
/// never have the prefix of another server.
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

/// The usual shown name of a tool, or another name if the usual one has the prefix of another
/// server.
fn permitted(id: &ToolId, mode: ToolPrefix, prefixes: &Prefixes, settled: bool) -> ShownName {
    let usual = shown(id, mode);
    // A shortened name may have lost its prefix.
    let bears_own = |name: &str| prefixes.owner(name) == Owner::Server(id.server.clone());
    let is_permitted = match mode {
        _ if settled && starts_with_prefix(&usual, &mode.prefix(&id.server)) => true,
        // The original name may look like the name of another server's tool.
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
    bounded(full, id)
}

fn bounded(name: String, id: &ToolId) -> String {
    if name.len() <= SHOWN_LIMIT { name } else { marked(&name, id, 8) }
}

/// The name with a suffix that distinguishes it from the same shown name of another tool.
fn marked(name: &str, id: &ToolId, digits: usize) -> String {
    let room = SHOWN_LIMIT - digits - 1;
    // The name is ASCII, so it can be cut at any length.
    let kept = name.get(..room).unwrap_or(name);
    format!("{kept}_{}", digest(id.server.as_str(), id.tool.as_str(), digits))
}

/// The name in lower case, with `-` replaced by `_`.
pub fn fold(name: &str) -> String {
    plain(name).replace('-', "_").to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
