//! Opens a connection: performs the handshake and the first listing. Restarts a server that exits
//! at the greeting.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::json;
use serde_json::value::RawValue;
use switchboard_core::catalog::{self, RawListing};
use switchboard_wire::era::{Changes, Era, ServerHello};
use switchboard_wire::handshake::{self, ClientHello, Greeting, HandshakeError};
use switchboard_wire::peer::Patience;
use switchboard_wire::{Peer, RequestError, modern};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::audience::Audience;
use super::connection::{self, Body, Connection, DialContext, EXIT_GRACE, End};
use super::incoming::News;
use super::list::{self, ListQuery};
use super::recipe::{Recipe, Transport};
use super::stateless::Renewal;
use super::{CLOSE_GRACE, DialError};
use crate::dial::http::SignedIn;
use crate::log_level::LogLevels;

/// How long pending server-to-client requests may delay the first call.
const FIRST_REQUESTS_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a server may take to process the responses to its first requests.
const SETTLING: Duration = Duration::from_millis(50);

/// How long to wait for the response to `logging/setLevel` before the server is used anyway.
const LOG_LEVEL_TIMEOUT: Duration = Duration::from_secs(1);

/// The outcome of a dial, with the greeting to remember for the next dial.
pub(super) struct Dialled {
    pub(super) outcome: Result<(Connection, RawListing), DialError>,
    /// The greeting of the last attempt, if the server exited at an earlier greeting.
    pub(super) taught: Option<Greeting>,
}

/// The greeting for a server whose last known era is `era`.
pub(super) fn greeting(recipe: &Recipe, era: Option<catalog::Era>) -> Greeting {
    match (&recipe.transport, recipe.era.or(era)) {
        // The HTTP+SSE transport exists only in session-based revisions.
        (Transport::Remote(remote), _) if remote.is_event_stream() => Greeting::Initialize,
        (_, None) => Greeting::Probe,
        (_, Some(catalog::Era::Legacy)) => Greeting::Initialize,
        (_, Some(catalog::Era::Modern)) => Greeting::Discover,
    }
}

/// The client capabilities that a server is offered. Waits until the client is known: a program
/// that starts earlier would list its tools for a client without capabilities.
pub(super) async fn capabilities(context: &DialContext) -> String {
    let abilities = match &context.surroundings.owner {
        Some(owner) => owner.host.declares(),
        None => context.surroundings.offered.wait().await.abilities(),
    };
    abilities.only(&context.recipe.askable).to_json()
}

/// Opens a connection. A server that exits at the greeting of the other era is restarted with the
/// next greeting; such a restart is not a failure.
pub(super) async fn dial(
    context: &DialContext,
    (greeting, capabilities): (Greeting, &str),
    bodies: mpsc::Sender<Body>,
) -> Dialled {
    let mut tried = vec![greeting];
    let mut taught = None;
    let outcome = loop {
        let (opening, body) = match connection::open(context).await {
            Ok(opened) => opened,
            Err(error) => break Err(error),
        };
        let _actor_gone = bodies.send(body).await;
        let end = opening.end.clone();
        let greeting = (taught.unwrap_or(greeting), capabilities);
        match opening.complete(context, greeting).await {
            Ok(up) => break Ok(up),
            Err((_, Some(another))) if !tried.contains(&another) => {
                tried.push(another);
                taught = Some(another);
                end.report(CLOSE_GRACE * 3).await;
            }
            Err((error, _)) => break Err(error),
        }
    };
    Dialled { outcome, taught }
}

/// Why a connection could not be opened, and the greeting to try next.
type Incomplete = (DialError, Option<Greeting>);

pub(super) struct Opening {
    pub(super) peer: Peer,
    pub(super) audience: Arc<Audience>,
    pub(super) end: End,
    pub(super) stop: CancellationToken,
    /// The start timeout; longer if a launcher may have to install the server first.
    pub(super) start_timeout: Duration,
    /// The era of the server, set by the handshake.
    pub(super) era: Arc<OnceLock<Era>>,
    pub(super) signed_in: SignedIn,
}

impl Opening {
    /// Performs the handshake, lists the server and sets its log level. Dropping the future closes
    /// the connection.
    async fn complete(
        self,
        context: &DialContext,
        (greeting, capabilities): (Greeting, &str),
    ) -> Result<(Connection, RawListing), Incomplete> {
        let guard = self.stop.clone().drop_guard();
        let (name, version) = ("switchboard", env!("CARGO_PKG_VERSION"));
        let client = ClientHello { name, version, capabilities };
        let hello = self.greet(client, greeting).await?;
        let meta = hello.is_modern().then(|| client.meta());
        let meta = meta.and_then(|meta| RawValue::from_string(meta).ok()).map(Arc::from);
        let mut connection = Connection {
            peer: self.peer.clone(),
            hello: Arc::new(hello),
            audience: Arc::clone(&self.audience),
            end: self.end.clone(),
            stop: self.stop.clone(),
            meta,
            signed_in: self.signed_in.clone(),
            opened_as: None,
        };
        self.listen(&connection, context);
        let listing = match list::list_all(list_query(&connection, &context.recipe)).await {
            Ok(listing) => listing,
            Err(error) => {
                let error = self.with_last_words(error).await;
                // A probe sends both greetings, and the server may have exited at the second.
                let left = greeting == Greeting::Probe && connection.hello.is_modern();
                let left = left && matches!(error, DialError::Exited { .. });
                return Err((error, left.then_some(Greeting::Discover)));
            }
        };
        connection.opened_as = listing.identity.as_deref().map(Arc::from);
        if !connection.hello.is_modern() {
            self.set_log_level(&connection.hello, &context.surroundings.log_levels).await;
            self.answer_first_requests().await;
        }
        if self.peer.is_closed() {
            // The connection is unusable; waits for the exit reason, which the waiting callers
            // receive.
            let _if_known = self.end.report(EXIT_GRACE).await;
        }
        drop(guard.disarm());
        Ok((connection, listing))
    }

    async fn greet(
        &self,
        client: ClientHello<'_>,
        greeting: Greeting,
    ) -> Result<ServerHello, Incomplete> {
        let error = match handshake::greet(&self.peer, client, greeting, self.start_timeout).await {
            Ok(hello) => {
                let _once = self.era.set(hello.era);
                return Ok(hello);
            }
            Err(error) => error,
        };
        let another = error.another_greeting(greeting);
        let (stage, failed) = match error {
            HandshakeError::Initialize(error) => ("initialize", error),
            HandshakeError::Discover(error) => (modern::DISCOVER, error),
            HandshakeError::Hello(_) => return Err((DialError::Handshake(error), None)),
        };
        let error = match failed {
            RequestError::Refused(cause) => DialError::Refused { stage, cause },
            RequestError::TimedOut(_) => {
                let (after, stderr) = (self.start_timeout, self.end.last_words());
                DialError::TimedOut { stage, after, stderr }
            }
            RequestError::Closed | RequestError::NotSent => {
                let (exit, stderr) = self.end.report(EXIT_GRACE).await;
                DialError::Exited { exit, stderr }
            }
            RequestError::Http(error) => error.into(),
            error @ RequestError::AnswerTooLarge { .. } => {
                DialError::Handshake(HandshakeError::Initialize(error))
            }
        };
        Err((error, another))
    }

    /// Subscribes to list changes, which a stateless server sends only on request. The request is
    /// sent before the first listing, so that no change is missed.
    fn listen(&self, connection: &Connection, context: &DialContext) {
        let Changes { tools, resources, prompts } = connection.hello.capabilities.changes;
        let Some(meta) = connection.meta.clone() else { return };
        if tools || resources || prompts {
            let lists = [
                ("toolsListChanged", tools),
                ("promptsListChanged", prompts),
                ("resourcesListChanged", resources),
            ];
            let wanted: BTreeMap<&str, bool> =
                lists.into_iter().filter(|(_, sent)| *sent).collect();
            let params = json!({ "notifications": wanted, "_meta": meta }).to_string();
            let listening = listen_for_changes(self.peer.clone(), params, context.news.clone());
            context.surroundings.tasks.spawn(listening);
        }
    }

    /// Sets the log level that sessions requested before the server was connected.
    async fn set_log_level(&self, hello: &ServerHello, log_levels: &LogLevels) {
        let owner = self.audience.owner().map(|owner| owner.session);
        if let Some(level) = log_levels.of(owner).filter(|_| hello.capabilities.logging) {
            let patience = Patience { timeout: Some(LOG_LEVEL_TIMEOUT), progress: None };
            let asked = self.peer.request("logging/setLevel", level.params().to_string(), patience);
            let _its_own_affair = asked.await;
        }
    }

    /// Waits for the responses to the server-to-client requests of the start. Some servers request
    /// roots as soon as they are connected, and deny access to all directories until they have
    /// received the roots.
    async fn answer_first_requests(&self) {
        let answer_first_requests = async {
            if self.audience.answered().await.ever > 0 {
                // A server that requested roots checks each directory first, and does not report
                // the end of that check. The response to the ping at least shows that the server
                // has read the roots.
                let _pong = self.peer.request("ping", String::new(), Patience::default()).await;
                tokio::time::sleep(SETTLING).await;
            }
        };
        let _as_far_as_it_went =
            tokio::time::timeout(FIRST_REQUESTS_TIMEOUT, answer_first_requests).await;
    }

    async fn with_last_words(&self, error: DialError) -> DialError {
        match error {
            DialError::Exited { .. } => {
                let (exit, stderr) = self.end.report(EXIT_GRACE).await;
                DialError::Exited { exit, stderr }
            }
            DialError::TimedOut { stage, after, .. } => {
                DialError::TimedOut { stage, after, stderr: self.end.last_words() }
            }
            other => other,
        }
    }
}

/// The query for all lists of the server on this connection.
pub(super) fn list_query<'a>(connection: &'a Connection, recipe: &Recipe) -> ListQuery<'a> {
    let Connection { peer, hello, meta, signed_in, .. } = connection;
    ListQuery {
        peer,
        hello,
        meta: meta.as_deref(),
        mirrors_headers: hello.is_modern() && recipe.transport.has_headers(),
        signed_in,
        timeout: recipe.start_timeout,
        max_pages: recipe.max_pages,
        max_items: recipe.max_tools,
        max_bytes: recipe.max_frame_bytes,
    }
}

/// Listens for list changes until the connection ends. After a gap, all lists are requested again.
async fn listen_for_changes(peer: Peer, params: String, news: mpsc::Sender<News>) {
    let mut renewal = Renewal::default();
    loop {
        let began = Instant::now();
        match peer.request(modern::LISTEN, params.clone(), Patience::default()).await {
            Ok(_) | Err(RequestError::Http(_) | RequestError::AnswerTooLarge { .. }) => {}
            Err(RequestError::TimedOut(_) | RequestError::Closed | RequestError::NotSent) => return,
            Err(RequestError::Refused(error)) => {
                tracing::debug!(%error, "the server refused the subscription to list changes");
                return;
            }
        }
        let Some(pause) = renewal.after(began.elapsed()) else { return };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = peer.closed() => return,
        }
        let _told_already = news.try_send(News::ListChanged);
    }
}
