//! Opens sessions, lists their connections, and cleans up after them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use switchboard_core::content::guard::TextLimits;

use super::Gateway;
use super::guests::Guests;
use crate::host::Host;
use crate::results::{Lifetime, Results};
use crate::session::{Connections, Session};
use crate::upstream::{CallerId, Lease, Listener, Partition, SessionId, Upstream, UpstreamKey};

/// How long clients that share a session can read a stored result.
const COMMON_RESULTS: Duration = Duration::from_secs(60 * 60);

impl Gateway {
    /// Opens a session. `host` receives the requests to the user.
    pub fn session(&self, host: impl Host + 'static) -> Session {
        self.open_session(host, Connections::Shared, Lifetime::Session)
    }

    /// Opens a session whose connections no other session uses.
    pub fn private_session(&self, host: impl Host + 'static) -> Session {
        self.open_session(host, Connections::Own, Lifetime::Session)
    }

    /// Opens a session for a face that prints results: the results are returned uncut and are not
    /// stored.
    pub fn printing_session(&self, host: impl Host + 'static) -> Session {
        self.open_session(host, Connections::Shared, Lifetime::Unstored)
    }

    /// Opens the session that all stateless clients share. Each of them can read a stored result by
    /// its id, for an hour.
    pub fn common_session(&self, host: impl Host + 'static) -> Session {
        self.open_session(host, Connections::Shared, Lifetime::Limited(COMMON_RESULTS))
    }

    fn open_session(
        &self,
        host: impl Host + 'static,
        connections: Connections,
        lifetime: Lifetime,
    ) -> Session {
        let place = self.shared.blueprint.paths.results();
        let limits = match lifetime {
            Lifetime::Unstored => TextLimits::OFF,
            Lifetime::Session | Lifetime::Limited(_) => self.roster().limits,
        };
        let results = Results::new(lifetime, &place, limits);
        let session = SessionId(self.shared.sessions.fetch_add(1, Ordering::Relaxed));
        let listener = Listener { session, caller_id: CallerId::Client, host: Arc::new(host) };
        Session::new(self.clone(), listener, results, connections)
    }

    /// The open connections that only this session uses.
    pub(crate) fn own_connections(&self, session: SessionId) -> Vec<Lease> {
        self.live(session, |partition| partition == Partition::Session(session))
    }

    /// The open connections that this session uses, alone or with others.
    pub(crate) fn connected(&self, session: SessionId) -> Vec<Lease> {
        self.live(session, |partition| match partition {
            Partition::Shared => true,
            Partition::Session(owner) => owner == session,
        })
    }

    /// The open connections in the partitions that `which` admits, and those to the session's ad
    /// hoc servers.
    fn live(&self, session: SessionId, which: impl Fn(Partition) -> bool) -> Vec<Lease> {
        let roster = self.roster();
        let chosen = roster.members.iter().filter(|(key, _)| which(key.partition));
        let guests = roster.guests.get(&session).into_iter().flat_map(Guests::upstreams);
        let upstreams = chosen.map(|(_, member)| &member.upstream).chain(guests);
        upstreams.filter_map(Upstream::lease_if_up).collect()
    }

    /// Closes the connections that only this session used, after the calls in flight.
    pub(crate) fn end_session(&self, session: SessionId) {
        self.shared.surroundings.log_levels.forget(session);
        self.shared.surroundings.notices.forget(session);
        let theirs = |key: &UpstreamKey| key.partition == Partition::Session(session);
        let roster = self.roster();
        if !roster.members.keys().any(theirs) && !roster.guests.contains_key(&session) {
            return;
        }
        drop(roster);
        self.shared.roster.send_modify(|roster| {
            let roster = Arc::make_mut(roster);
            let guests = roster.guests.remove(&session);
            guests.iter().flat_map(Guests::upstreams).for_each(|guest| drop(guest.retire()));
            roster.members.retain(|key, member| {
                let stays = !theirs(key);
                if !stays {
                    member.upstream.retire();
                }
                stays
            });
        });
    }
}
