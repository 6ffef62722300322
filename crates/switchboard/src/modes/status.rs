//! The status of all servers, and the `instructions` with their digest. Both use only snapshots,
//! and connect no server.

use switchboard_core::catalog::known_failure::{FAILURE_IS_NEWS, FailureKind, KnownFailure};
use switchboard_core::catalog::{Catalog, Listing, Shelf, Standing};
use switchboard_core::config::layers::PendingCause;
use switchboard_core::host_profile::HostProfile;
use switchboard_core::introduction::{self, DigestServer};
use switchboard_core::name::ServerName;
use switchboard_core::render::words;
use switchboard_core::reply::{Overview, PastFailure, ServerLine, ServerStatus, TrustLevel};

use crate::directory;
use crate::explain::chain;
use crate::gateway::FileNotices;
use crate::session::Session;
use crate::upstream::{Status, Upstream, UpstreamState};

impl Session {
    /// The status of all servers.
    pub fn overview(&self) -> Overview {
        let catalog = self.catalog();
        let servers: Vec<ServerLine> =
            catalog.shelves().map(|(name, _)| server_line(self, &catalog, name)).collect();
        let is_connected = |server: &&ServerLine| server.status == ServerStatus::Connected;
        let connected = servers.iter().filter(is_connected).count();
        let FileNotices { stale, mistakes } = self.gateway.file_notices();
        Overview { servers, tools: catalog.tool_count(), connected, stale, mistakes }
    }

    /// The `instructions` of this gateway as a server, with a digest unless the settings forbid it.
    pub fn introduction(&self, host: &HostProfile) -> String {
        if !self.gateway.settings().digest {
            return introduction::instructions(host, None);
        }
        let catalog = self.catalog();
        let usable = catalog.shelves().filter(|(_, shelf)| shelf.is_active());
        let facts: Vec<_> = usable
            .map(|(name, _)| (name, self.gateway.facts(name).description, catalog.listing(name)))
            .collect();
        let servers: Vec<DigestServer<'_>> = facts
            .iter()
            .map(|(name, description, listing)| DigestServer {
                name: name.as_str(),
                description: description.as_deref(),
                tools: listing
                    .map(|_| catalog.tools_of(name).map(|tool| tool.entry.name.as_str()).collect()),
            })
            .collect();
        introduction::instructions(host, Some(&servers))
    }
}

pub(crate) fn server_line(session: &Session, catalog: &Catalog, name: &ServerName) -> ServerLine {
    let listing = catalog.listing(name);
    let upstream = session.find_upstream(name);
    let underway = upstream.as_ref().and_then(Upstream::underway);
    let upstream = upstream.map(|upstream| upstream.status());
    let shelf = catalog.shelf(name);
    let standing = shelf.map_or(Standing::Active, |shelf| shelf.standing);
    let (known, unready) = match shelf.and_then(Shelf::failure) {
        Some(known) if known.kind == FailureKind::NotReady => (None, unready(known)),
        known => (known.and_then(past_failure), None),
    };
    let status = match status_of(standing, upstream.as_ref(), listing.is_some()) {
        // Another process recently failed to connect the server.
        ServerStatus::Cached | ServerStatus::NotConnected if known.is_some() => {
            ServerStatus::Failed
        }
        status => status,
    };
    let failure = upstream
        .and_then(|status| status.last_failure)
        .map(|failure| PastFailure { ago: failure.at.elapsed(), cause: chain(&*failure.cause) })
        .or(known);
    let facts = session.gateway.facts(name);
    ServerLine {
        name: name.clone(),
        status,
        tools: listing
            .filter(|_| standing == Standing::Active)
            .map(|_| catalog.tools_of(name).count()),
        denied: catalog.denied_count(Some(name)),
        resources: listing.map_or(0, |listing| listing.resources.len()),
        lifecycle: facts.lifecycle,
        trust: if status == ServerStatus::Pending { TrustLevel::Pending } else { facts.trust },
        failure: failure.filter(|_| matches!(status, ServerStatus::Failed | ServerStatus::Pending)),
        underway: underway.filter(|_| status == ServerStatus::Connecting),
        description: facts.description,
        note: match (facts.overridden, standing) {
            (true, _) => Some("the project's own definition is pending".to_owned()),
            (false, Standing::Pending(PendingCause::Changed)) => {
                Some("it has changed since it was approved".to_owned())
            }
            (false, _) => match listing {
                Some(listing) => note(listing),
                None => unready.filter(|_| status == ServerStatus::NotConnected),
            },
        },
        drift: shelf.map(Shelf::drift).unwrap_or_default(),
    }
}

fn past_failure(failure: &KnownFailure) -> Option<PastFailure> {
    let ago = failure.ago(directory::now())?;
    Some(PastFailure { ago, cause: failure.reason.to_string() })
}

/// What the server was doing when a command stopped waiting for it.
fn unready(known: &KnownFailure) -> Option<String> {
    let ago = known.ago(directory::now())?;
    Some(format!("it was still {} {}", known.reason, words::ago(ago)))
}

fn note(listing: &Listing) -> Option<String> {
    match listing.skipped.len() {
        0 => listing.without_tools.then(|| "it offers no tools".to_owned()),
        count => Some(format!("{count} left out")),
    }
}

fn status_of(standing: Standing, upstream: Option<&Status>, listed: bool) -> ServerStatus {
    let upstream = upstream.map(|status| (status.state, status.last_failure.as_ref()));
    match (standing, upstream) {
        (Standing::Disabled, _) => ServerStatus::Disabled,
        (Standing::Pending(_), _) => ServerStatus::Pending,
        (Standing::Active, Some((UpstreamState::Connected, _))) => ServerStatus::Connected,
        (Standing::Active, Some((UpstreamState::AuthRequired, _))) => ServerStatus::NeedsAuth,
        (Standing::Active, Some((UpstreamState::Connecting { .. }, _))) => ServerStatus::Connecting,
        (Standing::Active, Some((UpstreamState::Down, Some(failure))))
            if failure.cause.needs_trust() =>
        {
            ServerStatus::Pending
        }
        (Standing::Active, Some((UpstreamState::Down, Some(failure))))
            if failure.cause.needs_sign_in() =>
        {
            ServerStatus::NeedsAuth
        }
        (Standing::Active, Some((UpstreamState::Down, Some(failure))))
            if failure.at.elapsed() < FAILURE_IS_NEWS =>
        {
            ServerStatus::Failed
        }
        (Standing::Active, Some((UpstreamState::Down, _)) | None) if listed => ServerStatus::Cached,
        (Standing::Active, Some((UpstreamState::Down, _)) | None) => ServerStatus::NotConnected,
    }
}
