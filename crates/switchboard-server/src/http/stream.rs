//! One response stream: a queue with a byte limit, and its events as bytes.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use switchboard_wire::peer::ParcelKind;
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, interval_at};
use tokio_util::sync::DropGuard;

use super::unsent::Unsent;

/// The number of queued bytes at which the stream of a slow reader is closed. The event that
/// exceeds the limit is still queued.
const QUEUED_BYTES: usize = 8 * 1024 * 1024;

/// After this time without an event, a comment is sent to keep the connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How long a client waits before it resumes a lost stream.
const RETRY: Duration = Duration::from_secs(1);

/// The size above which a frame is written separately, without a copy.
const JOINED_BYTES: usize = 16 * 1024;

/// The position of an event in the streams of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) stream: u64,
    /// The number of the event in its stream, from 1; 0 means the position before the first event.
    pub(super) event: u64,
}

/// One message to a client.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) at: Position,
    pub(super) kind: ParcelKind,
    /// The message as JSON on one line, with a newline.
    pub(super) frame: Bytes,
}

/// The sending end of a stream's event queue.
#[derive(Debug)]
pub(super) struct Feed {
    events: mpsc::UnboundedSender<Event>,
    queued: Arc<AtomicUsize>,
    unsent: Unsent,
}

/// The receiving end of a stream's event queue, which an HTTP response reads.
#[derive(Debug)]
pub(super) struct Tap {
    events: mpsc::UnboundedReceiver<Event>,
    queued: Arc<AtomicUsize>,
}

/// The error for a client that has disconnected or reads too slowly.
#[derive(Debug)]
pub(super) struct Gone;

pub(super) fn queue(unsent: &Unsent) -> (Feed, Tap) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let queued = Arc::new(AtomicUsize::new(0));
    let tap = Tap { events: receiver, queued: Arc::clone(&queued) };
    (Feed { events: sender, queued, unsent: unsent.clone() }, tap)
}

impl Feed {
    /// Queues an event without waiting. A client that does not read loses its stream; other clients
    /// are not affected.
    pub(super) fn put(&self, mut event: Event) -> Result<(), Gone> {
        if self.queued.load(Ordering::Relaxed) > QUEUED_BYTES {
            return Err(Gone);
        }
        self.queued.fetch_add(event.frame.len(), Ordering::Relaxed);
        event.frame = self.unsent.count(event.frame);
        self.events.send(event).map_err(|_| Gone)
    }

    /// Whether the receiving end of the queue is open.
    pub(super) fn is_read(&self) -> bool {
        !self.events.is_closed()
    }
}

impl Tap {
    /// The next event; `None` when the stream has ended.
    pub(super) async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let event = std::task::ready!(self.events.poll_recv(cx));
        if let Some(event) = &event {
            self.queued.fetch_sub(event.frame.len(), Ordering::Relaxed);
        }
        Poll::Ready(event)
    }
}

/// An event stream as the body of an HTTP response.
#[derive(Debug)]
pub(super) struct Events {
    tap: Tap,
    /// The prefix of every event id of this session; `None` if the stream cannot be resumed.
    nonce: Option<Arc<str>>,
    /// Bytes of the stream that the connection has not read yet.
    pieces: VecDeque<Bytes>,
    silence: Interval,
    /// Ends the session when this is dropped, because the client has disconnected.
    ending: Option<DropGuard>,
}

impl Events {
    pub(super) fn new(nonce: Option<Arc<str>>, tap: Tap) -> Events {
        let silence = interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
        Events { tap, nonce, pieces: VecDeque::new(), silence, ending: None }
    }

    /// Ends the session when the stream is dropped.
    pub(super) fn until_unread(mut self, ending: DropGuard) -> Events {
        self.ending = Some(ending);
        self
    }

    /// Lets the stream begin with an event that has only an id, so that the whole stream can be
    /// resumed.
    pub(super) fn primed(mut self, at: Position) -> Events {
        let (id, retry) = (self.id(at), RETRY.as_millis());
        self.pieces.push_back(Bytes::from(format!("{id}retry: {retry}\ndata:\n\n")));
        self
    }

    /// Lets the stream begin with an event that was taken out of the queue already.
    pub(super) fn with_first(mut self, event: Option<Event>) -> Events {
        if let Some(event) = event {
            self.push(event);
        }
        self
    }

    /// The `id` line of an event.
    fn id(&self, Position { stream, event }: Position) -> String {
        let name = |nonce: &Arc<str>| format!("id: {nonce}.{stream}.{event}\n");
        self.nonce.as_ref().map(name).unwrap_or_default()
    }

    fn push(&mut self, event: Event) {
        let head = format!("{}data: ", self.id(event.at));
        let frame = one_line(event.frame);
        if frame.len() > JOINED_BYTES {
            self.pieces.extend([Bytes::from(head), frame, Bytes::from_static(b"\n\n")]);
            return;
        }
        let mut joined = head.into_bytes();
        joined.extend_from_slice(&frame);
        joined.extend_from_slice(b"\n\n");
        self.pieces.push_back(Bytes::from(joined));
    }
}

/// Replaces line breaks by blanks: in a frame they are white space between tokens, but in a stream
/// they would end the event's data.
fn one_line(frame: Bytes) -> Bytes {
    let frame = frame.slice(..frame.len() - usize::from(frame.ends_with(b"\n")));
    if !frame.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return frame;
    }
    let spaced = |byte: &u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
    frame.iter().map(spaced).collect::<Vec<u8>>().into()
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        loop {
            if let Some(piece) = this.pieces.pop_front() {
                this.silence.reset();
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            match this.tap.poll_next(cx) {
                Poll::Ready(Some(event)) => this.push(event),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => {
                    std::task::ready!(this.silence.poll_tick(cx));
                    this.pieces.push_back(Bytes::from_static(b":\n\n"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
