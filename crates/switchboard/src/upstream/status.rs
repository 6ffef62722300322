//! The status of an upstream: written by its actor, read by all.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::lifecycle::Phase;
use tokio::sync::watch;
use tokio::time::Instant;

use super::DialError;

/// The progress of a dial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DialStage {
    Starting,
    /// A launcher is installing the server.
    Installing {
        since: Instant,
    },
}

/// The status of an upstream, which its actor publishes.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub(crate) state: UpstreamState,
    pub(crate) last_failure: Option<LastFailure>,
}

impl Status {
    /// How long the current dial has taken so far.
    pub(super) fn connecting_for(&self) -> Option<Duration> {
        match self.state {
            UpstreamState::Connecting { since } => Some(since.elapsed()),
            UpstreamState::Down | UpstreamState::Connected | UpstreamState::AuthRequired => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamState {
    Down,
    Connecting {
        since: Instant,
    },
    Connected,
    /// The server is connected, but refuses all requests until the user signs in.
    AuthRequired,
}

#[derive(Clone, Debug)]
pub(crate) struct LastFailure {
    pub(crate) at: Instant,
    pub(crate) cause: Arc<DialError>,
}

/// Publishes the status that follows from the phase. Returns whether it changed.
pub(super) fn update(
    statuses: &watch::Sender<Status>,
    phase: Phase,
    last_failure: Option<&LastFailure>,
) -> bool {
    let failed_at = last_failure.map(|failure| failure.at);
    statuses.send_if_modified(|status| {
        let state = match (phase, status.state) {
            (Phase::Up, _) => UpstreamState::Connected,
            (Phase::Dialling, connecting @ UpstreamState::Connecting { .. }) => connecting,
            (Phase::Dialling, _) => UpstreamState::Connecting { since: Instant::now() },
            (Phase::Down | Phase::Ended, _) => UpstreamState::Down,
        };
        let changed = status.state != state
            || status.last_failure.as_ref().map(|failure| failure.at) != failed_at;
        *status = Status { state, last_failure: last_failure.cloned() };
        changed
    })
}
