//! Turns one HTTP request into its response.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{Request, Response, StatusCode};
use switchboard_wire::envelope::{self, INVALID_REQUEST, Malformed};
use switchboard_wire::{Id, Message, RpcError};

use super::bodies::{Bodies, BodyRoom};
use super::connections::{ConnectionPlace, Serving, Slot};
use super::guard::{
    Guard, HttpRefusal, LAST_EVENT_ID, Purpose, ResponseForm, SESSION_ID, Twice, only,
};
use super::session::{HttpSession, PostResponse};
use super::sessions::{Full, Sessions};
use super::stateless::{self, Judged};
use super::stream::Events;
use crate::conversation::Conversation;
use crate::host::declared;
use crate::params::agreed_revision;

/// The time limit for reading the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum number of bytes of a refused body that are read, and the time limit for reading.
const MAX_DISCARDED: usize = 64 * 1024;
const DISCARD_TIMEOUT: Duration = Duration::from_millis(250);

pub(super) struct Endpoint {
    guard: Guard,
    sessions: Sessions,
    bodies: Bodies,
}

impl Endpoint {
    pub(super) fn new(guard: Guard, sessions: Sessions) -> Endpoint {
        let bodies = Bodies::new(sessions.gateway().settings().max_frame_bytes);
        Endpoint { guard, sessions, bodies }
    }

    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    pub(super) async fn answer(&self, request: Request<Incoming>, slot: &Slot) -> Response<Reply> {
        let serving = slot.serve();
        let (head, body) = request.into_parts();
        let admitted = self.guard.admit(&head);
        if admitted.is_ok_and(|purpose| purpose != Purpose::Health) {
            slot.authenticated();
        }
        let response = match (admitted, slot.place()) {
            (Err(refusal), _) => {
                discard_body(body).await;
                refused(refusal)
            }
            (Ok(Purpose::Health), ConnectionPlace::Overflow) => closing(text(StatusCode::OK, "ok")),
            (Ok(_), ConnectionPlace::Overflow) => no_room(),
            (Ok(purpose), ConnectionPlace::Slot) => {
                let answered = match purpose {
                    Purpose::Say(form) => self.say(&head.headers, body, form, slot).await,
                    Purpose::Listen => self.listen(&head.headers, slot),
                    Purpose::End => self.end(&head.headers),
                    Purpose::Health => Ok(text(StatusCode::OK, "ok")),
                };
                answered.unwrap_or_else(|(status, message)| rpc_error(status, message))
            }
        };
        response.map(|content| Reply { content, _serving: serving })
    }

    async fn say(
        &self,
        headers: &HeaderMap,
        body: Incoming,
        form: ResponseForm,
        slot: &Slot,
    ) -> HttpResult {
        let session = self.named(headers)?;
        let limit = self.sessions.gateway().settings().max_frame_bytes;
        if body.size_hint().lower() > limit as u64 {
            return Ok(too_large(limit));
        }
        let expected = body.size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok());
        let room = self.bodies.room(expected.unwrap_or(limit).min(limit));
        let room = tokio::time::timeout(BODY_TIMEOUT, room).await.map_err(|_| NO_BODY_ROOM)?;
        let frame =
            match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, limit).collect()).await {
                Ok(Ok(body)) => body.to_bytes(),
                Ok(Err(error)) if error.is::<LengthLimitError>() => return Ok(too_large(limit)),
                Ok(Err(_gone)) => return Ok(closing(text(StatusCode::BAD_REQUEST, "no body"))),
                Err(_late) => return Ok(closing(text(StatusCode::REQUEST_TIMEOUT, "too slow"))),
            };
        let room = tokio::time::timeout(BODY_TIMEOUT, self.bodies.parsing(&frame, room));
        let room = room.await.map_err(|_| NO_BODY_ROOM)?;
        if let Some(session) = session {
            return Ok(post_response(session.say(&frame, form, room).await));
        }
        let message = match envelope::parse(&frame) {
            Ok(message) => message,
            Err(malformed) => return Ok(malformed_response(StatusCode::BAD_REQUEST, &malformed)),
        };
        match stateless::judge(&message, headers, &self.sessions) {
            Judged::Fits(talk) => {
                let response = self.answer_alone(&frame, form, (talk, room)).await;
                if stateless::listens(&message) {
                    slot.listens();
                }
                Ok(response)
            }
            Judged::Wrong(id, error) => {
                Ok(rpc_error_for(id.as_ref(), StatusCode::BAD_REQUEST, &error))
            }
            Judged::Other => self.begin(&frame, &message, (form, room)).await,
        }
    }

    /// Answers a stateless request; aborts it if the client stops reading the response.
    async fn answer_alone(
        &self,
        frame: &Bytes,
        form: ResponseForm,
        (talk, room): (Arc<Conversation>, BodyRoom),
    ) -> Response<Content> {
        let session = self.sessions.of_one_request(talk);
        let ending = session.ending();
        match session.say(frame, form, room).await {
            PostResponse::Events(events) => {
                post_response(PostResponse::Events(events.until_unread(ending)))
            }
            PostResponse::Whole(frame) => json(stateless::status_of(&frame), frame),
            other => post_response(other),
        }
    }

    /// Opens a session for a client that sent `initialize`, and answers that request.
    async fn begin(
        &self,
        frame: &Bytes,
        message: &Message,
        (form, room): (ResponseForm, BodyRoom),
    ) -> HttpResult {
        let (revision, abilities) = match message {
            Message::Request { method, params, .. } if method == "initialize" => {
                (agreed_revision(params.as_ref()), declared(params.as_ref()))
            }
            _ => return Err((StatusCode::BAD_REQUEST, "`Mcp-Session-Id` is missing")),
        };
        let opened = self.sessions.open(revision, &abilities);
        let full = (StatusCode::SERVICE_UNAVAILABLE, "too many sessions are in use");
        let (id, session) = opened.map_err(|Full| full)?;
        let mut response = post_response(session.say(frame, form, room).await);
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(SESSION_ID, id);
        }
        Ok(response)
    }

    fn listen(&self, headers: &HeaderMap, slot: &Slot) -> HttpResult {
        let session = self.named(headers)?.ok_or(AMBIGUOUS_SESSION)?;
        let ambiguous = (StatusCode::BAD_REQUEST, "`Last-Event-ID` is ambiguous");
        let last_event_id = only(headers, &LAST_EVENT_ID).map_err(|Twice| ambiguous)?;
        // The status is not 404, because a client takes 404 as the end of its session.
        let unknown = (StatusCode::BAD_REQUEST, "unknown `Last-Event-ID`");
        let events = session.listen(last_event_id).ok_or(unknown)?;
        slot.listens();
        Ok(post_response(PostResponse::Events(events)))
    }

    fn end(&self, headers: &HeaderMap) -> HttpResult {
        match only(headers, &SESSION_ID) {
            Ok(Some(id)) if self.sessions.end(id) => {
                Ok(respond(StatusCode::NO_CONTENT, Content::Whole(Bytes::new())))
            }
            Ok(Some(_)) => Err(NO_SESSION),
            Ok(None) | Err(Twice) => Err(AMBIGUOUS_SESSION),
        }
    }

    /// The session that the request names in `Mcp-Session-Id`; `None` without this header.
    fn named(&self, headers: &HeaderMap) -> Result<Option<Arc<HttpSession>>, ErrorResponse> {
        let id = only(headers, &SESSION_ID).map_err(|Twice| AMBIGUOUS_SESSION)?;
        id.map(|id| self.sessions.find(id).ok_or(NO_SESSION)).transpose()
    }
}

/// A response, or an error that is turned into a response.
type HttpResult = Result<Response<Content>, ErrorResponse>;

/// The status of an error response, and the message of its JSON-RPC error.
type ErrorResponse = (StatusCode, &'static str);

const AMBIGUOUS_SESSION: ErrorResponse =
    (StatusCode::BAD_REQUEST, "`Mcp-Session-Id` is missing or ambiguous");

const NO_SESSION: ErrorResponse = (StatusCode::NOT_FOUND, "there is no such session");

const NO_BODY_ROOM: ErrorResponse =
    (StatusCode::SERVICE_UNAVAILABLE, "too many large requests are in flight; try again later");

fn post_response(post_response: PostResponse) -> Response<Content> {
    match post_response {
        PostResponse::Accepted => respond(StatusCode::ACCEPTED, Content::Whole(Bytes::new())),
        PostResponse::Whole(frame) => json(StatusCode::OK, frame),
        PostResponse::Events(events) => {
            let response = respond(StatusCode::OK, Content::Events(events));
            with_header(response, CONTENT_TYPE, "text/event-stream")
        }
        PostResponse::Malformed(malformed) => {
            malformed_response(StatusCode::BAD_REQUEST, &malformed)
        }
        PostResponse::SessionEnded => rpc_error(NO_SESSION.0, NO_SESSION.1),
        PostResponse::Busy => rpc_error(
            StatusCode::TOO_MANY_REQUESTS,
            "too many requests of this session are in flight",
        ),
    }
}

fn no_room() -> Response<Content> {
    let full = "every connection is in use";
    let response = closing(rpc_error(StatusCode::SERVICE_UNAVAILABLE, full));
    with_header(response, RETRY_AFTER, "1")
}

fn too_large(limit: usize) -> Response<Content> {
    let malformed = Malformed::TooLong { id: None, limit };
    closing(malformed_response(StatusCode::PAYLOAD_TOO_LARGE, &malformed))
}

/// Reads a small body to its end: closing a connection with unread bytes can lose the response.
async fn discard_body(body: Incoming) {
    let discarding = Limited::new(body, MAX_DISCARDED).collect();
    let _too_large_or_slow = tokio::time::timeout(DISCARD_TIMEOUT, discarding).await;
}

/// The response to a refused request. The connection is closed, because the body of the request may
/// be unread.
fn refused(refusal: HttpRefusal) -> Response<Content> {
    let response = closing(text(refusal.status(), &refusal.to_string()));
    match refusal {
        HttpRefusal::Token => with_header(response, WWW_AUTHENTICATE, "Bearer"),
        HttpRefusal::Method => with_header(response, ALLOW, "GET, POST, DELETE"),
        HttpRefusal::WithoutSession => with_header(response, ALLOW, "POST"),
        HttpRefusal::Host
        | HttpRefusal::Origin
        | HttpRefusal::Preflight
        | HttpRefusal::Path
        | HttpRefusal::ContentType
        | HttpRefusal::Accept
        | HttpRefusal::Revision => response,
    }
}

fn closing(response: Response<Content>) -> Response<Content> {
    with_header(response, CONNECTION, "close")
}

fn text(status: StatusCode, text: &str) -> Response<Content> {
    let response = respond(status, Content::Whole(Bytes::from(format!("{text}\n"))));
    with_header(response, CONTENT_TYPE, "text/plain; charset=utf-8")
}

fn malformed_response(status: StatusCode, malformed: &Malformed) -> Response<Content> {
    let error = RpcError::new(malformed.code(), malformed.to_string());
    rpc_error_for(malformed.id(), status, &error)
}

fn rpc_error(status: StatusCode, message: &str) -> Response<Content> {
    rpc_error_for(None, status, &RpcError::new(INVALID_REQUEST, message))
}

fn rpc_error_for(id: Option<&Id>, status: StatusCode, error: &RpcError) -> Response<Content> {
    json(status, envelope::error_frame(id, error))
}

fn json(status: StatusCode, body: Bytes) -> Response<Content> {
    with_header(respond(status, Content::Whole(body)), CONTENT_TYPE, "application/json")
}

fn respond(status: StatusCode, content: Content) -> Response<Content> {
    let mut response = Response::new(content);
    *response.status_mut() = status;
    with_header(response, CACHE_CONTROL, "no-store")
}

fn with_header(
    mut response: Response<Content>,
    name: HeaderName,
    value: &'static str,
) -> Response<Content> {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}

/// The bytes of a response's body: complete, or as an event stream.
enum Content {
    Whole(Bytes),
    Events(Events),
}

/// The body of a response. The connection is in use until the body is written.
pub(super) struct Reply {
    content: Content,
    _serving: Serving,
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.content {
            Content::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Content::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Content::Events(events) => Pin::new(events).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, Content::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Events(_) => SizeHint::default(),
        }
    }
}
