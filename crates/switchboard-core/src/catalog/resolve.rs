//! Resolves a requested name to one tool, or to suggestions.

use std::sync::Arc;

use super::pin::Pin;
use super::{Catalog, Entry, EntryKind, Listing, Standing, search};
use crate::config::layers::PendingCause;
use crate::config::values::ToolPrefix;
use crate::exact::Args;
use crate::hidden::strip;
use crate::name::{Owner, ServerName, ToolId, fold, look, short, shown, shown_names};
use crate::schema::Mismatch;

/// The maximum number of suggestions for an unknown name.
const SUGGESTIONS: usize = 5;

/// The maximum number of tools that an error about an ambiguous name lists.
pub(super) const MOST_CHOICES: usize = 10;

/// The tool that a requested name means.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub server: ServerName,
    pub shown: Arc<str>,
    pub entry: Arc<Entry>,
    pub pin: Pin,
    /// Another server whose prefix the tool's original name has. Boxed to keep `Resolved` small,
    /// because each call holds one.
    pub claims: Option<Box<ServerName>>,
}

/// A tool with arguments that fit its schema.
#[derive(Clone, Debug)]
pub struct Checked {
    pub target: Resolved,
    pub args: Args,
}

#[derive(Clone, Debug)]
pub enum Resolution {
    Tool(Resolved),
    /// The name may be a tool of this server, which was never listed.
    Unlisted(ServerName),
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum ResolveError {
    #[error("no tool is named `{name}`")]
    NotFound { name: String, suggestions: Vec<String>, unlisted: Vec<ServerName> },
    #[error("`{name}` matches {} tools", choices.len())]
    Ambiguous { name: String, choices: Vec<String> },
    #[error("no server is named `{name}`")]
    UnknownServer { name: String, suggestions: Vec<String> },
    #[error("the entry of `{0}` is invalid and is not used")]
    Refused(ServerName),
    #[error("the server `{0}` is disabled")]
    Disabled(ServerName),
    #[error("the server `{server}` comes from this project and {cause}")]
    Pending { server: ServerName, cause: PendingCause },
}

#[derive(Clone, Debug, thiserror::Error)]
#[error("the arguments do not fit: {}", list(.mismatches))]
pub struct ArgumentsError {
    pub mismatches: Vec<Mismatch>,
}

impl ResolveError {
    /// The error for a name that means several tools or prompts.
    pub(super) fn ambiguous<'a>(
        name: &str,
        shown: impl Iterator<Item = &'a Arc<str>>,
    ) -> ResolveError {
        let choices = shown.take(MOST_CHOICES).map(|shown| shown.to_string()).collect();
        ResolveError::Ambiguous { name: clip(name), choices }
    }
}

fn list(mismatches: &[Mismatch]) -> String {
    mismatches.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Resolved {
    /// Checks arguments against the tool's schema. A mistake that has only one possible correction
    /// is repaired.
    pub fn check(self, args: Args) -> Result<Checked, (Resolved, ArgumentsError)> {
        let Some(validator) = self.entry.validator() else {
            return Ok(Checked { target: self, args });
        };
        match validator.check(args) {
            Ok(args) => Ok(Checked { target: self, args }),
            Err(mismatches) => Err((self, ArgumentsError { mismatches })),
        }
    }

    pub fn id(&self) -> ToolId {
        self.entry.id(&self.server)
    }
}

impl Catalog {
    /// The server with this name. Letter case may differ, and `-` may replace `_`.
    pub fn server(&self, name: &str) -> Result<ServerName, ResolveError> {
        if let Some((server, _)) = self.shelves().find(|(server, _)| server.as_str() == name) {
            return Ok(server.clone());
        }
        // The name of an invalid entry is reserved and means no other server.
        let is_reserved = self.reserved().iter().any(|(reserved, _)| reserved.as_str() == name);
        let folded = fold(name);
        let close: Vec<_> =
            self.configured().filter(|n| !is_reserved && fold(n.as_str()) == folded).collect();
        if let [only] = close[..]
            && self.shelf(only).is_some()
        {
            return Ok(only.clone());
        }
        let mut refused = self.reserved().iter().map(|(name, _)| name);
        if let Some(server) = refused.find(|server| fold(server.as_str()) == folded) {
            return Err(ResolveError::Refused(server.clone()));
        }
        let names = self.shelves().map(|(name, _)| name.as_str().to_owned());
        Err(ResolveError::UnknownServer { name: clip(name), suggestions: nearest(name, names) })
    }

    /// A configured server whose name looks like the name `id`.
    pub fn similar_server(&self, id: &ServerName) -> Option<ServerName> {
        let looks =
            |name: &str| [name, short(name)].map(|name| look(name).trim_matches('_').to_owned());
        let own = looks(id.as_str());
        let similar =
            |other: &&ServerName| looks(other.as_str()).iter().any(|look| own.contains(look));
        self.configured().find(similar).cloned()
    }

    /// The active server with this name.
    pub fn active_server(&self, name: &str) -> Result<ServerName, ResolveError> {
        self.check_active(self.server(name)?)
    }

    fn check_active(&self, server: ServerName) -> Result<ServerName, ResolveError> {
        match self.shelf(&server).map(|shelf| shelf.standing) {
            Some(Standing::Disabled) => Err(ResolveError::Disabled(server)),
            Some(Standing::Pending(cause)) => Err(ResolveError::Pending { server, cause }),
            Some(Standing::Active) | None => Ok(server),
        }
    }

    /// The tool that `name` means. With `within`, only tools of that server are considered.
    pub fn resolve(&self, name: &str, within: Option<&str>) -> Result<Resolution, ResolveError> {
        let within = within.map(|server| self.active_server(server)).transpose()?;
        if let Some(found) = self.named(name, within.as_ref())? {
            return Ok(Resolution::Tool(found));
        }
        if let Some(server) = self.unlisted_owner(name, within.as_ref())? {
            return Ok(Resolution::Unlisted(server));
        }
        Err(ResolveError::NotFound {
            name: clip(name),
            suggestions: self.suggestions(name, within.or(self.owner(name)?).as_ref()),
            unlisted: self.not_listed_yet(),
        })
    }

    /// The tool with this name, in any spelling. A name with the prefix of a server means only a
    /// tool of that server, even if the server has no such tool, was never listed or is disabled.
    pub fn named(
        &self,
        name: &str,
        within: Option<&ServerName>,
    ) -> Result<Option<Resolved>, ResolveError> {
        let owner = self.owner_within(name, within)?;
        match self.shown(name) {
            Some(exact) if owner.as_ref().is_none_or(|server| *server == exact.server) => {
                Ok(Some(exact.clone()))
            }
            Some(_) | None => self.resolve_leniently(name, owner.as_ref()),
        }
    }

    /// Whether the name may belong to `server`: it has no prefix, or the prefix of `server`.
    pub fn permits(&self, name: &str, server: &ServerName) -> bool {
        self.prefixes.permits(name, server)
    }

    /// The server whose prefix the name has.
    pub(super) fn owner(&self, name: &str) -> Result<Option<ServerName>, ResolveError> {
        match self.prefixes.owner(name) {
            Owner::None => Ok(None),
            Owner::Server(server) => Ok(Some(server)),
            Owner::Contested(servers) => {
                let choices = servers.iter().flat_map(|server| self.tools_of(server));
                Err(ResolveError::ambiguous(name, choices.map(|tool| &tool.shown)))
            }
        }
    }

    /// The server `within`; if that is `None`, the server whose prefix the name has.
    pub(super) fn owner_within(
        &self,
        name: &str,
        within: Option<&ServerName>,
    ) -> Result<Option<ServerName>, ResolveError> {
        within.map_or_else(|| self.owner(name), |server| Ok(Some(server.clone())))
    }

    /// The tool with exactly this shown name.
    pub fn shown(&self, name: &str) -> Option<&Resolved> {
        self.tools.get(*self.by_shown.get(name)?)
    }

    /// The tool that reads the resource `uri` of a server. The resource need not be listed, but the
    /// configuration must not exclude it.
    pub fn resource(&self, server: &ServerName, uri: &str) -> Option<Resolved> {
        let listing = self.listing(server)?;
        if listing.hides(uri) {
            return None;
        }
        let names = listing.names_of_resource(uri).all();
        let entry = Entry::resource(names, uri.to_owned(), None)?;
        Some(self.beside_the_tools(server, entry))
    }

    /// The tool of a server with the original name `name`.
    pub fn own_tool(&self, server: &ServerName, name: &str) -> Option<Resolved> {
        let named = |tool: &&Resolved| {
            tool.entry.kind == EntryKind::Tool && tool.entry.name.as_str() == name
        };
        let found = self.all_tools_of(server).find(named);
        // Clients receive the name without hidden characters, so the comparison removes them.
        let seen = |tool: &&Resolved| {
            tool.entry.hidden.is_some() && strip(tool.entry.name.as_str()) == name
        };
        found.or_else(|| self.all_tools_of(server).find(seen)).cloned()
    }

    /// The listed prompt `name` of a server. Rules and pins apply only to listed prompts.
    pub fn prompt(&self, server: &ServerName, name: &str) -> Option<Resolved> {
        let named = self.prompts_of(server).find(|item| item.prompt.name == name);
        // Clients receive the name without hidden characters, so the comparison removes them.
        let seen = || self.prompts_of(server).find(|item| strip(&item.prompt.name) == name);
        let listed = named.or_else(seen)?;
        let mut resolved = self.beside_the_tools(server, Entry::prompt(&listed.prompt.name).ok()?);
        resolved.pin = listed.pin;
        Some(resolved)
    }

    fn beside_the_tools(&self, server: &ServerName, entry: Entry) -> Resolved {
        let prefix = self.shelf(server).map(|shelf| shelf.prefix).unwrap_or_default();
        let names = shown_names(&[(entry.id(server), prefix)], &self.prefixes);
        let shown = names.into_iter().next().map(|shown| Arc::from(shown.name)).unwrap_or_default();
        let (server, entry, pin) = (server.clone(), Arc::new(entry), Pin::Same);
        Resolved { server, shown, entry, pin, claims: None }
    }

    /// Compares `name` with spellings of tool names, exact ones first. The first kind of spelling
    /// that matches decides.
    fn resolve_leniently(
        &self,
        name: &str,
        within: Option<&ServerName>,
    ) -> Result<Option<Resolved>, ResolveError> {
        let folded = fold(name);
        let spellings: [&dyn Fn(&Resolved) -> bool; 4] = [
            &|tool| tool.entry.name.as_str() == name,
            // If several tools would have this shown name without their prefixes, the name is
            // ambiguous.
            &|tool| fold(&tool.shown) == folded || self.would_be_shown_as(tool, &folded),
            &|tool| fold(tool.entry.name.as_str()) == folded,
            &|tool| other_spellings(tool).any(|spelling| spelling == folded),
        ];
        for fits in spellings {
            let found: Vec<&Resolved> = self.scope(within).filter(|tool| fits(tool)).collect();
            match found[..] {
                [] => {}
                [only] => return Ok(Some(only.clone())),
                _ => {
                    let choices = found.iter().map(|tool| &tool.shown);
                    return Err(ResolveError::ambiguous(name, choices));
                }
            }
        }
        Ok(None)
    }

    /// Whether this would be the shown name of the tool if no other tool had the same name.
    fn would_be_shown_as(&self, tool: &Resolved, folded: &str) -> bool {
        let prefix = self.shelf(&tool.server).map(|shelf| shelf.prefix).unwrap_or_default();
        fold(&shown(&tool.id(), prefix)) == folded
    }

    /// The server whose prefix the name has, if that server was never listed.
    fn unlisted_owner(
        &self,
        name: &str,
        within: Option<&ServerName>,
    ) -> Result<Option<ServerName>, ResolveError> {
        let Some(server) = self.owner_within(name, within)? else { return Ok(None) };
        let server = self.check_active(server)?;
        let is_unlisted = self.shelf(&server).is_some_and(|shelf| shelf.listing.is_none());
        Ok(is_unlisted.then_some(server))
    }

    fn suggestions(&self, name: &str, within: Option<&ServerName>) -> Vec<String> {
        let is_visible = |tool: &&Resolved| self.denied_by(&tool.shown).is_none();
        let visible = self.scope(within).filter(is_visible);
        let mut found = nearest(name, visible.map(|tool| tool.shown.to_string()));
        if !found.is_empty() {
            // The name is probably a misspelling of these names, so search results are omitted.
            return found;
        }
        let listings: Vec<_> = self.listings(within).collect();
        for hit in search::rank(&Listing::indexed(&listings), name).hits {
            if found.len() >= SUGGESTIONS {
                break;
            }
            if let Some(tool) = self.tool_of(&listings, &hit).filter(is_visible)
                && !found.iter().any(|name| **name == *tool.shown)
            {
                found.push(tool.shown.to_string());
            }
        }
        found
    }

    /// Every tool that a name can mean, including denied ones.
    pub(super) fn scope(&self, within: Option<&ServerName>) -> std::slice::Iter<'_, Resolved> {
        within.map_or_else(|| self.all_tools(), |server| self.all_tools_of(server))
    }
}

/// The tool's name, folded, with the prefix of every `toolPrefix` mode. Some hosts add `__` after
/// the prefix, and some models write `get_` for the `read_` of a resource.
fn other_spellings(tool: &Resolved) -> impl Iterator<Item = String> {
    let id = tool.id();
    let names = ToolPrefix::ALL.into_iter().flat_map(move |mode| {
        let joined = format!("{}__{}", mode.prefix(&id.server), id.tool);
        [fold(&shown(&id, mode)), fold(&joined)]
    });
    let is_resource = matches!(tool.entry.kind, EntryKind::Resource { .. });
    names.flat_map(move |name| {
        let older = is_resource.then(|| name.replacen("read_", "get_", 1));
        [Some(name), older].into_iter().flatten()
    })
}

/// The names with the fewest edits from `name`, best first.
pub fn nearest(name: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let wanted = fold(name);
    let tolerance = (wanted.len() / 3).clamp(1, 4);
    let mut close: Vec<(usize, String)> = names
        .filter(|candidate| candidate.len().abs_diff(wanted.len()) <= tolerance)
        .map(|candidate| (strsim::damerau_levenshtein(&fold(&candidate), &wanted), candidate))
        .filter(|(distance, _)| *distance <= tolerance)
        .collect();
    close.sort();
    let best = close.first().map_or(0, |(distance, _)| *distance);
    close.retain(|(distance, _)| *distance <= best + 1);
    close.into_iter().take(SUGGESTIONS).map(|(_, name)| name).collect()
}

/// A requested name, shortened and without control characters, for a message.
pub fn clip(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(128).collect()
}
