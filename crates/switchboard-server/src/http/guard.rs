//! Who may speak: decided by the head of a request alone, before its body is read or a session is
//! touched.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode, Uri};
use switchboard::secret::Token;
use switchboard_wire::era::Revision;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
pub(super) const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

pub(super) const ENDPOINT: &str = "/mcp";
const HEALTH: &str = "/healthz";

/// Lets in whoever was meant to come.
pub(super) struct Guard {
    /// What the listener is bound to.
    address: SocketAddr,
    token: Token,
}

/// What a request that was let in is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Whether anybody is there; the only thing that takes no token.
    Health,
    /// Says something.
    Say(Form),
    /// Waits for what we say unasked.
    Listen,
    /// Ends its session.
    End,
}

/// How an answer may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As JSON, or as events where something comes before it.
    Any,
    Events,
}

/// Why a request is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("this host name is not served here")]
    Host,
    #[error("pages of other origins are not served")]
    Origin,
    #[error("requests across origins are not answered")]
    Preflight,
    #[error("nothing is here")]
    Path,
    #[error("the bearer token is missing or wrong")]
    Token,
    #[error("this method is not allowed")]
    Method,
    #[error("without a session there is nothing but POST")]
    WithoutSession,
    #[error("`Content-Type` has to be `application/json`")]
    ContentType,
    #[error("`Accept` has to allow `application/json` and `text/event-stream`")]
    Accept,
    #[error("this revision of the protocol is not known")]
    Revision,
}

impl Refusal {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Refusal::Host | Refusal::Origin | Refusal::Preflight => StatusCode::FORBIDDEN,
            Refusal::Path => StatusCode::NOT_FOUND,
            Refusal::Token => StatusCode::UNAUTHORIZED,
            Refusal::Method | Refusal::WithoutSession => StatusCode::METHOD_NOT_ALLOWED,
            Refusal::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Refusal::Accept => StatusCode::NOT_ACCEPTABLE,
            Refusal::Revision => StatusCode::BAD_REQUEST,
        }
    }
}

impl Guard {
    pub(super) fn new(address: SocketAddr, token: Token) -> Guard {
        Guard { address, token }
    }

    /// Admits a request, or says why not. What a browser can be made to send is refused first.
    pub(super) fn admit(&self, head: &Parts) -> Result<Purpose, Refusal> {
        let headers = &head.headers;
        self.check_host(&head.uri, headers)?;
        self.check_origin(headers)?;
        if head.method == Method::OPTIONS {
            return Err(Refusal::Preflight);
        }
        match head.uri.path() {
            HEALTH if head.method == Method::GET => return Ok(Purpose::Health),
            HEALTH => return Err(Refusal::Method),
            ENDPOINT => {}
            _ => return Err(Refusal::Path),
        }
        self.check_token(headers)?;
        match head.method {
            // Whoever has no session says its revision in the message, too, and is told what is
            // wrong there.
            Method::POST if !headers.contains_key(SESSION_ID) => {
                return Ok(Purpose::Say(form(headers)?));
            }
            Method::GET | Method::DELETE if !headers.contains_key(SESSION_ID) => {
                return Err(Refusal::WithoutSession);
            }
            Method::POST | Method::GET | Method::DELETE => check_revision(headers)?,
            _ => return Err(Refusal::Method),
        }
        match head.method {
            Method::POST => Ok(Purpose::Say(form(headers)?)),
            Method::GET if accepts(headers, "text", "event-stream") => Ok(Purpose::Listen),
            Method::GET => Err(Refusal::Accept),
            _ => Ok(Purpose::End),
        }
    }

    /// A name that a page made to lead here is still the page's name.
    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let host = only(headers, &HOST).ok().flatten().ok_or(Refusal::Host)?;
        let in_uri = uri.authority().is_none_or(|authority| self.is_ours(authority.as_str()));
        if in_uri && self.is_ours(host) { Ok(()) } else { Err(Refusal::Host) }
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let origin = only(headers, &ORIGIN).map_err(|Twice| Refusal::Origin)?;
        let ours = |origin: &str| origin.strip_prefix("http://").is_some_and(|a| self.is_ours(a));
        if origin.is_some_and(|origin| !ours(origin)) {
            return Err(Refusal::Origin);
        }
        match only(headers, &FETCH_SITE) {
            Ok(None | Some("none" | "same-origin")) => Ok(()),
            Ok(Some(_)) | Err(Twice) => Err(Refusal::Origin),
        }
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let shown = only(headers, &AUTHORIZATION).ok().flatten().ok_or(Refusal::Token)?;
        let (scheme, token) = shown.split_once(' ').ok_or(Refusal::Token)?;
        if scheme.eq_ignore_ascii_case("bearer") && self.token.is(token.trim().as_bytes()) {
            Ok(())
        } else {
            Err(Refusal::Token)
        }
    }

    /// Whether `host:port` means this listener.
    fn is_ours(&self, authority: &str) -> bool {
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port),
            Some(_) | None => (authority, "80"),
        };
        let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = if digits { port.parse::<u16>().ok() } else { None };
        port == Some(self.address.port()) && self.is_our_host(host)
    }

    fn is_our_host(&self, host: &str) -> bool {
        if host.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let address = match literal {
            Some(literal) => literal.parse::<Ipv6Addr>().map(IpAddr::V6),
            None => host.parse::<Ipv4Addr>().map(IpAddr::V4),
        };
        let bound = self.address.ip();
        address.is_ok_and(|address| {
            let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
            // Whoever listens everywhere is reached by any address; a name would still be refused.
            loopback.contains(&address) || address == bound || bound.is_unspecified()
        })
    }
}

fn form(headers: &HeaderMap) -> Result<Form, Refusal> {
    let content_type = only(headers, &CONTENT_TYPE).ok().flatten().unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(Refusal::ContentType);
    }
    match (accepts(headers, "application", "json"), accepts(headers, "text", "event-stream")) {
        (true, true) => Ok(Form::Any),
        (false, true) => Ok(Form::Events),
        (_, false) => Err(Refusal::Accept),
    }
}

/// Clients name the revision from 2025-06-18 on.
fn check_revision(headers: &HeaderMap) -> Result<(), Refusal> {
    match only(headers, &REVISION) {
        Ok(None) => Ok(()),
        Ok(Some(text)) if Revision::parse(text).is_some() => Ok(()),
        Ok(Some(_)) | Err(Twice) => Err(Refusal::Revision),
    }
}

fn accepts(headers: &HeaderMap, kind: &str, subtype: &str) -> bool {
    let mut given = headers.get_all(ACCEPT).iter().peekable();
    if given.peek().is_none() {
        return true;
    }
    let allows = |range: &str| {
        let mut parts = range.split(';').map(str::trim);
        let Some((k, s)) = parts.next().and_then(|essence| essence.split_once('/')) else {
            return false;
        };
        let meant = match (k, s) {
            ("*", "*") => true,
            (k, "*") => k.eq_ignore_ascii_case(kind),
            (k, s) => k.eq_ignore_ascii_case(kind) && s.eq_ignore_ascii_case(subtype),
        };
        meant && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    };
    given.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(',')).any(allows)
}

/// A header that stands there more than once, or is no text, means two things to two readers.
pub(super) struct Twice;

pub(super) fn only<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, Twice> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Twice);
    }
    value.to_str().map(Some).map_err(|_| Twice)
}

#[cfg(test)]
mod tests;
