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
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use hyper::http::response::Builder;
use hyper::{Request, Response, StatusCode};
use switchboard_wire::envelope::{self, INVALID_REQUEST, Malformed};
use switchboard_wire::{Id, Message, RpcError};

use super::bodies::{Bodies, BodyRoom};
use super::connections::{Place, Seat, Serving};
use super::guard::{Form, Guard, LAST_EVENT_ID, Purpose, Refusal, SESSION_ID, Twice, only};
use super::session::{HttpSession, Said};
use super::sessions::{Full, Sessions};
use super::stateless::{self, Judged};
use super::stream::Events;
use crate::conversation::Conversation;
use crate::host::declared;
use crate::params::agreed_revision;

/// How long reading the body of a request may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// At most this much of a refused body is read, for at most this time.
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

    pub(super) async fn answer(&self, request: Request<Incoming>, slot: &Seat) -> Response<Reply> {
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
            (Ok(Purpose::Health), Place::Slot) => text(StatusCode::OK, "ok"),
            (Ok(Purpose::Health), Place::Overflow) => closing(text(StatusCode::OK, "ok")),
            (Ok(_), Place::Overflow) => no_room(),
            (Ok(Purpose::Say(form)), Place::Slot) => {
                self.say(&head.headers, body, form, slot).await
            }
            (Ok(Purpose::Listen), Place::Slot) => self.listen(&head.headers, slot),
            (Ok(Purpose::End), Place::Slot) => self.end(&head.headers),
        };
        response.map(|content| Reply { content, _serving: serving })
    }

    async fn say(
        &self,
        headers: &HeaderMap,
        body: Incoming,
        form: Form,
        slot: &Seat,
    ) -> Response<Content> {
        let session = match self.named(headers) {
            Named::Absent => None,
            Named::Session(session) => Some(session),
            Named::Unknown => return no_session(),
            Named::Ambiguous => return rpc_error(StatusCode::BAD_REQUEST, AMBIGUOUS_SESSION),
        };
        let limit = self.sessions.gateway().settings().max_frame_bytes;
        if body.size_hint().lower() > limit as u64 {
            return too_large(limit);
        }
        let expected = body.size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok());
        let room = self.bodies.room(expected.unwrap_or(limit).min(limit));
        let Ok(room) = tokio::time::timeout(BODY_TIMEOUT, room).await else {
            return rpc_error(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many large requests are in flight; try again later",
            );
        };
        let frame =
            match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, limit).collect()).await {
                Ok(Ok(body)) => body.to_bytes(),
                Ok(Err(error)) if error.is::<LengthLimitError>() => {
                    return too_large(limit);
                }
                Ok(Err(_gone)) => return closing(text(StatusCode::BAD_REQUEST, "no body")),
                Err(_late) => return closing(text(StatusCode::REQUEST_TIMEOUT, "too slow")),
            };
        let room = room.shrunk_to(frame.len());
        let Some(session) = session else {
            let message = match envelope::parse(&frame) {
                Ok(message) => message,
                Err(malformed) => return malformed_response(StatusCode::BAD_REQUEST, &malformed),
            };
            return match stateless::judge(&message, headers, &self.sessions) {
                Judged::Fits(talk) => {
                    let response = self.answer_alone(&frame, form, (talk, room)).await;
                    if stateless::listens(&message) {
                        slot.listens();
                    }
                    response
                }
                Judged::Wrong(id, error) => stateless::refusal(id.as_ref(), &error),
                Judged::Other => self.begin(&frame, &message, (form, room)).await,
            };
        };
        post_response(session.say(&frame, form, room).await)
    }

    /// Answers a stateless request. It is aborted if its response is no longer read.
    async fn answer_alone(
        &self,
        frame: &Bytes,
        form: Form,
        (talk, room): (Arc<Conversation>, BodyRoom),
    ) -> Response<Content> {
        let session = self.sessions.of_one_request(talk);
        let ending = session.ending();
        match session.say(frame, form, room).await {
            Said::Events(events) => post_response(Said::Events(events.until_unread(ending))),
            Said::Whole(frame) => {
                let status = stateless::status_of(&frame);
                let json = |head: Builder| head.header(CONTENT_TYPE, "application/json");
                respond(status, Content::Whole(frame), json)
            }
            other => post_response(other),
        }
    }

    /// Opens a session for `initialize`.
    async fn begin(
        &self,
        frame: &Bytes,
        message: &Message,
        (form, room): (Form, BodyRoom),
    ) -> Response<Content> {
        let (revision, abilities) = match message {
            Message::Request { method, params, .. } if method == "initialize" => {
                (agreed_revision(params.as_ref()), declared(params.as_ref()))
            }
            _ => return rpc_error(StatusCode::BAD_REQUEST, "`Mcp-Session-Id` is missing"),
        };
        let Ok((id, session)) = self.sessions.open(revision, &abilities).map_err(|Full| ()) else {
            return rpc_error(StatusCode::SERVICE_UNAVAILABLE, "too many sessions are in use");
        };
        let mut response = post_response(session.say(frame, form, room).await);
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(SESSION_ID, id);
        }
        response
    }

    fn listen(&self, headers: &HeaderMap, slot: &Seat) -> Response<Content> {
        let session = match self.named(headers) {
            Named::Session(session) => session,
            Named::Unknown => return no_session(),
            Named::Absent | Named::Ambiguous => {
                return rpc_error(StatusCode::BAD_REQUEST, AMBIGUOUS_SESSION);
            }
        };
        let Ok(last_event_id) = only(headers, &LAST_EVENT_ID) else {
            return rpc_error(StatusCode::BAD_REQUEST, "`Last-Event-ID` is ambiguous");
        };
        match session.listen(last_event_id) {
            Some(events) => {
                slot.listens();
                post_response(Said::Events(events))
            }
            // 404 would mean that the session has ended.
            None => rpc_error(StatusCode::BAD_REQUEST, "unknown `Last-Event-ID`"),
        }
    }

    fn end(&self, headers: &HeaderMap) -> Response<Content> {
        match only(headers, &SESSION_ID) {
            Ok(Some(id)) if self.sessions.end(id) => {
                respond(StatusCode::NO_CONTENT, Content::Whole(Bytes::new()), |head| head)
            }
            Ok(Some(_)) => no_session(),
            Ok(None) | Err(Twice) => rpc_error(StatusCode::BAD_REQUEST, AMBIGUOUS_SESSION),
        }
    }

    fn named(&self, headers: &HeaderMap) -> Named {
        match only(headers, &SESSION_ID) {
            Ok(None) => Named::Absent,
            Ok(Some(id)) => self.sessions.find(id).map_or(Named::Unknown, Named::Session),
            Err(Twice) => Named::Ambiguous,
        }
    }
}

const AMBIGUOUS_SESSION: &str = "`Mcp-Session-Id` is missing or ambiguous";

/// The session that a request names.
enum Named {
    Absent,
    Session(Arc<HttpSession>),
    Unknown,
    Ambiguous,
}

fn post_response(post_response: Said) -> Response<Content> {
    match post_response {
        Said::Accepted => respond(StatusCode::ACCEPTED, Content::Whole(Bytes::new()), |head| head),
        Said::Whole(frame) => {
            let json = |head: Builder| head.header(CONTENT_TYPE, "application/json");
            respond(StatusCode::OK, Content::Whole(frame), json)
        }
        Said::Events(events) => {
            let stream = |head: Builder| head.header(CONTENT_TYPE, "text/event-stream");
            respond(StatusCode::OK, Content::Events(events), stream)
        }
        Said::Malformed(malformed) => malformed_response(StatusCode::BAD_REQUEST, &malformed),
        Said::SessionEnded => no_session(),
        Said::Busy => rpc_error(
            StatusCode::TOO_MANY_REQUESTS,
            "too many requests of this session are in flight",
        ),
    }
}

fn no_session() -> Response<Content> {
    rpc_error(StatusCode::NOT_FOUND, "there is no such session")
}

fn no_room() -> Response<Content> {
    let full = "every connection is in use";
    let mut response = closing(rpc_error(StatusCode::SERVICE_UNAVAILABLE, full));
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
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

/// The message of a refused request is not read, so its connection is closed.
fn refused(refusal: Refusal) -> Response<Content> {
    let mut response = closing(text(refusal.status(), &refusal.to_string()));
    match refusal {
        Refusal::Token => {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        Refusal::Method => {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
        }
        Refusal::WithoutSession => {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        }
        Refusal::Host
        | Refusal::Origin
        | Refusal::Preflight
        | Refusal::Path
        | Refusal::ContentType
        | Refusal::Accept
        | Refusal::Revision => {}
    }
    response
}

fn closing(mut response: Response<Content>) -> Response<Content> {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

fn text(status: StatusCode, words: &str) -> Response<Content> {
    let plain = |head: Builder| head.header(CONTENT_TYPE, "text/plain; charset=utf-8");
    respond(status, Content::Whole(Bytes::from(format!("{words}\n"))), plain)
}

fn malformed_response(status: StatusCode, malformed: &Malformed) -> Response<Content> {
    let error = RpcError::new(malformed.code(), malformed.to_string());
    rpc_error_for(malformed.id(), status, &error)
}

fn rpc_error(status: StatusCode, message: &str) -> Response<Content> {
    rpc_error_for(None, status, &RpcError::new(INVALID_REQUEST, message))
}

pub(super) fn rpc_error_for(
    id: Option<&Id>,
    status: StatusCode,
    error: &RpcError,
) -> Response<Content> {
    let body = envelope::error_frame(id, error);
    let json = |head: Builder| head.header(CONTENT_TYPE, "application/json");
    respond(status, Content::Whole(body), json)
}

fn respond(
    status: StatusCode,
    content: Content,
    head: impl FnOnce(Builder) -> Builder,
) -> Response<Content> {
    let builder = Response::builder().status(status).header(CACHE_CONTROL, "no-store");
    head(builder).body(content).expect("every header here is a constant")
}

/// The body of a response.
pub(super) enum Content {
    Whole(Bytes),
    Events(Events),
}

/// The body of a response; its connection is in use while it is written.
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
