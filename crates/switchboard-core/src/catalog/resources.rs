//! Whose a resource is, and the address that only one server's can have.

use std::sync::Arc;

use serde_json::Value;

use super::listing::Address;
use super::resolve::clip;
use super::{Catalog, Listing, ResolveError, Resource, ResourceTemplate};
use crate::exact::Args;
use crate::name::{ServerName, segment};

/// In front of the name of a server and of the address that it has for a resource.
const SCHEME: &str = "switchboard://";

/// Servers that an error offers.
const MOST_CHOICES: usize = 10;

/// A resource, or a template of resources, as clients are shown it.
struct Listed<'a> {
    server: &'a ServerName,
    address: &'a str,
    key: &'static str,
    raw: &'a str,
}

impl Listed<'_> {
    /// As an element of a list; `is_shared` if other servers may mean something else by the address.
    fn definition(&self, is_shared: bool) -> String {
        let ours = self.address.get(..SCHEME.len());
        let is_ours = ours.is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME));
        match Args::parse(self.raw) {
            Ok(mut members) if is_shared || is_ours => {
                members.insert(self.key, Value::from(with_server(self.server, self.address)));
                members.to_string()
            }
            Ok(_) | Err(_) => self.raw.to_owned(),
        }
    }
}

/// The address of a resource with the name of its server.
fn with_server(server: &ServerName, uri: &str) -> String {
    format!("{SCHEME}{}/{uri}", segment(server))
}

/// Each choice bears the name of its server.
fn ambiguous<'a>(uri: &str, owners: impl Iterator<Item = &'a ServerName>) -> ResolveError {
    let choices = owners.take(MOST_CHOICES).map(|owner| with_server(owner, &clip(uri))).collect();
    ResolveError::Ambiguous { name: clip(uri), choices }
}

impl Catalog {
    /// The elements of `resources/list`. An address that several servers have bears the name of its
    /// server.
    pub fn resource_definitions(&self) -> Vec<String> {
        let mut rows = Vec::new();
        for listing in self.offered() {
            rows.extend(listing.resources.iter().map(|resource| {
                let address = Address::of(&resource.uri);
                let is_shared = self.others(listing).any(|other| other.claims(&address));
                Listed::resource(&listing.server, resource).definition(is_shared)
            }));
        }
        rows
    }

    /// The elements of `resources/templates/list`, likewise.
    pub fn template_definitions(&self) -> Vec<String> {
        let mut rows = Vec::new();
        for listing in self.offered() {
            rows.extend(listing.templates.iter().map(|template| {
                let is_shared = self.others(listing).any(|other| other.has_template(template));
                Listed::template(&listing.server, template).definition(is_shared)
            }));
        }
        rows
    }

    fn others<'a>(&'a self, listing: &'a Listing) -> impl Iterator<Item = &'a Arc<Listing>> {
        self.offered().filter(move |other| other.server != listing.server)
    }

    /// The server whose resource is meant, and what that server calls it. Nobody may serve what
    /// another server claims: then the choice is the caller's.
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

    /// The server whose template this is, and what that server calls it.
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

    /// Reads an address that bears the name of a server.
    fn read_server<'u>(&self, uri: &'u str) -> Result<Option<(ServerName, &'u str)>, ResolveError> {
        let scheme = uri.get(..SCHEME.len()).filter(|head| head.eq_ignore_ascii_case(SCHEME));
        let Some((server, own)) = scheme.and_then(|scheme| uri[scheme.len()..].split_once('/'))
        else {
            return Ok(None);
        };
        let named = self.shelves().map(|(name, _)| name).find(|name| segment(name) == server);
        let server = self.active_server(named.map_or(server, ServerName::as_str))?;
        Ok(Some((server, own)))
    }
}

impl<'a> Listed<'a> {
    fn resource(server: &'a ServerName, resource: &'a Resource) -> Listed<'a> {
        Listed { server, address: &resource.uri, key: "uri", raw: &resource.raw }
    }

    fn template(server: &'a ServerName, template: &'a ResourceTemplate) -> Listed<'a> {
        let address = &template.uri_template;
        Listed { server, address, key: "uriTemplate", raw: &template.raw }
    }
}

#[cfg(test)]
mod tests;
