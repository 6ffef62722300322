//! The sessions of all clients: unguessable ids, a limited number, and a time limit for idle ones.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hashbrown::HashMap;
use switchboard::Gateway;
use switchboard::capabilities::CapabilitySet;
use switchboard::host::Abilities;
use switchboard::secret::unguessable;
use switchboard_wire::Peer;
use switchboard_wire::era::Revision;
use switchboard_wire::peer::Outlet;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::session::{HttpSession, Streaming};
use super::unsent::Unsent;
use crate::conversation::Conversation;
use crate::lock::lock;
use crate::service::{HostKind, Offer, Service};

/// The maximum number of sessions. A new session replaces the one that has been idle for the
/// longest time.
const MOST: usize = 256;

/// How long a session without requests and open streams is kept.
const FORGOTTEN: Duration = Duration::from_secs(30 * 60);

/// How long sessions may take to end at shutdown.
const END_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct Sessions {
    gateway: Gateway,
    offer: Offer,
    unsent: Unsent,
    by_id: Mutex<HashMap<String, Arc<HttpSession>>>,
    /// The shared conversations of stateless clients, one for each set of capabilities; created on
    /// first use.
    common: Mutex<HashMap<CapabilitySet, Arc<Conversation>>>,
    /// The running stateless requests.
    stateless: Arc<Mutex<StatelessRequests>>,
    running: TaskTracker,
}

#[derive(Default)]
struct StatelessRequests {
    last: u64,
    running: HashMap<u64, Arc<HttpSession>>,
}

/// The error if no session can be opened, because every session is in use.
#[derive(Debug)]
pub(super) struct Full;

impl Sessions {
    pub(super) fn new(gateway: Gateway, offer: Offer, unsent: Unsent) -> Sessions {
        let (by_id, common, stateless, running) = Default::default();
        Sessions { gateway, offer, unsent, by_id, common, stateless, running }
    }

    pub(super) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Opens a session for a client with these capabilities, and returns it with its id.
    pub(super) fn open(
        &self,
        revision: Revision,
        abilities: &Abilities,
    ) -> Result<(String, Arc<HttpSession>), Full> {
        let gateway = self.gateway_for(abilities);
        let mut by_id = lock(&self.by_id);
        if by_id.len() >= MOST {
            let idle = by_id.iter().filter_map(|(id, session)| Some((session.idle_since()?, id)));
            let longest = idle.min().map(|(_, id)| id.clone()).ok_or(Full)?;
            by_id.remove(&longest).into_iter().for_each(|session| session.end());
        }
        let service = |peer| Service::new(&gateway, (&self.offer, HostKind::Any), peer);
        let (session, outlet) = self.session(Streaming::of(revision), service);
        self.running.spawn(Arc::clone(&session).run(outlet));
        let id = unguessable();
        by_id.insert(id.clone(), Arc::clone(&session));
        Ok((id, session))
    }

    fn session(
        &self,
        streaming: Streaming,
        service: impl FnOnce(Peer) -> Service,
    ) -> (Arc<HttpSession>, Outlet) {
        let limit = self.gateway.settings().max_frame_bytes;
        HttpSession::new(limit, (streaming, self.unsent.clone()), service)
    }

    /// Opens a session for a single stateless request.
    pub(super) fn of_one_request(&self, talk: Arc<Conversation>) -> Arc<HttpSession> {
        let service = |peer| Service::of_one_request(talk, peer);
        let (session, outlet) = self.session(Streaming::Once, service);
        let mut stateless = lock(&self.stateless);
        stateless.last += 1;
        let number = stateless.last;
        stateless.running.insert(number, Arc::clone(&session));
        drop(stateless);
        let (running, stateless) = (Arc::clone(&session).run(outlet), Arc::clone(&self.stateless));
        self.running.spawn(async move {
            running.await;
            lock(&stateless).running.remove(&number);
        });
        session
    }

    /// The shared conversation of stateless clients with these capabilities; created on first use.
    pub(super) fn common(&self, abilities: &Abilities) -> Arc<Conversation> {
        let set = CapabilitySet::of(abilities);
        let mut common = lock(&self.common);
        let talk = common.entry(set).or_insert_with(|| {
            let gateway = self.gateway_for(abilities);
            Arc::new(Conversation::with_stateless_clients(&gateway, &self.offer))
        });
        Arc::clone(talk)
    }

    /// The gateway for a client. Listings depend on its capabilities, except that a mirrored server
    /// has a connection for each client anyway.
    fn gateway_for(&self, abilities: &Abilities) -> Gateway {
        match self.offer {
            Offer::Mirror(_) => self.gateway.clone(),
            Offer::Auto | Offer::Proxy | Offer::Pair | Offer::Direct | Offer::Granular => {
                self.gateway.for_client(abilities)
            }
        }
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<HttpSession>> {
        lock(&self.by_id).get(id).cloned()
    }

    /// Ends a session; returns whether it existed.
    pub(super) fn end(&self, id: &str) -> bool {
        let session = lock(&self.by_id).remove(id);
        session.inspect(|session| session.end()).is_some()
    }

    /// Ends sessions that were idle for too long.
    pub(super) fn sweep(&self, now: Instant) {
        let forgotten = |session: &HttpSession| {
            session.idle_since().is_some_and(|since| now.duration_since(since) >= FORGOTTEN)
        };
        let mut by_id = lock(&self.by_id);
        by_id.extract_if(|_, session| forgotten(session)).for_each(|(_, session)| session.end());
    }

    /// Waits at most `limit` for accepted requests, and then ends all sessions.
    pub(super) async fn wind_down(&self, limit: Duration) {
        let sessions: Vec<_> = lock(&self.by_id).drain().map(|(_, session)| session).collect();
        let stateless: Vec<_> = lock(&self.stateless).running.values().cloned().collect();
        let ending: JoinSet<()> = sessions
            .into_iter()
            .chain(stateless)
            .map(|session| async move { session.wind_down(limit).await })
            .collect();
        ending.join_all().await;
        lock(&self.common).drain().for_each(|(_, talk)| talk.end());
        self.running.close();
        if tokio::time::timeout(END_TIMEOUT, self.running.wait()).await.is_err() {
            tracing::warn!("some sessions did not end in time");
        }
    }
}

#[cfg(test)]
mod tests;
