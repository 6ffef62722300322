//! The connections of all clients: how many, how long they may be idle, and which is closed first.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::unsent::Unsent;
use crate::lock::lock;

/// The maximum number of connections that are served.
const MOST: usize = 128;

/// The maximum number of further connections, which only get status 503.
const OVERFLOW: usize = 16;

/// The time limit for receiving the head of a request.
const HEAD: Duration = Duration::from_secs(5);

/// How long a connection without a request stays open.
const IDLE: Duration = Duration::from_secs(120);

/// How long a write may make no progress because the client reads nothing.
const STALLED: Duration = Duration::from_secs(30);

/// The limit that replaces [`STALLED`] while the unread responses exceed their soft limit.
const STALLED_UNDER_LOAD: Duration = Duration::from_millis(250);
/// The limit that replaces [`STALLED`] while the unread responses exceed their hard limit.
const STALLED_WITHOUT_ROOM: Duration = Duration::from_millis(25);

/// All open HTTP connections, with or without a slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Connections {
    slots: Arc<Mutex<Slots>>,
}

#[derive(Debug, Default)]
struct Slots {
    last: u64,
    /// The connections with a slot, keyed by their number, the oldest first.
    taken: BTreeMap<u64, Arc<Connection>>,
    /// The connections without a slot, keyed by their number, the oldest first.
    overflow: BTreeMap<u64, Arc<Connection>>,
}

/// Whether a connection has a slot, so that its requests are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPlace {
    Slot,
    /// No slot is free or can be freed: every connection with a slot is in use.
    Overflow,
}

/// The place of one connection. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct Slot {
    number: u64,
    place: ConnectionPlace,
    connection: Arc<Connection>,
    connections: Connections,
}

/// The state of one connection. The lock is held briefly.
#[derive(Debug)]
struct Connection {
    state: Mutex<ConnectionState>,
    /// A token that is cancelled when the connection must be closed.
    evicted: CancellationToken,
}

#[derive(Debug)]
struct ConnectionState {
    phase: ConnectionPhase,
    /// Whether a request on this connection had a valid token.
    is_authenticated: bool,
    /// The time since which every write has stalled; `None` if the last write succeeded.
    stalled: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
enum ConnectionPhase {
    /// The head of a request is being read.
    Head { since: Instant },
    /// A request on this connection is being answered.
    Served,
    /// A stream is open that the client can resume on another connection; no request is in flight.
    Listening { since: Instant },
    /// The connection has neither a request in flight nor an open stream.
    Idle { since: Instant },
}

impl Connections {
    /// Assigns a place to a new connection. If all slots are taken, an idle connection is closed.
    /// If no connection is idle, the new connection gets no slot, and only an error response.
    pub(super) fn slot(&self) -> Slot {
        let mut slots = lock(&self.slots);
        slots.last += 1;
        let number = slots.last;
        let place = slots.make_room();
        let phase = ConnectionPhase::Head { since: Instant::now() };
        let state = ConnectionState { phase, is_authenticated: false, stalled: None };
        let connection =
            Arc::new(Connection { state: Mutex::new(state), evicted: CancellationToken::new() });
        slots.at(place).insert(number, Arc::clone(&connection));
        Slot { number, place, connection, connections: self.clone() }
    }

    /// Closes connections that were idle or stalled for too long.
    pub(super) fn sweep(&self, now: Instant) {
        let slots = lock(&self.slots);
        for connection in slots.taken.values().chain(slots.overflow.values()) {
            if lock(&connection.state).is_overdue(now) {
                connection.evicted.cancel();
            }
        }
    }

    /// Closes stalled connections while the unread responses exceed their limit.
    pub(super) async fn relieve(&self, unsent: &Unsent) {
        loop {
            unsent.is_much().await;
            tokio::time::sleep(STALLED_WITHOUT_ROOM).await;
            let limit = match unsent.has_room() {
                true => STALLED_UNDER_LOAD,
                false => STALLED_WITHOUT_ROOM,
            };
            let now = Instant::now();
            for connection in lock(&self.slots).taken.values() {
                if lock(&connection.state).is_stalled(now, limit) {
                    connection.evicted.cancel();
                }
            }
        }
    }
}

impl Slots {
    fn at(&mut self, place: ConnectionPlace) -> &mut BTreeMap<u64, Arc<Connection>> {
        match place {
            ConnectionPlace::Slot => &mut self.taken,
            ConnectionPlace::Overflow => &mut self.overflow,
        }
    }

    /// Makes room for one more connection, and returns its place.
    fn make_room(&mut self) -> ConnectionPlace {
        let (place, leaving) = if self.taken.len() < MOST {
            (ConnectionPlace::Slot, None)
        } else if let Some(number) = self.first_to_close() {
            (ConnectionPlace::Slot, self.taken.remove(&number))
        } else if self.overflow.len() < OVERFLOW {
            (ConnectionPlace::Overflow, None)
        } else {
            (ConnectionPlace::Overflow, self.overflow.pop_first().map(|(_, oldest)| oldest))
        };
        leaving.into_iter().for_each(|gone| gone.evicted.cancel());
        place
    }

    /// Selects the connection to close: the oldest idle connection without authentication, else the
    /// connection that has been idle for longest, else the connection that has only had a
    /// resumable stream for longest.
    fn first_to_close(&self) -> Option<u64> {
        let claim = |(number, connection): (&u64, &Arc<Connection>)| {
            let ConnectionState { phase, is_authenticated, .. } = *lock(&connection.state);
            let rank = match (phase, is_authenticated) {
                (ConnectionPhase::Head { since } | ConnectionPhase::Idle { since }, false) => {
                    (0, since)
                }
                (ConnectionPhase::Idle { since }, true) => (1, since),
                (ConnectionPhase::Listening { since }, _) => (2, since),
                (ConnectionPhase::Head { .. }, true) | (ConnectionPhase::Served, _) => return None,
            };
            Some((rank, *number))
        };
        self.taken.iter().filter_map(claim).min().map(|(_, number)| number)
    }
}

impl Slot {
    /// Completes when the connection must be closed.
    pub(super) async fn evicted(&self) {
        self.connection.evicted.cancelled().await;
    }

    pub(super) fn place(&self) -> ConnectionPlace {
        self.place
    }

    /// Records that the client has sent a valid token.
    pub(super) fn authenticated(&self) {
        lock(&self.connection.state).is_authenticated = true;
    }

    /// Records that the head of a request was read. The connection is in use until the guard is
    /// dropped.
    pub(super) fn serve(&self) -> Serving {
        lock(&self.connection.state).phase = ConnectionPhase::Served;
        Serving { connection: Arc::clone(&self.connection) }
    }

    /// Records that the response is a stream that the client can resume on another connection.
    pub(super) fn listens(&self) {
        lock(&self.connection.state).phase = ConnectionPhase::Listening { since: Instant::now() };
    }

    /// Wraps the byte stream of this connection, to record stalled writes and the beginning of each
    /// request.
    pub(super) fn watch<S>(&self, stream: S) -> Watched<S> {
        Watched { stream, connection: Arc::clone(&self.connection) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.connections.slots).at(self.place).remove(&self.number);
    }
}

impl ConnectionState {
    fn is_overdue(&self, now: Instant) -> bool {
        let over = |since: Instant, limit| now.duration_since(since) >= limit;
        let too_slow = match self.phase {
            ConnectionPhase::Head { since } => over(since, HEAD),
            ConnectionPhase::Idle { since } => over(since, IDLE),
            ConnectionPhase::Served | ConnectionPhase::Listening { .. } => false,
        };
        too_slow || self.is_stalled(now, STALLED)
    }

    fn is_stalled(&self, now: Instant, limit: Duration) -> bool {
        self.stalled.is_some_and(|since| now.duration_since(since) >= limit)
    }
}

/// A guard that keeps a connection in use until the guard is dropped.
#[derive(Debug)]
pub(super) struct Serving {
    connection: Arc<Connection>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        lock(&self.connection.state).phase = ConnectionPhase::Idle { since: Instant::now() };
    }
}

/// A byte stream that records stalled writes and the beginning of each request.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    connection: Arc<Connection>,
}

impl<S> Watched<S> {
    fn written<T>(&self, result: Poll<T>) -> Poll<T> {
        let mut state = lock(&self.connection.state);
        state.stalled = match &result {
            Poll::Ready(_) => None,
            Poll::Pending => state.stalled.or_else(|| Some(Instant::now())),
        };
        result
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            let mut state = lock(&self.connection.state);
            if let ConnectionPhase::Idle { .. } = state.phase {
                state.phase = ConnectionPhase::Head { since: Instant::now() };
            }
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.written(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
