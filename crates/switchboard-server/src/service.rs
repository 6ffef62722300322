//! One client: its requests, each in a task of its own, until they are answered or given up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hashbrown::HashMap;
use serde::Deserialize;
use serde_json::Value;
use switchboard::exact::Args;
use switchboard::{Caller, Gateway, Session};
use switchboard_wire::envelope::{INVALID_REQUEST, Malformed};
use switchboard_wire::{Handler, Id, Notification, Peer, Raw, Responder, RpcError};
use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;

use crate::answer::Answer;
use crate::host::{ClientHost, Manner};
use crate::mirror::Mirror;
use crate::news::{List, News};
use crate::proxy;

/// How long calls may take to notice that they were given up.
const GIVING_UP: Duration = Duration::from_secs(1);

/// What one client asks.
pub(crate) struct Service {
    session: Arc<Session>,
    host: ClientHost,
    /// Set where one server is shown as it is.
    mirror: Option<Arc<Mirror>>,
    calls: Calls,
    news: News,
}

/// What a client is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// The one tool, for all servers.
    Proxy,
    /// One server as it is, by its name in the configuration.
    Mirror(String),
}

/// The requests that were accepted and not answered yet.
#[derive(Clone, Default)]
pub(crate) struct Calls {
    running: TaskTracker,
    accepted: Arc<AtomicU64>,
    by_id: ById,
}

/// By the client's own id, to cancel them and to refuse an id that is in use.
type ById = Arc<Mutex<HashMap<Id, Running>>>;

struct Running {
    /// Tells it from an earlier request with the same id.
    number: u64,
    /// Set as soon as it runs.
    task: Option<AbortHandle>,
}

impl Running {
    fn abort(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// The id of a request is in use for as long as this lives: a client may use it again as soon as it
/// has the answer.
struct InUse {
    by_id: ById,
    id: Id,
    number: u64,
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut by_id = self.by_id.lock().unwrap_or_else(PoisonError::into_inner);
        if by_id.get(&self.id).is_some_and(|running| running.number == self.number) {
            by_id.remove(&self.id);
        }
    }
}

impl Service {
    pub(crate) fn new(gateway: &Gateway, offer: &Offer, peer: Peer) -> Service {
        let (session, host, mirror) = match offer {
            Offer::Proxy => {
                let host = ClientHost::new(peer, Manner::OneOfMany);
                (gateway.session(host.clone()), host, None)
            }
            Offer::Mirror(server) => {
                let host = ClientHost::new(peer, Manner::Verbatim);
                let mirror = Arc::new(Mirror::of(server));
                (gateway.private_session(host.clone()), host, Some(mirror))
            }
        };
        let news = match mirror {
            None => News::default(),
            // The server tells of its own lists.
            Some(_) => News::none(),
        };
        let calls = Calls::default();
        Service { session: Arc::new(session), host, mirror, calls, news }
    }

    pub(crate) fn calls(&self) -> Calls {
        self.calls.clone()
    }

    /// What a notification says, if servers are told of it.
    fn params_to_pass_on(&self, notification: &Notification) -> Option<String> {
        let params = match (&self.mirror, notification.method.as_str()) {
            // Said to us, about our own connection with the client.
            (_, "notifications/initialized" | "notifications/cancelled") => return None,
            (_, "notifications/roots/list_changed") | (Some(_), _) => notification.params.as_ref(),
            (None, _) => return None,
        };
        match params {
            None => Some(String::new()),
            Some(params) => Some(params.parse::<Args>().ok()?.to_string()),
        }
    }

    /// Questions about a request travel with it, where the transport can tell.
    fn caller(&self, responder: &Responder) -> Caller {
        let caller = self.session.caller();
        match responder.exchange() {
            None => caller,
            Some(_) => caller.with_host(Arc::new(self.host.at(responder.peer()))),
        }
    }
}

impl Calls {
    /// Waits until everything is answered, at most for `limit`; the rest is given up.
    pub(crate) async fn drain(&self, limit: Duration) {
        self.running.close();
        if tokio::time::timeout(limit, self.running.wait()).await.is_err() {
            for (_, call) in self.by_id().drain() {
                call.abort();
            }
            // What is left waits for a client that does not read.
            let _given_up = tokio::time::timeout(GIVING_UP, self.running.wait()).await;
        }
    }

    /// Takes an id into use; `None` if it is already.
    fn register(&self, id: &Id) -> Option<InUse> {
        let mut by_id = self.by_id();
        if by_id.contains_key(id) {
            return None;
        }
        let number = self.accepted.fetch_add(1, Ordering::Relaxed);
        by_id.insert(id.clone(), Running { number, task: None });
        Some(InUse { by_id: Arc::clone(&self.by_id), id: id.clone(), number })
    }

    fn by_id(&self) -> std::sync::MutexGuard<'_, HashMap<Id, Running>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler for Service {
    fn request(&mut self, method: String, params: Option<Raw>, responder: Responder) {
        let id = responder.id().clone();
        let Some(in_use) = self.calls.register(&id) else {
            let error = RpcError::new(INVALID_REQUEST, "a request with this id is in flight");
            self.calls.running.spawn(async move { responder.error(&error).await });
            return;
        };
        match method.as_str() {
            "initialize" => self.host.learn(params.as_ref()),
            "logging/setLevel" => self.host.heed(params.as_ref()),
            "prompts/list" => self.news.follow(List::Prompts, &self.session, &self.host),
            "resources/list" | "resources/templates/list" => {
                self.news.follow(List::Resources, &self.session, &self.host);
            }
            _ => {}
        }
        let session = Arc::clone(&self.session);
        let caller = self.caller(&responder);
        let mirror = self.mirror.clone();
        let number = in_use.number;
        let responder = responder.holding(in_use);
        // Boxed, because spawning moves a future a dozen times.
        let task = self.calls.running.spawn(Box::pin(async move {
            let (session, params, client) = (&session, params.as_ref(), responder.peer());
            let answer = match (mirror, method.as_str()) {
                (_, "ping") => Ok(Answer::json("{}")),
                (None, method) => proxy::answer(session, caller, method, params, client).await,
                (Some(mirror), method) => {
                    Box::pin(mirror.answer(session, caller, method, params, client)).await
                }
            };
            match answer {
                Ok(answer) => responder.result(|out| answer.write(out)).await,
                Err(error) => responder.error(&error).await,
            }
        }));
        if let Some(running) = self.calls.by_id().get_mut(&id).filter(|r| r.number == number) {
            running.task = Some(task.abort_handle());
        }
    }

    fn notification(&mut self, notification: Notification) {
        if let Some(id) = cancelled_id(&notification)
            && let Some(call) = self.calls.by_id().remove(&id)
        {
            call.abort();
        }
        let Some(params) = self.params_to_pass_on(&notification) else { return };
        let session = Arc::clone(&self.session);
        self.calls.running.spawn(async move {
            session.tell_own_servers(&notification.method, &params).await;
        });
    }

    fn malformed(&mut self, error: &Malformed, peer: &Peer) {
        let (error, peer) = (error.clone(), peer.clone());
        self.calls.running.spawn(async move { peer.refuse(&error).await });
    }
}

/// The request that the client no longer wants, if that is what it says.
pub(crate) fn cancelled_id(notification: &Notification) -> Option<Id> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled {
        request_id: Value,
    }
    if notification.method != "notifications/cancelled" {
        return None;
    }
    match notification.params.as_ref()?.parse::<Cancelled>().ok()?.request_id {
        Value::Number(number) => Some(Id::Number(number)),
        Value::String(text) => Some(Id::Text(text)),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
