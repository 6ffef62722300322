//! Resolves a typed name to one tool, or to suggestions.

use std::sync::Arc;

use super::pin::Pin;
use super::{Catalog, Entry, Item, Kind, Listing, Standing, search};
use crate::config::layers::PendingCause;
use crate::config::values::ToolPrefix;
use crate::exact::Args;
use crate::hidden::strip;
use crate::name::{Owner, ServerName, ToolId, fold, look, short, shown};
use crate::schema::Mismatch;

/// The most suggestions for an unknown name.
const SUGGESTIONS: usize = 5;

/// A tool to which a name was resolved.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub server: ServerName,
    pub shown: Arc<str>,
    pub entry: Arc<Entry>,
    pub pin: Pin,
    /// Another server, whose prefix the tool's own name has. Boxed, because each call holds a
    /// `Resolved`.
    pub claims: Option<Box<ServerName>>,
}

/// Arguments that fit the tool's schema.
#[derive(Clone, Debug)]
pub struct Checked {
    pub target: Resolved,
    pub args: Args,
}

#[derive(Clone, Debug)]
pub enum Resolution {
    Tool(Resolved),
    /// The server was never listed, and the name may be one of its tools.
    Unlisted(ServerName),
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum ResolveError {
    #[error("no tool is named `{name}`")]
    NotFound { name: String, suggestions: Vec<String>, unlisted: Vec<ServerName> },
    #[error("`{name}` could be any of {} tools", choices.len())]
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

fn list(mismatches: &[Mismatch]) -> String {
    mismatches.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Resolved {
    /// Checks arguments against the schema; repairs mistakes that have one possible reading.
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
        ToolId { server: self.server.clone(), tool: self.entry.name.clone() }
    }
}

impl Catalog {
    /// The server with this name: exactly, or with other letter case or `-` for `_`.
    pub fn server(&self, name: &str) -> Result<ServerName, ResolveError> {
        if let Some((server, _)) = self.shelves().find(|(server, _)| server.as_str() == name) {
            return Ok(server.clone());
        }
        // The name of an invalid entry is reserved: it means no other server.
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

    /// A configured server whose name looks like this one.
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
        let server = self.server(name)?;
        match self.shelf(&server).map(|shelf| shelf.standing) {
            Some(Standing::Disabled) => Err(ResolveError::Disabled(server)),
            Some(Standing::Pending(cause)) => Err(ResolveError::Pending { server, cause }),
            Some(Standing::Active) | None => Ok(server),
        }
    }

    /// The tool that `name` means; only on the server `within`, if given.
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

    /// The tool with this name, in any spelling. A name with the prefix of a server belongs to that
    /// server, even if it has no such tool, was not listed or is disabled.
    pub fn named(
        &self,
        name: &str,
        within: Option<&ServerName>,
    ) -> Result<Option<Resolved>, ResolveError> {
        let owner = match within {
            Some(server) => Some(server.clone()),
            None => self.owner(name)?,
        };
        match self.by_shown.get(name) {
            Some(exact) if owner.as_ref().is_none_or(|server| *server == exact.server) => {
                Ok(Some(exact.clone()))
            }
            Some(_) | None => self.resolve_leniently(name, owner.as_ref()),
        }
    }

    /// Whether the name has no other server's prefix.
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
                let choices = choices.take(10).map(|item| item.shown.to_string()).collect();
                Err(ResolveError::Ambiguous { name: clip(name), choices })
            }
        }
    }

    /// The tool with exactly this shown name.
    pub fn shown(&self, name: &str) -> Option<&Resolved> {
        self.by_shown.get(name)
    }

    /// The resource `uri` of a server, as the tool that reads it. It need not be listed, but must
    /// not be excluded by the configuration.
    pub fn resource(&self, server: &ServerName, uri: &str) -> Option<Resolved> {
        let listing = self.listing(server)?;
        if listing.hides(uri) {
            return None;
        }
        let names = listing.names_of_resource(uri).all();
        let entry = Entry::resource(names, uri.to_owned(), None)?;
        Some(self.beside_the_tools(server, entry))
    }

    /// The tool with the original name `name`.
    pub fn own_tool(&self, server: &ServerName, name: &str) -> Option<Resolved> {
        let named =
            |item: &Item<'_>| item.entry.kind == Kind::Tool && item.entry.name.as_str() == name;
        let found = self.all_tools_of(server).find(named);
        // Clients get the name without hidden characters.
        let seen = |item: &Item<'_>| {
            item.entry.hidden.is_some() && strip(item.entry.name.as_str()) == name
        };
        found.or_else(|| self.all_tools_of(server).find(seen)).map(|item| item.resolved())
    }

    /// The listed prompt `name` of a server; rules and pins apply only to listed prompts.
    pub fn prompt(&self, server: &ServerName, name: &str) -> Option<Resolved> {
        let named = self.prompts_of(server).find(|item| item.prompt.name == name);
        // Clients get the name without hidden characters.
        let seen = || self.prompts_of(server).find(|item| strip(&item.prompt.name) == name);
        let listed = named.or_else(seen)?;
        let mut resolved = self.beside_the_tools(server, Entry::prompt(&listed.prompt.name).ok()?);
        resolved.pin = listed.pin;
        Some(resolved)
    }

    fn beside_the_tools(&self, server: &ServerName, entry: Entry) -> Resolved {
        let prefix = self.shelf(server).map(|shelf| shelf.prefix).unwrap_or_default();
        let id = ToolId { server: server.clone(), tool: entry.name.clone() };
        let shown = Arc::from(shown(&id, prefix));
        let (server, entry, pin) = (server.clone(), Arc::new(entry), Pin::Same);
        Resolved { server, shown, entry, pin, claims: None }
    }

    /// Tries spellings from the closest on; the first that matches any tool decides.
    fn resolve_leniently(
        &self,
        name: &str,
        within: Option<&ServerName>,
    ) -> Result<Option<Resolved>, ResolveError> {
        let folded = fold(name);
        let items: Vec<Item<'_>> = self.scope(within).collect();
        let spellings: [&dyn Fn(&Item<'_>) -> bool; 4] = [
            &|item| item.entry.name.as_str() == name,
            // A name that several tools would have is ambiguous, even if one is shown with it.
            &|item| fold(item.shown) == folded || self.would_be_shown_as(item, &folded),
            &|item| fold(item.entry.name.as_str()) == folded,
            &|item| other_spellings(item).any(|spelling| spelling == folded),
        ];
        for fits in spellings {
            let found: Vec<&Item<'_>> = items.iter().filter(|item| fits(item)).collect();
            match found[..] {
                [] => {}
                [only] => return Ok(Some(only.resolved())),
                _ => {
                    let choices = found.iter().take(10).map(|item| item.shown.to_string());
                    return Err(ResolveError::Ambiguous {
                        name: clip(name),
                        choices: choices.collect(),
                    });
                }
            }
        }
        Ok(None)
    }

    /// Whether the tool would have this shown name if no other tool had it.
    fn would_be_shown_as(&self, item: &Item<'_>, folded: &str) -> bool {
        let prefix = self.shelf(item.server).map(|shelf| shelf.prefix).unwrap_or_default();
        let id = ToolId { server: item.server.clone(), tool: item.entry.name.clone() };
        fold(&shown(&id, prefix)) == folded
    }

    /// The server whose prefix the name has, if that server was never listed.
    fn unlisted_owner(
        &self,
        name: &str,
        within: Option<&ServerName>,
    ) -> Result<Option<ServerName>, ResolveError> {
        let owner = match within {
            Some(server) => Some(server.clone()),
            None => self.owner(name)?,
        };
        let Some(server) = owner else { return Ok(None) };
        let Some(shelf) = self.shelf(&server) else { return Ok(None) };
        match shelf.standing {
            Standing::Disabled => Err(ResolveError::Disabled(server)),
            Standing::Pending(cause) => Err(ResolveError::Pending { server, cause }),
            Standing::Active if shelf.listing.is_none() => Ok(Some(server)),
            Standing::Active => Ok(None),
        }
    }

    fn suggestions(&self, name: &str, within: Option<&ServerName>) -> Vec<String> {
        let visible = self.scope(within).filter(|item| self.denied_by(item.shown).is_none());
        let mut found = nearest(name, visible.map(|item| item.shown.to_string()));
        if !found.is_empty() {
            // A misspelling; search results would only distract.
            return found;
        }
        let listings: Vec<_> = self.listings(within).collect();
        for hit in search::rank(&Listing::indexed(&listings), name).hits {
            if found.len() >= SUGGESTIONS {
                break;
            }
            let item = listings
                .get(hit.listing)
                .and_then(|listing| self.all_tools_of(&listing.server).nth(hit.document))
                .filter(|item| self.denied_by(item.shown).is_none());
            if let Some(item) = item
                && !found.iter().any(|name| **name == **item.shown)
            {
                found.push(item.shown.to_string());
            }
        }
        found
    }

    /// Every tool that a name can mean, denied ones included.
    pub(super) fn scope<'a>(
        &'a self,
        within: Option<&'a ServerName>,
    ) -> Box<dyn Iterator<Item = Item<'a>> + 'a> {
        match within {
            Some(server) => Box::new(self.all_tools_of(server)),
            None => Box::new(self.all_tools()),
        }
    }
}

impl Item<'_> {
    /// The tool as a value of its own.
    pub fn resolved(&self) -> Resolved {
        Resolved {
            server: self.server.clone(),
            shown: Arc::clone(self.shown),
            entry: Arc::clone(self.entry),
            pin: self.pin,
            claims: self.claims.cloned().map(Box::new),
        }
    }
}

/// The folded name under every prefix mode, also with `__` behind the prefix as in some hosts, and
/// with `get_` for a resource's `read_`.
fn other_spellings(item: &Item<'_>) -> impl Iterator<Item = String> {
    let id = ToolId { server: item.server.clone(), tool: item.entry.name.clone() };
    let names = ToolPrefix::ALL.into_iter().flat_map(move |mode| {
        let joined = format!("{}__{}", mode.prefix(&id.server), id.tool);
        [fold(&shown(&id, mode)), fold(&joined)]
    });
    let is_resource = matches!(item.entry.kind, Kind::Resource { .. });
    names.flat_map(move |name| {
        let older = is_resource.then(|| name.replacen("read_", "get_", 1));
        [Some(name), older].into_iter().flatten()
    })
}

/// The closest names by edit distance, best first.
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

/// A typed name made safe for a message: bounded, and without control characters.
pub fn clip(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(128).collect()
}
