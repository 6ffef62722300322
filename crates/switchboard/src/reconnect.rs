//! Connecting at a person's wish: one server, or all that may be used.

use futures_util::future::join_all;
use switchboard_core::failure::Failure;
use switchboard_core::name::ServerName;

use crate::blueprint::FirstUse;
use crate::connections::Existing;
use crate::session::Session;

impl Session {
    /// Connects a server whatever failed before, lists it afresh, and says how many tools it has.
    pub async fn reconnect(&self, server: &str, existing: Existing) -> Result<usize, Failure> {
        let server = self.connection(server)?;
        if existing == Existing::Close {
            self.close_connection(&server).await;
        }
        let _listed = self.refreshed(&server).await?;
        Ok(self.catalog().tools_of(&server).count())
    }

    /// The same for all servers but those that are connected by name only, side by side.
    pub async fn reconnect_all(
        &self,
        existing: Existing,
    ) -> Vec<(ServerName, Result<usize, Failure>)> {
        let catalog = self.catalog();
        let wanted = catalog.shelves().filter(|(server, shelf)| {
            shelf.is_active() && self.gateway.facts(server).first_use != FirstUse::ByName
        });
        let connecting = wanted.map(|(server, _)| async move {
            (server.clone(), self.reconnect(server.as_str(), existing).await)
        });
        join_all(connecting).await
    }
}
