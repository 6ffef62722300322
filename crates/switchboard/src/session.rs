//! A session: its connections, approvals, subscriptions and stored results.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use hashbrown::HashMap;
use switchboard_core::approval::{Access, Grants};
use switchboard_core::catalog::Catalog;
use switchboard_core::content::ResultForm;
use switchboard_core::exact::Args;
use switchboard_core::failure::{Code, Failure, Hint, Subject};
use switchboard_core::name::ServerName;
use switchboard_core::reply::{Reply, Underway};
use switchboard_core::request::Request;

use crate::call::{self, FoundTool};
use crate::explain;
use crate::gateway::Gateway;
use crate::modes;
use crate::mutex::lock;
use crate::results::Results;
use crate::subscription::Subscription;
use crate::upstream::lease::Caller;
use crate::upstream::{CallerId, Lease, LeaseError, Listener, SessionId, Upstream};

/// A session with the gateway. Requests run concurrently; dropping the future of a request cancels
/// it.
///
/// ```
/// use switchboard::request::{Request, SearchRequest};
/// use switchboard::{Environment, Gateway, Headless};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// # let environment = Environment::made_of([("SWITCHBOARD_HOME", "/nowhere")], "/");
/// # let gateway = Gateway::builder(environment).demo().build();
/// let session = gateway.session(Headless);
/// session.handle(Request::Connect { server: "demo".to_owned() }).await?;
///
/// let search = SearchRequest::words("add two numbers");
/// let found = session.handle(Request::Search(search)).await?;
/// assert!(switchboard::render::text::reply(&found).contains("demo_add"));
/// # gateway.shutdown().await;
/// # Ok(())
/// # })
/// # }
/// ```
pub struct Session {
    pub(crate) gateway: Gateway,
    listener: Listener,
    pub(crate) results: Arc<Results>,
    /// The approvals that the user gave for the session. Like all mutexes here, this one is locked
    /// only briefly, never across an `await`.
    grants: Mutex<Grants>,
    connections: Connections,
    /// The number of callers made by [`Session::lone_caller`].
    lone_callers: AtomicU32,
    /// Leases that hold connections open until the session ends.
    opened: Mutex<Vec<Lease>>,
    /// The subscriptions by the client's URI of the resource.
    subscriptions: Mutex<HashMap<String, Subscription>>,
}

/// Whether a session shares the servers' connections with other sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connections {
    /// Connections are shared, except those to servers that send requests to their client.
    Shared,
    Own,
}

impl Session {
    pub(crate) fn new(
        gateway: Gateway,
        listener: Listener,
        results: Results,
        connections: Connections,
    ) -> Session {
        Session {
            gateway,
            listener,
            results: Arc::new(results),
            grants: Mutex::default(),
            connections,
            lone_callers: AtomicU32::default(),
            opened: Mutex::default(),
            subscriptions: Mutex::default(),
        }
    }

    /// Handles one request of the session's client.
    pub fn handle(&self, request: Request) -> impl Future<Output = Result<Reply, Failure>> + Send {
        self.handle_as(request, self.caller())
    }

    /// Handles one request for `caller`, which belongs to this session.
    pub fn handle_as(
        &self,
        request: Request,
        caller: Caller,
    ) -> impl Future<Output = Result<Reply, Failure>> + Send {
        // The request is boxed before the future exists, which would otherwise contain it twice.
        let request = match request {
            Request::Call(request) => Ok(Box::new(request)),
            other => Err(Box::new(other)),
        };
        async move {
            match request {
                Ok(request) => call::call(self, request, &caller).await,
                // These requests are boxed separately, so that the future of a call stays small.
                Err(other) => Box::pin(self.answer(*other, &caller)).await,
            }
        }
    }

    /// Resolves the name of a tool, for [`Session::call_found`]. The face needs the tool's schema
    /// to convert arguments.
    pub async fn find_tool(&self, tool: &str, server: Option<&str>) -> Result<FoundTool, Failure> {
        call::find(self, tool, server).await
    }

    /// Calls a tool that [`Session::find_tool`] returned. `select` is a jq filter for its result.
    pub async fn call_found(
        &self,
        tool: FoundTool,
        args: Args,
        select: Option<String>,
        caller: &Caller,
    ) -> Result<Reply, Failure> {
        call::call_found(self, tool, args, select, caller).await
    }

    /// If the failure requires a sign-in and the setting `autoAuth` is on, begins the sign-in and
    /// puts its link into the failure. Opens no browser: the host asks the user.
    pub async fn offering_sign_in(&self, failure: Failure) -> Failure {
        let server = match &failure.subject {
            Subject::Server(server) | Subject::Tool { server, .. } => server.clone(),
            Subject::Request | Subject::Config { .. } => return failure,
        };
        if failure.code != Code::SignInRequired || !self.gateway.settings().auto_auth {
            return failure;
        }
        match Box::pin(modes::sign_in(self, server.as_str())).await {
            Ok(Reply::SignInBegun { server, link }) => {
                failure.instead(&Hint::SignIn(server), Hint::SignInAt(link))
            }
            Ok(_) | Err(_) => failure,
        }
    }

    /// Cuts a text for the model to the limit of the caller's host. The full text is stored like a
    /// large result.
    pub async fn fitted(&self, text: String, form: ResultForm) -> String {
        self.results.guard_text(text, form).await
    }

    /// The session's client as the caller.
    pub fn caller(&self) -> Caller {
        Caller::of(self.listener.clone())
    }

    /// A caller for one stateless request: messages of servers during the request are not
    /// attributed to other requests.
    pub fn lone_caller(&self) -> Caller {
        let before = self.lone_callers.fetch_add(1, Ordering::Relaxed);
        let number = NonZeroU32::MIN.saturating_add(before);
        Caller::of(Listener { caller_id: CallerId::Request(number), ..self.listener.clone() })
    }

    /// Leases a connection to the server. Retries once if the server's definition was just
    /// replaced. Switches to a connection of this session alone if the server turns out to send
    /// requests to its client.
    pub(crate) async fn lease(&self, server: &ServerName) -> Result<Lease, Failure> {
        let mut leased = self.open_upstream(server)?.lease().await;
        if let Err(LeaseError::Replaced) = leased {
            leased = self.open_upstream(server)?.lease().await;
        }
        let mut lease = leased.map_err(|error| explain::lease(error, server))?;
        if lease.signed_in().can_change() {
            lease = Box::pin(self.as_signed_in(server, lease)).await?;
        }
        if lease.owner().is_none() && self.gateway.directory().asks_client(server) {
            drop(lease);
            return Box::pin(self.own_lease(server)).await;
        }
        Ok(lease)
    }

    /// Returns the lease, or reconnects if the user has signed in or out since the connection was
    /// opened: its session and listing belong to the old sign-in.
    async fn as_signed_in(&self, server: &ServerName, lease: Lease) -> Result<Lease, Failure> {
        // The directory drops a listing as soon as the stored secret changes, while the connection
        // still uses the old one.
        let is_listed = self.gateway.directory().has_listed(server);
        if is_listed && !lease.is_outdated().await {
            return self.listed_as_signed_in(server, lease).await;
        }
        drop(lease);
        let upstream = self.open_upstream(server)?;
        upstream.disconnect().await;
        upstream.lease().await.map_err(|error| explain::lease(error, server))
    }

    /// Lists the server again if a program returned another credential for it. The connection
    /// stays, because the credential may be a new token of the same user.
    async fn listed_as_signed_in(
        &self,
        server: &ServerName,
        lease: Lease,
    ) -> Result<Lease, Failure> {
        if !lease.signed_in().take_change() {
            return Ok(lease);
        }
        let refreshed = self.refreshed(server).await;
        if refreshed.is_err() {
            lease.signed_in().keep_change();
        }
        refreshed
    }

    /// Leases a connection after listing the server again.
    pub(crate) async fn refreshed(&self, server: &ServerName) -> Result<Lease, Failure> {
        let refreshed = self.open_upstream(server)?.refresh().await;
        refreshed.map_err(|error| explain::lease(error, server))
    }

    /// The upstream that this session uses for the server, if it exists.
    pub(crate) fn find_upstream(&self, server: &ServerName) -> Option<Upstream> {
        self.gateway.find_upstream(server, self.id(), self.connections)
    }

    /// The upstream that this session uses for the server; started if necessary.
    pub(crate) fn open_upstream(&self, server: &ServerName) -> Result<Upstream, Failure> {
        self.gateway.open_upstream(server, &self.listener, self.connections)
    }

    /// Closes the connection that this session uses for the server, if there is one.
    pub(crate) async fn close_connection(&self, server: &ServerName) {
        if let Some(upstream) = self.find_upstream(server) {
            upstream.disconnect().await;
        }
    }

    /// The servers that are connecting now, with their progress.
    pub fn connecting(&self) -> Vec<(ServerName, Underway)> {
        let catalog = self.catalog();
        let underway =
            |name: &ServerName| Some((name.clone(), self.find_upstream(name)?.underway()?));
        catalog.shelves().filter_map(|(name, _)| underway(name)).collect()
    }

    /// The current catalog, including this session's guests.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.gateway.catalog_of(self.id())
    }

    pub(crate) fn listener(&self) -> &Listener {
        &self.listener
    }

    pub(crate) fn id(&self) -> SessionId {
        self.listener.session
    }

    /// Holds a connection open until the session ends.
    pub(crate) fn keep(&self, lease: Lease) {
        lock(&self.opened).push(lease);
    }

    pub(crate) fn hold_subscription(&self, uri: String, subscription: Subscription) {
        lock(&self.subscriptions).insert(uri, subscription);
    }

    pub(crate) fn take_subscription(&self, uri: &str) -> Option<Subscription> {
        lock(&self.subscriptions).remove(uri)
    }

    /// Leases a connection that only this session uses.
    pub(crate) async fn own_lease(&self, server: &ServerName) -> Result<Lease, Failure> {
        let upstream = self.gateway.open_own_upstream(server, &self.listener)?;
        upstream.lease().await.map_err(|error| explain::lease(error, server))
    }

    /// The open connections that this session owns or shares.
    pub(crate) fn connected(&self) -> Vec<Lease> {
        self.gateway.connected(self.id())
    }

    async fn answer(&self, request: Request, caller: &Caller) -> Result<Reply, Failure> {
        if caller.access == Access::ReadOnly && request.changes_state() {
            return Err(explain::reads_only());
        }
        match request {
            Request::Status => Ok(Reply::Status(self.overview())),
            Request::List { server, page } => modes::list(self, &server, page, caller).await,
            Request::Search(request) => modes::search(self, request, caller).await,
            Request::Describe { tool, server } => {
                modes::describe(self, &tool, server.as_deref(), caller).await
            }
            Request::Instructions { server } => modes::instructions(self, &server),
            Request::Connect { server } => modes::connect(self, &server, caller).await,
            Request::Disconnect { server } => modes::disconnect(self, &server).await,
            Request::SignIn { server } => modes::sign_in(self, &server).await,
            Request::CompleteSignIn { server, answer } => {
                modes::complete_sign_in(self, &server, &answer).await
            }
            Request::Result { id, view } => modes::result(self, id, view, caller).await,
            Request::Resources { server } => modes::resources(self, server.as_deref()),
            Request::ReadResource { uri, server } => {
                modes::read_resource(self, &uri, server.as_deref(), caller).await
            }
            Request::Prompts { server } => modes::prompts(self, server.as_deref()),
            Request::Prompt { name, server, args } => {
                modes::prompt(self, &name, server.as_deref(), args, caller).await
            }
            Request::Call(request) => call::call(self, Box::new(request), caller).await,
        }
    }

    /// The gateway of this session.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    pub(crate) fn grants(&self) -> MutexGuard<'_, Grants> {
        lock(&self.grants)
    }
}

impl Drop for Session {
    /// Closes the connections that this session owns.
    fn drop(&mut self) {
        // Subscriptions end before the connections close, so that none reconnects.
        lock(&self.subscriptions).clear();
        self.gateway.end_session(self.listener.session);
    }
}
