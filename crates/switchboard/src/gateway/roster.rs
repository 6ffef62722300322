//! The servers of one configuration. Decides which of them stay when the configuration changes.

use std::sync::Arc;

use hashbrown::HashMap;
use switchboard_core::catalog::{ResolveError, Standing};
use switchboard_core::config::layers::ConfigOrigin;
use switchboard_core::config::settings::Settings;
use switchboard_core::content::guard::TextLimits;
use switchboard_core::failure::Failure;
use switchboard_core::lifecycle::Policy;
use switchboard_core::name::ServerName;

use super::guests::AllGuests;
use crate::blueprint::Facts;
use crate::explain;
use crate::upstream::{Partition, Recipe, SessionId, Upstream, UpstreamKey};

/// The servers of one configuration, with its settings and rules; replaced as a whole.
#[derive(Clone)]
pub(super) struct Roster {
    pub(super) members: Members,
    pub(super) facts: HashMap<ServerName, Facts>,
    pub(super) settings: Settings,
    pub(super) limits: TextLimits,
    pub(super) notices: FileNotices,
    /// The first place in the user's files where a rule cannot be parsed; calls are refused
    /// meanwhile.
    pub(super) unread_rules: Option<ConfigOrigin>,
    /// The servers that sessions connected ad hoc, which stay connected when the configuration
    /// changes.
    pub(super) guests: AllGuests,
}

pub(super) type Members = HashMap<UpstreamKey, Member>;

/// Places in configuration files that the user has to correct.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileNotices {
    /// Files that cannot be parsed; their last good version stays in effect.
    pub(crate) stale: Vec<String>,
    /// The places of entries that have no effect because of a mistake.
    pub(crate) mistakes: Vec<String>,
}

/// A server that may be used. A change of its recipe or policy requires a new actor.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) upstream: Upstream,
    pub(super) recipe: Arc<Recipe>,
    pub(super) policy: Policy,
}

/// The key of the connection that all sessions share.
pub(super) fn shared_key(server: &ServerName) -> UpstreamKey {
    UpstreamKey { server: server.clone(), partition: Partition::Shared }
}

/// The key of the connection that only this session uses.
pub(super) fn session_key(server: &ServerName, session: SessionId) -> UpstreamKey {
    UpstreamKey { server: server.clone(), partition: Partition::Session(session) }
}

impl Roster {
    pub(super) fn shared_member(&self, server: &ServerName) -> Result<&Member, Failure> {
        let member = self.members.get(&shared_key(server));
        member.ok_or_else(|| match self.facts.get(server).map(|facts| facts.standing) {
            Some(Standing::Pending(cause)) => {
                explain::resolve(ResolveError::Pending { server: server.clone(), cause })
            }
            Some(Standing::Disabled) => explain::resolve(ResolveError::Disabled(server.clone())),
            Some(Standing::Active) | None => explain::unknown_server(server),
        })
    }

    /// Keeps the members whose recipe and policy are unchanged. `start` creates each other member,
    /// and gets the upstream of the same name that the member replaces. Also returns the upstreams
    /// that the new configuration no longer contains.
    pub(super) fn renew(
        before: &Members,
        recipes: Vec<(ServerName, Recipe, Policy)>,
        mut start: impl FnMut(ServerName, Recipe, Policy, Option<&Upstream>) -> Member,
    ) -> (Members, Vec<Upstream>) {
        let mut members = Members::new();
        for (server, recipe, policy) in recipes {
            let key = shared_key(&server);
            let old = before.get(&key);
            let member = match old.filter(|old| *old.recipe == recipe && old.policy == policy) {
                Some(same) => same.clone(),
                None => start(server, recipe, policy, old.map(|old| &old.upstream)),
            };
            members.insert(key, member);
        }
        for (key, old) in before.iter().filter(|(key, _)| key.partition != Partition::Shared) {
            let shared = members.get(&shared_key(&key.server));
            if shared.is_some_and(|shared| shared.recipe == old.recipe) {
                members.insert(key.clone(), old.clone());
            }
        }
        let gone = before.iter().filter(|(key, _)| !members.contains_key(*key));
        let ended = gone.map(|(_, old)| old.upstream.clone()).collect();
        (members, ended)
    }
}
