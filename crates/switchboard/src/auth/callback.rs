//! The loopback listener that receives the authorization response from the browser: one response,
//! and only to a request of this sign-in.

mod page;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::http::uri::Authority;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use switchboard_core::sign_in::callback::{CallbackError, Code};
use switchboard_core::sign_in::redirect::Redirect;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use self::page::{CallbackPage, Content};

/// The maximum number of simultaneous connections. Browsers open a few in advance and send nothing
/// on them.
const MOST: usize = 16;

/// How long a connection may take to send the head of its request.
const HEAD: Duration = Duration::from_secs(5);

/// The maximum size of a request head. Browsers send the cookies of all sites on `localhost`,
/// whatever their port.
const HEAD_BYTES: usize = 64 * 1024;

/// How long the browser may take to receive the page that ends the sign-in.
const LAST_PAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// The pause after a failed `accept`, usually for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The listener that waits for the browser. Its port is bound before the redirect URI is built, so
/// that no other process can take the port. Dropping the listener closes the port.
pub(crate) struct Callback {
    uri: String,
    door: Arc<Door>,
    phase: CallbackPhase,
    /// The open connections of the browser; `seats` holds their order of arrival.
    visitors: JoinSet<()>,
    seats: VecDeque<AbortHandle>,
    arrivals: mpsc::Receiver<Arrival>,
}

enum CallbackPhase {
    Open(TcpListener),
    /// The response has arrived; no more connections are accepted.
    Over(Result<Code, CallbackError>),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CallbackBindError {
    #[error("port {port} of the redirect URI is in use on this machine")]
    Taken { port: u16 },
    #[error("cannot listen on this machine for the redirect of the browser")]
    Io(#[source] io::Error),
}

impl Callback {
    /// Listens on the port of `redirect`, or on any free port if it has none.
    pub(crate) async fn bind(redirect: &Redirect) -> Result<Callback, CallbackBindError> {
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, redirect.port().unwrap_or(0)));
        let listener = match TcpListener::bind(wanted).await {
            Ok(listener) => listener,
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                return Err(CallbackBindError::Taken { port: wanted.port() });
            }
            Err(error) => return Err(CallbackBindError::Io(error)),
        };
        let port = listener.local_addr().map_err(CallbackBindError::Io)?.port();
        let (announce, arrivals) = mpsc::channel(1);
        Ok(Callback {
            uri: redirect.uri(port),
            door: Arc::new(Door { port, path: redirect.path().to_owned(), announce }),
            phase: CallbackPhase::Open(listener),
            visitors: JoinSet::new(),
            seats: VecDeque::new(),
            arrivals,
        })
    }

    /// The redirect URI for the authorization server.
    pub(crate) fn redirect_uri(&self) -> &str {
        &self.uri
    }

    /// Waits for a response that `judge` accepts or that ends the sign-in. Unrelated requests get
    /// an error page and change nothing.
    ///
    /// If the future is dropped, another call continues the wait: a received response is not lost,
    /// and no other is accepted.
    pub(crate) async fn wait(
        &mut self,
        mut judge: impl FnMut(&str) -> Result<Code, CallbackError>,
    ) -> Result<Code, CallbackError> {
        loop {
            let listener = match &self.phase {
                CallbackPhase::Open(listener) => listener,
                CallbackPhase::Over(outcome) => {
                    let outcome = outcome.clone();
                    self.finish_last_page().await;
                    return outcome;
                }
            };
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => self.admit(stream),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection of the browser");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(arrival) = self.arrivals.recv() => self.answer(arrival, &mut judge),
                Some(_left) = self.visitors.join_next() => {}
            }
        }
    }

    /// Serves one more connection of the browser. Above the limit, closes the oldest connection.
    fn admit(&mut self, stream: TcpStream) {
        self.seats.retain(|seat| !seat.is_finished());
        if self.seats.len() >= MOST
            && let Some(oldest) = self.seats.pop_front()
        {
            oldest.abort();
        }
        self.seats.push_back(self.visitors.spawn(attend(stream, Arc::clone(&self.door))));
    }

    fn answer(
        &mut self,
        arrival: Arrival,
        judge: &mut impl FnMut(&str) -> Result<Code, CallbackError>,
    ) {
        let outcome = judge(&arrival.query);
        let page = match &outcome {
            Ok(_) => CallbackPage::Received,
            Err(CallbackError::Stray) => CallbackPage::Stray,
            Err(
                CallbackError::IssuerMissing
                | CallbackError::IssuerOther
                | CallbackError::Repeated { .. }
                | CallbackError::Denied { .. }
                | CallbackError::NoCode
                | CallbackError::CodeAlone,
            ) => CallbackPage::Refused,
        };
        let _left_already = arrival.answer.send(page);
        match outcome {
            Err(CallbackError::Stray) => {
                tracing::debug!("ignored a request that does not belong to the sign-in")
            }
            outcome => self.close(outcome, arrival.visitor),
        }
    }

    /// Accepts no more connections, and closes all but the one that delivered the authorization
    /// response.
    fn close(&mut self, outcome: Result<Code, CallbackError>, last: tokio::task::Id) {
        self.phase = CallbackPhase::Over(outcome);
        self.seats.iter().filter(|seat| seat.id() != last).for_each(AbortHandle::abort);
    }

    /// Waits until the browser has received the page that ends the sign-in.
    async fn finish_last_page(&mut self) {
        let left = async { while self.visitors.join_next().await.is_some() {} };
        let _browser_does_not_read = tokio::time::timeout(LAST_PAGE_TIMEOUT, left).await;
    }
}

/// A request of the browser for the redirect path.
struct Arrival {
    query: String,
    visitor: tokio::task::Id,
    answer: oneshot::Sender<CallbackPage>,
}

/// The port and path that a request must name, and the channel that receives its query.
struct Door {
    port: u16,
    path: String,
    announce: mpsc::Sender<Arrival>,
}

/// Answers one request of the browser, and closes the connection.
async fn attend(stream: TcpStream, door: Arc<Door>) {
    let visitor = tokio::task::id();
    let service = service_fn(async |request| {
        Ok::<Response<Content>, Infallible>(door.page(&request, visitor).await.response())
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection of the browser failed");
    }
}

impl Door {
    async fn page(&self, request: &Request<Incoming>, visitor: tokio::task::Id) -> CallbackPage {
        if !self.is_meant(request) {
            return CallbackPage::Misled;
        }
        if request.uri().path() != self.path {
            return CallbackPage::Missing;
        }
        if request.method() != Method::GET {
            return CallbackPage::OnlyGet;
        }
        let query = request.uri().query().unwrap_or_default().to_owned();
        let (answer, page) = oneshot::channel();
        let arrival = Arrival { query, visitor, answer };
        match self.announce.send(arrival).await {
            Ok(()) => page.await.unwrap_or(CallbackPage::Stray),
            Err(_over) => CallbackPage::Stray,
        }
    }

    /// Whether the `Host` header names this listener. This check prevents DNS rebinding, in which
    /// the hostname of a web page resolves to this machine.
    fn is_meant(&self, request: &Request<Incoming>) -> bool {
        let mut hosts = request.headers().get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        let host = host.to_str().is_ok_and(|host| self.is_here(host));
        host && request.uri().authority().map(Authority::as_str).is_none_or(|at| self.is_here(at))
    }

    fn is_here(&self, authority: &str) -> bool {
        let Some((host, port)) = authority.rsplit_once(':') else { return false };
        let is_us = host == "127.0.0.1" || host.eq_ignore_ascii_case("localhost");
        is_us && port == self.port.to_string()
    }
}

#[cfg(test)]
mod tests;
