//! Names and addresses that lead to nothing, or to several servers.

use std::collections::BTreeSet;

use switchboard_core::catalog::resolve::nearest;
use switchboard_core::catalog::{Catalog, ResolveError};
use switchboard_core::failure::{Code, Failure, Hint, Subject};
use switchboard_core::name::ServerName;

use super::{Cause, resolve, shown};

pub(crate) fn unknown_resource(uri: &str, catalog: &Catalog) -> Failure {
    let failure =
        Failure::new(Code::UnknownResource, Subject::Request, Cause::UnknownResource(shown(uri)));
    let known = catalog.offered().flat_map(|listing| &listing.resources);
    close_to(uri, known.map(|resource| resource.uri.clone()), failure)
}

pub(crate) fn unknown_prompt(name: &str, catalog: &Catalog) -> Failure {
    let failure =
        Failure::new(Code::UnknownPrompt, Subject::Request, Cause::UnknownPrompt(shown(name)));
    let own = catalog.prompts().filter(|item| catalog.permits(&item.prompt.name, item.server));
    let own = own.map(|item| item.prompt.name.clone());
    let shown = catalog.prompts().map(|item| item.shown.to_string());
    // Often one name.
    let names: BTreeSet<String> = own.chain(shown).collect();
    close_to(name, names.into_iter(), failure)
}

/// With the nearest of the names that there are.
fn close_to(name: &str, known: impl Iterator<Item = String>, failure: Failure) -> Failure {
    match nearest(name, known) {
        close if close.is_empty() => failure,
        close => failure.hint(Hint::DidYouMean(close)),
    }
}

pub(crate) fn unknown_tool(server: &ServerName, name: &str) -> Failure {
    let subject = Subject::Server(server.clone());
    Failure::new(Code::UnknownTool, subject, Cause::NoSuchTool(shown(name)))
}

/// Why a name means no prompt.
pub(crate) fn prompt(error: ResolveError) -> Failure {
    ambiguous(error, Cause::AmbiguousPrompt)
}

/// Why a URI means no resource.
pub(crate) fn resource(error: ResolveError) -> Failure {
    ambiguous(error, Cause::AmbiguousResource)
}

fn ambiguous(error: ResolveError, cause: fn(String) -> Cause) -> Failure {
    match error {
        ResolveError::Ambiguous { name, choices } => {
            Failure::new(Code::AmbiguousTool, Subject::Request, cause(name))
                .hint(Hint::Choose(choices))
        }
        other => resolve(other),
    }
}
