//! The right to use a connection. While a caller holds a lease, the server is not stopped for being
//! idle.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_core::approval::{Access, Approved};
use switchboard_core::catalog::EntryKind;
use switchboard_core::content::ResultForm;
use switchboard_core::exact::Args;
use switchboard_core::name::ServerName;
use switchboard_wire::envelope::{INVALID_PARAMS, write_text};
use switchboard_wire::era::ServerHello;
use switchboard_wire::http_client::HttpError;
use switchboard_wire::peer::Patience;
use switchboard_wire::{Peer, Raw, RequestError, RpcError, modern};
use tokio::sync::mpsc;

use super::audience::{Listener, Seat, SessionId};
use super::connection::Connection;
use super::door::{Door, Pass};
use super::recipe::Recipe;
use super::{CallError, ExitReason, stateless};
use crate::dial::http::SignedIn;
use crate::host::Host;
use crate::log_level::LogLevels;

/// How long a failed call waits for the exit status of a crashed server.
const EXIT_STATUS_WAIT: Duration = Duration::from_millis(150);

/// Whether a request may be cancelled and resent on another connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resend {
    Allowed,
    Never,
}

/// An open connection and its door.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) connection: Connection,
    pub(super) door: Arc<Door>,
    pub(super) server: ServerName,
    pub(super) recipe: Arc<Recipe>,
    pub(super) log_levels: LogLevels,
    /// Whether the server refused the last request with status 401.
    pub(super) unwelcome: AtomicBool,
}

impl Open {
    /// Takes a lease, unless the connection is closed or its door is shut.
    pub(super) fn lease(self: &Arc<Open>) -> Option<Lease> {
        if self.connection.peer.is_closed() {
            return None;
        }
        let pass = self.door.enter()?;
        Some(Lease { open: Arc::clone(self), pass })
    }
}

/// Holds a connection open; dropping it releases the connection.
#[derive(Debug)]
pub(crate) struct Lease {
    open: Arc<Open>,
    pass: Pass,
}

/// The channel for the progress notifications of a call, if the caller requested them.
pub type Progress = Option<mpsc::Sender<Raw>>;

/// The caller of a request: answers server-to-client requests and receives progress notifications.
#[derive(Clone, Debug)]
pub struct Caller {
    pub(crate) listener: Listener,
    pub(crate) progress: Progress,
    /// Members of `_meta` that are passed to the server.
    pub(crate) meta: Option<Arc<Args>>,
    pub(crate) access: Access,
}

impl Caller {
    pub(crate) fn of(listener: Listener) -> Caller {
        Caller { listener, progress: None, meta: None, access: Access::Full }
    }

    /// Limits the caller to tools with `readOnlyHint`.
    #[must_use]
    pub fn read_only(mut self) -> Caller {
        self.access = Access::ReadOnly;
        self
    }

    /// The form in which the caller's host receives results.
    pub fn result_form(&self) -> ResultForm {
        self.listener.host.result_form()
    }

    /// Passes these members of `_meta` to the server.
    #[must_use]
    pub fn with_meta(mut self, meta: Args) -> Caller {
        self.meta = (!meta.is_empty()).then(|| Arc::new(meta));
        self
    }

    /// Sends progress notifications to `progress`, unchanged.
    #[must_use]
    pub fn with_progress(mut self, progress: Progress) -> Caller {
        self.progress = progress;
        self
    }

    /// Sends server-to-client requests of this call to `host` instead of the session's own.
    #[must_use]
    pub fn with_host(mut self, host: Arc<dyn Host>) -> Caller {
        self.listener.host = host;
        self
    }
}

impl Lease {
    /// Makes an approved call: calls the tool, reads the resource or gets the prompt. Returns the
    /// server's result unchanged.
    pub(crate) async fn call(
        &self,
        approved: &Approved,
        caller: &Caller,
    ) -> Result<Raw, CallError> {
        if self.open.connection.audience.has_parted() {
            return Err(CallError::NotSent);
        }
        if self.is_stateless() {
            return Box::pin(self.call_stateless(approved, caller)).await;
        }
        let entry = &approved.target().entry;
        let resend = match entry.annotations.is_harmless() {
            true => Resend::Allowed,
            false => Resend::Never,
        };
        match &entry.kind {
            EntryKind::Resource { uri, .. } => {
                let params = Args::of("uri", Value::from(uri.as_str()));
                Box::pin(self.ask_with_meta("resources/read", params, caller, resend)).await
            }
            EntryKind::Prompt => {
                let params = named(approved);
                Box::pin(self.ask_with_meta("prompts/get", params, caller, resend)).await
            }
            EntryKind::Tool => {
                let params = |token: u64| match &caller.meta {
                    None => call_params(approved, token),
                    Some(meta) => with_meta(named(approved), meta, Some(token)),
                };
                self.ask("tools/call", params, caller, resend).await
            }
        }
    }

    /// The sign-in that the requests of the connection use.
    pub(crate) fn signed_in(&self) -> &SignedIn {
        &self.open.connection.signed_in
    }

    /// Whether the user signed out, or signed in to another account, since the connection was
    /// opened.
    pub(crate) async fn is_outdated(&self) -> bool {
        let connection = &self.open.connection;
        connection.signed_in.follow().await;
        connection.signed_in.identity().as_deref() != connection.opened_as.as_deref()
    }

    /// The session that owns the connection; `None` if it is shared.
    pub(crate) fn owner(&self) -> Option<SessionId> {
        self.open.connection.audience.owner().map(|owner| owner.session)
    }

    /// Completes when the connection has ended, and returns how it ended.
    pub(crate) async fn ended(&self) -> ExitReason {
        self.open.connection.peer.closed().await;
        self.open.connection.end.report(EXIT_STATUS_WAIT).await.0
    }

    /// Whether the connection is still open.
    pub(crate) fn is_up(&self) -> bool {
        !self.peer().is_closed()
    }

    pub(super) fn open(&self) -> &Open {
        &self.open
    }

    fn peer(&self) -> &Peer {
        &self.open.connection.peer
    }

    /// Whether the server uses the stateless revision, so that every request carries all state.
    pub(crate) fn is_stateless(&self) -> bool {
        self.hello().is_modern()
    }

    /// The result of the handshake of this connection.
    pub(crate) fn hello(&self) -> &ServerHello {
        &self.open.connection.hello
    }

    /// Sends a request that needs no approval. The caller guarantees that `method` needs none.
    pub(crate) async fn look_up(
        &self,
        method: &str,
        params: Args,
        caller: &Caller,
    ) -> Result<Raw, CallError> {
        self.ask_with_meta(method, params, caller, Resend::Never).await
    }

    async fn ask_with_meta(
        &self,
        method: &str,
        params: Args,
        caller: &Caller,
        resend: Resend,
    ) -> Result<Raw, CallError> {
        let wanted = caller.progress.is_some();
        let params = |token: u64| {
            let token = wanted.then_some(token);
            if self.is_stateless() {
                let mut params = params;
                params.insert("_meta", self.meta(caller, token));
                return params.to_string();
            }
            with_meta(params, caller.meta.as_deref().unwrap_or(&Args::default()), token)
        };
        self.ask(method, params, caller, resend).await
    }

    /// Subscribes to changes of a resource until the return value is dropped.
    pub(crate) async fn listen(&self, uri: &str, caller: &Caller) -> Result<Listening, CallError> {
        let (steps, mut acknowledged) = mpsc::channel(1);
        let mut params = Args::of("notifications", json!({ "resourceSubscriptions": [uri] }));
        params.insert("_meta", self.meta(caller, None));
        let (connection, listener) = (self.open.connection.clone(), caller.listener.clone());
        let mut ended: Pending = Box::pin(async move {
            let ticket = connection.peer.begin();
            let _seat = connection.audience.join(ticket.id(), listener, None);
            let patience = Patience { timeout: None, progress: Some(steps) };
            let params = params.to_string();
            connection.peer.request_with(ticket, modern::LISTEN, params, patience).await
        });
        let refused = || {
            let message = "the server does not accept subscriptions to this resource";
            CallError::Refused(RpcError::new(INVALID_PARAMS, message))
        };
        let timeout = self.open.recipe.request_timeout;
        tokio::select! {
            biased;
            Some(told) = acknowledged.recv() => match accepts_resources(&told) {
                true => Ok(Listening { ended }),
                false => Err(refused()),
            },
            ended = &mut ended => Err(match ended {
                Ok(_) => refused(),
                Err(error) => self.classify(error).await,
            }),
            () = tokio::time::sleep(timeout) => Err(CallError::TimedOut(timeout)),
        }
    }

    /// Sends a notification, unless the server is stateless.
    pub(crate) async fn notify(&self, method: &str, params: &str) {
        if self.is_stateless() {
            return;
        }
        let _it_may_be_gone = self.open.connection.peer.notify(method, params).await;
    }

    async fn ask(
        &self,
        method: &str,
        params: impl FnOnce(u64) -> String,
        caller: &Caller,
        resend: Resend,
    ) -> Result<Raw, CallError> {
        let connection = &self.open.connection;
        let progress = caller.progress.clone();
        let timeout = Some(self.open.recipe.request_timeout);
        let patience = Patience { timeout, progress };
        let turn = match connection.audience.takes_turns(&caller.listener) {
            // This future is boxed, to keep the futures of all other calls small.
            true => Box::pin(connection.audience.turn(&caller.listener)).await,
            false => None,
        };
        let ticket = connection.peer.begin();
        let seat = connection.audience.join(ticket.id(), caller.listener.clone(), turn);
        let params = params(ticket.id());
        let asking = connection.peer.request_with(ticket, method, params, patience);
        let outcome = match resend {
            Resend::Never => asking.await,
            Resend::Allowed => {
                // This future is boxed, to keep the futures of all other calls small.
                let unless_parted = Box::pin(async {
                    tokio::select! {
                        // `parted` is polled first: a result that follows from a declined
                        // server-to-client request is not valid.
                        biased;
                        () = connection.audience.parted() => None,
                        outcome = asking => Some(outcome),
                    }
                });
                let Some(outcome) = unless_parted.await else { return Err(CallError::Parted) };
                outcome
            }
        };
        match self.settle(seat, outcome) {
            Ok(result) => Ok(result),
            Err(error) => Err(Box::pin(self.classify(error)).await),
        }
    }

    /// Records the outcome of the call that this seat registered.
    pub(super) fn settle(
        &self,
        seat: Seat<'_>,
        outcome: Result<Raw, RequestError>,
    ) -> Result<Raw, RequestError> {
        if !matches!(outcome, Err(RequestError::TimedOut(_))) {
            seat.answered();
        }
        let unwelcome = &self.open.unwelcome;
        match &outcome {
            Ok(_) => {
                self.pass.worked();
                // The flag is loaded first, because all calls share it and a store is more
                // expensive.
                if unwelcome.load(Ordering::Relaxed) {
                    unwelcome.store(false, Ordering::Relaxed);
                }
            }
            Err(RequestError::Http(HttpError::SignIn { .. })) => {
                unwelcome.store(true, Ordering::Relaxed);
            }
            Err(_) => {}
        }
        outcome
    }

    pub(super) async fn classify(&self, error: RequestError) -> CallError {
        let ended = match matches!(error, RequestError::Closed) {
            true => self.open.connection.end.report(EXIT_STATUS_WAIT).await,
            false => (ExitReason::StreamClosed, Vec::new()),
        };
        CallError::of(error, || ended)
    }
}

/// The future of a request in flight.
type Pending = Pin<Box<dyn Future<Output = Result<Raw, RequestError>> + Send>>;

/// A subscription at a stateless server, which ends when this value is dropped.
pub(crate) struct Listening {
    ended: Pending,
}

impl Listening {
    /// Completes when the server or the connection ends the subscription.
    pub(crate) async fn over(&mut self) {
        let _whatever_it_said = (&mut self.ended).await;
    }
}

fn accepts_resources(acknowledgement: &Raw) -> bool {
    #[derive(Deserialize)]
    struct Acknowledged {
        notifications: Accepted,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Accepted {
        resource_subscriptions: Vec<String>,
    }
    let accepted = acknowledgement.parse::<Acknowledged>();
    accepted.is_ok_and(|accepted| !accepted.notifications.resource_subscriptions.is_empty())
}

/// Serialises the values that were checked and approved, never the text that was received.
///
/// Progress is requested even if the caller did not request it: each progress notification extends
/// the timeout of a long call.
fn call_params(approved: &Approved, token: u64) -> String {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"{\"name\":");
    write_text(&mut out, approved.target().entry.name.as_str());
    out.extend_from_slice(b",\"arguments\":");
    serde_json::to_writer(&mut out, approved.args()).expect("arguments always serialise");
    out.extend_from_slice(format!(",\"_meta\":{{\"progressToken\":{token}}}}}").as_bytes());
    String::from_utf8(out).expect("JSON is written as UTF-8")
}

/// The parameters of a call as a value, for calls with `_meta` and for prompts.
pub(super) fn named(approved: &Approved) -> Args {
    let mut params = Args::of("name", Value::from(approved.target().entry.name.as_str()));
    params.insert("arguments", approved.args().clone());
    params
}

fn with_meta(mut params: Args, meta: &Args, token: Option<u64>) -> String {
    let mut meta = meta.clone();
    stateless::forget_reserved(&mut meta);
    if let Some(token) = token {
        meta.insert("progressToken", Value::from(token));
    }
    if !meta.is_empty() {
        params.insert("_meta", meta);
    }
    params.to_string()
}
