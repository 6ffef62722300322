//! Connections by id, for the granular toolset: opens, lists and closes them, and reloads the
//! configuration.

use std::time::Duration;

use futures_util::future::join_all;
use switchboard_core::catalog::{Catalog, EntryKind, Resolved};
use switchboard_core::config::values::AdHocConnections;
use switchboard_core::connection::{
    Closed, ConnectError, Connected, ConnectionLine, ConnectionRequest, ConnectionState, Reloaded,
    ResourcesFrom, ToolsFrom,
};
use switchboard_core::failure::{Code, Failure};
use switchboard_core::name::ServerName;
use switchboard_core::notice::{HandlerId, NoticeFilter};
use switchboard_core::reply::{ServerStatus, ToolLine};
use tokio::time::Instant;

use crate::blueprint::FirstUse;
use crate::explain;
use crate::host::Consent;
use crate::modes;
use crate::session::Session;
use crate::upstream::Upstream;
use crate::upstream::lease::Caller;

/// The pause before an address that refused the connection is tried again.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// The address shown for an in-process server.
const BUILT_IN: &str = "built-in";

/// What happens to open connections when the configuration is reloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// A reload leaves open connections open.
    Stay,
    /// A reload first closes open connections.
    Close,
}

/// Connects an ad hoc server. A client that sets a timeout may have just started the server, so an
/// address that refuses connections is retried until the timeout.
async fn reach(upstream: &Upstream, wanted: &ConnectionRequest) -> Result<(), ConnectError> {
    let begun = Instant::now();
    loop {
        let error = match upstream.refresh().await {
            Ok(_lease) => return Ok(()),
            Err(error) => error,
        };
        let time = wanted.definition.start_timeout.filter(|_| error.is_refused_connection());
        match time {
            Some(after) if begun.elapsed() >= after => {
                let failure = explain::lease(error, &wanted.id);
                return Err(ConnectError::TimedOut { after, failure });
            }
            Some(time) => {
                let left = time.saturating_sub(begun.elapsed());
                tokio::time::sleep(RETRY_INTERVAL.min(left)).await;
            }
            None => return Err(explain::connect(error, &wanted.id)),
        }
    }
}

impl Session {
    /// Connects the server at an endpoint. If the endpoint is configured, its server is connected
    /// as configured; otherwise the server becomes a guest of this session, which needs the user's
    /// approval.
    pub async fn connect_to(
        &self,
        wanted: &ConnectionRequest,
        caller: &Caller,
    ) -> Result<Connected, ConnectError> {
        if self.gateway.catalog().shelf(&wanted.id).is_some() {
            self.connect_configured(wanted).await?;
        } else {
            self.gateway.has_room(&wanted.id, self.id())?;
            // An id similar to the name of a configured server is refused, because the user could
            // mistake it for that server.
            if let Some(taken) = self.gateway.catalog().similar_server(&wanted.id) {
                return Err(ConnectError::Exists(taken));
            }
            self.consent_to(wanted, caller).await?;
            let admitted = self.gateway.admit(wanted, self.listener())?;
            reach(&admitted.upstream, wanted).await?;
            admitted.stays();
        }
        let catalog = self.catalog();
        Ok(Connected {
            id: wanted.id.clone(),
            address: wanted.address.clone(),
            transport: wanted.transport.title(),
            tools: tools_of(&catalog, &wanted.id)
                .map(|item| item.entry.name.as_str().to_owned())
                .collect(),
            resources: catalog.listing(&wanted.id).map_or(0, |listing| listing.resources.len()),
        })
    }

    async fn connect_configured(&self, wanted: &ConnectionRequest) -> Result<(), ConnectError> {
        let server = self.connection(wanted.id.as_str())?;
        let transport = self.gateway.facts(&server).transport;
        if !transport.is_some_and(|configured| wanted.is(&configured)) {
            return Err(ConnectError::Exists(server));
        }
        let lease = self.open_upstream(&server)?.refresh().await;
        lease.map(drop).map_err(|error| explain::connect(error, &server))
    }

    /// Asks the user to approve a server that is not configured.
    async fn consent_to(&self, wanted: &ConnectionRequest, caller: &Caller) -> Result<(), Failure> {
        match self.gateway.settings().ad_hoc_connections {
            AdHocConnections::Allow => return Ok(()),
            AdHocConnections::Off => return Err(explain::ad_hoc_is_off(&wanted.id)),
            AdHocConnections::Ask => {}
        }
        match caller.listener.host.approve_connection(wanted).await {
            Ok(Consent::Given) => Ok(()),
            Ok(Consent::Refused) => Err(explain::connection_denied(&wanted.id)),
            Err(why) => Err(explain::cannot_ask_to_connect(why, &wanted.id)),
        }
    }

    /// Resolves an id to a server that may be used.
    pub fn connection(&self, id: &str) -> Result<ServerName, Failure> {
        self.catalog().active_server(id).map_err(explain::resolve)
    }

    /// All servers that may be used, connected or not.
    pub fn connections(&self) -> Vec<ConnectionLine> {
        let catalog = self.catalog();
        let usable = catalog.shelves().filter(|(_, shelf)| shelf.is_active());
        usable.map(|(id, _)| self.connection_line(&catalog, id)).collect()
    }

    fn connection_line(&self, catalog: &Catalog, id: &ServerName) -> ConnectionLine {
        let listing = catalog.listing(id);
        ConnectionLine {
            id: id.clone(),
            address: self.address_of(id),
            state: match modes::server_line(self, catalog, id).status {
                ServerStatus::Connected => ConnectionState::Connected,
                ServerStatus::Connecting => ConnectionState::Connecting,
                ServerStatus::Failed | ServerStatus::NeedsAuth | ServerStatus::Pending => {
                    ConnectionState::Error
                }
                ServerStatus::Cached | ServerStatus::NotConnected | ServerStatus::Disabled => {
                    ConnectionState::Disconnected
                }
            },
            tools: listing.map(|_| tools_of(catalog, id).count()),
            implementation: listing
                .map(|listing| (listing.server_name.clone(), listing.server_version.clone()))
                .filter(|(name, _)| !name.is_empty()),
        }
    }

    fn address_of(&self, id: &ServerName) -> String {
        if let Some(guest) = self.gateway.guest(id, self.id()) {
            return guest.address;
        }
        let transport = self.gateway.facts(id).transport;
        transport.map_or_else(|| BUILT_IN.to_owned(), |transport| transport.shown())
    }

    /// Closes a connection. Removes the server if it is a guest.
    pub async fn close(&self, id: &str) -> Result<Closed, Failure> {
        let id = self.connection(id)?;
        let closed = Closed { address: self.address_of(&id), id };
        self.close_connection(&closed.id).await;
        self.gateway.dismiss(&closed.id, self.id());
        Ok(closed)
    }

    /// The tools of one server, which is connected if it was never listed; without an id, of all
    /// connected servers.
    pub async fn tools_from(&self, id: Option<&str>) -> Result<Vec<ToolsFrom>, Failure> {
        let Some(id) = id else {
            let catalog = self.catalog();
            let lines = self.connections().into_iter();
            let connected = lines.filter(|line| line.state == ConnectionState::Connected);
            return Ok(connected.map(|line| tools_from(&catalog, line.id)).collect());
        };
        let id = self.connection(id)?;
        let catalog = modes::listed(self, self.catalog(), &id).await?;
        Ok(vec![tools_from(&catalog, id)])
    }

    /// The resources of one server, which is connected if it was never listed.
    pub async fn resources_from(&self, id: &str) -> Result<ResourcesFrom, Failure> {
        let id = self.connection(id)?;
        let catalog = modes::listed(self, self.catalog(), &id).await?;
        let listing = catalog.listing(&id);
        let resources = listing.map(|listing| listing.resources.clone()).unwrap_or_default();
        Ok(ResourcesFrom { id, resources })
    }

    /// Reloads the configuration files, and connects the servers that they enable.
    pub async fn reload(&self, existing: Existing) -> Result<Reloaded, Failure> {
        let closed = match existing {
            Existing::Stay => None,
            Existing::Close => Some(self.close_all().await),
        };
        let read = self.gateway.reload().await?;
        let mut reloaded =
            Reloaded { closed, files: read.files, mistakes: read.mistakes, ..Reloaded::default() };
        for (server, outcome) in self.gateway.turned_on().await {
            match outcome {
                Ok(()) => reloaded.connected.push(server),
                Err(failure) if failure.code == Code::TrustRequired => {
                    reloaded.pending.push(server);
                }
                Err(failure) => reloaded.failed.push((server, failure)),
            }
        }
        Ok(reloaded)
    }

    /// Closes all connections that are open or connecting, and returns their number.
    async fn close_all(&self) -> usize {
        let mut closed = 0;
        for line in self.connections() {
            let up = matches!(line.state, ConnectionState::Connected | ConnectionState::Connecting);
            if (up || self.gateway.guest(&line.id, self.id()).is_some())
                && self.close(line.id.as_str()).await.is_ok()
            {
                closed += 1;
            }
        }
        closed
    }

    /// Connects a server regardless of back-off, lists it again, and returns the number of its
    /// tools.
    pub async fn reconnect(&self, server: &str, existing: Existing) -> Result<usize, Failure> {
        let server = self.connection(server)?;
        if existing == Existing::Close {
            self.close_connection(&server).await;
        }
        let _listed = self.refreshed(&server).await?;
        Ok(self.catalog().tools_of(&server).count())
    }

    /// Reconnects all servers concurrently, except those that connect only when named.
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

    /// Registers a handler for notifications of servers, until the session ends.
    pub fn register_handler(&self, filter: NoticeFilter) -> Result<HandlerId, Failure> {
        let notices = self.gateway.notices();
        notices.register(&self.gateway, self.listener(), filter).ok_or_else(explain::many_handlers)
    }

    /// The notifications that the session's handlers received since this method was last called, as
    /// one line.
    pub fn take_notices(&self) -> Option<String> {
        self.gateway.notices().take_line(self.id())
    }
}

/// The server's own tools, without those made from resources.
fn tools_of<'c>(catalog: &'c Catalog, id: &ServerName) -> impl Iterator<Item = &'c Resolved> {
    catalog.tools_of(id).filter(|item| item.entry.kind == EntryKind::Tool)
}

fn tools_from(catalog: &Catalog, id: ServerName) -> ToolsFrom {
    let tools = tools_of(catalog, &id).map(ToolLine::of).collect();
    ToolsFrom { id, tools }
}
