//! Admits requests by their head alone, before the body is read or a session is used.

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

/// Admits requests whose `Host`, `Origin` and token are allowed.
pub(super) struct Guard {
    /// The address of the listener.
    address: SocketAddr,
    token: Token,
}

/// What an admitted request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Checks the health of the gateway; the only request that needs no token.
    Health,
    /// POST: sends a message.
    Say(ResponseForm),
    /// GET: opens the stream for unsolicited messages.
    Listen,
    /// DELETE: ends the session.
    End,
}

/// The content types that the client accepts for a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseForm {
    /// The response is JSON, or an event stream if other messages precede it.
    Any,
    Events,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HttpRefusal {
    #[error("the `Host` header does not name this listener")]
    Host,
    #[error("requests from this `Origin` are not allowed")]
    Origin,
    #[error("cross-origin requests are not allowed")]
    Preflight,
    #[error("there is no resource at this path")]
    Path,
    #[error("the bearer token is missing or wrong")]
    Token,
    #[error("this HTTP method is not allowed")]
    Method,
    #[error("only POST is allowed without a session")]
    WithoutSession,
    #[error("`Content-Type` must be `application/json`")]
    ContentType,
    #[error("`Accept` must allow `application/json` and `text/event-stream`")]
    Accept,
    #[error("`MCP-Protocol-Version` must name a supported protocol revision")]
    Revision,
}

impl HttpRefusal {
    pub(super) fn status(self) -> StatusCode {
        match self {
            HttpRefusal::Host | HttpRefusal::Origin | HttpRefusal::Preflight => {
                StatusCode::FORBIDDEN
            }
            HttpRefusal::Path => StatusCode::NOT_FOUND,
            HttpRefusal::Token => StatusCode::UNAUTHORIZED,
            HttpRefusal::Method | HttpRefusal::WithoutSession => StatusCode::METHOD_NOT_ALLOWED,
            HttpRefusal::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            HttpRefusal::Accept => StatusCode::NOT_ACCEPTABLE,
            HttpRefusal::Revision => StatusCode::BAD_REQUEST,
        }
    }
}

impl Guard {
    pub(super) fn new(address: SocketAddr, token: Token) -> Guard {
        Guard { address, token }
    }

    /// Admits or refuses a request. The checks against requests that a web page can cause are
    /// first.
    pub(super) fn admit(&self, head: &Parts) -> Result<Purpose, HttpRefusal> {
        let headers = &head.headers;
        self.check_host(&head.uri, headers)?;
        self.check_origin(headers)?;
        if head.method == Method::OPTIONS {
            return Err(HttpRefusal::Preflight);
        }
        match head.uri.path() {
            HEALTH if head.method == Method::GET => return Ok(Purpose::Health),
            HEALTH => return Err(HttpRefusal::Method),
            ENDPOINT => {}
            _ => return Err(HttpRefusal::Path),
        }
        self.check_token(headers)?;
        if ![Method::POST, Method::GET, Method::DELETE].contains(&head.method) {
            return Err(HttpRefusal::Method);
        }
        // A request without a session states its revision in the message too, and a later check of
        // the message gives a more detailed error.
        if headers.contains_key(SESSION_ID) {
            check_revision(headers)?;
        } else if head.method != Method::POST {
            return Err(HttpRefusal::WithoutSession);
        }
        match head.method {
            Method::POST => Ok(Purpose::Say(form(headers)?)),
            Method::GET if accepts(headers, "text", "event-stream") => Ok(Purpose::Listen),
            Method::GET => Err(HttpRefusal::Accept),
            _ => Ok(Purpose::End),
        }
    }

    /// Prevents DNS rebinding: refuses a hostname of a web page that resolves to this machine.
    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), HttpRefusal> {
        let host = only(headers, &HOST).ok().flatten().ok_or(HttpRefusal::Host)?;
        let in_uri = uri.authority().is_none_or(|authority| self.is_ours(authority.as_str()));
        if in_uri && self.is_ours(host) { Ok(()) } else { Err(HttpRefusal::Host) }
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), HttpRefusal> {
        let origin = only(headers, &ORIGIN).map_err(|Twice| HttpRefusal::Origin)?;
        let ours = |origin: &str| origin.strip_prefix("http://").is_some_and(|a| self.is_ours(a));
        if origin.is_some_and(|origin| !ours(origin)) {
            return Err(HttpRefusal::Origin);
        }
        match only(headers, &FETCH_SITE) {
            Ok(None | Some("none" | "same-origin")) => Ok(()),
            Ok(Some(_)) | Err(Twice) => Err(HttpRefusal::Origin),
        }
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), HttpRefusal> {
        let shown = only(headers, &AUTHORIZATION).ok().flatten().ok_or(HttpRefusal::Token)?;
        let (scheme, token) = shown.split_once(' ').ok_or(HttpRefusal::Token)?;
        if scheme.eq_ignore_ascii_case("bearer") && self.token.is(token.trim().as_bytes()) {
            Ok(())
        } else {
            Err(HttpRefusal::Token)
        }
    }

    /// Whether `host:port` names this listener.
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
            // If the listener is bound to all addresses, any IP address is allowed; hostnames are
            // still refused.
            loopback.contains(&address) || address == bound || bound.is_unspecified()
        })
    }
}

fn form(headers: &HeaderMap) -> Result<ResponseForm, HttpRefusal> {
    let content_type = only(headers, &CONTENT_TYPE).ok().flatten().unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(HttpRefusal::ContentType);
    }
    match (accepts(headers, "application", "json"), accepts(headers, "text", "event-stream")) {
        (true, true) => Ok(ResponseForm::Any),
        (false, true) => Ok(ResponseForm::Events),
        (_, false) => Err(HttpRefusal::Accept),
    }
}

/// Refuses an unsupported `MCP-Protocol-Version`. The header may be missing, because clients send
/// it only from revision 2025-06-18 on.
fn check_revision(headers: &HeaderMap) -> Result<(), HttpRefusal> {
    match only(headers, &REVISION) {
        Ok(None) => Ok(()),
        Ok(Some(text)) if Revision::parse(text).is_some() => Ok(()),
        Ok(Some(_)) | Err(Twice) => Err(HttpRefusal::Revision),
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

/// The header is ambiguous, because it occurs twice or is not text.
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
