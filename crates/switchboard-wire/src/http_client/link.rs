//! State that all requests to one server share: the URL, the session, and how a request is sent.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use tokio::sync::{Semaphore, SetOnce};
use tokio::time::Instant;

use super::carrier::Ended;
use super::trouble::HttpError;
use super::{AuthDecision, Endpoint, HttpTransport, MOST_REPEATS, Refused, Signer};
use crate::envelope::on_one_line;
use crate::peer::{Exchange, Handler, Inlet, PeerLimits};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The maximum number of concurrent requests to one server.
const TURNS: usize = 64;

/// The maximum number of redirects that a request follows, all within the server's origin.
const REDIRECTS: usize = 3;

/// How long the DELETE of a session may take.
const DELETE_TIMEOUT: Duration = Duration::from_secs(1);

/// The connection to one HTTP server.
pub(super) struct Link {
    pub(super) endpoint: Endpoint,
    pub(super) limits: PeerLimits,
    pub(super) inlet: Inlet,
    /// Handles requests and notifications of the server. The lock is held for one message at a
    /// time, never across an await. It is necessary because many tasks read responses, each of
    /// which may carry such messages.
    handler: Mutex<Box<dyn Handler>>,
    state: Mutex<LinkState>,
    /// A flag that is set after the handshake. Session-based requests other than `initialize` wait
    /// for it.
    pub(super) ready: SetOnce<()>,
    /// A flag that is set when the server has responded to a stateless request.
    pub(super) met: SetOnce<()>,
    pub(super) ended: SetOnce<Ended>,
    pub(super) turns: Semaphore,
}

struct LinkState {
    /// The URL for messages, within the origin of the endpoint.
    url: Url,
    speaks: Speaks,
    session: Option<HeaderValue>,
    revision: Option<HeaderValue>,
}

/// The time until which an origin refuses requests, and the budget for resends.
#[derive(Clone, Debug, Default)]
pub struct Quiet(Arc<Mutex<OriginLoad>>);

/// The state behind [`Quiet`].
#[derive(Debug)]
struct OriginLoad {
    busy: Option<Busy>,
    /// The budget for resends, in fifths of a message: resends add at most a fifth to the messages
    /// for an origin, plus ten at first.
    resends: u32,
}

/// The cost of a resend and the largest budget, in fifths of a message.
const RESEND: u32 = 5;
const MOST_RESENDS: u32 = 10 * RESEND;

impl Default for OriginLoad {
    fn default() -> OriginLoad {
        OriginLoad { busy: None, resends: MOST_RESENDS }
    }
}

/// The server refuses requests until a time, such as that of `Retry-After`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy {
    /// The HTTP status with which the server refused a request.
    pub(super) status: u16,
    pub(super) until: Instant,
}

impl Quiet {
    /// Until when the server refuses requests; `None` if it accepts them.
    pub(super) fn now(&self) -> Option<Busy> {
        self.load().busy.filter(|busy| busy.until > Instant::now())
    }

    pub(super) fn keep(&self, busy: Busy) {
        let known = &mut self.load().busy;
        if known.is_none_or(|known| known.until < busy.until) {
            *known = Some(busy);
        }
    }

    /// Adds the share of one message to the budget for resends.
    pub(super) fn sending(&self) {
        let resends = &mut self.load().resends;
        *resends = MOST_RESENDS.min(*resends + 1);
    }

    /// Takes one resend from the budget; `false` if the budget is used up.
    pub(super) fn may_send_again(&self) -> bool {
        let resends = &mut self.load().resends;
        let left = resends.checked_sub(RESEND);
        *resends = left.unwrap_or(*resends);
        left.is_some()
    }

    fn load(&self) -> MutexGuard<'_, OriginLoad> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The transport in use, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaks {
    Streamable,
    Legacy,
}

/// One HTTP request to the server of a link.
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    pub(super) body: Option<&'a Bytes>,
    /// The last event id of the stream that this request resumes; `None` if it resumes none.
    pub(super) after: Option<&'a str>,
    /// The headers of a stateless message, which replace those of a session.
    pub(super) stateless: Option<&'a HeaderMap>,
}

impl<'a> Ask<'a> {
    pub(super) fn post(frame: &'a Bytes) -> Ask<'a> {
        Ask { method: Method::POST, body: Some(frame), after: None, stateless: None }
    }

    pub(super) fn stateless(frame: &'a Bytes, headers: &'a HeaderMap) -> Ask<'a> {
        Ask { stateless: Some(headers), ..Ask::post(frame) }
    }

    pub(super) fn get(after: Option<&'a str>) -> Ask<'a> {
        Ask { method: Method::GET, body: None, after, stateless: None }
    }
}

impl Link {
    pub(super) fn new(
        endpoint: Endpoint,
        limits: PeerLimits,
        inlet: Inlet,
        handler: Box<dyn Handler>,
    ) -> Link {
        let state = LinkState {
            url: endpoint.url.clone(),
            speaks: match endpoint.mode {
                HttpTransport::Negotiated | HttpTransport::Streamable => Speaks::Streamable,
                HttpTransport::Sse => Speaks::Legacy,
            },
            session: None,
            revision: None,
        };
        Link {
            endpoint,
            limits,
            inlet,
            handler: Mutex::new(handler),
            state: Mutex::new(state),
            ready: SetOnce::new(),
            met: SetOnce::new(),
            ended: SetOnce::new(),
            turns: Semaphore::new(TURNS),
        }
    }

    /// The URL for messages, after all redirects so far.
    pub(super) fn url(&self) -> Url {
        self.state().url.clone()
    }

    pub(super) fn speaks(&self) -> Speaks {
        self.state().speaks
    }

    /// Switches to HTTP+SSE: messages go to `url`, and responses arrive on the event stream.
    pub(super) fn speak_legacy(&self, url: Url) {
        let mut state = self.state();
        (state.url, state.speaks) = (url, Speaks::Legacy);
    }

    pub(super) fn has_session(&self) -> bool {
        self.state().session.is_some()
    }

    /// Stores the session id from the response to `initialize`.
    pub(super) fn open_session(&self, answer: &Response) {
        self.state().session = answer.headers().get(SESSION).cloned();
    }

    /// Stores the revision from the response to `initialize`.
    pub(super) fn settle_revision(&self, answer: &Bytes) {
        #[derive(serde::Deserialize)]
        struct InitializeAnswer<'a> {
            #[serde(borrow)]
            result: InitializeResult<'a>,
        }
        #[derive(serde::Deserialize)]
        struct InitializeResult<'a> {
            #[serde(borrow, rename = "protocolVersion")]
            revision: &'a str,
        }
        if let Ok(answer) = serde_json::from_slice::<InitializeAnswer<'_>>(answer) {
            self.state().revision = HeaderValue::from_str(answer.result.revision).ok();
        }
    }

    /// Ends the connection; only the first reason is kept.
    pub(super) fn end(&self, ended: Ended) {
        let _already_over = self.ended.set(ended);
    }

    /// Delivers one message of the server.
    pub(super) fn take(&self, frame: &Bytes, exchange: Option<Exchange>) {
        let mut handler = self.handler.lock().unwrap_or_else(PoisonError::into_inner);
        self.inlet.take(&on_one_line(frame), exchange, &mut **handler);
    }

    /// Sends one request and returns once the response headers have arrived.
    pub(super) async fn send(&self, ask: &Ask<'_>) -> Result<Response, HttpError> {
        let mut url = self.url();
        for _ in 0..=REDIRECTS {
            let response = self.send_to(&url, ask).await?;
            if !is_redirect(response.status(), &ask.method) {
                return Ok(response);
            }
            url = self.redirected(&url, &response)?;
            self.state().url = url.clone();
        }
        Err(HttpError::Circle)
    }

    /// Ends the session at the server, if there is one and it responds in time.
    pub(super) async fn say_goodbye(&self) {
        if self.speaks() == Speaks::Streamable && self.has_session() {
            let ask = Ask { method: Method::DELETE, ..Ask::get(None) };
            let _best_effort = tokio::time::timeout(DELETE_TIMEOUT, self.send(&ask)).await;
        }
    }

    async fn send_to(&self, url: &Url, ask: &Ask<'_>) -> Result<Response, HttpError> {
        let body = ask.body.map(|body| &body[..]).unwrap_or_default();
        let headers = self.headers(ask);
        let signer = self.endpoint.signer.as_deref();
        send_signed(signer, (&ask.method, url, body), headers, |headers| {
            let request =
                self.endpoint.client.request(ask.method.clone(), url.clone()).headers(headers);
            match ask.body {
                Some(body) => request.body(body.clone()),
                None => request,
            }
        })
        .await
    }

    fn headers(&self, ask: &Ask<'_>) -> HeaderMap {
        let mut headers = self.endpoint.headers.clone();
        let accept = match ask.body {
            Some(_) => "application/json, text/event-stream",
            None => "text/event-stream",
        };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if ask.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let after = ask.after.and_then(|id| HeaderValue::from_str(id).ok());
        headers.extend(after.map(|id| (LAST_EVENT_ID, id)));
        if let Some(stateless) = ask.stateless {
            headers.extend(stateless.clone());
            return headers;
        }
        let state = self.state();
        headers.extend(state.session.clone().map(|id| (SESSION, id)));
        headers.extend(state.revision.clone().map(|revision| (REVISION, revision)));
        headers
    }

    /// The target of a redirect; an error if it has another origin.
    fn redirected(&self, from: &Url, response: &Response) -> Result<Url, HttpError> {
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let to = location.and_then(|location| from.join(location).ok());
        same_origin(to.ok_or(HttpError::NoLocation)?, &self.endpoint.url)
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a request with headers of the signer. After status 401 or 403 the signer may have it
/// resent with other headers, because the server has not processed it.
pub(crate) async fn send_signed(
    signer: Option<&dyn Signer>,
    (method, url, body): (&Method, &Url, &[u8]),
    headers: HeaderMap,
    request: impl Fn(HeaderMap) -> RequestBuilder,
) -> Result<Response, HttpError> {
    let Some(signer) = signer else { return send(request(headers), url).await };
    let mut repeats = 0;
    loop {
        let mut sent = headers.clone();
        let signed = signer.sign(method.as_str(), url, body).await;
        for (name, value) in signed.map_err(HttpError::Sign)? {
            sent.extend(name.map(|name| (name, value)));
        }
        let response = send(request(sent.clone()), url).await?;
        let status = response.status();
        if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Ok(response);
        }
        let status = status.as_u16();
        let refused = Refused { status, repeats, sent: &sent, answer: response.headers() };
        match signer.refused(refused).await {
            AuthDecision::Again if repeats < MOST_REPEATS => repeats += 1,
            AuthDecision::Again | AuthDecision::Stands => return Ok(response),
            AuthDecision::SignIn(cause) => {
                return Err(HttpError::SignIn { status, cause: Some(cause) });
            }
            AuthDecision::Forbidden(cause) => return Err(HttpError::Forbidden { status, cause }),
            AuthDecision::Unsigned(cause) => return Err(HttpError::Sign(cause)),
        }
    }
}

/// Sends a request to `url` and returns once the response headers have arrived.
async fn send(request: RequestBuilder, url: &Url) -> Result<Response, HttpError> {
    request.send().await.map_err(|cause| {
        let connecting = cause.is_connect();
        let cause = Arc::new(cause.without_url());
        if connecting {
            HttpError::Connect { origin: url.origin().ascii_serialization(), cause }
        } else {
            HttpError::Broken { cause: Some(cause) }
        }
    })
}

/// Refuses a URL of another origin, because requests carry secrets for the configured origin.
pub(super) fn same_origin(to: Url, configured: &Url) -> Result<Url, HttpError> {
    match to.origin() == configured.origin() {
        true => Ok(to),
        false => Err(HttpError::Elsewhere { origin: to.origin().ascii_serialization() }),
    }
}

/// Whether this status is a redirect to follow. A POST follows only the two statuses that preserve
/// the method.
fn is_redirect(status: StatusCode, method: &Method) -> bool {
    match status {
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => {
            *method == Method::GET
        }
        _ => false,
    }
}

/// Whether a request failed because the server refused the connection.
pub(super) fn is_refused(error: &reqwest::Error) -> bool {
    let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    let cause: &(dyn std::error::Error + 'static) = error;
    let mut causes = std::iter::successors(Some(cause), |&error| error.source());
    causes.any(|error| error.downcast_ref().is_some_and(refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resends_are_limited_to_a_fifth_of_messages() {
        let quiet = Quiet::default();
        let resent = |messages: usize| {
            let each = |_: usize| {
                quiet.sending();
                quiet.may_send_again()
            };
            (0..messages).map(each).filter(|again| *again).count()
        };
        assert_eq!(resent(10), 10, "a few are not counted");
        assert!((195..=205).contains(&resent(1_000)));
    }
}
