//! Connects servers without a call: unlisted servers, servers with an old listing, or all servers
//! for a check.

use std::time::Duration;

use switchboard_core::catalog::Shelf;
use switchboard_core::catalog::known_failure::FailureKind;
use switchboard_core::failure::Failure;
use switchboard_core::name::ServerName;
use switchboard_core::reply::{ConnectStage, Underway};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::Gateway;
use super::roster::shared_key;
use crate::blueprint::FirstUse;
use crate::directory;
use crate::explain;
use crate::mutex::lock;

/// How long a command waits for unlisted servers.
const COMMAND_WAIT: Duration = Duration::from_secs(3);

/// The outcome of connecting one server for a check.
#[derive(Debug)]
pub struct CheckedServer {
    /// The server that was connected.
    pub server: ServerName,
    /// How long it took to connect the server.
    pub took: Duration,
    /// The number of the server's tools, or why connecting failed.
    pub outcome: Result<usize, Failure>,
}

impl Gateway {
    /// Connects all enabled and trusted servers concurrently, except those that are used only by
    /// name.
    pub async fn check(&self, mut report: impl FnMut(&CheckedServer)) -> Vec<CheckedServer> {
        let catalog = self.catalog();
        let active = catalog.shelves().filter(|(_, shelf)| shelf.is_active());
        let active = active.map(|(server, _)| server.clone()).collect();
        let mut checks = self.connect_each(self.usable_unasked(active));
        let mut checked = Vec::new();
        while let Some(done) = checks.join_next().await {
            if let Ok(done) = done {
                report(&done);
                checked.push(done);
            }
        }
        checked
    }

    /// Connects all usable, unlisted servers concurrently, and lists them. `report` receives each
    /// finished server and the number of those left.
    pub async fn list_missing(&self, mut report: impl FnMut(&ServerName, Option<&Failure>, usize)) {
        let unlisted = self.usable_unasked(self.catalog().not_listed_yet());
        let mut listings = self.connect_each(unlisted);
        while let Some(done) = listings.join_next().await {
            if let Ok(CheckedServer { server, outcome, .. }) = done {
                report(&server, outcome.as_ref().err(), listings.len());
            }
        }
    }

    /// Like [`Gateway::list_missing`], for a command, which waits for three seconds at most.
    /// Unfinished servers are reported as starting. Servers that failed or were not ready within the
    /// last two minutes are reported as such, without a retry.
    pub async fn list_missing_briefly(
        &self,
        mut report: impl FnMut(&ServerName, Option<&Failure>, usize),
    ) {
        let (catalog, now) = (self.catalog(), directory::now());
        let mut waiting = Vec::new();
        for server in self.usable_unasked(catalog.not_listed_yet()) {
            let known = catalog.shelf(&server).and_then(Shelf::failure);
            match known.filter(|failure| failure.retry_in(now).is_some()) {
                Some(failure) => {
                    let failure = explain::failed_before(&server, failure, now);
                    report(&server, Some(&failure), 0);
                }
                None => waiting.push(server),
            }
        }
        let mut listings = self.connect_each(waiting.iter().cloned());
        let until = Instant::now() + COMMAND_WAIT;
        while let Ok(Some(done)) = timeout_at(until, listings.join_next()).await {
            if let Ok(CheckedServer { server, outcome, .. }) = done {
                waiting.retain(|other| *other != server);
                report(&server, outcome.as_ref().err(), listings.len());
            }
        }
        for server in waiting {
            let doing = self.remember_unready(&server);
            report(&server, Some(&explain::not_ready(&server, doing, COMMAND_WAIT)), 0);
        }
    }

    /// Records that the server was not ready, so that the next commands do not wait for it. Returns
    /// what the server was doing, such as `starting`.
    fn remember_unready(&self, server: &ServerName) -> &'static str {
        let roster = self.roster();
        let member = roster.members.get(&shared_key(server));
        let doing = match member.and_then(|member| member.upstream.underway()) {
            Some(Underway { stage: ConnectStage::Installing, .. }) => "being installed",
            Some(Underway { stage: ConnectStage::Starting, .. }) | None => "starting",
        };
        if let Some(member) = member {
            let (directory, plan) = (&self.shared.surroundings.directory, &member.recipe.plan);
            directory.remember(server, plan, FailureKind::NotReady, doing);
        }
        doing
    }

    /// Like [`Gateway::list_missing`], but in the background and only if the settings permit it.
    /// Afterwards, refreshes stale listings.
    pub fn list_missing_in_background(&self) {
        if self.roster().settings.first_listing {
            *lock(&self.shared.first_listing) = Some(Instant::now());
            let gateway = self.clone();
            self.shared.surroundings.tasks.spawn(async move {
                // Waits until the client's capabilities are known, because the cache depends on
                // them. The wait ends with the gateway: a client may never declare its
                // capabilities.
                let closing = &gateway.shared.surroundings.closing;
                if closing.run_until_cancelled(gateway.declared()).await.is_none() {
                    return;
                }
                gateway.list_missing(|_, _, _| {}).await;
                let old = gateway.catalog().to_refresh();
                gateway.connect_each(gateway.usable_unasked(old)).join_all().await;
            });
        }
    }

    /// Those of `servers` that may be connected although the user did not name them.
    pub(super) fn usable_unasked(
        &self,
        servers: Vec<ServerName>,
    ) -> impl Iterator<Item = ServerName> {
        let by_name = |server: &ServerName| self.facts(server).first_use == FirstUse::ByName;
        servers.into_iter().filter(move |server| !by_name(server))
    }

    /// Connects the servers that a list of servers enabled; returns the outcome of each.
    pub async fn turned_on(&self) -> Vec<(ServerName, Result<(), Failure>)> {
        let roster = self.roster();
        let on = roster.facts.iter().filter(|(_, facts)| facts.first_use == FirstUse::Start);
        let connecting = self.connect_each(on.map(|(server, _)| server.clone()));
        let mut checked = connecting.join_all().await;
        checked.sort_by(|one, other| one.server.cmp(&other.server));
        checked.into_iter().map(|checked| (checked.server, checked.outcome.map(drop))).collect()
    }

    fn connect_each(&self, servers: impl Iterator<Item = ServerName>) -> JoinSet<CheckedServer> {
        let connect = |server: ServerName| {
            let gateway = self.clone();
            async move {
                let began = Instant::now();
                let connected = gateway.lease_shared(&server).await;
                let took = began.elapsed();
                let tools = || gateway.catalog().tools_of(&server).count();
                let outcome = connected.map(|_released_at_once| tools());
                CheckedServer { server, took, outcome }
            }
        };
        servers.map(connect).collect()
    }

    /// When the background listing of this server began; `None` if there is none.
    pub(crate) fn first_listing_began(&self, server: &ServerName) -> Option<Instant> {
        let began = *lock(&self.shared.first_listing);
        began.filter(|_| self.facts(server).first_use != FirstUse::ByName)
    }
}
