//! What a request gets: from the head and the body of one HTTP request to its response.

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

/// How long the body of a request may take.
const BODY: Duration = Duration::from_secs(30);

/// As much of what nobody is let in for is read past, and for as long.
const PASSED_OVER: usize = 64 * 1024;
const PASSING_OVER: Duration = Duration::from_millis(250);

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

    pub(super) async fn answer(&self, request: Request<Incoming>, seat: &Seat) -> Response<Reply> {
        let serving = seat.serve();
        let (head, body) = request.into_parts();
        let admitted = self.guard.admit(&head);
        if admitted.is_ok_and(|purpose| purpose != Purpose::Health) {
            seat.is_known();
        }
        let response = match (admitted, seat.place()) {
            (Err(refusal), _) => {
                pass_over(body).await;
                refused(refusal)
            }
            (Ok(Purpose::Health), Place::Seat) => text(StatusCode::OK, "ok"),
            (Ok(Purpose::Health), Place::Doorway) => closing(text(StatusCode::OK, "ok")),
            (Ok(_), Place::Doorway) => no_room(),
            (Ok(Purpose::Say(form)), Place::Seat) => {
                self.say(&head.headers, body, form, seat).await
            }
            (Ok(Purpose::Listen), Place::Seat) => self.listen(&head.headers, seat),
            (Ok(Purpose::End), Place::Seat) => self.end(&head.headers),
        };
        response.map(|content| Reply { content, _serving: serving })
    }

    async fn say(
        &self,
        headers: &HeaderMap,
        body: Incoming,
        form: Form,
        seat: &Seat,
    ) -> Response<Content> {
        let session = match self.named(headers) {
            Named::Nobody => None,
            Named::Session(session) => Some(session),
            Named::Unknown => return no_session(),
            Named::Unclear => return rpc_error(StatusCode::BAD_REQUEST, UNCLEAR),
        };
        let limit = self.sessions.gateway().settings().max_frame_bytes;
        if body.size_hint().lower() > limit as u64 {
            return too_large(limit);
        }
        let expected = body.size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok());
        let room = self.bodies.room(expected.unwrap_or(limit).min(limit));
        let Ok(room) = tokio::time::timeout(BODY, room).await else {
            return rpc_error(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many large requests run: try again later",
            );
        };
        let frame = match tokio::time::timeout(BODY, Limited::new(body, limit).collect()).await {
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
                        seat.listens();
                    }
                    response
                }
                Judged::Wrong(id, error) => stateless::refusal(id.as_ref(), &error),
                Judged::Other => self.begin(&frame, &message, (form, room)).await,
            };
        };
        said(session.say(&frame, form, room).await)
    }

    /// A request that stands for itself. If nobody reads its answer any more, it is given up.
    async fn answer_alone(
        &self,
        frame: &Bytes,
        form: Form,
        (talk, room): (Arc<Conversation>, BodyRoom),
    ) -> Response<Content> {
        let session = self.sessions.of_one_request(talk);
        let ending = session.ending();
        match session.say(frame, form, room).await {
            Said::Events(events) => said(Said::Events(events.until_unread(ending))),
            Said::Whole(frame) => {
                let status = stateless::status_of(&frame);
                let json = |head: Builder| head.header(CONTENT_TYPE, "application/json");
                respond(status, Content::Whole(frame), json)
            }
            other => said(other),
        }
    }

    /// The first message of a client.
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
        let mut response = said(session.say(frame, form, room).await);
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(SESSION_ID, id);
        }
        response
    }

    fn listen(&self, headers: &HeaderMap, seat: &Seat) -> Response<Content> {
        let session = match self.named(headers) {
            Named::Session(session) => session,
            Named::Unknown => return no_session(),
            Named::Nobody | Named::Unclear => return rpc_error(StatusCode::BAD_REQUEST, UNCLEAR),
        };
        let Ok(last_event_id) = only(headers, &LAST_EVENT_ID) else {
            return rpc_error(StatusCode::BAD_REQUEST, "`Last-Event-ID` is unclear");
        };
        match session.listen(last_event_id) {
            Some(events) => {
                seat.listens();
                said(Said::Events(events))
            }
            // Not 404, which would mean that the session is over.
            None => rpc_error(StatusCode::BAD_REQUEST, "no event with this id is known"),
        }
    }

    fn end(&self, headers: &HeaderMap) -> Response<Content> {
        match only(headers, &SESSION_ID) {
            Ok(Some(id)) if self.sessions.end(id) => {
                respond(StatusCode::NO_CONTENT, Content::Whole(Bytes::new()), |head| head)
            }
            Ok(Some(_)) => no_session(),
            Ok(None) | Err(Twice) => rpc_error(StatusCode::BAD_REQUEST, UNCLEAR),
        }
    }

    fn named(&self, headers: &HeaderMap) -> Named {
        match only(headers, &SESSION_ID) {
            Ok(None) => Named::Nobody,
            Ok(Some(id)) => self.sessions.find(id).map_or(Named::Unknown, Named::Session),
            Err(Twice) => Named::Unclear,
        }
    }
}

const UNCLEAR: &str = "`Mcp-Session-Id` is missing or unclear";

/// Whom a request says it comes from.
enum Named {
    Nobody,
    Session(Arc<HttpSession>),
    Unknown,
    Unclear,
}

fn said(said: Said) -> Response<Content> {
    match said {
        Said::Noted => respond(StatusCode::ACCEPTED, Content::Whole(Bytes::new()), |head| head),
        Said::Whole(frame) => {
            let json = |head: Builder| head.header(CONTENT_TYPE, "application/json");
            respond(StatusCode::OK, Content::Whole(frame), json)
        }
        Said::Events(events) => {
            let stream = |head: Builder| head.header(CONTENT_TYPE, "text/event-stream");
            respond(StatusCode::OK, Content::Events(events), stream)
        }
        Said::Malformed(malformed) => malformed_response(StatusCode::BAD_REQUEST, &malformed),
        Said::Over => no_session(),
        Said::Busy => {
            rpc_error(StatusCode::TOO_MANY_REQUESTS, "too many requests of this session run")
        }
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

/// Reads past a small body: if a connection ends with unread bytes, its client may lose the answer.
async fn pass_over(body: Incoming) {
    let passing = Limited::new(body, PASSED_OVER).collect();
    let _too_large_or_slow = tokio::time::timeout(PASSING_OVER, passing).await;
}

/// Nothing that was said counts, so the connection ends with the refusal.
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

/// The same; while it is written its connection counts as served.
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
