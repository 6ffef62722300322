//! Servers that a session connected ad hoc. Such servers are in no configuration, store nothing on
//! disk and end with their session.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use hashbrown::HashMap;
use switchboard_core::approval::Rules;
use switchboard_core::catalog::{Catalog, Shelf};
use switchboard_core::config::settings::Settings;
use switchboard_core::config::values::Lifecycle;
use switchboard_core::connection::{ConnectError, ConnectionRequest, MOST_AD_HOC};
use switchboard_core::lifecycle::Policy;
use switchboard_core::name::ServerName;

use super::{Gateway, Roster};
use crate::directory::Directory;
use crate::mutex::lock;
use crate::upstream::{Listener, Recipe, SessionId, Surroundings, Upstream};

/// A guest stays connected until it is dismissed. After a crash, the next call reconnects it.
const POLICY: Policy = Policy { lifecycle: Lifecycle::Lazy, idle: None };

/// The guests of all sessions.
pub(super) type AllGuests = HashMap<SessionId, Guests>;

/// The guests of one session.
#[derive(Clone)]
pub(super) struct Guests {
    /// The listings of the guests, which no other session sees.
    directory: Directory,
    by_name: BTreeMap<ServerName, Guest>,
    /// The session's merged catalog. The mutex is locked only briefly, never across an `await`.
    view: Arc<Mutex<Option<View>>>,
}

/// An ad hoc server of one session.
#[derive(Clone)]
pub(crate) struct Guest {
    pub(crate) upstream: Upstream,
    pub(crate) address: String,
    rules: Arc<Rules>,
    shelf: Shelf,
    recipe: Arc<Recipe>,
}

/// The merged catalog of a session with guests, and the two catalogs that it was built from.
struct View {
    configured: Arc<Catalog>,
    guests: Arc<Catalog>,
    all: Arc<Catalog>,
}

/// An admitted guest. Dropping this dismisses the guest, unless [`Admission::stays`] was called.
pub(crate) struct Admission {
    /// The gateway that dismisses the guest; `None` once the guest may stay.
    gateway: Option<Gateway>,
    session: SessionId,
    id: ServerName,
    pub(crate) upstream: Upstream,
}

impl Gateway {
    /// Checks that a session may add one more guest, and that this name is free.
    pub(crate) fn has_room(&self, id: &ServerName, session: SessionId) -> Result<(), ConnectError> {
        match self.roster().guests.get(&session) {
            Some(guests) => guests.has_room(id),
            None => Ok(()),
        }
    }

    /// Adds a guest to one session, without connecting it.
    pub(crate) fn admit(
        &self,
        wanted: &ConnectionRequest,
        listener: &Listener,
    ) -> Result<Admission, ConnectError> {
        let mut seated = Err(ConnectError::TooMany);
        self.shared.roster.send_modify(|roster| {
            seated = self.seat(Arc::make_mut(roster), wanted, listener);
        });
        let (upstream, gateway) = (seated?, Some(self.clone()));
        Ok(Admission { gateway, session: listener.session, id: wanted.id.clone(), upstream })
    }

    fn seat(
        &self,
        roster: &mut Roster,
        wanted: &ConnectionRequest,
        listener: &Listener,
    ) -> Result<Upstream, ConnectError> {
        let Roster { guests, settings, unread_rules, .. } = roster;
        let guests = guests.entry(listener.session).or_insert_with(Guests::none);
        guests.has_room(&wanted.id)?;
        let (shelf, recipe) = self.shared.blueprint.of_guest(wanted, settings);
        let recipe = Arc::new(recipe);
        let rules = match unread_rules {
            Some(place) => Rules::unread(place),
            // `allow` rules refer to configured servers, not to a guest that uses the same name.
            None => {
                let settings = Settings { allow: Vec::new(), ..settings.clone() };
                Rules::new(&wanted.definition, &settings)
            }
        };
        let surroundings = Surroundings {
            directory: guests.directory.clone(),
            ..self.surroundings(None, Some(listener.clone()))
        };
        let upstream =
            Upstream::start(wanted.id.clone(), Arc::clone(&recipe), POLICY, surroundings);
        let (address, rules) = (wanted.address.clone(), Arc::new(rules));
        let guest = Guest { upstream: upstream.clone(), address, rules, shelf, recipe };
        guests.by_name.insert(wanted.id.clone(), guest);
        guests.announce();
        Ok(upstream)
    }

    /// The session's guest with this name; `None` if there is none.
    pub(crate) fn guest(&self, id: &ServerName, session: SessionId) -> Option<Guest> {
        self.shared.roster.borrow().guests.get(&session)?.by_name.get(id).cloned()
    }

    pub(super) fn guest_rules(&self, id: &ServerName, session: SessionId) -> Option<Arc<Rules>> {
        let roster = self.shared.roster.borrow();
        Some(Arc::clone(&roster.guests.get(&session)?.by_name.get(id)?.rules))
    }

    /// Removes a guest; its calls in flight are completed.
    pub(crate) fn dismiss(&self, id: &ServerName, session: SessionId) {
        if self.guest(id, session).is_none() {
            return;
        }
        self.shared.roster.send_modify(|roster| {
            let guests = &mut Arc::make_mut(roster).guests;
            let Some(of_session) = guests.get_mut(&session) else { return };
            if let Some(guest) = of_session.by_name.remove(id) {
                guest.upstream.retire();
                of_session.announce();
            }
        });
    }

    /// The catalog of one session: the configured servers and its guests.
    pub(crate) fn catalog_of(&self, session: SessionId) -> Arc<Catalog> {
        let guests = self.shared.roster.borrow().guests.get(&session).cloned();
        match guests {
            None => self.catalog(),
            Some(guests) => guests.seen_beside(self.catalog()),
        }
    }
}

impl Guests {
    fn none() -> Guests {
        Guests { directory: Directory::default(), by_name: BTreeMap::new(), view: Arc::default() }
    }

    pub(super) fn upstreams(&self) -> impl Iterator<Item = &Upstream> {
        self.by_name.values().map(|guest| &guest.upstream)
    }

    fn has_room(&self, id: &ServerName) -> Result<(), ConnectError> {
        if self.by_name.contains_key(id) {
            return Err(ConnectError::Exists(id.clone()));
        }
        if self.by_name.len() >= MOST_AD_HOC {
            return Err(ConnectError::TooMany);
        }
        Ok(())
    }

    /// Publishes the session's current guests in the directory of their listings.
    fn announce(&self) {
        let guests = self.by_name.iter();
        let shelves = guests.clone().map(|(id, guest)| (id.clone(), guest.shelf.clone()));
        let plans = guests.map(|(id, guest)| (id.clone(), Arc::clone(&guest.recipe.plan)));
        self.directory.replace(shelves.collect(), Vec::new(), plans.collect());
    }

    fn seen_beside(&self, configured: Arc<Catalog>) -> Arc<Catalog> {
        let guests = self.directory.catalog();
        let mut view = lock(&self.view);
        if let Some(view) = &*view
            && Arc::ptr_eq(&view.configured, &configured)
            && Arc::ptr_eq(&view.guests, &guests)
        {
            return Arc::clone(&view.all);
        }
        let shelves = configured.shelves().chain(guests.shelves());
        let shelves = shelves.map(|(server, shelf)| (server.clone(), shelf.clone()));
        let reserved = configured.reserved().to_vec();
        let all = Arc::new(Catalog::reserving(shelves.collect(), reserved));
        *view = Some(View { configured, guests, all: Arc::clone(&all) });
        all
    }
}

impl Admission {
    pub(crate) fn stays(mut self) {
        self.gateway = None;
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(gateway) = &self.gateway {
            gateway.dismiss(&self.id, self.session);
        }
    }
}
