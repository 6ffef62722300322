//! HTTP failures, and responses that are not MCP messages.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Response, StatusCode};

use super::SignError;

/// The number of bytes of a body that are read to classify it.
const LOOKED_AT: usize = 16 * 1024;

/// How long to read the body of an error response.
const PATIENCE: Duration = Duration::from_secs(5);

/// The maximum length of an excerpt of a body in a message, in characters.
const SHOWN: usize = 200;

/// Why an HTTP request returned no MCP message.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HttpError {
    /// The connection failed, so nothing was sent.
    #[error("no connection to `{origin}`")]
    Connect {
        origin: String,
        #[source]
        cause: Arc<reqwest::Error>,
    },
    /// The connection was lost after the request was sent, at least in part.
    #[error("the connection was lost before the response arrived")]
    Broken {
        #[source]
        cause: Option<Arc<reqwest::Error>>,
    },
    #[error("the server answered with HTTP status {status}: sign-in required")]
    SignIn {
        status: u16,
        #[source]
        cause: Option<SignError>,
    },
    #[error("the server answered with HTTP status {status}: it forbids this request")]
    Forbidden {
        status: u16,
        #[source]
        cause: SignError,
    },
    #[error("the server is temporarily unavailable (HTTP status {status})")]
    Busy { status: u16, retry_after: Option<Duration> },
    #[error("the server answered with HTTP status {status} and {page}")]
    Status { status: u16, page: ResponseBody },
    #[error("the URL is not an MCP endpoint: the response was {page}")]
    NotMcp { page: ResponseBody },
    #[error("the server answered with the id of another request, which is a bug of the server")]
    OtherAnswer,
    #[error("the server redirects to `{origin}`, which is not its configured origin")]
    Elsewhere { origin: String },
    #[error("the server redirected the request too often")]
    Circle,
    #[error("the redirect of the server has no valid `Location`")]
    NoLocation,
    #[error("the server's response to the WebSocket handshake is malformed")]
    Handshake,
    #[error("the server selected a WebSocket subprotocol other than `mcp`")]
    OtherProtocol,
    #[error("cannot create the authentication headers of the request")]
    Sign(#[source] SignError),
}

/// The content of a response that is not an MCP message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseBody {
    Html { title: Option<String> },
    Json { excerpt: String },
    Text { excerpt: String },
    Other { kind: String },
    Empty,
}

impl fmt::Display for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResponseBody::Html { title: Some(title) } => write!(f, "a web page titled \"{title}\""),
            ResponseBody::Html { title: None } => f.write_str("a web page"),
            ResponseBody::Json { excerpt } => {
                write!(f, "JSON that is not an MCP message: {excerpt}")
            }
            ResponseBody::Text { excerpt } => write!(f, "text: {excerpt}"),
            ResponseBody::Other { kind } => write!(f, "content of type `{kind}`"),
            ResponseBody::Empty => f.write_str("an empty body"),
        }
    }
}

impl ResponseBody {
    pub(super) fn of(headers: &HeaderMap, body: &[u8]) -> ResponseBody {
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        let kind = content_type(headers);
        if text.is_empty() {
            return ResponseBody::Empty;
        }
        if kind.contains("html") || text.starts_with("<!") || text.starts_with("<html") {
            return ResponseBody::Html { title: title(text) };
        }
        if kind.contains("json") || text.starts_with('{') {
            return ResponseBody::Json { excerpt: excerpt(text) };
        }
        if kind.is_empty() || kind.starts_with("text/") {
            return ResponseBody::Text { excerpt: excerpt(text) };
        }
        ResponseBody::Other { kind: excerpt(&kind) }
    }
}

/// The media type in lower case, without parameters.
pub fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (kind, _) = value.split_once(';').unwrap_or((value, ""));
    kind.trim().to_ascii_lowercase()
}

/// The error that the status of a response implies, whatever its body contains.
pub(super) fn by_status(status: StatusCode, headers: &HeaderMap) -> Option<HttpError> {
    let number = status.as_u16();
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Some(HttpError::SignIn { status: number, cause: None })
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            let retry_after = retry_after(headers, SystemTime::now());
            Some(HttpError::Busy { status: number, retry_after })
        }
        _ => None,
    }
}

/// Converts an unexpected response into an error, for requests that are not retried.
pub(crate) async fn refusal(response: Response) -> HttpError {
    let (status, headers) = (response.status(), response.headers().clone());
    if let Some(error) = by_status(status, &headers) {
        return error;
    }
    let location = headers.get(LOCATION).filter(|_| status.is_redirection());
    let location = location.and_then(|to| response.url().join(to.to_str().ok()?).ok());
    if let Some(to) = location.filter(|to| to.origin() != response.url().origin()) {
        return HttpError::Elsewhere { origin: to.origin().ascii_serialization() };
    }
    let page = ResponseBody::of(&headers, &beginning(response).await);
    match status.is_success() {
        true => HttpError::NotMcp { page },
        false => HttpError::Status { status: status.as_u16(), page },
    }
}

/// Reads the beginning of a body.
pub(super) async fn beginning(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() >= LOOKED_AT {
                break;
            }
        }
    };
    let _as_far_as_it_came = tokio::time::timeout(PATIENCE, reading).await;
    body.truncate(LOOKED_AT);
    body
}

/// Parses `Retry-After`: a number of seconds or a date.
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// Whether the status means that the server does not support Streamable HTTP, so that HTTP+SSE is
/// tried.
pub(super) fn is_unknown_transport(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_ACCEPTABLE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
    )
}

fn title(html: &str) -> Option<String> {
    let lower = html.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower.get(start..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find("</title")?;
    let title = excerpt(html.get(start..end)?);
    (!title.is_empty()).then_some(title)
}

/// A short excerpt of a text on one line, without control characters.
fn excerpt(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    fn page(kind: &'static str, body: &str) -> String {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
        ResponseBody::of(&headers, body.as_bytes()).to_string()
    }

    #[test]
    fn unexpected_http_response_is_described_briefly() {
        let cases = [
            (
                "text/html; charset=utf-8",
                "<html><TITLE lang=en>\n Sign\tin </TITLE>",
                "a web page titled \"Sign in\"",
            ),
            ("text/plain", "<!doctype html><p>", "a web page"),
            (
                "application/json",
                "{\"error\":\n\"no such\\nroute\"}",
                "JSON that is not an MCP message: {\"error\": \"no such\\nroute\"}",
            ),
            ("text/plain", "\u{1b}[31mnot\0 here", "text: [31mnot here"),
            ("image/png", "\u{89}PNG", "content of type `image/png`"),
            ("application/json", " \n", "an empty body"),
        ];
        for (kind, body, expected) in cases {
            assert_eq!(page(kind, body), expected, "{kind}: {body}");
        }
        assert_eq!(
            page("text/plain", &"é".repeat(900)).chars().count(),
            "text: ".len() + SHOWN + 1
        );
    }

    #[test]
    fn retry_after_header_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777 - 30);
        let cases = [
            ("2", Some(2)),
            ("0", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(30)),
            ("Tue, 06 Nov 1990 08:49:37 GMT", Some(0)),
            ("1e9", None),
            ("-1", None),
            ("soon", None),
        ];
        for (value, expected) in cases {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(value))]);
            assert_eq!(retry_after(&headers, now), expected.map(Duration::from_secs), "{value}");
        }
    }
}
