//! Failures for names and URIs that match nothing, or match on several servers.

use std::collections::BTreeSet;

use switchboard_core::catalog::resolve::nearest;
use switchboard_core::catalog::{Catalog, ResolveError};
use switchboard_core::failure::{Code, Failure, Hint};
use switchboard_core::name::ServerName;

use super::{Cause, did_you_mean, of_request, of_server, resolve, with_hints};

pub(crate) fn unknown_resource(uri: &str, catalog: &Catalog) -> Failure {
    let known = catalog.offered().flat_map(|listing| &listing.resources);
    let close = nearest(uri, known.map(|resource| resource.uri.clone()));
    let failure = of_request(Code::UnknownResource, Cause::UnknownResource(shown(uri)));
    with_hints(failure, did_you_mean(&close).or(Some(Hint::ListResources)))
}

pub(crate) fn unknown_prompt(name: &str, catalog: &Catalog) -> Failure {
    let own = catalog.prompts().filter(|item| catalog.permits(&item.prompt.name, item.server));
    let own = own.map(|item| item.prompt.name.clone());
    let with_prefix = catalog.prompts().map(|item| item.shown.to_string());
    // The names are a set, because the two names of a prompt are often equal.
    let names: BTreeSet<String> = own.chain(with_prefix).collect();
    let close = nearest(name, names.into_iter());
    let failure = of_request(Code::UnknownPrompt, Cause::UnknownPrompt(shown(name)));
    with_hints(failure, did_you_mean(&close).or(Some(Hint::ListPrompts)))
}

pub(crate) fn unknown_tool(server: &ServerName, name: &str) -> Failure {
    of_server(Code::UnknownTool, server, Cause::NoSuchTool(shown(name)))
}

/// The failure for a name that resolves to no prompt, or to prompts of several servers.
pub(crate) fn prompt(error: ResolveError) -> Failure {
    ambiguous(error, Cause::AmbiguousPrompt)
}

/// The failure for a URI that resolves to no resource, or to resources of several servers.
pub(crate) fn resource(error: ResolveError) -> Failure {
    ambiguous(error, Cause::AmbiguousResource)
}

fn ambiguous(error: ResolveError, cause: fn(String) -> Cause) -> Failure {
    match error {
        ResolveError::Ambiguous { name, choices } => {
            of_request(Code::AmbiguousTool, cause(name)).hint(Hint::Choose(choices))
        }
        other => resolve(other),
    }
}

fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(200).collect()
}
