//! The requests for resources and prompts.

use std::sync::Arc;

use switchboard_core::catalog::prompts::PromptItem;
use switchboard_core::catalog::resolve::Checked;
use switchboard_core::catalog::{Catalog, Prompt, Resolved};
use switchboard_core::exact::Args;
use switchboard_core::failure::Failure;
use switchboard_core::hidden::strip;
use switchboard_core::name::ServerName;
use switchboard_core::nesting::plain;
use switchboard_core::reply::{Output, OutputOrigin, Reply};
use switchboard_wire::Raw;

use super::listed;
use crate::call;
use crate::explain;
use crate::relay::Reference;
use crate::session::Session;
use crate::upstream::lease::Caller;

pub(crate) fn resources(session: &Session, server: Option<&str>) -> Result<Reply, Failure> {
    let catalog = session.catalog();
    let mut rows = Vec::new();
    for server in in_scope(&catalog, server)? {
        let resources = catalog.listing(&server).into_iter().flat_map(|listing| &listing.resources);
        rows.extend(resources.map(|row| (server.clone(), row.clone())));
    }
    Ok(Reply::Resources(rows))
}

pub(crate) fn prompts(session: &Session, server: Option<&str>) -> Result<Reply, Failure> {
    let catalog = session.catalog();
    let mut rows = Vec::new();
    for server in in_scope(&catalog, server)? {
        rows.extend(catalog.prompts_of(&server).map(|item| {
            let name = strip(&item.prompt.name).into_owned();
            let prompt = Prompt { name, description: item.description(), ..item.prompt.clone() };
            (server.clone(), prompt)
        }));
    }
    Ok(Reply::Prompts(rows))
}

fn in_scope(catalog: &Catalog, server: Option<&str>) -> Result<Vec<ServerName>, Failure> {
    match server {
        Some(server) => Ok(vec![catalog.active_server(server).map_err(explain::resolve)?]),
        None => Ok(catalog
            .shelves()
            .filter(|(_, shelf)| shelf.is_active())
            .map(|(name, _)| name.clone())
            .collect()),
    }
}

/// Reads a resource from the named server, or else from the server that lists it.
pub(crate) async fn read_resource(
    session: &Session,
    uri: &str,
    server: Option<&str>,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let catalog = session.catalog();
    // A server may serve unlisted resources, so a named server gets the request in any case.
    let within = server.map(|server| catalog.active_server(server)).transpose();
    let within = within.map_err(explain::resolve)?;
    let found = catalog.find_resource(uri, within.as_ref()).map_err(explain::resource)?;
    let (owner, uri) = found.ok_or_else(|| explain::unknown_resource(uri, &catalog))?;
    let (owner, uri) = (&owner, uri.as_str());
    // The listing is needed to know which resources the configuration excludes.
    let catalog = listed(session, Arc::clone(&catalog), owner).await?;
    let target = target(&catalog, owner, &Reference::Resource(uri))?;
    let checked = Checked { target, args: Args::default() };
    let (target, raw) = call::run(session, &catalog, checked, caller).await?;
    let output = *call::finish(session, target, raw, None, caller).await;
    let output = Output { origin: OutputOrigin::Resource, name: uri.to_owned(), ..output };
    Ok(Reply::Output(Box::new(output)))
}

impl Session {
    /// Resolves a resource or prompt to the server that owns it, and the server's name for it.
    pub fn owner(&self, of: &Reference<'_>) -> Result<(ServerName, String), Failure> {
        let catalog = self.catalog();
        match of {
            Reference::Resource(uri) => {
                let found = catalog.find_template(uri).map_err(explain::resource)?;
                let (server, own) =
                    found.ok_or_else(|| explain::unknown_resource(uri, &catalog))?;
                refuse_denied(self, &server, &Reference::Resource(&own))?;
                Ok((server, own))
            }
            Reference::Prompt(name) => {
                let PromptItem { server, prompt, .. } = find_prompt(&catalog, name, None)?;
                refuse_denied(self, server, &Reference::Prompt(&prompt.name))?;
                Ok((server.clone(), prompt.name.clone()))
            }
        }
    }
}

/// Refuses a request about a resource or prompt that is denied.
pub(crate) fn refuse_denied(
    session: &Session,
    server: &ServerName,
    of: &Reference<'_>,
) -> Result<(), Failure> {
    call::refuse_denied(session, target(&session.catalog(), server, of)?, &session.caller())
}

/// The resource or prompt of a server with this name.
pub(crate) fn target(
    catalog: &Catalog,
    server: &ServerName,
    of: &Reference<'_>,
) -> Result<Resolved, Failure> {
    match of {
        Reference::Resource(uri) => {
            catalog.resource(server, uri).ok_or_else(|| explain::unknown_resource(uri, catalog))
        }
        Reference::Prompt(name) => {
            catalog.prompt(server, name).ok_or_else(|| explain::unknown_prompt(name, catalog))
        }
    }
}

fn find_prompt<'a>(
    catalog: &'a Catalog,
    name: &str,
    within: Option<&ServerName>,
) -> Result<PromptItem<'a>, Failure> {
    let found = catalog.find_prompt(name, within).map_err(explain::prompt)?;
    found.ok_or_else(|| explain::unknown_prompt(name, catalog))
}

pub(crate) async fn prompt(
    session: &Session,
    name: &str,
    server: Option<&str>,
    args: Args,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let catalog = session.catalog();
    let within = server.map(|server| catalog.active_server(server)).transpose();
    let within = within.map_err(explain::resolve)?;
    let PromptItem { server, prompt, .. } = find_prompt(&catalog, name, within.as_ref())?;
    let target = target(&catalog, server, &Reference::Prompt(&prompt.name))?;
    let checked = Checked { target, args };
    let (target, raw) = call::run(session, &catalog, checked, caller).await?;
    // A prompt goes to a model as instructions, not as data, so hidden characters are removed.
    let raw = Raw::from_json(plain(raw.as_str()).into_owned());
    let output = *call::finish(session, target, raw, None, caller).await;
    let output = Output { origin: OutputOrigin::Prompt, name: name.to_owned(), ..output };
    Ok(Reply::Output(Box::new(output)))
}
