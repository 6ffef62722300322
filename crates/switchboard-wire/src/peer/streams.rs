//! A connection over two byte streams, with one frame per line.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;

use super::inlet::{Overlong, watch_deadlines};
use super::{Handler, Inlet, Peer, PeerLimits, detached};
use crate::frame::{Frame, FrameReader};
use crate::outbox::{self, Outlet};

/// Opens a connection over two byte streams.
pub fn open<R, W>(
    source: R,
    sink: W,
    limits: PeerLimits,
) -> (Peer, StreamReader<R>, StreamWriter<W>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (peer, outlet, inlet) = detached(limits);
    let frames = FrameReader::new(source, limits.max_frame_bytes);
    let reader = StreamReader { frames, inlet, overlong: Overlong::Assigned };
    (peer, reader, StreamWriter { outlet, sink, deadline: limits.write_deadline })
}

/// The reading half of a connection. The owner runs it until it ends.
#[derive(Debug)]
pub struct StreamReader<R> {
    frames: FrameReader<R>,
    inlet: Inlet,
    overlong: Overlong,
}

impl<R: AsyncRead + Unpin> StreamReader<R> {
    /// Reads until the other side closes or the stream breaks.
    pub async fn run(mut self, handler: &mut dyn Handler) -> io::Result<()> {
        // The timer has a task of its own, because the reading task would poll it with every frame.
        let mut deadlines = JoinSet::new();
        let peer = self.inlet.peer().clone();
        deadlines.spawn(async move { watch_deadlines(&peer).await });
        loop {
            if let Some(pause) = handler.pause() {
                pause.await;
            }
            let Some(frame) = self.frames.next().await? else { return Ok(()) };
            match frame {
                Frame::Line(line) => self.inlet.take(&line, None, handler),
                Frame::TooLong { head } => self.overlong = self.inlet.too_long(&head, handler),
                Frame::Drained { tail, .. } => self.inlet.drained(self.overlong, &tail),
            }
        }
    }
}

/// The writing half of a connection. The owner runs it until it ends.
#[derive(Debug)]
pub struct StreamWriter<W> {
    outlet: Outlet,
    sink: W,
    deadline: Option<Duration>,
}

impl<W: AsyncWrite + Unpin> StreamWriter<W> {
    /// Writes until [`Peer::finish`], or until the other side stops reading.
    pub async fn run(self) -> io::Result<()> {
        outbox::write_all(self.outlet, self.sink, self.deadline).await
    }
}
