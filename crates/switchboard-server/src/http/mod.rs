//! Many clients over HTTP, one engine: each client has a session of its own.
//!
//! - [`Listening`]: the listener, from its address to its end;
//! - `guard`: who may speak, decided before anything is read;
//! - `connections`: how many sockets, and who has to go;
//! - `in_place`: one that woke itself goes on at once;
//! - `endpoint`: a request becomes a response;
//! - `stateless`: requests without a session, and what their headers have to say;
//! - `sessions`, `session`: what a client says, and what it is told;
//! - `bodies`: how much of what all clients ask is in memory;
//! - `unsent`: how much waits to be read by all clients;
//! - `streams`, `stream`: events, in order, to one reader, and again for whoever lost them.

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

use self::connections::{Connections, Seat};
use self::endpoint::Endpoint;
use self::guard::Guard;
use self::in_place::InPlace;
use self::sessions::Sessions;
use self::unsent::Unsent;
use crate::service::Offer;
use crate::stdio::DRAIN_AFTER_STOP;

/// How often it is looked for connections and sessions whose time is up.
const SWEEP: Duration = Duration::from_secs(1);

/// How long to wait when no connection can be accepted, for want of file handles as a rule.
const BREATHER: Duration = Duration::from_millis(100);

/// How long the last bytes may take after everything was answered.
const FAREWELL: Duration = Duration::from_secs(1);

/// The head of a request may not be larger.
const HEAD_BYTES: usize = 64 * 1024;

/// A face that clients can connect to.
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

    /// Where clients reach it.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, guard::ENDPOINT)
    }

    /// Serves until `stop` is cancelled; every request that was accepted before is answered first,
    /// within a limit. The caller shuts the gateway down.
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
                        let (seat, endpoint) = (connections.seat(), Arc::clone(&endpoint));
                        clients.spawn(attend(stream, seat, endpoint, stop.clone()));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(BREATHER).await;
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
        let last_words = async { while clients.join_next().await.is_some() {} };
        let _client_does_not_read = tokio::time::timeout(FAREWELL, last_words).await;
    }
}

/// Serves one connection until either side has enough.
async fn attend(stream: TcpStream, seat: Seat, endpoint: Arc<Endpoint>, stop: CancellationToken) {
    let _slower_without = stream.set_nodelay(true);
    let service =
        service_fn(async |request| Ok::<_, Infallible>(endpoint.answer(request, &seat).await));
    let connection = http1::Builder::new()
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(seat.watch(stream)), service);
    let mut connection = pin!(connection);
    let in_place = InPlace::new();
    let ended = tokio::select! {
        ended = poll_fn(|cx| in_place.poll(connection.as_mut(), cx)) => ended,
        () = seat.thrown_out() => return,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            poll_fn(|cx| in_place.poll(connection.as_mut(), cx)).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}
