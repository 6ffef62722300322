//! Change feed for the status of the servers.

use std::sync::Arc;

use switchboard_core::catalog::Catalog;
use tokio::sync::watch;

use super::{Gateway, Roster};

/// What a status is made of, each with a sign of its own.
pub struct Changes {
    catalog: watch::Receiver<Arc<Catalog>>,
    roster: watch::Receiver<Arc<Roster>>,
    pulse: watch::Receiver<()>,
}

impl Gateway {
    /// Changes from now on.
    pub fn changes(&self) -> Changes {
        Changes {
            catalog: self.watch(),
            roster: self.shared.roster.subscribe(),
            pulse: self.shared.surroundings.pulse.subscribe(),
        }
    }
}

impl Changes {
    /// Completes when something changed since the last time, however often; `false` once nothing
    /// can change any more.
    pub async fn next(&mut self) -> bool {
        tokio::select! {
            changed = self.catalog.changed() => changed.is_ok(),
            changed = self.roster.changed() => changed.is_ok(),
            changed = self.pulse.changed() => changed.is_ok(),
        }
    }
}
