//! Change feed for the status of the servers.

use std::sync::Arc;

use switchboard_core::catalog::Catalog;
use tokio::sync::watch;

use super::{Gateway, Roster};

/// A feed of changes of the status: one channel for each source of the status.
pub struct Changes {
    catalog: watch::Receiver<Arc<Catalog>>,
    roster: watch::Receiver<Arc<Roster>>,
    pulse: watch::Receiver<()>,
}

impl Gateway {
    /// A feed of all changes of the servers' status from now on.
    pub fn changes(&self) -> Changes {
        Changes {
            catalog: self.watch(),
            roster: self.shared.roster.subscribe(),
            pulse: self.shared.surroundings.pulse.subscribe(),
        }
    }
}

impl Changes {
    /// Completes after one or more changes since this method was last called; `false` once no more
    /// changes can follow.
    pub async fn next(&mut self) -> bool {
        tokio::select! {
            changed = self.catalog.changed() => changed.is_ok(),
            changed = self.roster.changed() => changed.is_ok(),
            changed = self.pulse.changed() => changed.is_ok(),
        }
    }
}
