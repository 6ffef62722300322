//! Servers at a URL: each message is a POST, and answers come as its response or on an event stream.
//!
//! [`open`] gives a [`Peer`] and the [`Carrier`] that the owner runs. The carrier asks for nothing
//! but what the peer sends: the answer to `initialize` decides which of the two transports of HTTP
//! is spoken, and there is no connection besides that only tries. A request that says in itself who
//! asks belongs to no session: it has headers of its own, and no stream is kept for it.

mod carrier;
mod exchange;
mod legacy;
mod link;
mod listen;
mod stateless;
mod stream;
mod trouble;

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

pub use carrier::{Carrier, Ended, Traffic};
pub use link::Quiet;
pub(crate) use link::send_signed;
pub use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
pub use reqwest::{Client, Url};
pub(crate) use trouble::refusal;
pub use trouble::{HttpError, ResponseBody, content_type, retry_after};

use crate::peer::{Peer, PeerLimits, detached};

/// Where a server is, and what is said to it with every request.
pub struct Endpoint {
    pub url: Url,
    pub mode: HttpTransport,
    /// Follows no redirects: those are judged here.
    pub client: Client,
    pub headers: HeaderMap,
    /// Headers that differ from request to request; they win over all others.
    pub signer: Option<Arc<dyn Signer>>,
    /// Shared by all who ask the same origin.
    pub quiet: Quiet,
}

impl fmt::Debug for Endpoint {
    /// An address and headers can hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("mode", &self.mode).finish_non_exhaustive()
    }
}

/// Which transport is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpTransport {
    /// Streamable HTTP, or the older event stream where that is not known.
    Negotiated,
    Streamable,
    /// HTTP+SSE of revision 2024-11-05.
    Sse,
}

/// Makes headers for one request.
pub trait Signer: Send + Sync {
    fn sign<'a>(&'a self, method: &'a str, url: &'a Url, body: &'a [u8]) -> Signing<'a>;

    /// The server refused who asks, with 401 or 403, and did nothing. Whether other headers would
    /// help is for the signer to say.
    fn refused<'a>(&'a self, _: Refused<'a>) -> Judging<'a> {
        Box::pin(std::future::ready(AuthDecision::Stands))
    }
}

/// What was kept may be old, what another process got meanwhile, too; what is new is not.
pub const MOST_REPEATS: u32 = 2;

/// Headers that are being made.
pub type Signing<'a> = Pin<Box<dyn Future<Output = Result<HeaderMap, SignError>> + Send + 'a>>;

/// A refused request that is being judged.
pub type Judging<'a> = Pin<Box<dyn Future<Output = AuthDecision> + Send + 'a>>;

/// A request that was refused for who sent it.
#[derive(Clone, Copy)]
pub struct Refused<'a> {
    pub status: u16,
    /// How often it was refused before, and sent again.
    pub repeats: u32,
    /// What was sent.
    pub sent: &'a HeaderMap,
    /// What came back.
    pub answer: &'a HeaderMap,
}

/// What becomes of a refused request.
#[derive(Clone, Debug)]
pub enum AuthDecision {
    /// It is sent again, signed anew.
    Again,
    /// The answer says all.
    Stands,
    /// The user has to sign in.
    SignIn(SignError),
    /// The server authenticated the request, and refuses it.
    Forbidden(SignError),
    /// It cannot be signed anew just now.
    Unsigned(SignError),
}

/// Why a request got no headers. Says nothing that could be one.
pub type SignError = Arc<dyn Error + Send + Sync>;

/// Opens a connection to a server at a URL; nothing is sent before the peer sends something.
pub fn open(endpoint: Endpoint, limits: PeerLimits) -> (Peer, Carrier) {
    let (peer, outlet, inlet) = detached(limits);
    (peer, Carrier::new(endpoint, limits, outlet, inlet))
}
