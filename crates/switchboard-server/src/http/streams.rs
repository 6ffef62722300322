//! All streams of one session: routes messages to streams, and keeps events for resuming.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use switchboard::secret::unguessable;
use switchboard_wire::envelope::{self, INTERNAL_ERROR};
use switchboard_wire::peer::{Parcel, ParcelKind};
use switchboard_wire::{Exchange, Id, RpcError};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::bodies::BodyRoom;
use super::stream::{Event, Feed, Position, Tap, queue};
use super::unsent::Unsent;
use crate::lock::lock;

/// The maximum number and size of the events that are kept for resuming.
const KEPT_EVENTS: usize = 256;
const KEPT_BYTES: usize = 1024 * 1024;

/// The number of the stream of unsolicited messages. The streams of requests are numbered from 1.
const UNSOLICITED: u64 = 0;

/// The streams of a session. The lock is held briefly.
#[derive(Debug)]
pub(super) struct Streams {
    /// The prefix of every event id. It is random, so guessed ids and ids of other sessions are
    /// unknown.
    nonce: Arc<str>,
    unsent: Unsent,
    state: Mutex<StreamsState>,
}

#[derive(Debug)]
struct StreamsState {
    last_exchange: u64,
    /// The open streams by exchange number. `UNSOLICITED` (0) is the stream of unsolicited
    /// messages, which stays until the session ends.
    live: BTreeMap<u64, Stream>,
    buffer: EventBuffer,
    used: Instant,
}

/// A stream that can still receive messages.
#[derive(Debug)]
struct Stream {
    request: Option<StreamRequest>,
    last_event: u64,
    /// The number of the last event that a reader received.
    handed: u64,
    delivery: Delivery,
    /// The queue of the current reader; `None` while the client reads no response with this stream.
    feed: Option<Feed>,
}

/// The request whose response ends a stream.
#[derive(Debug)]
struct StreamRequest {
    id: Id,
    /// The share of the limits on requests and bodies that the request takes up. A ping has no
    /// permit.
    _slot: (Option<OwnedSemaphorePermit>, BodyRoom),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    /// No message was sent yet. If the first one is the JSON-RPC response, it is the whole body.
    Undecided,
    /// The messages are sent as events with ids, so that the stream can be resumed.
    Events,
}

impl Streams {
    pub(super) fn new(unsent: Unsent) -> Streams {
        let unsolicited = Stream {
            request: None,
            last_event: 0,
            handed: 0,
            delivery: Delivery::Events,
            feed: None,
        };
        let state = StreamsState {
            last_exchange: UNSOLICITED,
            live: BTreeMap::from([(UNSOLICITED, unsolicited)]),
            buffer: EventBuffer::default(),
            used: Instant::now(),
        };
        Streams { nonce: unguessable().into(), unsent, state: Mutex::new(state) }
    }

    pub(super) fn nonce(&self) -> Arc<str> {
        Arc::clone(&self.nonce)
    }

    /// Allocates a number for the exchange of a POST.
    pub(super) fn next_exchange(&self) -> Exchange {
        let mut state = lock(&self.state);
        state.last_exchange += 1;
        Exchange(state.last_exchange)
    }

    /// Opens the stream for a request; `None` if the session has ended.
    pub(super) fn open(
        &self,
        exchange: Exchange,
        id: Id,
        slot: (Option<OwnedSemaphorePermit>, BodyRoom),
    ) -> Option<Tap> {
        let mut state = lock(&self.state);
        if state.live.is_empty() {
            return None;
        }
        let (feed, tap) = queue(&self.unsent);
        let stream = Stream {
            request: Some(StreamRequest { id, _slot: slot }),
            last_event: 0,
            handed: 0,
            delivery: Delivery::Undecided,
            feed: Some(feed),
        };
        state.live.insert(exchange.0, stream);
        Some(tap)
    }

    /// Sends the messages of this exchange as events from now on; `false` if its response was sent
    /// already.
    pub(super) fn as_events(&self, exchange: Exchange) -> bool {
        let mut state = lock(&self.state);
        let stream = state.live.get_mut(&exchange.0);
        stream.map(|stream| stream.delivery = Delivery::Events).is_some()
    }

    /// Sends a message to its stream. Drops messages that follow the response of their exchange.
    pub(super) fn route(&self, parcel: Parcel) {
        let state = &mut *lock(&self.state);
        let number = parcel.exchange.map_or(UNSOLICITED, |Exchange(number)| number);
        let Some(stream) = state.live.get_mut(&number) else { return };
        stream.last_event += 1;
        let at = Position { stream: number, event: stream.last_event };
        let event = Event { at, kind: parcel.kind, frame: parcel.frame };
        if event.kind == ParcelKind::Message {
            stream.delivery = Delivery::Events;
        }
        if stream.delivery == Delivery::Events {
            state.buffer.push(&event, stream.request.as_ref().map(|request| &request.id));
        }
        let answered = event.kind == ParcelKind::Answer;
        stream.give(event);
        if answered && number != UNSOLICITED {
            state.live.remove(&number);
        }
    }

    /// Ends the stream of a cancelled request.
    pub(super) fn give_up(&self, id: &Id) {
        let mut state = lock(&self.state);
        let has_id =
            |stream: &Stream| stream.request.as_ref().is_some_and(|request| request.id == *id);
        let number =
            state.live.iter().find(|(_, stream)| has_id(stream)).map(|(number, _)| *number);
        if let Some(number) = number {
            state.live.remove(&number);
        }
    }

    /// Opens the stream of unsolicited messages, or resumes a stream after the event with this id;
    /// `None` if this session never had the event, or no longer keeps it.
    pub(super) fn listen(&self, last_event_id: Option<&str>) -> Option<(Tap, Position)> {
        let state = &mut *lock(&self.state);
        let after = match last_event_id {
            Some(id) => self.position(id)?,
            None => {
                let handed = state.live.get(&UNSOLICITED)?.handed;
                Position { stream: UNSOLICITED, event: handed }
            }
        };
        let (feed, tap) = queue(&self.unsent);
        match state.live.get_mut(&after.stream) {
            Some(stream) if after.event <= stream.last_event => {
                stream.delivery = Delivery::Events;
                // An earlier reader of the stream is disconnected, because each message is sent to
                // one reader only.
                stream.feed = Some(feed);
                state.buffer.after(after).for_each(|event| stream.give(event.clone()));
            }
            Some(_) => return None,
            None => {
                let answer = state.buffer.answer_of(after.stream)?;
                if after.event > answer.at.event {
                    return None;
                }
                for event in state.buffer.after(after) {
                    let _at_most_what_is_kept = feed.put(event.clone());
                }
            }
        }
        Some((tap, after))
    }

    /// Disconnects the reader of unsolicited messages.
    pub(super) fn stop_listening(&self) {
        if let Some(unsolicited) = lock(&self.state).live.get_mut(&UNSOLICITED) {
            unsolicited.feed = None;
        }
    }

    /// Ends every stream.
    pub(super) fn close(&self) {
        lock(&self.state).live.clear();
    }

    /// Whether all streams have ended.
    pub(super) fn are_closed(&self) -> bool {
        lock(&self.state).live.is_empty()
    }

    /// Records that the session is in use.
    pub(super) fn touch(&self) {
        lock(&self.state).used = Instant::now();
    }

    /// The time of the last use; `None` while a request runs or a stream is open.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = lock(&self.state);
        let open = |stream: &Stream| stream.feed.as_ref().is_some_and(Feed::is_read);
        let in_use =
            state.live.iter().any(|(number, stream)| *number != UNSOLICITED || open(stream));
        (!in_use).then_some(state.used)
    }

    fn position(&self, id: &str) -> Option<Position> {
        let (stream, event) = id.strip_prefix(&*self.nonce)?.strip_prefix('.')?.split_once('.')?;
        Some(Position { stream: stream.parse().ok()?, event: event.parse().ok()? })
    }
}

impl Stream {
    fn give(&mut self, event: Event) {
        let number = event.at.event;
        match self.feed.as_ref().map(|feed| feed.put(event)) {
            Some(Ok(())) => self.handed = number,
            Some(Err(_gone)) => self.feed = None,
            None => {}
        }
    }
}

/// The newest events of a session.
#[derive(Debug, Default)]
struct EventBuffer {
    events: VecDeque<Event>,
    bytes: usize,
}

impl EventBuffer {
    /// Keeps an event. An oversized response is replaced by an error, so that a client that resumes
    /// gets a response.
    fn push(&mut self, event: &Event, request: Option<&Id>) {
        let mut event = event.clone();
        if event.frame.len() > KEPT_BYTES {
            match (event.kind, request) {
                (ParcelKind::Answer, Some(id)) => event.frame = too_large(id),
                (ParcelKind::Answer | ParcelKind::Message, _) => return,
            }
        }
        self.bytes += event.frame.len();
        self.events.push_back(event);
        while self.events.len() > KEPT_EVENTS || self.bytes > KEPT_BYTES {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.frame.len();
        }
    }

    fn after(&self, after: Position) -> impl Iterator<Item = &Event> {
        self.events
            .iter()
            .filter(move |event| event.at.stream == after.stream && event.at.event > after.event)
    }

    fn answer_of(&self, stream: u64) -> Option<&Event> {
        self.events
            .iter()
            .find(|event| event.at.stream == stream && event.kind == ParcelKind::Answer)
    }
}

fn too_large(id: &Id) -> Bytes {
    let message = "the stream was interrupted, and the response is too large to be sent again";
    envelope::error_frame(Some(id), &RpcError::new(INTERNAL_ERROR, message))
}

#[cfg(test)]
mod tests;
