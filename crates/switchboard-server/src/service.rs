//! MCP methods as requests of a session: reads, translates, answers; decides nothing.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hashbrown::HashMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use switchboard::request::{self, Arguments, Request};
use switchboard::{Gateway, Session, explain, tool_card};
use switchboard_wire::envelope::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Malformed};
use switchboard_wire::era::Revision;
use switchboard_wire::{Handler, Id, Notification, Peer, Raw, Responder, RpcError};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;

use crate::answer;
use crate::host::ClientHost;

/// Progress steps that may wait for a slow client before some are skipped.
const WAITING_STEPS: usize = 16;

/// How long calls may take to notice that they were given up.
const GIVING_UP: Duration = Duration::from_secs(1);

/// What one client asks.
pub(crate) struct Service {
    session: Arc<Session>,
    host: ClientHost,
    calls: Calls,
}

/// The requests that were accepted and not answered yet.
#[derive(Clone, Default)]
pub(crate) struct Calls {
    running: TaskTracker,
    /// By the client's own id, to cancel them and to refuse an id that is in use.
    by_id: Arc<Mutex<HashMap<Id, AbortHandle>>>,
}

impl Service {
    pub(crate) fn new(gateway: &Gateway, peer: Peer) -> Service {
        let host = ClientHost::new(peer);
        let session = Arc::new(gateway.session(host.clone()));
        Service { session, host, calls: Calls::default() }
    }

    pub(crate) fn calls(&self) -> Calls {
        self.calls.clone()
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

    fn by_id(&self) -> std::sync::MutexGuard<'_, HashMap<Id, AbortHandle>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler for Service {
    fn request(&mut self, method: String, params: Option<Raw>, responder: Responder) {
        let id = responder.id().clone();
        let mut by_id = self.calls.by_id();
        if by_id.contains_key(&id) {
            let error = RpcError::new(INVALID_REQUEST, "a request with this id is in flight");
            self.calls.running.spawn(async move { responder.error(&error).await });
            return;
        }
        if method == "initialize" {
            self.host.learn(params.as_ref());
        }
        let session = Arc::clone(&self.session);
        let registered = Arc::clone(&self.calls.by_id);
        let key = id.clone();
        // Boxed, because spawning moves a future a dozen times.
        let task = self.calls.running.spawn(Box::pin(async move {
            respond(&session, &method, params, responder).await;
            registered.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        }));
        by_id.insert(id, task.abort_handle());
    }

    fn notification(&mut self, notification: Notification) {
        if let Some(id) = cancelled_id(&notification)
            && let Some(call) = self.calls.by_id().remove(&id)
        {
            call.abort();
        }
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

async fn respond(session: &Session, method: &str, params: Option<Raw>, responder: Responder) {
    if method == "tools/call" {
        return call_tool(session, params, responder).await;
    }
    match Box::pin(answer_method(session, method, params.as_ref())).await {
        Ok(result) => responder.result(|out| out.push_str(&result)).await,
        Err(error) => responder.error(&error).await,
    }
}

async fn answer_method(
    session: &Session,
    method: &str,
    params: Option<&Raw>,
) -> Result<String, RpcError> {
    match method {
        "initialize" => Ok(initialize(params)),
        "ping" => Ok("{}".to_owned()),
        "tools/list" => Ok(format!("{{\"tools\":[{}]}}", tool_card::definition())),
        "prompts/list" => ask(session, Request::Prompts { server: None })
            .await
            .map(|reply| answer::prompts(&reply)),
        "prompts/get" => {
            let named: Named<'_> = read(params)?;
            let args = named.arguments.unwrap_or_default();
            let request = Request::Prompt { name: named.name.into_owned(), server: None, args };
            ask(session, request).await.map(answer::raw)
        }
        "resources/list" => ask(session, Request::Resources { server: None })
            .await
            .map(|reply| answer::resources(&reply)),
        "resources/templates/list" => Ok("{\"resourceTemplates\":[]}".to_owned()),
        "resources/read" => {
            let located: Located<'_> = read(params)?;
            let request = Request::ReadResource { uri: located.uri.into_owned(), server: None };
            ask(session, request).await.map(answer::raw)
        }
        _ => Err(RpcError::new(METHOD_NOT_FOUND, "this method is not offered")),
    }
}

async fn ask(session: &Session, request: Request) -> Result<switchboard::reply::Reply, RpcError> {
    session.handle(request).await.map_err(|failure| answer::protocol_error(&failure))
}

fn initialize(params: Option<&Raw>) -> String {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Hello {
        protocol_version: String,
    }
    let requested = params.and_then(|params| params.parse::<Hello>().ok());
    let requested = requested.map(|hello| hello.protocol_version).unwrap_or_default();
    json!({
        "protocolVersion": Revision::negotiate(&requested).as_str(),
        "capabilities": { "tools": {}, "prompts": {}, "resources": {} },
        "serverInfo": {
            "name": "switchboard",
            "title": "Switchboard",
            "version": env!("CARGO_PKG_VERSION"),
        },
    })
    .to_string()
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct Located<'a> {
    #[serde(borrow)]
    uri: Cow<'a, str>,
}

fn read<'a, T: Deserialize<'a>>(params: Option<&'a Raw>) -> Result<T, RpcError> {
    let missing = || RpcError::new(INVALID_PARAMS, "`params` is missing");
    params.ok_or_else(missing)?.parse().map_err(|error: serde_json::Error| {
        RpcError::new(INVALID_PARAMS, format!("`params` does not read: {error}"))
    })
}

/// The one tool. Whatever goes wrong inside it is a result that the model can read.
async fn call_tool(session: &Session, params: Option<Raw>, responder: Responder) {
    #[derive(Deserialize)]
    struct Call<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
        #[serde(default)]
        arguments: Arguments,
        #[serde(borrow, default, rename = "_meta")]
        meta: Option<Meta<'a>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Meta<'a> {
        #[serde(borrow, default)]
        progress_token: Option<&'a RawValue>,
    }

    let call: Call<'_> = match read(params.as_ref()) {
        Ok(call) => call,
        Err(error) => return responder.error(&error).await,
    };
    if call.name != tool_card::NAME {
        let message = format!("there is one tool here, `{}`", tool_card::NAME);
        return responder.error(&RpcError::new(INVALID_PARAMS, message)).await;
    }
    let parsed = match request::parse(call.arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            let failure = explain::request_error(error);
            return responder.result(|out| answer::failure(out, &failure)).await;
        }
    };
    let token = call.meta.and_then(|meta| meta.progress_token);
    let outcome = match token {
        None => session.handle(parsed.request).await,
        Some(token) => {
            Box::pin(with_progress(session, parsed.request, token, responder.peer())).await
        }
    };
    match outcome {
        Ok(reply) => responder.result(|out| answer::reply(out, &reply, &parsed.ignored)).await,
        Err(failure) => responder.result(|out| answer::failure(out, &failure)).await,
    }
}

/// Passes the steps of a call on under the client's own token, all of them before the answer.
async fn with_progress(
    session: &Session,
    request: Request,
    token: &RawValue,
    client: &Peer,
) -> Result<switchboard::reply::Reply, switchboard::failure::Failure> {
    let (sender, mut steps) = mpsc::channel(WAITING_STEPS);
    let mut call = std::pin::pin!(session.handle_with_progress(request, Some(sender)));
    let outcome = loop {
        tokio::select! {
            biased;
            Some(step) = steps.recv() => pass_on(&step, token, client),
            outcome = &mut call => break outcome,
        }
    };
    while let Ok(step) = steps.try_recv() {
        pass_on(&step, token, client);
    }
    outcome
}

fn pass_on(step: &Raw, token: &RawValue, client: &Peer) {
    let Ok(mut step) = step.parse::<Map<String, Value>>() else { return };
    let Ok(token) = serde_json::from_str(token.get()) else { return };
    step.insert("progressToken".to_owned(), token);
    client.try_notify("notifications/progress", &Value::Object(step).to_string());
}
