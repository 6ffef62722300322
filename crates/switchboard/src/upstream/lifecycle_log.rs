//! Logs the lifecycle of a server at level info, and its failures at level warn.

use std::time::Duration;

use switchboard_core::catalog::RawListing;
use switchboard_core::name::ServerName;
use switchboard_core::render::words::clean_line;
use switchboard_wire::era::ServerHello;

use super::DialError;
use super::recipe::Recipe;
use crate::explain;

/// The maximum length, in characters, of a server's name or version in a log line.
const NAME: usize = 100;
const LINE: usize = 500;

pub(super) fn connecting(server: &ServerName, recipe: &Recipe) {
    let endpoint = || clean_line(&recipe.transport.shown(), LINE).into_owned();
    tracing::info!(%server, endpoint = endpoint(), "connecting");
}

pub(super) fn connected(
    server: &ServerName,
    hello: &ServerHello,
    listing: &RawListing,
    took: Option<Duration>,
) {
    tracing::info!(
        %server,
        took = ?took.unwrap_or_default(),
        name = &*clean_line(&hello.server_name, NAME),
        version = &*clean_line(&hello.server_version, NAME),
        revision = hello.revision(),
        tools = listing.tools.len(),
        resources = listing.resources.len(),
        prompts = listing.prompts.len(),
        "connected"
    );
}

pub(super) fn listed(server: &ServerName, listing: &RawListing) {
    tracing::info!(
        %server,
        tools = listing.tools.len(),
        resources = listing.resources.len(),
        prompts = listing.prompts.len(),
        "listed again"
    );
}

pub(super) fn failed(server: &ServerName, error: &DialError) {
    tracing::warn!(%server, error = &*clean_line(&explain::chain(error), LINE), "server failed");
}
