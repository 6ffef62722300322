//! Connects every server that may be used, and tells how each went as soon as it is known.

use std::time::Duration;

use switchboard_core::failure::Failure;
use switchboard_core::name::ServerName;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Gateway;

/// How one server did.
#[derive(Debug)]
pub struct CheckedServer {
    /// The server that was connected.
    pub server: ServerName,
    /// How long it took.
    pub took: Duration,
    /// How many tools it has.
    pub outcome: Result<usize, Failure>,
}

impl Gateway {
    /// Connects every server that is enabled, trusted and need not be named first, side by side.
    pub async fn check(&self, mut report: impl FnMut(&CheckedServer)) -> Vec<CheckedServer> {
        let catalog = self.catalog();
        let active = catalog.shelves().filter(|(_, shelf)| shelf.is_active());
        let active = active.map(|(server, _)| server.clone()).collect();
        let mut checks = JoinSet::new();
        for server in self.usable_unasked(active) {
            let gateway = self.clone();
            checks.spawn(async move {
                let began = Instant::now();
                let connected = gateway.lease_shared(&server).await;
                let took = began.elapsed();
                let outcome =
                    connected.map(|_released_at_once| gateway.catalog().tools_of(&server).count());
                CheckedServer { server, took, outcome }
            });
        }
        let mut checked = Vec::new();
        while let Some(done) = checks.join_next().await {
            if let Ok(done) = done {
                report(&done);
                checked.push(done);
            }
        }
        checked
    }
}
