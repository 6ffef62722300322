//! MCP over HTTP: one engine for many clients, each with a session of its own.
//!
//! - [`Listening`]: the listener, from bind to shutdown;
//! - `guard`: admits requests by their head, before the body is read;
//! - `connections`: limits on connections, and which one is closed first;
//! - `in_place`: polls a future that woke itself at once;
//! - `endpoint`: turns a request into a response;
//! - `stateless`: requests without a session, and their required headers;
//! - `sessions`, `session`: the sessions, and the messages of one client;
//! - `bodies`: limits the memory of all request bodies;
//! - `unsent`: limits the memory of all unread responses;
//! - `streams`, `stream`: event streams, in order, for one reader, and resumable.

mod bodies;
mod connections;
mod endpoint;
mod guard;
mod in_place;
mod session;
mod sessions;
mod stateless;
mod stream;
mod streams;
mod unsent;

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use switchboard::Gateway;
use switchboard::secret::Token;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use self::connections::{Connections, Slot};
use self::endpoint::Endpoint;
use self::guard::Guard;
use self::in_place::InPlace;
use self::sessions::Sessions;
use self::unsent::Unsent;
use crate::service::Offer;
use crate::stdio::DRAIN_AFTER_STOP;

/// Interval for closing idle connections and sessions.
const SWEEP: Duration = Duration::from_secs(1);

/// Delay after a failed accept, usually for lack of file descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// How long the connections may take to write their last bytes after all requests were answered.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum size of the head of a request.
const HEAD_BYTES: usize = 64 * 1024;

/// A bound listener for clients.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listening {
    pub async fn at(address: SocketAddr) -> io::Result<Listening> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Listening { listener, address })
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, guard::ENDPOINT)
    }

    /// Serves clients until `stop` is cancelled. Accepted requests are answered first, within a
    /// time limit. The caller shuts the gateway down.
    pub async fn serve(
        self,
        gateway: Gateway,
        offer: Offer,
        token: Token,
        stop: CancellationToken,
    ) {
        let guard = Guard::new(self.address, token);
        let unsent = Unsent::default();
        let sessions = Sessions::new(gateway, offer, unsent.clone());
        let endpoint = Arc::new(Endpoint::new(guard, sessions));
        let connections = Connections::default();
        let mut relief = pin!(connections.relieve(&unsent));
        let mut clients = JoinSet::new();
        let mut sweep = tokio::time::interval(SWEEP);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        let (slot, endpoint) = (connections.slot(), Arc::clone(&endpoint));
                        clients.spawn(attend(stream, slot, endpoint, stop.clone()));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(ACCEPT_RETRY).await;
                    }
                },
                Some(_ended) = clients.join_next() => {}
                _ = sweep.tick() => {
                    connections.sweep(Instant::now());
                    endpoint.sessions().sweep(Instant::now());
                }
                () = &mut relief => {}
                () = stop.cancelled() => break,
            }
        }
        drop(self.listener);
        endpoint.sessions().wind_down(DRAIN_AFTER_STOP).await;
        let flushing = async { while clients.join_next().await.is_some() {} };
        let _client_does_not_read = tokio::time::timeout(FLUSH_TIMEOUT, flushing).await;
    }
}

/// Serves one connection until either side closes it.
async fn attend(stream: TcpStream, slot: Slot, endpoint: Arc<Endpoint>, stop: CancellationToken) {
    let _slower_without = stream.set_nodelay(true);
    let service =
        service_fn(async |request| Ok::<_, Infallible>(endpoint.answer(request, &slot).await));
    let connection = http1::Builder::new()
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(slot.watch(stream)), service);
    let mut connection = pin!(connection);
    let in_place = InPlace::new();
    let ended = tokio::select! {
        ended = poll_fn(|cx| in_place.poll(connection.as_mut(), cx)) => ended,
        () = slot.evicted() => return,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            poll_fn(|cx| in_place.poll(connection.as_mut(), cx)).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection failed");
    }
}
