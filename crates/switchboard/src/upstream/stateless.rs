//! Calls of a stateless server: every request names its client. If the server needs input, it returns
//! its requests inside the response, and the call is sent again with the answers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard_core::approval::Approved;
use switchboard_core::catalog::EntryKind;
use switchboard_core::exact::{Args, Exact};
use switchboard_core::render::words::clean_line;
use switchboard_core::schema;
use switchboard_wire::modern::{self, meta};
use switchboard_wire::peer::Patience;
use switchboard_wire::{Peer, Raw, RequestError, RpcError};

use super::CallError;
use super::incoming::{LARGEST_QUESTION, USER_ANSWER_TIMEOUT};
use super::lease::{Caller, Lease, named};
use crate::host::{ServerQuestion, Topic};

/// The maximum number of rounds of input requests within one call.
const ROUNDS: usize = 8;

/// The maximum number of input requests in one response.
const QUESTIONS: usize = 16;

/// The maximum size of `requestState`, in bytes.
const LARGEST_STATE: usize = 64 * 1024;

/// The maximum length of a text of the server in an error message, in characters.
const SHOWN: usize = 64;

/// Why a call of a stateless server failed after the server had responded.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum DialogueError {
    #[error("the server's result has the unsupported type `{0}`")]
    ResultType(String),
    #[error("the server's result is malformed")]
    Malformed,
    #[error("the server requested input more than {ROUNDS} times")]
    Rounds,
    #[error("the server sent more than {QUESTIONS} input requests in one response")]
    Questions,
    #[error("the server sent an input request larger than {LARGEST_QUESTION} bytes")]
    QuestionTooLarge,
    #[error("the server's `requestState` is larger than {LARGEST_STATE} bytes")]
    StateTooLarge,
    #[error("the server requested `{0}`, which no client offers")]
    Method(String),
    #[error("the server requested {0}, which this client does not offer")]
    NotOffered(&'static str),
    #[error("the server requested {ability}, and the client answered with an error: {said}")]
    Refused { ability: &'static str, said: String },
    #[error("the server requested {0}, and the client did not answer in time")]
    Unanswered(&'static str),
}

impl Lease {
    /// Makes an approved call of a stateless server.
    pub(super) async fn call_stateless(
        &self,
        approved: &Approved,
        caller: &Caller,
    ) -> Result<Raw, CallError> {
        let peer = &self.open().connection.peer;
        let entry = &approved.target().entry;
        match &entry.kind {
            EntryKind::Resource { uri, .. } => {
                let params = Args::of("uri", Value::from(uri.as_str()));
                self.converse(peer, "resources/read", params, caller).await
            }
            EntryKind::Prompt => self.converse(peer, "prompts/get", named(approved), caller).await,
            EntryKind::Tool => {
                let labels = self.labels(approved);
                let labelled = (!labels.is_empty()).then(|| peer.labelled(labels.into()));
                let peer = labelled.as_ref().unwrap_or(peer);
                self.converse(peer, "tools/call", named(approved), caller).await
            }
        }
    }

    /// The arguments that are also sent as HTTP headers.
    fn labels(&self, approved: &Approved) -> Vec<(String, String)> {
        let entry = &approved.target().entry;
        let has_headers = self.open().recipe.transport.has_headers();
        if !has_headers || !entry.input_schema().contains("x-mcp-header") {
            return Vec::new();
        }
        let mirrored = schema::mirrored(&entry.input_value(), approved.args().values());
        // A tool with an invalid header mapping is not listed.
        mirrored.unwrap_or_default()
    }

    /// Sends the call. While the server returns input requests, sends a new request with the
    /// client's responses, for at most `ROUNDS` rounds.
    async fn converse(
        &self,
        peer: &Peer,
        method: &str,
        mut params: Args,
        caller: &Caller,
    ) -> Result<Raw, CallError> {
        for round in 0..=ROUNDS {
            let answer = self.ask_stateless(peer, method, &params, caller).await?;
            let Some(required) = InputRequired::of(&answer)? else { return Ok(answer) };
            if round == ROUNDS {
                break;
            }
            params.insert("inputResponses", self.answers(&required, caller).await?);
            drop(params.take("requestState"));
            if let Some(state) = required.state {
                params.insert("requestState", state);
            }
        }
        Err(DialogueError::Rounds.into())
    }

    async fn ask_stateless(
        &self,
        peer: &Peer,
        method: &str,
        params: &Args,
        caller: &Caller,
    ) -> Result<Raw, CallError> {
        let open = self.open();
        let ticket = peer.begin();
        let seat = open.connection.audience.join(ticket.id(), caller.listener.clone(), None);
        let mut params = params.clone();
        params.insert("_meta", self.meta(caller, Some(ticket.id())));
        let params = params.to_string();
        let (timeout, progress) = (Some(open.recipe.request_timeout), caller.progress.clone());
        let asked = peer.request_with(ticket, method, params, Patience { timeout, progress }).await;
        match self.settle(seat, asked) {
            Ok(answer) => Ok(answer),
            Err(RequestError::Refused(refusal)) if refusal.code == modern::HEADER_MISMATCH => {
                Err(CallError::Outdated(refusal))
            }
            Err(error) => Err(self.classify(error).await),
        }
    }

    /// The `_meta` of a request: the client's information, with the capabilities that the settings
    /// permit.
    pub(super) fn meta(&self, caller: &Caller, token: Option<u64>) -> Args {
        let open = self.open();
        let mut members = caller.meta.as_deref().cloned().unwrap_or_default();
        let (info, level) = (members.take(meta::CLIENT_INFO), members.take(meta::LOG_LEVEL));
        forget_reserved(&mut members);
        let abilities = caller.listener.host.abilities().only(&open.recipe.askable);
        members.insert(meta::PROTOCOL_VERSION, Value::from(modern::REVISION));
        members.insert(meta::CLIENT_INFO, info.unwrap_or_else(own_info));
        let abilities = Exact::parse(&abilities.to_json());
        members.insert(meta::CLIENT_CAPABILITIES, abilities.unwrap_or_else(|_| json!({}).into()));
        let of_session = || open.log_levels.of(Some(caller.listener.session));
        let level = level.or_else(|| Some(Value::from(of_session()?.as_str()).into()));
        if let Some(level) = level {
            members.insert(meta::LOG_LEVEL, level);
        }
        if let Some(token) = token {
            members.insert("progressToken", Value::from(token));
        }
        members
    }

    /// The client's answers to the input requests of one response. All of the requests are checked
    /// before the first one is sent to the client.
    async fn answers(
        &self,
        required: &InputRequired,
        caller: &Caller,
    ) -> Result<Args, DialogueError> {
        let host = &caller.listener.host;
        let mut questions = Vec::new();
        for (key, question) in &required.questions {
            let topic = Topic::of_method(&question.method).ok_or_else(|| {
                DialogueError::Method(clean_line(&question.method, SHOWN).into_owned())
            })?;
            let allowed = self.open().recipe.askable.contains(&topic);
            if !allowed || host.abilities().of(topic).is_none() {
                return Err(DialogueError::NotOffered(topic.ability()));
            }
            questions.push((key, topic, question.params.as_ref()));
        }
        // The requests are sent concurrently, because some clients accept them only together.
        let asking = questions.into_iter().map(|(key, topic, params)| async move {
            let server = &self.open().server;
            let ability = topic.ability();
            let refused = |error: RpcError| DialogueError::Refused {
                ability,
                said: clean_line(&error.message, SHOWN).into_owned(),
            };
            let question = ServerQuestion::new((server, Some(key)), topic, params);
            let question = question.map_err(refused)?;
            let answered = tokio::time::timeout(USER_ANSWER_TIMEOUT, host.answer(question)).await;
            let answer = answered.map_err(|_| DialogueError::Unanswered(ability))?;
            let answer = answer.map_err(refused)?;
            let answer = Exact::parse(answer.as_str()).map_err(|_| DialogueError::Malformed)?;
            Ok((key, answer))
        });
        let mut answers = Args::default();
        for (key, answer) in try_join_all(asking).await? {
            answers.insert(key, answer);
        }
        Ok(answers)
    }
}

/// Removes the members of `_meta` that each hop sets for itself.
pub(super) fn forget_reserved(members: &mut Args) {
    for reserved in
        [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES, meta::CLIENT_INFO, meta::LOG_LEVEL]
    {
        drop(members.take(reserved));
    }
}

fn own_info() -> Exact {
    json!({ "name": "switchboard", "version": env!("CARGO_PKG_VERSION") }).into()
}

/// The input that a server requires before it answers.
#[derive(Debug)]
struct InputRequired {
    questions: BTreeMap<String, InputRequest>,
    /// The server's `requestState`, which is returned to the server unchanged.
    state: Option<Exact>,
}

#[derive(Debug)]
struct InputRequest {
    method: String,
    params: Option<Raw>,
}

impl InputRequired {
    /// Parses the input requests of a response; `None` if it is the final result.
    fn of(answer: &Raw) -> Result<Option<InputRequired>, DialogueError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct StatelessResult<'a> {
            #[serde(borrow, default)]
            result_type: Option<Cow<'a, str>>,
            #[serde(borrow, default)]
            input_requests: Option<BTreeMap<String, &'a RawValue>>,
            #[serde(borrow, default)]
            request_state: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct RawInputRequest<'a> {
            method: String,
            #[serde(borrow, default)]
            params: Option<&'a RawValue>,
        }
        let answer: StatelessResult<'_> = answer.parse().map_err(|_| DialogueError::Malformed)?;
        match answer.result_type.as_deref() {
            None | Some("complete") => return Ok(None),
            Some("input_required") => {}
            Some(other) => {
                return Err(DialogueError::ResultType(clean_line(other, SHOWN).into_owned()));
            }
        }
        let requests = answer.input_requests.unwrap_or_default();
        if requests.len() > QUESTIONS {
            return Err(DialogueError::Questions);
        }
        if answer.request_state.is_some_and(|state| state.get().len() > LARGEST_STATE) {
            return Err(DialogueError::StateTooLarge);
        }
        let mut questions = BTreeMap::new();
        for (key, request) in requests {
            if request.get().len() > LARGEST_QUESTION {
                return Err(DialogueError::QuestionTooLarge);
            }
            let request: RawInputRequest<'_> =
                serde_json::from_str(request.get()).map_err(|_| DialogueError::Malformed)?;
            let params = request.params.map(|params| Raw::from_json(params.get().to_owned()));
            questions.insert(key, InputRequest { method: request.method, params });
        }
        let state = answer.request_state.map(|state| Exact::parse(state.get())).transpose();
        Ok(Some(InputRequired { questions, state: state.map_err(|_| DialogueError::Malformed)? }))
    }
}

/// Decides when to renew a subscription that the server ended.
#[derive(Debug, Default)]
pub(crate) struct Renewal {
    short: u32,
}

impl Renewal {
    const SHORTEST: Duration = Duration::from_secs(1);
    const LASTING: Duration = Duration::from_secs(30);
    /// The number of consecutive short subscriptions after which a subscription is not renewed.
    const SHORT: u32 = 5;

    /// The pause before the subscription is renewed; `None` if it is not renewed.
    pub(crate) fn after(&mut self, lasted: Duration) -> Option<Duration> {
        if lasted >= Self::LASTING {
            self.short = 0;
        }
        if self.short == Self::SHORT {
            return None;
        }
        let pause = Self::SHORTEST * 2_u32.pow(self.short);
        self.short += 1;
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &str, expected: &str) {
        let required = InputRequired::of(&Raw::from_json(answer.to_owned()));
        let shown = match required {
            Ok(None) => "a result".to_owned(),
            Ok(Some(InputRequired { questions, state })) => {
                let asked: Vec<String> = questions
                    .iter()
                    .map(|(key, asked)| format!("{key} {}", asked.method))
                    .collect();
                let state = state.map(|state| state.into_value().to_string());
                format!("{} {}", asked.join(", "), state.unwrap_or_default())
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected, "{answer:.100}");
    }

    #[test]
    fn result_type_distinguishes_result_and_input_request() {
        check("{}", "a result");
        check(r#"{"resultType":"complete","inputRequests":7}"#, "the server's result is malformed");
        check(r#"{"resultType":"complete","content":[]}"#, "a result");
        check(r#"{"resultType":"task"}"#, "the server's result has the unsupported type `task`");
        check(r#"{"resultType":3}"#, "the server's result is malformed");
        check(r#"{"resultType":"input_required"}"#, " ");
        check(
            r#"{"resultType":"input_required","inputRequests":{"b":{"method":"roots/list"},"a":{"method":"x","params":{}}},"requestState":"s"}"#,
            r#"a x, b roots/list "s""#,
        );
        check(
            r#"{"resultType":"input_required","inputRequests":{"a":7}}"#,
            "the server's result is malformed",
        );
    }

    #[test]
    fn input_requests_beyond_their_limits_are_rejected() {
        let asking = |requests: &str, state: &str| {
            format!(
                r#"{{"resultType":"input_required","inputRequests":{{{requests}}},"requestState":"{state}"}}"#
            )
        };
        let many: Vec<String> =
            (0..=QUESTIONS).map(|n| format!(r#""{n}":{{"method":"roots/list"}}"#)).collect();
        check(
            &asking(&many.join(","), ""),
            "the server sent more than 16 input requests in one response",
        );
        let large = format!(r#""a":{{"method":"{}"}}"#, "x".repeat(LARGEST_QUESTION));
        check(&asking(&large, ""), "the server sent an input request larger than 1048576 bytes");
        check(
            &asking("", &"x".repeat(LARGEST_STATE)),
            "the server's `requestState` is larger than 65536 bytes",
        );
    }

    #[test]
    fn short_lived_subscription_is_renewed_five_times() {
        let mut renewal = Renewal::default();
        let mut pauses = Vec::new();
        while let Some(pause) = renewal.after(Duration::ZERO) {
            pauses.push(pause.as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16]);
        assert_eq!(renewal.after(Renewal::LASTING), Some(Renewal::SHORTEST));
    }
}
