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

/// Connections at the same time.
const MOST: usize = 128;

/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(5);

/// How long a connection may wait for its next request.
const IDLE: Duration = Duration::from_secs(120);

/// How long a client may take nothing of what is written to it.
const STALLED: Duration = Duration::from_secs(30);

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
}

/// The place of one connection; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    number: u64,
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
    /// A seat for a new connection. When all are taken, somebody has to go; `None` if nobody can.
    pub(super) fn seat(&self) -> Option<Seat> {
        let mut seats = self.seats();
        if seats.taken.len() >= MOST {
            let leaving = seats.first_to_go()?;
            seats.taken.remove(&leaving).into_iter().for_each(|gone| gone.thrown_out.cancel());
        }
        seats.last += 1;
        let number = seats.last;
        let state = State {
            phase: Phase::Head { since: Instant::now() },
            standing: Standing::Stranger,
            stalled: None,
        };
        let manners =
            Arc::new(Manners { state: Mutex::new(state), thrown_out: CancellationToken::new() });
        seats.taken.insert(number, Arc::clone(&manners));
        Some(Seat { number, manners, connections: self.clone() })
    }

    /// Throws out whoever was silent for too long.
    pub(super) fn sweep(&self, now: Instant) {
        for manners in self.seats().taken.values() {
            if manners.state().is_overdue(now) {
                manners.thrown_out.cancel();
            }
        }
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seats {
    /// The stranger who has dawdled for longest, or else whoever has asked nothing for longest.
    fn first_to_go(&self) -> Option<u64> {
        let dawdles = |(_, manners): &(&u64, &Arc<Manners>)| {
            let state = manners.state();
            state.standing == Standing::Stranger && !matches!(state.phase, Phase::Served)
        };
        let idle = |(number, manners): (&u64, &Arc<Manners>)| match manners.state().phase {
            Phase::Idle { since } => Some((since, *number)),
            Phase::Head { .. } | Phase::Served => None,
        };
        let dawdler = self.taken.iter().find(dawdles).map(|(number, _)| *number);
        dawdler.or_else(|| self.taken.iter().filter_map(idle).min().map(|(_, number)| number))
    }
}

impl Seat {
    /// Completes when the connection has to go.
    pub(super) async fn thrown_out(&self) {
        self.manners.thrown_out.cancelled().await;
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

    /// The bytes of this connection, watched.
    pub(super) fn watch<S>(&self, stream: S) -> Watched<S> {
        Watched { stream, manners: Arc::clone(&self.manners) }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.connections.seats().taken.remove(&self.number);
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
            Phase::Served => false,
        };
        dawdles || self.stalled.is_some_and(|since| over(since, STALLED))
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
