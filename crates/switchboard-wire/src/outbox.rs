//! The outgoing side of a connection: a bounded queue, and the task that writes it in batches.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, mpsc};

use crate::peer::Exchange;

/// Capacity of the queue in frames; senders wait while it is full.
const QUEUE: usize = 256;

/// The maximum number of frames in one write.
const BATCH: usize = 64;

/// Frames up to this size are joined into one write; a larger one is written separately, without a
/// copy.
const JOINED_BYTES: usize = 64 * 1024;

/// The unwritten bytes of a connection: in the queue, or in senders that wait for the queue.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    bytes: AtomicUsize,
    less: Notify,
}

impl Backlog {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Completes when some of the unwritten bytes have been written.
    pub(crate) fn less(&self) -> Notified<'_> {
        self.less.notified()
    }
}

/// Adds the size of one frame to the backlog until it is dropped.
#[derive(Debug)]
pub(crate) struct Weight {
    backlog: Arc<Backlog>,
    bytes: usize,
}

impl Weight {
    pub(crate) fn of(frame: &Bytes, backlog: &Arc<Backlog>) -> Weight {
        backlog.bytes.fetch_add(frame.len(), Ordering::Relaxed);
        Weight { backlog: Arc::clone(backlog), bytes: frame.len() }
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.backlog.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.backlog.less.notify_waiters();
    }
}

/// One outgoing message of a connection.
#[derive(Debug)]
pub struct Parcel {
    /// One JSON-RPC message and a newline.
    pub frame: Bytes,
    pub exchange: Option<Exchange>,
    pub kind: ParcelKind,
    /// Additional HTTP headers, for proxies that do not parse the message.
    pub labels: Option<Labels>,
    pub(crate) weight: Weight,
}

impl Parcel {
    /// A parcel outside any connection, for tests of transports.
    pub fn loose(frame: Bytes, exchange: Option<Exchange>, kind: ParcelKind) -> Parcel {
        let weight = Weight::of(&frame, &Arc::default());
        Parcel { frame, exchange, kind, labels: None, weight }
    }
}

/// Names and values of headers, before the values are encoded. A thin pointer, because every
/// message has one.
pub type Labels = Arc<Vec<(String, String)>>;

/// The role of a message in its exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParcelKind {
    /// The message is a request or a notification.
    Message,
    /// The response to the request that opened the exchange; it is the last message.
    Answer,
}

#[derive(Debug)]
pub(crate) enum Outgoing {
    Frame(Parcel),
    /// The end of the queue: the writer writes all earlier frames and ends.
    End,
}

/// The outgoing messages of a connection, for a transport to carry.
#[derive(Debug)]
pub struct Outlet {
    queue: mpsc::Receiver<Outgoing>,
}

impl Outlet {
    /// The next message; `None` at the end of the queue.
    pub async fn next(&mut self) -> Option<Parcel> {
        match self.queue.recv().await {
            Some(Outgoing::Frame(parcel)) => Some(parcel),
            Some(Outgoing::End) | None => {
                self.queue.close();
                None
            }
        }
    }
}

pub(crate) fn queue() -> (mpsc::Sender<Outgoing>, Outlet) {
    let (sender, queue) = mpsc::channel(QUEUE);
    (sender, Outlet { queue })
}

/// Writes frames until the queue ends. A write that takes longer than `deadline` fails.
pub(crate) async fn write_all(
    Outlet { mut queue }: Outlet,
    mut sink: impl AsyncWrite + Unpin,
    deadline: Option<Duration>,
) -> io::Result<()> {
    let mut batch = Vec::with_capacity(BATCH);
    let mut joined = Vec::new();
    let mut weights = Vec::with_capacity(BATCH);
    while queue.recv_many(&mut batch, BATCH).await > 0 {
        let mut ended = false;
        joined.clear();
        for outgoing in batch.drain(..) {
            match outgoing {
                Outgoing::Frame(Parcel { frame, weight, .. }) if frame.len() > JOINED_BYTES => {
                    within(deadline, sink.write_all(&joined)).await?;
                    joined.clear();
                    weights.clear();
                    within(deadline, sink.write_all(&frame)).await?;
                    drop(weight);
                }
                Outgoing::Frame(Parcel { frame, weight, .. }) => {
                    joined.extend_from_slice(&frame);
                    weights.push(weight);
                }
                Outgoing::End => ended = true,
            }
        }
        within(deadline, sink.write_all(&joined)).await?;
        within(deadline, sink.flush()).await?;
        weights.clear();
        if ended {
            break;
        }
    }
    sink.shutdown().await
}

async fn within(
    deadline: Option<Duration>,
    write: impl Future<Output = io::Result<()>>,
) -> io::Result<()> {
    let mut write = pin!(write);
    // Nearly every write completes at once, without reading the clock.
    if let Poll::Ready(written) = poll_fn(|cx| Poll::Ready(write.as_mut().poll(cx))).await {
        return written;
    }
    match deadline {
        None => write.await,
        Some(deadline) => match tokio::time::timeout(deadline, write).await {
            Ok(written) => written,
            Err(_late) => Err(io::ErrorKind::TimedOut.into()),
        },
    }
}
