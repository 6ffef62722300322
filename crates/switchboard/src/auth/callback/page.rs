//! The pages for the browser at the redirect URI: constant text, with headers that keep the URL
//! private.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};
use sha2::{Digest, Sha256};

pub(super) type Content = Full<Bytes>;

/// The page that answers a request of the browser. The page contains nothing of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallbackPage {
    /// The request carries the expected authorization response.
    Received,
    /// The request carries an authorization response that ends the sign-in without a code.
    Refused,
    /// The request carries the response to another sign-in; the current sign-in continues.
    Stray,
    /// The request is for an unknown path, such as the icon that browsers request.
    Missing,
    OnlyGet,
    /// The `Host` header of the request does not name this listener.
    Misled,
}

impl CallbackPage {
    pub(super) fn response(self) -> Response<Content> {
        let (status, html) = self.content();
        let mut response = Response::new(Full::new(html.into()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(CONTENT_SECURITY_POLICY, policy());
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if self == CallbackPage::OnlyGet {
            headers.insert(ALLOW, HeaderValue::from_static("GET"));
        }
        response
    }

    fn content(self) -> (StatusCode, String) {
        let (status, title, words) = match self {
            CallbackPage::Received => (
                StatusCode::OK,
                "You can close this window",
                "Switchboard has received the response. Continue where you started the sign-in.",
            ),
            CallbackPage::Refused => (
                StatusCode::BAD_REQUEST,
                "Not signed in",
                "The sign-in was refused, or its response is invalid. See the error where you \
                 started. You can close this window.",
            ),
            CallbackPage::Stray => (
                StatusCode::BAD_REQUEST,
                "Not the expected response",
                "This page belongs to another sign-in, or to an older one. \
                 Switchboard still waits for the one that you started last.",
            ),
            CallbackPage::Missing => (StatusCode::NOT_FOUND, NOTHING, ""),
            CallbackPage::OnlyGet => (StatusCode::METHOD_NOT_ALLOWED, NOTHING, ""),
            CallbackPage::Misled => (StatusCode::FORBIDDEN, NOTHING, ""),
        };
        let html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>{title} – Switchboard</title>\n<style>{STYLE}</style>\n</head>\n\
             <body>\n<main>\n<h1>{title}</h1>\n<p>{words}</p>\n</main>\n</body>\n</html>\n"
        );
        (status, html)
    }
}

const NOTHING: &str = "Page not found";

const STYLE: &str = "
:root { color-scheme: light dark; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center;
  font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 32rem; padding: 2rem; }
h1 { font-size: 1.5rem; line-height: 1.2; margin: 0 0 .5rem; }
p { margin: 0; opacity: .8; }
";

/// The content security policy: allows the style of the page, but no script, request or frame.
fn policy() -> HeaderValue {
    let style = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).expect("base64 is valid in a header")
}
