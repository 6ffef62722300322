//! Sends `list_changed` notifications to a session-based client when a list that it requested
//! changes.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use switchboard::Session;
use switchboard::catalog::Catalog;
use switchboard_wire::Peer;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::direct::{Direct, TOOLS_CHANGED};

/// The lists that the client has requested, keyed by the method of their change notification.
#[derive(Default)]
pub(crate) struct News {
    followed: Vec<&'static str>,
    /// The tasks that watch the lists; they end with the client.
    following: JoinSet<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Prompts,
    Resources,
}

impl News {
    /// Notifies the client from now on when this list changes.
    pub(crate) fn follow(&mut self, list: List, session: &Session, client: &Peer) {
        let (changes, client) = (session.gateway().watch(), client.clone());
        let say = move |method: &'static str| client.try_notify(method, "");
        self.begin(list.changed(), tell(list, changes, say));
    }

    /// Notifies the client from now on when its list of tools changes.
    pub(crate) fn follow_tools(&mut self, direct: &Arc<Direct>, session: &Session, client: &Peer) {
        let (direct, gateway) = (Arc::clone(direct), session.gateway().clone());
        self.begin(TOOLS_CHANGED, direct.tell(gateway, client.clone()));
    }

    fn begin(&mut self, method: &'static str, telling: impl Future<Output = ()> + Send + 'static) {
        if !self.followed.contains(&method) {
            self.followed.push(method);
            self.following.spawn(telling);
        }
    }
}

/// Calls `say` whenever the list changes.
pub(crate) async fn tell(
    list: List,
    mut changes: watch::Receiver<Arc<Catalog>>,
    say: impl Fn(&'static str),
) {
    let mut known = list.number(&changes.borrow_and_update());
    while changes.changed().await.is_ok() {
        let now = list.number(&changes.borrow_and_update());
        if now != known {
            say(list.changed());
            known = now;
        }
    }
}

impl List {
    fn changed(self) -> &'static str {
        match self {
            List::Prompts => "notifications/prompts/list_changed",
            List::Resources => "notifications/resources/list_changed",
        }
    }

    /// A hash of this list in the catalog.
    fn number(self, catalog: &Catalog) -> u64 {
        let mut hasher = DefaultHasher::new();
        for listing in catalog.offered() {
            match self {
                List::Prompts => listing.prompts.iter().for_each(|p| p.raw.hash(&mut hasher)),
                List::Resources => {
                    listing.resources.iter().for_each(|r| r.raw.hash(&mut hasher));
                    listing.templates.iter().for_each(|t| t.raw.hash(&mut hasher));
                }
            }
        }
        hasher.finish()
    }
}
