//! Finds server names that files define differently.

use std::collections::BTreeMap;

use super::layers::ConfigOrigin;
use super::parse::ParsedServer;

/// A server name that several files define differently, with these definitions in the order of the
/// files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub server: String,
    pub differs: Differs,
    pub places: Vec<ConfigOrigin>,
}

/// Which part of the definitions differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Differs {
    Endpoint,
    /// The arguments differ, so the same program may be another server.
    Arguments,
}

/// The names whose entries have different endpoints or arguments. `servers` has the entries in the
/// order of their files. An entry without an endpoint only adds to another entry and causes no
/// conflict.
pub fn conflicts<'s>(servers: impl IntoIterator<Item = &'s ParsedServer>) -> Vec<Conflict> {
    let mut named: BTreeMap<&str, Vec<&ParsedServer>> = BTreeMap::new();
    for server in servers {
        let leads = server.entry.has_endpoint();
        named.entry(&server.name).or_default().extend(leads.then_some(server));
    }
    let conflict = |(name, servers): (&str, Vec<&ParsedServer>)| {
        let differs = servers.windows(2).filter_map(|pair| match pair {
            [one, other] => differ(one, other),
            _ => None,
        });
        Some(Conflict {
            server: name.to_owned(),
            differs: differs.min()?,
            places: servers.iter().map(|server| server.origin.clone()).collect(),
        })
    };
    named.into_iter().filter_map(conflict).collect()
}

fn differ(one: &ParsedServer, other: &ParsedServer) -> Option<Differs> {
    let (one, other) = (&one.entry, &other.entry);
    if one.endpoints() != other.endpoints() {
        return Some(Differs::Endpoint);
    }
    let (some, others) = (one.args.as_ref()?, other.args.as_ref()?);
    (some != others).then_some(Differs::Arguments)
}
