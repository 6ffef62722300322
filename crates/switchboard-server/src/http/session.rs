//! One client over HTTP: what it says comes in, what it is told goes onto its streams.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use switchboard::Gateway;
use switchboard_wire::envelope::Malformed;
use switchboard_wire::era::Revision;
use switchboard_wire::peer::{self, Inlet, Kind, Limits, Outlet};
use switchboard_wire::{Exchange, Handler, Notification, Peer, Raw, Responder};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::bodies::BodyRoom;
use super::guard::Form;
use super::stream::{Event, Events, Position, Tap};
use super::streams::Streams;
use super::unsent::Unsent;
use crate::calls::Calls;
use crate::conversation::Conversation;
use crate::service::{HostKind, Offer, Service, cancelled_id};

/// Requests of one session that run at the same time; others wait for their turn.
const IN_FLIGHT: usize = 32;

/// How long they wait.
const TURN: Duration = Duration::from_secs(30);

/// An answer that comes sooner, with nothing before it, is plain JSON. Whoever waits longer gets a
/// stream, which shows that we are alive and can be resumed.
const QUICK: Duration = Duration::from_secs(1);

/// One client and its conversation with the gateway.
pub(super) struct HttpSession {
    streaming: Streaming,
    inlet: Inlet,
    /// Held only while a message is handed over.
    service: Mutex<Service>,
    calls: Calls,
    streams: Streams,
    unsent: Unsent,
    slots: Arc<Semaphore>,
    ended: CancellationToken,
}

/// How its event streams are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Streaming {
    /// Every event has an id, so that a stream that was cut can go on.
    Resumable,
    /// The same, and it begins with an id.
    Primed,
    /// A stream that was cut is a request that was given up.
    Once,
}

/// What a POST is answered with.
pub(super) enum Said {
    /// There is nothing to answer.
    Noted,
    Whole(Bytes),
    Events(Events),
    Malformed(Malformed),
    /// Too many requests wait already.
    Busy,
    /// The session ended meanwhile.
    Over,
}

/// Ends a session that nobody reads any more.
#[derive(Debug)]
pub(super) struct Ending(CancellationToken);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl HttpSession {
    pub(super) fn new(
        gateway: &Gateway,
        offer: &Offer,
        revision: Revision,
        unsent: Unsent,
    ) -> (Arc<HttpSession>, Outlet) {
        // Clients of older revisions take every event for a message.
        let streaming = match revision >= Revision::V2025_11_25 {
            true => Streaming::Primed,
            false => Streaming::Resumable,
        };
        HttpSession::with(gateway, (streaming, unsent), |peer| {
            Service::new(gateway, (offer, HostKind::Any), peer)
        })
    }

    /// For one request of a client of which nothing else is known.
    pub(super) fn of_one_request(
        gateway: &Gateway,
        talk: Arc<Conversation>,
        unsent: Unsent,
    ) -> (Arc<HttpSession>, Outlet) {
        let service = |peer| Service::of_one_request(talk, peer);
        HttpSession::with(gateway, (Streaming::Once, unsent), service)
    }

    fn with(
        gateway: &Gateway,
        (streaming, unsent): (Streaming, Unsent),
        service: impl FnOnce(Peer) -> Service,
    ) -> (Arc<HttpSession>, Outlet) {
        let max_frame_bytes = gateway.settings().max_frame_bytes;
        let (peer, outlet, inlet) =
            peer::detached(Limits { max_frame_bytes, write_deadline: None });
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

    /// Carries what we say until the session ends: what runs is given up then, and its askers are
    /// told.
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

    /// Takes what the client posted, and waits until it is clear how it is answered.
    pub(super) async fn say(&self, frame: &Bytes, form: Form, room: BodyRoom) -> Said {
        self.streams.touch();
        let exchange = self.streams.next_exchange();
        let mut ear = Ear { session: self, heard: Heard::Nothing };
        self.inlet.take(frame, Some(exchange), &mut ear);
        let (method, params, responder) = match ear.heard {
            Heard::Nothing => return Said::Noted,
            Heard::Malformed(malformed) => return Said::Malformed(malformed),
            Heard::Request(method, params, responder) => (method, params, responder),
        };
        let slot = match method.as_str() {
            // Whoever asks whether we live is told, whatever else runs.
            "ping" => None,
            _ => match timeout(TURN, self.turn()).await {
                Ok(Some(slot)) => Some(slot),
                Ok(None) | Err(_) => return Said::Busy,
            },
        };
        let Some(tap) = self.streams.open(exchange, responder.id().clone(), (slot, room)) else {
            return Said::Over;
        };
        self.service().request(method, params, responder);
        self.answered(exchange, tap, form).await
    }

    async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let slot = Arc::clone(&self.slots).acquire_owned().await.ok();
        self.unsent.room().await;
        slot
    }

    async fn answered(&self, exchange: Exchange, mut tap: Tap, form: Form) -> Said {
        let first = match timeout(QUICK, tap.next()).await {
            Ok(None) if self.streams.are_closed() => return Said::Over,
            Ok(first) => first,
            Err(_elapsed) if self.streams.as_events(exchange) => None,
            // It came in the last moment.
            Err(_elapsed) => tap.next().await,
        };
        match first {
            Some(Event { kind: Kind::Answer, frame, at }) if form == Form::Any && at.event == 1 => {
                Said::Whole(frame)
            }
            first => {
                let before = Position { stream: exchange.0, event: 0 };
                Said::Events(self.events(tap, before).with_first(first))
            }
        }
    }

    /// A stream of what comes unasked, or of what follows an event; `None` if that is not known.
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

    /// Whoever drops this gives up what runs.
    pub(super) fn ending(&self) -> Ending {
        Ending(self.ended.clone())
    }

    /// Ends the session: what runs is given up.
    pub(super) fn end(&self) {
        self.ended.cancel();
    }

    /// Lets what was accepted be answered, within `limit`, and then ends the session.
    pub(super) async fn wind_down(&self, limit: Duration) {
        self.streams.stop_listening();
        self.calls.drain(limit).await;
        self.inlet.peer().finish().await;
    }

    pub(super) fn idle_since(&self) -> Option<Instant> {
        self.streams.idle_since()
    }

    fn service(&self) -> MutexGuard<'_, Service> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hears one message; a request is put off until it has its stream.
struct Ear<'a> {
    session: &'a HttpSession,
    heard: Heard,
}

enum Heard {
    Nothing,
    Request(String, Option<Raw>, Responder),
    Malformed(Malformed),
}

impl Handler for Ear<'_> {
    fn request(&mut self, method: String, params: Option<Raw>, responder: Responder) {
        self.heard = Heard::Request(method, params, responder);
    }

    fn notification(&mut self, notification: Notification) {
        let cancelled = cancelled_id(&notification);
        self.session.service().notification(notification);
        if let Some(id) = cancelled {
            self.session.streams.give_up(&id);
        }
    }

    fn malformed(&mut self, error: &Malformed, _: &Peer) {
        self.heard = Heard::Malformed(error.clone());
    }
}
