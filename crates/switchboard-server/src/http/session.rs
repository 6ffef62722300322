//! One HTTP session: receives the messages of its client, and writes messages to its streams.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use switchboard_wire::envelope::Malformed;
use switchboard_wire::era::Revision;
use switchboard_wire::peer::{self, Inlet, Outlet, ParcelKind, PeerLimits};
use switchboard_wire::{Exchange, Handler, Notification, Peer, Raw, Responder};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::bodies::BodyRoom;
use super::guard::ResponseForm;
use super::stream::{Event, Events, Position, Tap};
use super::streams::Streams;
use super::unsent::Unsent;
use crate::calls::Calls;
use crate::lock::lock;
use crate::service::{Service, cancelled_id};

/// The maximum number of requests of one session that run at the same time; others wait.
const IN_FLIGHT: usize = 32;

/// How long a request may wait before it is refused.
const SLOT_TIMEOUT: Duration = Duration::from_secs(30);

/// A response within this time, with no message before it, is JSON in the body. Otherwise the
/// client gets an event stream, which can be resumed.
const JSON_DEADLINE: Duration = Duration::from_secs(1);

/// The HTTP session of one client.
pub(super) struct HttpSession {
    streaming: Streaming,
    inlet: Inlet,
    /// Dispatches the messages of the client. The lock is held only while a message is dispatched.
    service: Mutex<Service>,
    calls: Calls,
    streams: Streams,
    unsent: Unsent,
    slots: Arc<Semaphore>,
    ended: CancellationToken,
}

/// How the event streams of a session are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streaming {
    /// Every event has an id, so that an interrupted stream can be resumed.
    Resumable,
    /// As `Resumable`, but the stream begins with an event that has only an id, so that the client
    /// can resume it before the first message.
    Primed,
    /// Events without ids: closing the stream cancels the request.
    Once,
}

impl Streaming {
    /// How streams are written in a session of this revision. Clients of older revisions would
    /// parse an event that has only an id as a message, so they get no such event.
    pub(super) fn of(revision: Revision) -> Streaming {
        if revision >= Revision::V2025_11_25 { Streaming::Primed } else { Streaming::Resumable }
    }
}

/// The response to a POST.
pub(super) enum PostResponse {
    /// Status 202: the message needs no response.
    Accepted,
    Whole(Bytes),
    Events(Events),
    Malformed(Malformed),
    /// Too many requests of the session are waiting.
    Busy,
    /// The session ended while the message was handled.
    SessionEnded,
}

impl HttpSession {
    pub(super) fn new(
        max_frame_bytes: usize,
        (streaming, unsent): (Streaming, Unsent),
        service: impl FnOnce(Peer) -> Service,
    ) -> (Arc<HttpSession>, Outlet) {
        let (peer, outlet, inlet) =
            peer::detached(PeerLimits { max_frame_bytes, write_deadline: None });
        let service = service(peer);
        let session = HttpSession {
            streaming,
            inlet,
            calls: service.calls(),
            service: Mutex::new(service),
            streams: Streams::new(unsent.clone()),
            unsent,
            slots: Arc::new(Semaphore::new(IN_FLIGHT)),
            ended: CancellationToken::new(),
        };
        (Arc::new(session), outlet)
    }

    /// Routes outgoing messages to their streams until the session ends. Requests that still run
    /// are then aborted and answered with an error.
    pub(super) async fn run(self: Arc<HttpSession>, mut outlet: Outlet) {
        let carrying = async {
            while let Some(parcel) = outlet.next().await {
                self.streams.route(parcel);
            }
        };
        let ending = async {
            self.ended.cancelled().await;
            self.wind_down(Duration::ZERO).await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = carrying => {}
            () = self.inlet.watch_deadlines() => {}
            () = ending => {}
        }
        self.streams.close();
    }

    /// Dispatches a posted message, and waits until its response is complete or an event stream is
    /// necessary.
    pub(super) async fn say(
        &self,
        frame: &Bytes,
        form: ResponseForm,
        room: BodyRoom,
    ) -> PostResponse {
        self.streams.touch();
        let exchange = self.streams.next_exchange();
        let mut receiver = MessageReceiver { session: self, message: ReceivedMessage::Nothing };
        self.inlet.take(frame, Some(exchange), &mut receiver);
        let (method, params, responder) = match receiver.message {
            ReceivedMessage::Nothing => return PostResponse::Accepted,
            ReceivedMessage::Malformed(malformed) => return PostResponse::Malformed(malformed),
            ReceivedMessage::Request(method, params, responder) => (method, params, responder),
        };
        let slot = match method.as_str() {
            // A ping needs no slot, so that it is answered under load too.
            "ping" => None,
            _ => match timeout(SLOT_TIMEOUT, self.turn()).await {
                Ok(Some(slot)) => Some(slot),
                Ok(None) | Err(_) => return PostResponse::Busy,
            },
        };
        let Some(tap) = self.streams.open(exchange, responder.id().clone(), (slot, room)) else {
            return PostResponse::SessionEnded;
        };
        lock(&self.service).request(method, params, responder);
        self.answered(exchange, tap, form).await
    }

    async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let slot = Arc::clone(&self.slots).acquire_owned().await.ok();
        self.unsent.room().await;
        slot
    }

    async fn answered(&self, exchange: Exchange, mut tap: Tap, form: ResponseForm) -> PostResponse {
        let first = match timeout(JSON_DEADLINE, tap.next()).await {
            Ok(None) if self.streams.are_closed() => return PostResponse::SessionEnded,
            Ok(first) => first,
            Err(_elapsed) if self.streams.as_events(exchange) => None,
            // The response may have arrived exactly at the deadline.
            Err(_elapsed) => tap.next().await,
        };
        match first {
            Some(Event { kind: ParcelKind::Answer, frame, at })
                if form == ResponseForm::Any && at.event == 1 =>
            {
                PostResponse::Whole(frame)
            }
            first => {
                let before = Position { stream: exchange.0, event: 0 };
                PostResponse::Events(self.events(tap, before).with_first(first))
            }
        }
    }

    /// Opens the stream of unsolicited messages, or resumes a stream after the event with this id;
    /// `None` if the event is unknown.
    pub(super) fn listen(&self, last_event_id: Option<&str>) -> Option<Events> {
        self.streams.touch();
        let (tap, after) = self.streams.listen(last_event_id)?;
        Some(self.events(tap, after))
    }

    fn events(&self, tap: Tap, after: Position) -> Events {
        match self.streaming {
            Streaming::Primed => Events::new(Some(self.streams.nonce()), tap).primed(after),
            Streaming::Resumable => Events::new(Some(self.streams.nonce()), tap),
            Streaming::Once => Events::new(None, tap),
        }
    }

    /// A guard that ends the session when it is dropped, which aborts its requests.
    pub(super) fn ending(&self) -> DropGuard {
        self.ended.clone().drop_guard()
    }

    /// Ends the session, and aborts its requests.
    pub(super) fn end(&self) {
        self.ended.cancel();
    }

    /// Waits at most `limit` for accepted requests, and then ends the session.
    pub(super) async fn wind_down(&self, limit: Duration) {
        self.streams.stop_listening();
        self.calls.drain(limit).await;
        self.inlet.peer().finish().await;
    }

    pub(super) fn idle_since(&self) -> Option<Instant> {
        self.streams.idle_since()
    }
}

/// Receives one message. Keeps a request until the stream for its response is open.
struct MessageReceiver<'a> {
    session: &'a HttpSession,
    message: ReceivedMessage,
}

enum ReceivedMessage {
    Nothing,
    Request(String, Option<Raw>, Responder),
    Malformed(Malformed),
}

impl Handler for MessageReceiver<'_> {
    fn request(&mut self, method: String, params: Option<Raw>, responder: Responder) {
        self.message = ReceivedMessage::Request(method, params, responder);
    }

    fn notification(&mut self, notification: Notification) {
        let cancelled = cancelled_id(&notification);
        lock(&self.session.service).notification(notification);
        if let Some(id) = cancelled {
            self.session.streams.give_up(&id);
        }
    }

    fn malformed(&mut self, error: &Malformed, _: &Peer) {
        self.message = ReceivedMessage::Malformed(error.clone());
    }
}
