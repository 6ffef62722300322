//! Names that lead to different servers in different files.

use std::collections::BTreeMap;

use super::layers::Origin;
use super::parse::ParsedServer;

/// A name and the places that disagree about it, in the order of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub server: String,
    pub places: Vec<Origin>,
}

/// The names that at least two of the entries, in the order of their files, lead elsewhere with. An
/// entry that only adds to another one disagrees with nobody.
pub fn conflicts<'s>(servers: impl IntoIterator<Item = &'s ParsedServer>) -> Vec<Conflict> {
    let mut named: BTreeMap<&str, Vec<&ParsedServer>> = BTreeMap::new();
    for server in servers {
        let leads = server.entry.endpoints().iter().any(Option::is_some);
        named.entry(&server.name).or_default().extend(leads.then_some(server));
    }
    let differ = |servers: &[&ParsedServer]| {
        servers.windows(2).any(|pair| match pair {
            [one, other] => one.entry.endpoints() != other.entry.endpoints(),
            _ => false,
        })
    };
    let disagreeing = named.into_iter().filter(|(_, servers)| differ(servers));
    disagreeing
        .map(|(name, servers)| Conflict {
            server: name.to_owned(),
            places: servers.iter().map(|server| server.origin.clone()).collect(),
        })
        .collect()
}
