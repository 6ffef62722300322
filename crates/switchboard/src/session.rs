//! One conversation: what it asked for, what it was allowed, what it may still read.

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

/// A conversation with the gateway. Requests run side by side; dropping one cancels it.
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
    /// Like all locks here, held for a moment at a time, never across an await.
    grants: Mutex<Grants>,
    connections: Connections,
    /// How many there have been.
    lone_callers: AtomicU32,
    /// Connections that stay up for as long as the session lives.
    opened: Mutex<Vec<Lease>>,
    /// By the address of the resource.
    subscriptions: Mutex<HashMap<String, Subscription>>,
}

/// Whether a session shares the servers' connections with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connections {
    /// Except those to servers that ask something of their client.
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

    /// Answers one request.
    pub fn handle(&self, request: Request) -> impl Future<Output = Result<Reply, Failure>> + Send {
        self.handle_as(request, self.caller())
    }

    /// Answers one request on behalf of `caller`, who is of this session.
    pub fn handle_as(
        &self,
        request: Request,
        caller: Caller,
    ) -> impl Future<Output = Result<Reply, Failure>> + Send {
        // Boxed before the future is made, which would hold the request twice otherwise.
        let request = match request {
            Request::Call(request) => Ok(Box::new(request)),
            other => Err(Box::new(other)),
        };
        async move {
            match request {
                Ok(request) => call::call(self, request, &caller).await,
                // A future of its own, so that a call does not pay for its size.
                Err(other) => Box::pin(self.answer(*other, &caller)).await,
            }
        }
    }

    /// Resolves the name of a tool. Its schema types the arguments for [`Session::call_found`],
    /// which resolves nothing again.
    pub async fn find_tool(&self, tool: &str, server: Option<&str>) -> Result<FoundTool, Failure> {
        call::find(self, tool, server).await
    }

    /// Calls a tool that was found. `select` is a jq filter for its result.
    pub async fn call_found(
        &self,
        tool: FoundTool,
        args: Args,
        select: Option<String>,
        caller: &Caller,
    ) -> Result<Reply, Failure> {
        call::call_found(self, tool, args, select, caller).await
    }

    /// A failure for want of a sign-in, with one that was begun, if the settings want that. No
    /// browser is opened: the host has to ask the user.
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

    /// A text for the model, cut to what the caller's host lets pass. The whole is kept like a
    /// large result.
    pub async fn fitted(&self, text: String, form: ResultForm) -> String {
        self.results.guard_text(text, form).await
    }

    /// The session itself as one who asks.
    pub fn caller(&self) -> Caller {
        Caller::of(self.listener.clone())
    }

    /// One request as one who asks: nothing that a server says meanwhile is taken for another's.
    pub fn lone_caller(&self) -> Caller {
        let before = self.lone_callers.fetch_add(1, Ordering::Relaxed);
        let number = NonZeroU32::MIN.saturating_add(before);
        Caller::of(Listener { caller_id: CallerId::Request(number), ..self.listener.clone() })
    }

    /// A connection to the server, held while the lease lives. A server whose definition changes
    /// just now is looked up once more, and so is one that turned out to ask something of its
    /// client while it was connected.
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

    /// The connection, or another one if the user has signed out of or in to the server since: its
    /// session and its lists are those of the old sign-in.
    async fn as_signed_in(&self, server: &ServerName, lease: Lease) -> Result<Lease, Failure> {
        // A listing goes as soon as another secret is kept, though the connection has the old one.
        let is_listed = self.gateway.directory().has_listed(server);
        if is_listed && !lease.is_outdated().await {
            return self.listed_as_signed_in(server, lease).await;
        }
        drop(lease);
        let upstream = self.open_upstream(server)?;
        upstream.disconnect().await;
        upstream.lease().await.map_err(|error| explain::lease(error, server))
    }

    /// The connection with lists of the credential that a program gives now. It may be another token
    /// of the same user, so the connection stays.
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

    /// The same, after the server was asked for its lists anew.
    pub(crate) async fn refreshed(&self, server: &ServerName) -> Result<Lease, Failure> {
        let refreshed = self.open_upstream(server)?.refresh().await;
        refreshed.map_err(|error| explain::lease(error, server))
    }

    /// The upstream of the server as this session sees it; starts nothing.
    pub(crate) fn find_upstream(&self, server: &ServerName) -> Option<Upstream> {
        self.gateway.find_upstream(server, self.id(), self.connections)
    }

    /// The upstream that this session uses for the server; starts it if necessary.
    pub(crate) fn open_upstream(&self, server: &ServerName) -> Result<Upstream, Failure> {
        self.gateway.open_upstream(server, &self.listener, self.connections)
    }

    /// Closes the connection that this session uses, if there is one.
    pub(crate) async fn close_connection(&self, server: &ServerName) {
        if let Some(upstream) = self.find_upstream(server) {
            upstream.disconnect().await;
        }
    }

    /// The servers that connect at the moment.
    pub fn connecting(&self) -> Vec<(ServerName, Underway)> {
        let catalog = self.catalog();
        let underway =
            |name: &ServerName| Some((name.clone(), self.find_upstream(name)?.underway()?));
        catalog.shelves().filter_map(|(name, _)| underway(name)).collect()
    }

    /// What this session may use, as far as it is known now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.gateway.catalog_of(self.id())
    }

    pub(crate) fn listener(&self) -> &Listener {
        &self.listener
    }

    pub(crate) fn id(&self) -> SessionId {
        self.listener.session
    }

    /// Holds a connection until the session ends.
    pub(crate) fn keep(&self, lease: Lease) {
        lock(&self.opened).push(lease);
    }

    pub(crate) fn hold_subscription(&self, uri: String, subscription: Subscription) {
        lock(&self.subscriptions).insert(uri, subscription);
    }

    pub(crate) fn take_subscription(&self, uri: &str) -> Option<Subscription> {
        lock(&self.subscriptions).remove(uri)
    }

    /// A connection that is this session's alone.
    pub(crate) async fn own_lease(&self, server: &ServerName) -> Result<Lease, Failure> {
        let upstream = self.gateway.open_own_upstream(server, &self.listener)?;
        upstream.lease().await.map_err(|error| explain::lease(error, server))
    }

    /// The connections that are up and that this session uses or shares.
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

    /// The gateway that this conversation runs through.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    pub(crate) fn grants(&self) -> MutexGuard<'_, Grants> {
        lock(&self.grants)
    }
}

impl Drop for Session {
    /// Connections that were this session's alone end with it.
    fn drop(&mut self) {
        // Before their connections go, so that no subscription requests new ones.
        lock(&self.subscriptions).clear();
        self.gateway.end_session(self.listener.session);
    }
}
