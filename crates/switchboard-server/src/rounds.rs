//! Calls of stateless clients: a server-to-client request becomes the result of a request, and the
//! call continues with the client's next request, which brings the response.
//!
//! Between two requests of the client, the call is parked under an unguessable `requestState`, for
//! a limited time.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hashbrown::HashMap;
use hashbrown::hash_map::EntryRef;
use serde_json::Value;
use switchboard::exact::{Args, Exact, parsed_size};
use switchboard::host::Topic;
use switchboard::secret::unguessable;
use switchboard_wire::{Peer, Raw, RequestError, RpcError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::answer::McpResult;
use crate::lock::lock;
use crate::params::{WAITING_STEPS, invalid_params, pass_on};

/// How long a parked call waits for the client's next request. The user may need this time to
/// answer.
const PARKED: Duration = Duration::from_secs(10 * 60);

/// The maximum number of parked calls. A further call replaces the oldest.
const MOST: usize = 64;

/// The maximum memory of the requests of all parked calls, as estimated. Above it, the oldest calls
/// are dropped.
const MOST_MEMORY: usize = 32 * 1024 * 1024;

/// The maximum number of messages of a call that are queued for its client. Further notifications
/// are dropped.
const WAITING_WORDS: usize = 64;

/// Sends the messages of a call to its client.
#[derive(Clone, Debug)]
pub(crate) struct CallSender(mpsc::Sender<CallMessage>);

#[derive(Debug)]
enum CallMessage {
    Request(InputRequest),
    Notification { method: String, params: String },
}

#[derive(Debug)]
struct InputRequest {
    topic: Topic,
    /// The key that the server chose for the request; `None` if it chose none.
    key: Option<String>,
    params: String,
    answer: oneshot::Sender<Raw>,
}

impl CallSender {
    /// Sends a request to the client, and waits until a later request of the client contains the
    /// response.
    pub(crate) async fn ask(
        &self,
        topic: Topic,
        key: Option<&str>,
        params: String,
    ) -> Result<Raw, RequestError> {
        let (answer, answered) = oneshot::channel();
        let ask = InputRequest { topic, key: key.map(str::to_owned), params, answer };
        self.0.send(CallMessage::Request(ask)).await.map_err(|_| RequestError::NotSent)?;
        answered.await.map_err(|_| RequestError::Closed)
    }

    /// Sends a notification to the client, which may be lost.
    pub(crate) fn say(&self, method: &str, params: &str) {
        let word =
            CallMessage::Notification { method: method.to_owned(), params: params.to_owned() };
        let _lost_when_full = self.0.try_send(word);
    }
}

type CallFuture = Pin<Box<dyn Future<Output = Result<McpResult, RpcError>> + Send>>;

/// One call of a stateless client, which may span several requests of the client.
pub(crate) struct Rounds {
    /// The parameters of the original request. The client must repeat them exactly.
    request: Args,
    call: CallFuture,
    words: mpsc::Receiver<CallMessage>,
    steps: mpsc::Receiver<Raw>,
    /// Responses that the client sent before they were requested.
    given: Args,
    open: Vec<Open>,
}

/// A request that the client has not answered.
struct Open {
    key: String,
    ask: InputRequest,
}

/// How one request of a call ends.
pub(crate) enum Turn {
    Done(Result<McpResult, RpcError>),
    /// The call needs responses of the client before it can continue.
    Asks(Box<Rounds>),
}

impl Rounds {
    /// Begins a call. `call` gets two senders to the client: one for messages, one for progress.
    /// `given` holds responses that the client sent before the server requested them.
    pub(crate) fn begin(
        request: Args,
        given: Args,
        call: impl FnOnce(CallSender, mpsc::Sender<Raw>) -> CallFuture,
    ) -> Box<Rounds> {
        let (say, words) = mpsc::channel(WAITING_WORDS);
        let (step, steps) = mpsc::channel(WAITING_STEPS);
        let call = call(CallSender(say), step);
        Box::new(Rounds { request, call, words, steps, given, open: Vec::new() })
    }

    /// Continues the call during one request of the client, until it has a result or sends a
    /// server-to-client request.
    pub(crate) async fn go_on(mut self: Box<Rounds>, client: &Peer, token: Option<&Exact>) -> Turn {
        let step = |step: &Raw| token.into_iter().for_each(|token| pass_on(step, token, client));
        while self.open.is_empty() {
            tokio::select! {
                biased;
                Some(taken) = self.steps.recv() => step(&taken),
                Some(word) = self.words.recv() => {
                    self.deliver(word, client);
                    while let Ok(word) = self.words.try_recv() {
                        self.deliver(word, client);
                    }
                }
                outcome = &mut self.call => {
                    while let Ok(taken) = self.steps.try_recv() {
                        step(&taken);
                    }
                    while let Ok(word) = self.words.try_recv() {
                        self.deliver(word, client);
                    }
                    return Turn::Done(outcome);
                }
            }
        }
        Turn::Asks(self)
    }

    fn deliver(&mut self, word: CallMessage, client: &Peer) {
        match word {
            CallMessage::Notification { method, params } => client.try_notify(&method, &params),
            CallMessage::Request(ask) => {
                // Only keys that the server chose are known to a client in advance, so only these
                // requests can have an early response.
                let given = ask.key.as_deref().and_then(|key| self.given.take(key));
                match given {
                    Some(answer) => drop(ask.answer.send(raw(&answer))),
                    None => self.open.push(Open { key: self.free_key(&ask), ask }),
                }
            }
        }
    }

    /// A key that no other open request of the call has.
    fn free_key(&self, ask: &InputRequest) -> String {
        let ours = (1..).map(|number| format!("{}-{number}", ask.topic.ability()));
        let mut keys = ask.key.clone().into_iter().chain(ours);
        let free = |key: &String| !self.open.iter().any(|open| open.key == *key);
        keys.find(free).expect("there is always one more number")
    }

    /// Passes the client's responses to the call. Requests without a response are sent again.
    fn take(&mut self, mut answers: Args) {
        for Open { key, ask } in std::mem::take(&mut self.open) {
            match answers.take(&key) {
                Some(answer) => drop(ask.answer.send(raw(&answer))),
                None => self.open.push(Open { key, ask }),
            }
        }
    }

    /// The `input_required` result; `state` identifies the parked call.
    fn questions(&self, state: &str) -> Result<McpResult, serde_json::Error> {
        let mut requests = serde_json::Map::new();
        for Open { key, ask } in &self.open {
            let params = if ask.params.is_empty() { "{}" } else { &ask.params };
            let params: Value = serde_json::from_str(params)?;
            requests.insert(
                key.clone(),
                serde_json::json!({ "method": ask.topic.method(), "params": params }),
            );
        }
        let result = serde_json::json!({
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": state,
        });
        Ok(McpResult::json(result.to_string()))
    }
}

fn raw(answer: &Exact) -> Raw {
    Raw::from_json(serde_json::to_string(answer).unwrap_or_default())
}

/// All parked calls of a conversation.
#[derive(Clone, Default)]
pub(crate) struct Parking {
    /// The parked calls, keyed by `requestState`. The lock is held briefly, never across an await.
    places: Arc<Mutex<HashMap<String, ParkedCall>>>,
}

struct ParkedCall {
    rounds: Box<Rounds>,
    since: Instant,
    /// The memory of the call's request, as estimated.
    size: usize,
    /// The task that drops the call after [`PARKED`].
    _expiry: AbortOnDropHandle<()>,
}

impl Parking {
    /// Parks a call, and returns the result that requests input.
    pub(crate) fn park(&self, rounds: Box<Rounds>) -> Result<McpResult, RpcError> {
        let state = unguessable();
        let unreadable = |_| invalid_params("the server's request is malformed");
        let questions = rounds.questions(&state).map_err(unreadable)?;
        let (places, name) = (Arc::downgrade(&self.places), state.clone());
        let expiry = tokio::spawn(async move {
            tokio::time::sleep(PARKED).await;
            if let Some(places) = places.upgrade() {
                let expired = lock(&places).remove(&name);
                drop(expired);
            }
        });
        let (size, since) = (parsed_size(&rounds.request.to_string()), Instant::now());
        let place = ParkedCall { rounds, since, size, _expiry: AbortOnDropHandle::new(expiry) };
        let mut places = lock(&self.places);
        let mut given_up = Vec::new();
        let is_full = |places: &HashMap<String, ParkedCall>| {
            let memory = places.values().map(|place| place.size).sum::<usize>() + size;
            places.len() >= MOST || memory > MOST_MEMORY && !places.is_empty()
        };
        while is_full(&places) {
            let oldest = places.iter().min_by_key(|(_, place)| place.since);
            let oldest = oldest.map(|(name, _)| name.clone());
            given_up.extend(oldest.and_then(|name| places.remove(&name)));
        }
        places.insert(state, place);
        drop(places);
        drop(given_up);
        Ok(questions)
    }

    /// Resumes the call that `state` identifies with the client's responses.
    pub(crate) fn resume(
        &self,
        state: &str,
        request: &Args,
        answers: Args,
    ) -> Result<Box<Rounds>, RpcError> {
        let mut places = lock(&self.places);
        let EntryRef::Occupied(place) = places.entry_ref(state) else {
            return Err(invalid_params("unknown or expired `requestState`"));
        };
        if place.get().rounds.request != *request {
            return Err(invalid_params("this `requestState` belongs to another request"));
        }
        let ParkedCall { mut rounds, .. } = place.remove();
        drop(places);
        rounds.take(answers);
        Ok(rounds)
    }

    /// Drops every parked call.
    pub(crate) fn clear(&self) {
        let given_up = std::mem::take(&mut *lock(&self.places));
        drop(given_up);
    }
}

/// Parses `inputResponses`, which must be an object whose values are objects.
pub(crate) fn read_answers(answers: Exact) -> Result<Args, RpcError> {
    let answers: Option<Args> = answers.try_into().ok();
    let answers = answers.filter(|answers| answers.values().values().all(Value::is_object));
    answers.ok_or_else(|| invalid_params("`inputResponses` must be an object of objects"))
}

#[cfg(test)]
mod tests;
