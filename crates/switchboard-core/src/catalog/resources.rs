//! Finds the server of a resource, and makes URIs that are unique across servers.

use std::sync::Arc;

use serde_json::Value;

use super::listing::Address;
use super::resolve::{MOST_CHOICES, clip};
use super::{Catalog, Listing, ResolveError};
use crate::exact::Args;
use crate::name::{ServerName, segment};

/// The scheme of server-qualified URIs: `switchboard://SERVER/URI`.
const SCHEME: &str = "switchboard://";

/// An element of `resources/list` or `resources/templates/list`; `key` is the member with the URI.
/// The URI becomes server-qualified if several servers share it, or if it has the scheme
/// `switchboard`.
fn definition(server: &ServerName, key: &str, uri: &str, raw: &str, is_shared: bool) -> String {
    let is_ours = after_scheme(uri).is_some();
    match Args::parse(raw) {
        Ok(mut members) if is_shared || is_ours => {
            members.insert(key, Value::from(with_server(server, uri)));
            members.to_string()
        }
        Ok(_) | Err(_) => raw.to_owned(),
    }
}

/// The part of a server-qualified URI after its scheme.
fn after_scheme(uri: &str) -> Option<&str> {
    let (scheme, rest) = uri.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then_some(rest)
}

/// The server-qualified URI of a resource.
fn with_server(server: &ServerName, uri: &str) -> String {
    format!("{SCHEME}{}/{uri}", segment(server))
}

/// The error for a URI that several servers have. Each choice is a server-qualified URI.
fn ambiguous<'a>(uri: &str, owners: impl Iterator<Item = &'a ServerName>) -> ResolveError {
    let choices = owners.take(MOST_CHOICES).map(|owner| with_server(owner, &clip(uri))).collect();
    ResolveError::Ambiguous { name: clip(uri), choices }
}

impl Catalog {
    /// The elements of `resources/list`. A URI that several servers share is server-qualified.
    pub fn resource_definitions(&self) -> Vec<String> {
        let rows = self.offered().flat_map(|listing| {
            listing.resources.iter().map(move |resource| {
                let address = Address::of(&resource.uri);
                let is_shared = self.others(listing).any(|other| other.claims(&address));
                definition(&listing.server, "uri", &resource.uri, &resource.raw, is_shared)
            })
        });
        rows.collect()
    }

    /// The elements of `resources/templates/list`. A template that several servers share is
    /// server-qualified.
    pub fn template_definitions(&self) -> Vec<String> {
        let rows = self.offered().flat_map(|listing| {
            listing.templates.iter().map(move |template| {
                let is_shared = self.others(listing).any(|other| other.has_template(template));
                let uri = &template.uri_template;
                definition(&listing.server, "uriTemplate", uri, &template.raw, is_shared)
            })
        });
        rows.collect()
    }

    fn others<'a>(&'a self, listing: &'a Listing) -> impl Iterator<Item = &'a Arc<Listing>> {
        self.offered().filter(move |other| other.server != listing.server)
    }

    /// The server of the resource, and the URI on that server. If several servers have the URI, the
    /// caller has to choose one.
    pub fn find_resource(
        &self,
        uri: &str,
        within: Option<&ServerName>,
    ) -> Result<Option<(ServerName, String)>, ResolveError> {
        if let Some((server, own)) = self.read_server(uri)? {
            let fits = within.is_none_or(|within| *within == server);
            return Ok(fits.then(|| (server, own.to_owned())));
        }
        if let Some(server) = within {
            return Ok(Some((server.clone(), uri.to_owned())));
        }
        let claim = |claims: &dyn Fn(&Listing) -> bool| -> Vec<ServerName> {
            let found = self.offered().filter(|listing| claims(listing));
            found.map(|listing| listing.server.clone()).collect()
        };
        let address = Address::of(uri);
        let mut owners = claim(&|listing| listing.claims(&address));
        if owners.is_empty() {
            owners = claim(&|listing| listing.templates.iter().any(|row| row.admits(uri)));
        }
        match &owners[..] {
            [] => Ok(None),
            [owner] => Ok(Some((owner.clone(), uri.to_owned()))),
            _ => Err(ambiguous(uri, owners.iter())),
        }
    }

    /// The server of the template, and the template on that server.
    pub fn find_template(
        &self,
        template: &str,
    ) -> Result<Option<(ServerName, String)>, ResolveError> {
        if let Some((server, own)) = self.read_server(template)? {
            return Ok(Some((server, own.to_owned())));
        }
        let named = |listing: &&Arc<Listing>| {
            listing.templates.iter().any(|own| own.uri_template == template)
        };
        let owners: Vec<&Arc<Listing>> = self.offered().filter(named).collect();
        match owners[..] {
            [] => self.find_resource(template, None),
            [owner] => Ok(Some((owner.server.clone(), template.to_owned()))),
            _ => Err(ambiguous(template, owners.iter().map(|owner| &owner.server))),
        }
    }

    /// The server and the URI in a server-qualified URI; `None` for any other URI.
    fn read_server<'u>(&self, uri: &'u str) -> Result<Option<(ServerName, &'u str)>, ResolveError> {
        let qualified = after_scheme(uri).and_then(|rest| rest.split_once('/'));
        let Some((server, own)) = qualified else { return Ok(None) };
        let named = self.shelves().map(|(name, _)| name).find(|name| segment(name) == server);
        let server = self.active_server(named.map_or(server, ServerName::as_str))?;
        Ok(Some((server, own)))
    }
}

#[cfg(test)]
mod tests;
