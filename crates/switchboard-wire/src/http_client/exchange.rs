//! One request: its POST, and the response as a body or as an event stream.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::carrier::Ended;
use super::legacy::Answers;
use super::link::{Ask, Busy, Link, Speaks, is_refused};
use super::listen::Resuming;
use super::stream::{Stream, is_event_stream};
use super::trouble::{self, HttpError, ResponseBody, content_type};
use super::{HttpTransport, legacy};
use crate::envelope::{self, METHOD_NOT_FOUND, Message};
use crate::modern::LISTEN;
use crate::peer::{Exchange, RequestError};
use crate::sse::Event;

/// The longest `Retry-After` that a request waits for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(10);

/// How many times a busy server can postpone a request before the request fails.
const MOST_POSTPONEMENTS: usize = 3;

/// How long to retry while the server refuses connections, as during a restart.
const RESTART_TIMEOUT: Duration = Duration::from_secs(3);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How long to wait for the end of a stream after its response, so that the connection can be
/// reused.
const LINGER: Duration = Duration::from_millis(500);

/// The error code that some servers return for an unknown session, with status 400.
const NO_SESSION: i64 = -32000;

/// A request to send to the server over HTTP.
pub(super) struct OutgoingRequest {
    pub(super) id: u64,
    pub(super) method: String,
    pub(super) frame: Bytes,
    /// The headers of a stateless request; `None` for a session-based one.
    pub(super) stateless: Option<HeaderMap>,
}

/// The kind of request that a response belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeStage {
    /// `initialize`, whose response determines the transport and revision.
    Opening,
    Open,
    /// A stateless request, whose response can arrive only on its own HTTP response.
    Stateless,
}

impl Link {
    /// Sends the request. When this returns, the request is completed or failed, unless the
    /// returned stream carries the responses.
    pub(super) async fn exchange(&self, request: OutgoingRequest) -> Option<Answers> {
        let OutgoingRequest { id, method, frame, stateless } = request;
        let asked = match (stateless, method.as_str()) {
            (Some(headers), LISTEN) => {
                self.ask_stateless(id, &frame, &headers).await.map(|()| None)
            }
            (Some(headers), _) => {
                // This cannot fail, because the semaphore is never closed.
                let _turn = self.turns.acquire().await;
                self.ask_stateless(id, &frame, &headers).await.map(|()| None)
            }
            (None, "initialize") => self.initialize(id, &frame).await,
            (None, _) => self.ask(id, &frame).await.map(|()| None),
        };
        asked.unwrap_or_else(|error| {
            self.inlet.fail(id, error);
            None
        })
    }

    /// Sends a message that needs no response.
    pub(super) async fn tell(&self, frame: &Bytes) -> Result<(), RequestError> {
        let response = self.post(&Ask::post(frame), None).await?;
        // Reads the body to its end, so that the connection can be reused.
        trouble::beginning(response).await;
        Ok(())
    }

    /// Sends `initialize`. It is not retried after a failure, so that the caller gets the original
    /// error.
    async fn initialize(&self, id: u64, frame: &Bytes) -> Result<Option<Answers>, RequestError> {
        self.wait_while_busy(Some(id)).await?;
        if self.speaks() == Speaks::Legacy {
            return legacy::open(self, frame).await.map(Some);
        }
        let response = self.send(&Ask::post(frame)).await?;
        let status = response.status();
        if status.is_success() {
            self.open_session(&response);
            return self.take_response(id, response, ExchangeStage::Opening).await.map(|()| None);
        }
        let error = self.refusal(response).await;
        if self.endpoint.mode != HttpTransport::Negotiated || !trouble::is_unknown_transport(status)
        {
            return Err(error);
        }
        // If HTTP+SSE fails too, the error of Streamable HTTP is the relevant one.
        legacy::open(self, frame).await.map(Some).map_err(|_| error)
    }

    async fn ask(&self, id: u64, frame: &Bytes) -> Result<(), RequestError> {
        self.ready.wait().await;
        // This cannot fail, because the semaphore is never closed.
        let _turn = self.turns.acquire().await;
        let response = self.post(&Ask::post(frame), Some(id)).await?;
        match self.speaks() {
            Speaks::Streamable => self.take_response(id, response, ExchangeStage::Open).await,
            // The response arrives on the event stream of HTTP+SSE.
            Speaks::Legacy => {
                trouble::beginning(response).await;
                Ok(())
            }
        }
    }

    /// Sends a stateless request. The first request shows whether the URL is an MCP server, so it
    /// is not retried after a failure.
    async fn ask_stateless(
        &self,
        id: u64,
        frame: &Bytes,
        headers: &HeaderMap,
    ) -> Result<(), RequestError> {
        let ask = Ask::stateless(frame, headers);
        let response = match self.met.get() {
            Some(()) => self.post(&ask, Some(id)).await?,
            None => {
                self.wait_while_busy(Some(id)).await?;
                let response = self.send(&ask).await?;
                if !response.status().is_success() {
                    return Err(self.refusal(response).await);
                }
                response
            }
        };
        let taken = self.take_response(id, response, ExchangeStage::Stateless).await;
        let _met_before = self.met.set(());
        taken
    }

    /// Sends a message, again after each postponement, and returns a successful response.
    async fn post(&self, ask: &Ask<'_>, id: Option<u64>) -> Result<Response, RequestError> {
        let quiet = &self.endpoint.quiet;
        quiet.sending();
        let mut postponements = 0;
        loop {
            self.wait_while_busy(id).await?;
            let response = self.reach(ask).await?;
            if response.status().is_success() {
                return Ok(response);
            }
            match self.refusal(response).await {
                RequestError::Http(HttpError::Busy { retry_after: Some(_), .. })
                    if postponements < MOST_POSTPONEMENTS && quiet.may_send_again() =>
                {
                    postponements += 1;
                }
                error => return Err(error),
            }
        }
    }

    /// Waits until the server accepts requests again; fails if that would take too long.
    async fn wait_while_busy(&self, id: Option<u64>) -> Result<(), RequestError> {
        let Some(Busy { status, until }) = self.endpoint.quiet.now() else { return Ok(()) };
        let wait = until.saturating_duration_since(Instant::now());
        let deadline = id.and_then(|id| self.inlet.deadline_of(id));
        if wait > LONGEST_RETRY_AFTER || deadline.is_some_and(|deadline| until > deadline) {
            return Err(HttpError::Busy { status, retry_after: Some(wait) }.into());
        }
        tokio::time::sleep_until(until).await;
        Ok(())
    }

    /// Sends a message to a server that has responded before and may be restarting.
    async fn reach(&self, ask: &Ask<'_>) -> Result<Response, RequestError> {
        let give_up = Instant::now() + RESTART_TIMEOUT;
        let mut pause = FIRST_PAUSE;
        loop {
            match self.send(ask).await {
                Ok(response) => return Ok(response),
                Err(HttpError::Connect { cause, .. })
                    if is_refused(&cause) && Instant::now() + pause < give_up =>
                {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(HttpError::Connect { .. }) => {
                    // The next connection attempt reports the cause and decides about retries.
                    self.end(Ended::Unreachable);
                    return Err(RequestError::NotSent);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Converts an unsuccessful response into an error.
    pub(super) async fn refusal(&self, response: Response) -> RequestError {
        let (status, headers) = (response.status(), response.headers().clone());
        if let Some(error) = trouble::by_status(status, &headers) {
            if let HttpError::Busy { status, retry_after: Some(wait) } = error
                && let Some(until) = Instant::now().checked_add(wait)
            {
                self.endpoint.quiet.keep(Busy { status, until });
            }
            return error.into();
        }
        let body = Bytes::from(trouble::beginning(response).await);
        let error = rpc_error(&body);
        let code = error.as_ref().map(|error| error.code);
        let forgotten = match status {
            StatusCode::NOT_FOUND => code != Some(METHOD_NOT_FOUND),
            StatusCode::BAD_REQUEST => code == Some(NO_SESSION),
            _ => false,
        };
        if forgotten && self.has_session() {
            self.end(Ended::SessionOver);
            return RequestError::NotSent;
        }
        match error {
            Some(error) => RequestError::Refused(error),
            None => {
                let page = ResponseBody::of(&headers, &body);
                HttpError::Status { status: status.as_u16(), page }.into()
            }
        }
    }

    async fn take_response(
        &self,
        id: u64,
        response: Response,
        stage: ExchangeStage,
    ) -> Result<(), RequestError> {
        if is_event_stream(&response) {
            return self.follow(id, response, stage).await;
        }
        let headers = response.headers().clone();
        let is_json = content_type(&headers).contains("json");
        if stage == ExchangeStage::Open && response.status() == StatusCode::ACCEPTED {
            // Status 202 to a request is unusual: its response may arrive on the session's event
            // stream.
            return Ok(());
        }
        if !is_json {
            let page = ResponseBody::of(&headers, &trouble::beginning(response).await);
            return Err(HttpError::NotMcp { page }.into());
        }
        let body = self.whole(response).await?;
        self.give(&body, id, stage);
        if self.inlet.awaits(id) {
            // The body contains a message other than the response, or several messages, which no
            // revision allows.
            for message in values(&body).iter().skip_while(|only| only.len() == body.len()) {
                self.take(message, Some(Exchange(id)));
            }
        }
        match self.inlet.awaits(id) {
            false => Ok(()),
            true => Err(not_the_answer(&headers, &body)),
        }
    }

    /// Reads a body up to the size limit.
    async fn whole(&self, mut response: Response) -> Result<Bytes, RequestError> {
        let limit = self.limits.max_frame_bytes;
        let too_large = RequestError::AnswerTooLarge { limit };
        if response.content_length().is_some_and(|length| length > limit as u64) {
            return Err(too_large);
        }
        let broken = |cause: reqwest::Error| HttpError::Broken {
            cause: Some(Arc::new(cause.without_url())),
        };
        let first = response.chunk().await.map_err(broken)?.unwrap_or_default();
        let mut next = response.chunk().await.map_err(broken)?;
        // Most bodies arrive in one chunk and are not copied.
        let Some(_) = next else { return Ok(first) };
        let mut body = BytesMut::from(&first[..]);
        while let Some(chunk) = next {
            body.extend_from_slice(&chunk);
            if body.len() > limit {
                return Err(too_large);
            }
            next = response.chunk().await.map_err(broken)?;
        }
        Ok(body.freeze())
    }

    /// Reads the event stream that carries the response, and resumes it if it breaks.
    async fn follow(
        &self,
        id: u64,
        response: Response,
        stage: ExchangeStage,
    ) -> Result<(), RequestError> {
        let mut stream = Stream::new(response, self.limits.max_frame_bytes);
        let mut resuming = Resuming::default();
        loop {
            while let Some(event) = stream.next().await {
                resuming.progress();
                self.take_event(event, Some(id), stage);
                if !self.inlet.awaits(id) {
                    let rest = async { while stream.next().await.is_some() {} };
                    let _best_effort = tokio::time::timeout(LINGER, rest).await;
                    return Ok(());
                }
            }
            stream = match stage {
                ExchangeStage::Opening | ExchangeStage::Open => {
                    self.resume(stream, &mut resuming).await?
                }
                ExchangeStage::Stateless => return Err(HttpError::Broken { cause: None }.into()),
            };
        }
    }

    /// Delivers the message of an event.
    pub(super) fn take_event(&self, event: Event, id: Option<u64>, stage: ExchangeStage) {
        match event {
            Event::Whole { name, data } if name.is_empty() || name == "message" => {
                match (data.trim_ascii().is_empty(), id) {
                    // The event only sets the last event id.
                    (true, _) => {}
                    (false, Some(id)) => self.give(&data, id, stage),
                    (false, None) => self.take(&data, None),
                }
            }
            Event::Whole { .. } => {}
            Event::TooLong { head } => {
                let asks = envelope::asks_in_head(&head);
                if let Some(id) = envelope::id_in_head(&head).or(id).filter(|_| !asks) {
                    let limit = self.limits.max_frame_bytes;
                    self.inlet.fail(id, RequestError::AnswerTooLarge { limit });
                }
            }
        }
    }

    /// Delivers the messages in the HTTP response to request `id`.
    fn give(&self, frame: &Bytes, id: u64, stage: ExchangeStage) {
        for message in messages(frame) {
            if stage == ExchangeStage::Opening {
                self.settle_revision(&message);
            }
            self.take(&message, Some(Exchange(id)));
        }
    }
}

/// Splits a batch, which revision 2025-03-26 allows.
fn messages(frame: &Bytes) -> Vec<Bytes> {
    let batch: Option<Vec<&RawValue>> = match frame.trim_ascii_start().first() {
        Some(b'[') => serde_json::from_slice(frame).ok(),
        Some(_) | None => None,
    };
    match batch {
        Some(batch) => batch.iter().map(|one| frame.slice_ref(one.get().as_bytes())).collect(),
        None => vec![frame.clone()],
    }
}

/// The consecutive JSON values in a body.
fn values(body: &Bytes) -> Vec<Bytes> {
    let values = serde_json::Deserializer::from_slice(body).into_iter::<&RawValue>();
    values.map_while(Result::ok).map(|one| body.slice_ref(one.get().as_bytes())).collect()
}

/// The error for a body that does not contain the response.
fn not_the_answer(headers: &HeaderMap, body: &Bytes) -> RequestError {
    #[derive(serde::Deserialize)]
    struct Envelope<'a> {
        #[serde(borrow)]
        jsonrpc: &'a str,
        #[serde(default)]
        id: serde_json::Value,
    }
    match serde_json::from_slice(body) {
        Ok(Envelope { jsonrpc: "2.0", id }) => match rpc_error(body) {
            // The server could not parse the id of the request.
            Some(error) if id.is_null() => RequestError::Refused(error),
            Some(_) | None => HttpError::OtherAnswer.into(),
        },
        Ok(_) | Err(_) => HttpError::NotMcp { page: ResponseBody::of(headers, body) }.into(),
    }
}

/// The JSON-RPC error in a body, with any id: the server may have failed to parse our id.
fn rpc_error(body: &Bytes) -> Option<envelope::RpcError> {
    #[derive(serde::Deserialize)]
    struct ErrorEnvelope<'a> {
        #[serde(borrow)]
        jsonrpc: &'a str,
        #[serde(borrow)]
        error: &'a RawValue,
    }
    let fields: ErrorEnvelope<'_> = serde_json::from_slice(body).ok()?;
    if fields.jsonrpc != "2.0" {
        return None;
    }
    // The error object is wrapped as a response, so that one parser handles all of them.
    let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{}}}", fields.error);
    match envelope::parse(&Bytes::from(answer)) {
        Ok(Message::Answer { outcome: Err(error), .. }) => Some(error),
        Ok(_) | Err(_) => None,
    }
}
