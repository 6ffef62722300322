//! What a browser is shown when it comes back: constant text, and headers that keep it to itself.

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

/// What a request is answered with. Nothing of the request is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// The answer that was waited for.
    Received,
    /// An answer that ends the sign-in without a code.
    Refused,
    /// An answer to something else; the sign-in goes on.
    Stray,
    /// Nothing is at this path; browsers ask for an icon.
    Missing,
    OnlyGet,
    /// Whoever asked was led here under another name.
    Misled,
}

impl Page {
    pub(super) fn response(self) -> Response<Content> {
        let mut response = Response::new(Full::new(self.html().into()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(CONTENT_SECURITY_POLICY, policy());
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if self == Page::OnlyGet {
            headers.insert(ALLOW, HeaderValue::from_static("GET"));
        }
        response
    }

    fn status(self) -> StatusCode {
        match self {
            Page::Received => StatusCode::OK,
            Page::Refused | Page::Stray => StatusCode::BAD_REQUEST,
            Page::Missing => StatusCode::NOT_FOUND,
            Page::OnlyGet => StatusCode::METHOD_NOT_ALLOWED,
            Page::Misled => StatusCode::FORBIDDEN,
        }
    }

    fn html(self) -> String {
        let (title, words) = match self {
            Page::Received => (
                "You can close this window",
                "Switchboard has the answer that it waited for, and goes on where you started.",
            ),
            Page::Refused => (
                "Not signed in",
                "The answer was no, or cannot be trusted; Switchboard says more where you \
                 started. You can close this window.",
            ),
            Page::Stray => (
                "Not the answer that is waited for",
                "This page belongs to another sign-in, or to an older one. \
                 Switchboard still waits for the one that you began last.",
            ),
            Page::Missing | Page::OnlyGet | Page::Misled => ("Nothing is here", ""),
        };
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>{title} – Switchboard</title>\n<style>{STYLE}</style>\n</head>\n\
             <body>\n<main>\n<h1>{title}</h1>\n<p>{words}</p>\n</main>\n</body>\n</html>\n"
        )
    }
}

const STYLE: &str = "
:root { color-scheme: light dark; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center;
  font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 32rem; padding: 2rem; }
h1 { font-size: 1.5rem; line-height: 1.2; margin: 0 0 .5rem; }
p { margin: 0; opacity: .8; }
";

/// This style and nothing else: no script, no request, no frame.
fn policy() -> HeaderValue {
    let style = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).expect("base64 may stand in a header")
}
