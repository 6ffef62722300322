//! One client over the standard streams of this process.

use std::io;
use std::time::Duration;

use switchboard::Gateway;
use switchboard_wire::peer::{self, PeerLimits};
use switchboard_wire::stdio::{Input, Output};
use switchboard_wire::{Peer, stdio};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::calls::Calls;
use crate::service::{HostKind, Offer, Service};

/// How long accepted requests may run after the client closed its output.
const DRAIN_AFTER_EOF: Duration = Duration::from_secs(30);

/// How long accepted requests may run after a request to stop.
pub(crate) const DRAIN_AFTER_STOP: Duration = Duration::from_millis(2_500);

/// Serves one client until it closes its output or `stop` is cancelled. Accepted requests are
/// answered first, within a time limit, unless the client has disconnected. The caller shuts the
/// gateway down.
pub async fn serve(
    gateway: Gateway,
    offer: Offer,
    host: HostKind,
    stop: CancellationToken,
) -> io::Result<()> {
    // A spawned task is woken without a system call; the root future is not.
    let mut client = JoinSet::new();
    client.spawn(serve_over((stdio::input(), stdio::output()), gateway, (offer, host), stop));
    match client.join_next().await {
        Some(Ok(served)) => served,
        Some(Err(panicked)) => Err(io::Error::other(panicked)),
        None => Ok(()),
    }
}

/// Waits until accepted requests are answered and responses are written, each for at most `limit`.
/// The second wait takes the whole `limit`, unless the caller drops this future because the writer
/// has written everything.
async fn wind_down(calls: &Calls, peer: &Peer, limit: Duration) {
    calls.drain(limit).await;
    let written = async {
        peer.finish().await;
        std::future::pending::<()>().await;
    };
    let _client_does_not_read = tokio::time::timeout(limit, written).await;
}

/// Serves one client over any streams, such as those of a client in this process.
pub async fn serve_over(
    (input, output): (Input, Output),
    gateway: Gateway,
    (offer, host): (Offer, HostKind),
    stop: CancellationToken,
) -> io::Result<()> {
    let limits =
        PeerLimits { max_frame_bytes: gateway.settings().max_frame_bytes, write_deadline: None };
    let (peer, reader, writer) = peer::open(input, output, limits);
    let mut service = Service::new(&gateway, (&offer, host), peer.clone());
    let calls = service.calls();
    // The writer has a task of its own, so that a response wakes only the writer.
    let mut writing = JoinSet::new();
    writing.spawn(writer.run());
    let reading_and_draining = async {
        tokio::select! {
            ended = reader.run(&mut service) => {
                if let Err(error) = ended {
                    tracing::warn!(%error, "cannot read from the client");
                }
                // Pi keeps its output open as long as it runs.
                if host == HostKind::Pi {
                    return calls.abandon();
                }
            }
            () = stop.cancelled() => {}
        }
        tokio::select! {
            () = wind_down(&calls, &peer, DRAIN_AFTER_EOF) => {}
            () = stop.cancelled() => wind_down(&calls, &peer, DRAIN_AFTER_STOP).await,
        }
    };
    // The writer ends last, when everything is written or the client has disconnected.
    let written = tokio::select! {
        Some(written) = writing.join_next() => written.unwrap_or_else(|e| Err(io::Error::other(e))),
        () = reading_and_draining => Ok(()),
    };
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

#[cfg(test)]
mod tests {
    use switchboard_wire::pipe::{self, End};
    use tokio::io::AsyncReadExt;
    use tokio::time::Instant;

    use super::*;

    /// A peer with more to write than the pipe holds, and the far end of the pipe.
    async fn talking() -> (Peer, JoinSet<io::Result<()>>, End) {
        let (near, far) = pipe::pair();
        let (peer, _reader, writer) = peer::open(near.reader, near.writer, PeerLimits::default());
        let mut writing = JoinSet::new();
        writing.spawn(writer.run());
        let long = format!("\"{}\"", "x".repeat(1024 * 1024));
        peer.notify("notifications/message", &long).await.unwrap();
        (peer, writing, far)
    }

    #[tokio::test(start_paused = true)]
    async fn shutdown_waits_a_bounded_time_for_the_client() {
        let (peer, _writing, _far) = talking().await;
        let began = Instant::now();
        wind_down(&Calls::default(), &peer, DRAIN_AFTER_STOP).await;
        assert_eq!(began.elapsed().as_secs(), DRAIN_AFTER_STOP.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn client_that_reads_late_gets_all_responses_before_shutdown() {
        let (peer, mut writing, mut far) = talking().await;
        let calls = Calls::default();
        let reading = async {
            tokio::time::sleep(DRAIN_AFTER_STOP / 2).await;
            let mut read = Vec::new();
            far.reader.read_to_end(&mut read).await.unwrap();
            read.len()
        };
        let ending = async {
            tokio::select! {
                written = writing.join_next() => written.unwrap().unwrap().unwrap(),
                () = wind_down(&calls, &peer, DRAIN_AFTER_STOP) => panic!("it was cut"),
            }
            // Dropping the peer closes the pipe.
            drop(peer);
        };
        let (read, ()) = tokio::join!(reading, ending);
        assert!(read > 1024 * 1024, "{read} bytes");
    }
}
