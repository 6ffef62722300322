//! Finds the upstream that a session uses for a server, and starts upstreams.
//!
//! `find_upstream` only reads. `open_upstream` starts a missing upstream.

use std::sync::Arc;

use switchboard_core::failure::Failure;
use switchboard_core::lifecycle::Policy;
use switchboard_core::name::ServerName;
use tokio_util::sync::CancellationToken;

use super::Gateway;
use super::roster::{Member, session_key, shared_key};
use crate::auth::SignIn;
use crate::explain;
use crate::session::Connections;
use crate::upstream::{
    Lease, LeaseError, Listener, Recipe, SessionId, Surroundings, Transport, Upstream,
};

impl Gateway {
    /// The upstream that the session currently uses for the server. `None` if the session needs its
    /// own, which has not been started, or if the server may not be used.
    pub(crate) fn find_upstream(
        &self,
        server: &ServerName,
        session: SessionId,
        connections: Connections,
    ) -> Option<Upstream> {
        if let Some(guest) = self.guest(server, session) {
            return Some(guest.upstream);
        }
        let key = match self.needs_own(server, connections) {
            true => session_key(server, session),
            false => shared_key(server),
        };
        self.roster().members.get(&key).map(|member| member.upstream.clone())
    }

    /// The upstream that the session uses for the server. If the server sends requests to its
    /// client, the session gets an upstream of its own.
    pub(crate) fn open_upstream(
        &self,
        server: &ServerName,
        listener: &Listener,
        connections: Connections,
    ) -> Result<Upstream, Failure> {
        if let Some(guest) = self.guest(server, listener.session) {
            return Ok(guest.upstream);
        }
        if self.needs_own(server, connections) {
            return self.open_own_upstream(server, listener);
        }
        self.roster().shared_member(server).map(|member| member.upstream.clone())
    }

    fn needs_own(&self, server: &ServerName, connections: Connections) -> bool {
        connections == Connections::Own || self.shared.surroundings.directory.asks_client(server)
    }

    /// An upstream that only this session uses.
    pub(crate) fn open_own_upstream(
        &self,
        server: &ServerName,
        listener: &Listener,
    ) -> Result<Upstream, Failure> {
        if let Some(guest) = self.guest(server, listener.session) {
            return Ok(guest.upstream);
        }
        let key = session_key(server, listener.session);
        let roster = self.roster();
        if let Some(own) = roster.members.get(&key) {
            return Ok(own.upstream.clone());
        }
        roster.shared_member(server)?;
        let mut opened = Err(explain::unknown_server(server));
        self.shared.roster.send_modify(|roster| {
            let Some(shared) = roster.members.get(&shared_key(server)).cloned() else { return };
            if self.shared.surroundings.directory.asks_client(server) {
                // The shared connection has supplied the listing and is no longer needed.
                shared.upstream.close_if_idle();
            }
            let members = &mut Arc::make_mut(roster).members;
            let member = members.entry(key).or_insert_with(|| {
                let policy = shared.policy.of_a_session();
                let owner = Some(listener.clone());
                self.start_member(server.clone(), shared.recipe, policy, None, owner)
            });
            opened = Ok(member.upstream.clone());
        });
        opened
    }

    /// A lease on the shared connection, for work that belongs to no session.
    pub(super) async fn lease_shared(&self, server: &ServerName) -> Result<Lease, Failure> {
        let upstream = self.roster().shared_member(server)?.upstream.clone();
        upstream.lease_in_time().await.map_err(|error| explain::lease(error, server))
    }

    /// The sign-in to a server at a URL.
    pub async fn sign_in(&self, server: &ServerName) -> Result<SignIn, Failure> {
        let recipe = Arc::clone(&self.roster().shared_member(server)?.recipe);
        let Transport::Remote(remote) = &recipe.transport else {
            return Err(explain::no_sign_in(server));
        };
        let Surroundings { spawner, accounts, .. } = &self.shared.surroundings;
        let sign_in = remote.sign_in(spawner, accounts).await;
        let sign_in =
            sign_in.map_err(|error| explain::lease(LeaseError::Dial(Arc::new(error)), server))?;
        sign_in.ok_or_else(|| explain::no_sign_in(server))
    }

    pub(super) fn start_member(
        &self,
        server: ServerName,
        recipe: Arc<Recipe>,
        policy: Policy,
        predecessor: Option<&Upstream>,
        owner: Option<Listener>,
    ) -> Member {
        let surroundings = self.surroundings(predecessor.map(Upstream::retire), owner);
        let upstream = Upstream::start(server, Arc::clone(&recipe), policy, surroundings);
        Member { upstream, recipe, policy }
    }

    /// The shared services for an upstream, which dials only after `predecessor` has ended.
    pub(super) fn surroundings(
        &self,
        predecessor: Option<CancellationToken>,
        owner: Option<Listener>,
    ) -> Surroundings {
        Surroundings { after: predecessor, owner, ..self.shared.surroundings.clone() }
    }
}
