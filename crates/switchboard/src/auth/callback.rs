//! The listener that a browser comes back to with the answer of an authorization server: on this
//! machine, for one answer, and only for an answer to our own request.

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

/// Connections at the same time. Browsers open a few in advance and say nothing on them.
const MOST: usize = 16;

/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(5);

/// The head of a request may not be larger. Browsers send the cookies of all that is on this
/// machine, whatever its port.
const HEAD_BYTES: usize = 64 * 1024;

/// How long a browser may take for its last page.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long to wait when no connection can be accepted, for want of file handles as a rule.
const BREATHER: Duration = Duration::from_millis(100);

/// Waits for the browser. Bound before any address is built, so that no other process can take the
/// port; dropping it closes it.
pub(crate) struct Callback {
    uri: String,
    door: Arc<Door>,
    phase: CallbackPhase,
    /// Those who are connected, and in which order they came.
    visitors: JoinSet<()>,
    seats: VecDeque<AbortHandle>,
    arrivals: mpsc::Receiver<Arrival>,
}

enum CallbackPhase {
    Open(TcpListener),
    /// The one answer is there; no more connections are accepted.
    Over(Result<Code, CallbackError>),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CallbackBindError {
    #[error("port {port} of this machine, to which the browser has to come back, is in use")]
    Taken { port: u16 },
    #[error("cannot listen on this machine for the browser to come back")]
    Io(#[source] io::Error),
}

impl Callback {
    /// Listens where `redirect` says, or on any port if it names none.
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

    /// The address that the authorization server is told.
    pub(crate) fn redirect_uri(&self) -> &str {
        &self.uri
    }

    /// Waits for the answer that `judge` accepts, or that ends the sign-in. Strays are told so, and
    /// change nothing.
    ///
    /// Can be dropped and asked again: an answer that came is not lost, and is the only one.
    pub(crate) async fn wait(
        &mut self,
        mut judge: impl FnMut(&str) -> Result<Code, CallbackError>,
    ) -> Result<Code, CallbackError> {
        loop {
            let listener = match &self.phase {
                CallbackPhase::Open(listener) => listener,
                CallbackPhase::Over(outcome) => {
                    let outcome = outcome.clone();
                    self.farewell().await;
                    return outcome;
                }
            };
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => self.admit(stream),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a browser");
                        tokio::time::sleep(BREATHER).await;
                    }
                },
                Some(arrival) = self.arrivals.recv() => self.answer(arrival, &mut judge),
                Some(_left) = self.visitors.join_next() => {}
            }
        }
    }

    /// Serves one more connection; when there are too many, the oldest is closed.
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
                tracing::debug!("a stray came back instead of the browser")
            }
            outcome => self.close(outcome, arrival.visitor),
        }
    }

    /// Accepts no more connections, and closes those without the answer.
    fn close(&mut self, outcome: Result<Code, CallbackError>, last: tokio::task::Id) {
        self.phase = CallbackPhase::Over(outcome);
        self.seats.iter().filter(|seat| seat.id() != last).for_each(AbortHandle::abort);
    }

    /// Waits until the last page is with the browser.
    async fn farewell(&mut self) {
        let left = async { while self.visitors.join_next().await.is_some() {} };
        let _browser_does_not_read = tokio::time::timeout(FAREWELL, left).await;
    }
}

/// A browser that came to the right place.
struct Arrival {
    query: String,
    visitor: tokio::task::Id,
    answer: oneshot::Sender<CallbackPage>,
}

/// What has to be asked for, and of whom.
struct Door {
    port: u16,
    path: String,
    announce: mpsc::Sender<Arrival>,
}

/// Answers one request, and closes the connection.
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
        tracing::debug!(%error, "a connection of the browser broke");
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

    /// A name that a page made to lead here is still the page's name.
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
