//! One endpoint of an authorization server: sends its requests and classifies its responses.

use std::fmt::Display;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use oauth2::basic::{BasicErrorResponse, BasicErrorResponseType};
use oauth2::http::StatusCode;
use oauth2::{
    AsyncHttpClient, ErrorResponseType, HttpRequest, HttpResponse, RequestTokenError,
    StandardErrorResponse,
};
use switchboard_core::render::words::clean_line;
use url::Url;

use super::sent::Sent;
use super::{SHOWN, TokenAnswer, TokenError};
use crate::auth::grant::Tokens;
use crate::auth::net::{Net, NetError};

/// One endpoint of an authorization server, and the parts of its last response that the OAuth
/// library drops.
pub(super) struct Desk<'a> {
    net: &'a Net,
    url: &'a Url,
    seen: Mutex<Seen>,
    /// The secrets of the last request, which the response may repeat.
    sent: Mutex<Sent>,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    status: u16,
    retry_after: Option<Duration>,
}

impl<'c> AsyncHttpClient<'c> for Desk<'_> {
    type Error = NetError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, NetError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.ask(request))
    }
}

impl<'a> Desk<'a> {
    pub(super) fn new(net: &'a Net, url: &'a Url) -> Desk<'a> {
        Desk { net, url, seen: Mutex::default(), sent: Mutex::default() }
    }

    async fn ask(&self, request: HttpRequest) -> Result<HttpResponse, NetError> {
        let (head, body) = request.into_parts();
        let sent = Sent::of(&head.headers, &body);
        *self.sent.lock().unwrap_or_else(PoisonError::into_inner) = sent;
        let answer = self.net.post(self.url, head.headers, body).await?;
        let seen = Seen { status: answer.status, retry_after: answer.retry_after };
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        let mut response = HttpResponse::new(answer.body);
        // The OAuth library accepts status 200 only, so any other success is mapped to 200.
        if !(200..300).contains(&answer.status) {
            *response.status_mut() = StatusCode::BAD_REQUEST;
        }
        Ok(response)
    }

    fn seen(&self) -> Seen {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Text of the authorization server as one clean line, without the secrets of the request.
    fn quoted(&self, text: &str) -> String {
        // The text is cleaned first, so that a hidden character inside a secret does not prevent
        // its removal. The text is cut last, so that no part of a secret remains.
        let line = clean_line(text, usize::MAX);
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        clean_line(&sent.removed_from(&line), SHOWN).into_owned()
    }

    /// The tokens in a response to a request for the scopes `asked`, or the classified error.
    pub(super) fn tokens(
        &self,
        answer: Result<TokenAnswer, RequestTokenError<NetError, BasicErrorResponse>>,
        asked: &[String],
    ) -> Result<Tokens, TokenError> {
        self.checked(answer.map_err(|error| self.classify(error))?, asked)
    }

    /// The tokens of a successful response; an error if they cannot be used.
    pub(super) fn checked(
        &self,
        answer: TokenAnswer,
        asked: &[String],
    ) -> Result<Tokens, TokenError> {
        answer.tokens(asked).map_err(|error| match error {
            TokenError::OtherType { found } => TokenError::OtherType { found: self.quoted(&found) },
            error => error,
        })
    }

    pub(super) fn classify(
        &self,
        error: RequestTokenError<NetError, BasicErrorResponse>,
    ) -> TokenError {
        let RequestTokenError::ServerResponse(response) = &error else { return self.other(error) };
        let description = self.quoted(response.error_description().map_or("", String::as_str));
        match response.error() {
            _ if self.is_trouble() => self.nonsense(),
            BasicErrorResponseType::InvalidGrant => TokenError::InvalidGrant { description },
            BasicErrorResponseType::InvalidClient | BasicErrorResponseType::UnauthorizedClient => {
                TokenError::InvalidClient { description }
            }
            other => TokenError::Refused { error: self.quoted(other.as_ref()), description },
        }
    }

    /// Classifies errors of requests other than those for tokens, without special cases for OAuth
    /// error codes.
    pub(super) fn other<K: ErrorResponseType + Display + 'static>(
        &self,
        error: RequestTokenError<NetError, StandardErrorResponse<K>>,
    ) -> TokenError {
        match error {
            RequestTokenError::ServerResponse(response) if !self.is_trouble() => {
                let description = response.error_description().map_or("", String::as_str);
                let error = self.quoted(&response.error().to_string());
                TokenError::Refused { error, description: self.quoted(description) }
            }
            RequestTokenError::Request(cause) => TokenError::Net(cause),
            RequestTokenError::ServerResponse(_)
            | RequestTokenError::Parse(..)
            | RequestTokenError::Other(_) => self.nonsense(),
        }
    }

    /// Whether the HTTP status reports a temporary failure of the server; the error in the body is
    /// then ignored.
    fn is_trouble(&self) -> bool {
        matches!(self.seen().status, 408 | 425 | 429 | 500..)
    }

    pub(super) fn nonsense(&self) -> TokenError {
        let Seen { status, retry_after } = self.seen();
        match self.is_trouble() {
            true => TokenError::Trouble { status, retry_after },
            false => TokenError::Malformed { status },
        }
    }
}
