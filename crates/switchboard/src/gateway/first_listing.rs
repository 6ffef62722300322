//! Connects servers once for their lists: those without a listing, and those with an old one.

use std::sync::{MutexGuard, PoisonError};

use switchboard_core::failure::Failure;
use switchboard_core::name::ServerName;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Gateway;
use crate::blueprint::FirstUse;

impl Gateway {
    /// Connects every usable server that was never listed, side by side, and lists it. `report`
    /// hears each server that is done, and how many are left.
    pub async fn list_missing(&self, mut report: impl FnMut(&ServerName, Option<&Failure>, usize)) {
        let unlisted = self.catalog().not_listed_yet();
        let mut listings = self.connect_each(self.usable_unasked(unlisted));
        while let Some(done) = listings.join_next().await {
            if let Ok((server, outcome)) = done {
                report(&server, outcome.as_ref().err(), listings.len());
            }
        }
    }

    /// Does the same beside everything else, unless the settings forbid it, then refreshes listings
    /// that are stale and old.
    pub fn list_missing_in_background(&self) {
        if self.roster().settings.first_listing {
            *self.first_listing() = Some(Instant::now());
            let gateway = self.clone();
            self.shared.tasks.spawn(async move {
                gateway.list_missing(|_, _, _| {}).await;
                let old = gateway.catalog().to_refresh();
                gateway.connect_each(gateway.usable_unasked(old)).join_all().await;
            });
        }
    }

    /// Those of `servers` that may be connected though the user did not name them.
    fn usable_unasked(&self, servers: Vec<ServerName>) -> impl Iterator<Item = ServerName> {
        let by_name = |server: &ServerName| self.facts(server).first_use == FirstUse::ByName;
        servers.into_iter().filter(move |server| !by_name(server))
    }

    /// How it goes with the servers that a list of servers turns on; those that may not be used
    /// come with the reason.
    pub async fn turned_on(&self) -> Vec<(ServerName, Result<(), Failure>)> {
        let roster = self.roster();
        let on = roster.facts.iter().filter(|(_, facts)| facts.first_use == FirstUse::Start);
        let connecting = self.connect_each(on.map(|(server, _)| server.clone()));
        let mut outcomes = connecting.join_all().await;
        outcomes.sort_by(|(one, _), (other, _)| one.cmp(other));
        outcomes
    }

    fn connect_each(
        &self,
        servers: impl Iterator<Item = ServerName>,
    ) -> JoinSet<(ServerName, Result<(), Failure>)> {
        let connect = |server: ServerName| {
            let gateway = self.clone();
            async move {
                let connected = gateway.lease_shared(&server).await.map(|_released_at_once| ());
                (server, connected)
            }
        };
        servers.map(connect).collect()
    }

    /// When the first listing of this server was begun in the background.
    pub(crate) fn first_listing_began(&self, server: &ServerName) -> Option<Instant> {
        let began = *self.first_listing();
        began.filter(|_| self.facts(server).first_use != FirstUse::ByName)
    }

    fn first_listing(&self) -> MutexGuard<'_, Option<Instant>> {
        self.shared.first_listing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
