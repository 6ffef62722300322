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

/// Events kept for resuming.
const KEPT_EVENTS: usize = 256;
const KEPT_BYTES: usize = 1024 * 1024;

/// The stream of unsolicited messages; requests count from 1.
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
    /// Keyed by exchange. The stream of unsolicited messages lives as long as the session.
    live: BTreeMap<u64, Stream>,
    buffer: EventBuffer,
    used: Instant,
}

/// A stream that can still get messages.
#[derive(Debug)]
struct Stream {
    request: Option<StreamRequest>,
    last_event: u64,
    /// The last event that a reader got.
    handed: u64,
    delivery: Delivery,
    /// The reader's queue; `None` while there is no reader.
    feed: Option<Feed>,
}

/// The request of a stream.
#[derive(Debug)]
struct StreamRequest {
    id: Id,
    /// The request's share of the session's limits; no slot for a ping.
    _slot: (Option<OwnedSemaphorePermit>, BodyRoom),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    /// No message yet: if the response is first, it is the whole body.
    Undecided,
    /// Events with ids, which can be resumed.
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

    /// Opens the stream of a request; `None` if the session ended meanwhile.
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

    /// Turns the messages of this exchange into events from now on; `false` if its response was
    /// sent already.
    pub(super) fn as_events(&self, exchange: Exchange) -> bool {
        let mut state = lock(&self.state);
        let stream = state.live.get_mut(&exchange.0);
        stream.map(|stream| stream.delivery = Delivery::Events).is_some()
    }

    /// Routes a message to its stream. Messages after the response of their exchange are dropped.
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

    /// Opens the stream of unsolicited messages, or resumes after the event with this id; `None` if
    /// this session has no such event, or no longer keeps it.
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
                // An earlier reader loses the stream: each message goes to one reader.
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

    /// Ends the stream of unsolicited messages.
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

    /// The time since which no request and no open stream has used the session.
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
    /// An oversized response is kept as an error, so that its client does not wait in vain.
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
