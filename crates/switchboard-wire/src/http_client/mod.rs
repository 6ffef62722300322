//! HTTP servers: each message is a POST, and responses arrive in its HTTP response or on an event
//! stream.
//!
//! [`open`] returns a [`Peer`] and the [`Carrier`] that the owner runs. The carrier sends only the
//! peer's messages: there is no separate probe, and the response to `initialize` decides between
//! Streamable HTTP and HTTP+SSE. A stateless request belongs to no session: it has headers of its
//! own, and no stream is kept open for it.

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

/// The URL of a server, and the headers of every request.
pub struct Endpoint {
    pub url: Url,
    pub mode: HttpTransport,
    /// The HTTP client. It must not follow redirects: this module follows them itself, after it has
    /// checked the target.
    pub client: Client,
    pub headers: HeaderMap,
    /// Creates headers for each request, which replace other headers of the same name.
    pub signer: Option<Arc<dyn Signer>>,
    /// The refusals and the budget for resends of the origin, shared by all connections to it.
    pub quiet: Quiet,
}

impl fmt::Debug for Endpoint {
    /// Shows neither URL nor headers, because they may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("mode", &self.mode).finish_non_exhaustive()
    }
}

/// The configured transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpTransport {
    /// Streamable HTTP, or HTTP+SSE if the server does not support it.
    Negotiated,
    Streamable,
    /// HTTP+SSE of revision 2024-11-05, without trying Streamable HTTP.
    Sse,
}

/// Creates the headers of each request.
pub trait Signer: Send + Sync {
    fn sign<'a>(&'a self, method: &'a str, url: &'a Url, body: &'a [u8]) -> Signing<'a>;

    /// Called after the server refused a request with status 401 or 403, without processing it. The
    /// signer decides whether other headers would help.
    fn refused<'a>(&'a self, _: Refused<'a>) -> Judging<'a> {
        Box::pin(std::future::ready(AuthDecision::Stands))
    }
}

/// The maximum number of times that a refused request is resent. Two, because a stored token may be
/// expired, and so may a token that another process stored meanwhile; a new token is not.
pub const MOST_REPEATS: u32 = 2;

/// A future that returns the headers for a request.
pub type Signing<'a> = Pin<Box<dyn Future<Output = Result<HeaderMap, SignError>> + Send + 'a>>;

/// A future that returns the decision about a refused request.
pub type Judging<'a> = Pin<Box<dyn Future<Output = AuthDecision> + Send + 'a>>;

/// A request that was refused with status 401 or 403.
#[derive(Clone, Copy)]
pub struct Refused<'a> {
    pub status: u16,
    /// How many times the request has been resent already.
    pub repeats: u32,
    /// The headers of the refused request.
    pub sent: &'a HeaderMap,
    /// The headers of the refusing response.
    pub answer: &'a HeaderMap,
}

/// What to do with a refused request.
#[derive(Clone, Debug)]
pub enum AuthDecision {
    /// Sign the request again and resend it.
    Again,
    /// Return the response that refused the request.
    Stands,
    /// The user must sign in.
    SignIn(SignError),
    /// The server authenticated the request, but refuses it.
    Forbidden(SignError),
    /// The request cannot be signed again at the moment.
    Unsigned(SignError),
}

/// Why headers could not be created. Contains no header values.
pub type SignError = Arc<dyn Error + Send + Sync>;

/// Opens a connection to an HTTP server; nothing is sent before the peer's first message.
pub fn open(endpoint: Endpoint, limits: PeerLimits) -> (Peer, Carrier) {
    let (peer, outlet, inlet) = detached(limits);
    (peer, Carrier::new(endpoint, limits, outlet, inlet))
}
