//! The sockets of all clients: how many, how long they may be silent, and who has to go first.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::unsent::Unsent;

/// Connections at the same time.
const MOST: usize = 128;

/// Connections beyond these, which are only told that there is no room.
const DOORWAY: usize = 16;

/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(5);

/// How long a connection may wait for its next request.
const IDLE: Duration = Duration::from_secs(120);

/// How long a client may take nothing of what is written to it.
const STALLED: Duration = Duration::from_secs(30);

/// The same while much is unsent, and while there is no room for more.
const STALLED_UNDER_LOAD: Duration = Duration::from_millis(250);
const STALLED_WITHOUT_ROOM: Duration = Duration::from_millis(25);

/// Everyone who is connected.
#[derive(Clone, Debug, Default)]
pub(super) struct Connections {
    seats: Arc<Mutex<Seats>>,
}

#[derive(Debug, Default)]
struct Seats {
    last: u64,
    /// By age, oldest first.
    taken: BTreeMap<u64, Arc<Manners>>,
    /// Those who found no seat, oldest first.
    doorway: BTreeMap<u64, Arc<Manners>>,
}

/// What a connection has come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Seat,
    /// Every seat is taken by somebody who is being answered.
    Doorway,
}

/// The place of one connection; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    number: u64,
    place: Place,
    manners: Arc<Manners>,
    connections: Connections,
}

/// How a connection behaves. One lock, held for a moment at a time.
#[derive(Debug)]
struct Manners {
    state: Mutex<State>,
    /// Set when it has to go.
    thrown_out: CancellationToken,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    standing: Standing,
    /// Since when nothing could be written.
    stalled: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The head of a request is on its way.
    Head { since: Instant },
    /// A request is being answered.
    Served,
    /// A stream is open that can be resumed elsewhere, and nothing is asked.
    Listening { since: Instant },
    /// Between two requests.
    Idle { since: Instant },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Has shown no token yet.
    Stranger,
    Known,
}

impl Connections {
    /// A place for a new connection. When all seats are taken, somebody has to go; if nobody can, the
    /// newcomer waits in the doorway, and so does not go without an answer.
    pub(super) fn seat(&self) -> Seat {
        let mut seats = self.seats();
        seats.last += 1;
        let number = seats.last;
        let place = seats.make_room();
        let state = State {
            phase: Phase::Head { since: Instant::now() },
            standing: Standing::Stranger,
            stalled: None,
        };
        let manners =
            Arc::new(Manners { state: Mutex::new(state), thrown_out: CancellationToken::new() });
        seats.at(place).insert(number, Arc::clone(&manners));
        Seat { number, place, manners, connections: self.clone() }
    }

    /// Throws out whoever was silent for too long.
    pub(super) fn sweep(&self, now: Instant) {
        let seats = self.seats();
        for manners in seats.taken.values().chain(seats.doorway.values()) {
            if manners.state().is_overdue(now) {
                manners.thrown_out.cancel();
            }
        }
    }

    /// Closes connections that take nothing while much is unsent.
    pub(super) async fn relieve(&self, unsent: &Unsent) {
        loop {
            unsent.is_much().await;
            tokio::time::sleep(STALLED_WITHOUT_ROOM).await;
            let limit = match unsent.has_room() {
                true => STALLED_UNDER_LOAD,
                false => STALLED_WITHOUT_ROOM,
            };
            let now = Instant::now();
            for manners in self.seats().taken.values() {
                if manners.state().is_stalled(now, limit) {
                    manners.thrown_out.cancel();
                }
            }
        }
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seats {
    fn at(&mut self, place: Place) -> &mut BTreeMap<u64, Arc<Manners>> {
        match place {
            Place::Seat => &mut self.taken,
            Place::Doorway => &mut self.doorway,
        }
    }

    /// What is free for one more, after whoever had to go for that went.
    fn make_room(&mut self) -> Place {
        let (place, leaving) = if self.taken.len() < MOST {
            (Place::Seat, None)
        } else if let Some(number) = self.first_to_go() {
            (Place::Seat, self.taken.remove(&number))
        } else if self.doorway.len() < DOORWAY {
            (Place::Doorway, None)
        } else {
            (Place::Doorway, self.doorway.pop_first().map(|(_, oldest)| oldest))
        };
        leaving.into_iter().for_each(|gone| gone.thrown_out.cancel());
        place
    }

    /// The stranger who has dawdled for longest, or else whoever has asked nothing for longest, or
    /// else whoever has only listened for longest.
    fn first_to_go(&self) -> Option<u64> {
        let claim = |(number, manners): (&u64, &Arc<Manners>)| {
            let State { phase, standing, .. } = *manners.state();
            let rank = match (phase, standing) {
                (Phase::Head { since } | Phase::Idle { since }, Standing::Stranger) => (0, since),
                (Phase::Idle { since }, Standing::Known) => (1, since),
                (Phase::Listening { since }, _) => (2, since),
                (Phase::Head { .. }, Standing::Known) | (Phase::Served, _) => return None,
            };
            Some((rank, *number))
        };
        self.taken.iter().filter_map(claim).min().map(|(_, number)| number)
    }
}

impl Seat {
    /// Completes when the connection has to go.
    pub(super) async fn thrown_out(&self) {
        self.manners.thrown_out.cancelled().await;
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// The client has shown its token.
    pub(super) fn is_known(&self) {
        self.manners.state().standing = Standing::Known;
    }

    /// The head of a request is there. It is being answered until this is dropped.
    pub(super) fn serve(&self) -> Serving {
        self.manners.state().phase = Phase::Served;
        Serving { manners: Arc::clone(&self.manners) }
    }

    /// What is being answered is a stream that can be resumed elsewhere.
    pub(super) fn listens(&self) {
        self.manners.state().phase = Phase::Listening { since: Instant::now() };
    }

    /// The bytes of this connection, watched.
    pub(super) fn watch<S>(&self, stream: S) -> Watched<S> {
        Watched { stream, manners: Arc::clone(&self.manners) }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.connections.seats().at(self.place).remove(&self.number);
    }
}

impl Manners {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_overdue(&self, now: Instant) -> bool {
        let over = |since: Instant, limit| now.duration_since(since) >= limit;
        let dawdles = match self.phase {
            Phase::Head { since } => over(since, HEAD),
            Phase::Idle { since } => over(since, IDLE),
            Phase::Served | Phase::Listening { .. } => false,
        };
        dawdles || self.is_stalled(now, STALLED)
    }

    fn is_stalled(&self, now: Instant, limit: Duration) -> bool {
        self.stalled.is_some_and(|since| now.duration_since(since) >= limit)
    }
}

/// A request is being answered for as long as this lives.
#[derive(Debug)]
pub(super) struct Serving {
    manners: Arc<Manners>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.manners.state().phase = Phase::Idle { since: Instant::now() };
    }
}

/// A byte stream whose other end is expected to read and to come to the point.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    manners: Arc<Manners>,
}

impl<S> Watched<S> {
    fn written<T>(&self, result: Poll<T>) -> Poll<T> {
        let mut state = self.manners.state();
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
            let mut state = self.manners.state();
            if let Phase::Idle { .. } = state.phase {
                state.phase = Phase::Head { since: Instant::now() };
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
