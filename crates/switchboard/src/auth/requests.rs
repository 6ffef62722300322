//! What is asked of an authority once it is known: tokens for a code, a refresh token, a secret or a
//! device, and the end of tokens.

use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use oauth2::basic::{
    BasicErrorResponse, BasicErrorResponseType, BasicRevocationErrorResponse,
    BasicTokenIntrospectionResponse,
};
use oauth2::{
    AccessToken, AuthType, AuthorizationCode, ClientId, ClientSecret, DeviceAuthorizationUrl,
    ErrorResponse, HttpRequest, HttpResponse, PkceCodeVerifier, RedirectUrl, RefreshToken,
    RequestTokenError, RevocationUrl, Scope, StandardDeviceAuthorizationResponse,
    StandardRevocableToken, TokenResponse, TokenType, TokenUrl,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_core::render::words::clean_line;
use switchboard_core::sign_in::scope;
use switchboard_core::sign_in::token::Lifetime;
use url::Url;

use super::grant::{Client, Grant, Method, Tokens};
use super::net::{Net, NetError};
use crate::secret::Secret;

/// As much of what an authority says as a message has.
const SHOWN: usize = 200;

/// A device that nobody confirms is given up in this time, whatever the authority says.
const LONGEST_DEVICE: Duration = Duration::from_secs(15 * 60);

/// Why an authority gave no tokens.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    /// A definite no to what was shown: the code or the refresh token is of no use any more.
    #[error("the authority no longer accepts it{}", clause(.description))]
    InvalidGrant { description: String },
    /// It does not know us, or not by these credentials.
    #[error("the authority does not know this client{}", clause(.description))]
    InvalidClient { description: String },
    #[error("the authority refused with `{error}`{}", clause(.description))]
    Refused { error: String, description: String },
    /// It may be better later.
    #[error("the authority is in trouble (HTTP status {status})")]
    Trouble { status: u16, retry_after: Option<Duration> },
    #[error("the authority's answer makes no sense (HTTP status {status})")]
    Malformed { status: u16 },
    #[error("the authority gave a token of type `{found}`, not `Bearer`")]
    OtherType { found: String },
    #[error("the authority cannot be asked")]
    Net(#[from] NetError),
}

fn clause(description: &str) -> String {
    if description.is_empty() { String::new() } else { format!(": {description}") }
}

impl TokenError {
    /// Whether the same question may be answered another time.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            TokenError::Trouble { .. } | TokenError::Malformed { .. } | TokenError::Net(_) => true,
            TokenError::InvalidGrant { .. }
            | TokenError::InvalidClient { .. }
            | TokenError::Refused { .. }
            | TokenError::OtherType { .. } => false,
        }
    }
}

type OAuth = oauth2::Client<
    BasicErrorResponse,
    Answer,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
>;

/// Tokens as an authority gives them; turned into ours at once.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    access_token: AccessToken,
    #[serde(default = "Kind::bearer")]
    token_type: Kind,
    /// A number, says the specification.
    expires_in: Option<Value>,
    refresh_token: Option<RefreshToken>,
    scope: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Kind(String);

impl Kind {
    /// What is meant where nothing is said.
    fn bearer() -> Kind {
        Kind("Bearer".to_owned())
    }
}

impl TokenType for Kind {}

impl TokenResponse for Answer {
    type TokenType = Kind;

    fn access_token(&self) -> &AccessToken {
        &self.access_token
    }

    fn token_type(&self) -> &Kind {
        &self.token_type
    }

    fn expires_in(&self) -> Option<Duration> {
        Lifetime::read(self.expires_in.as_ref()).duration()
    }

    fn refresh_token(&self) -> Option<&RefreshToken> {
        self.refresh_token.as_ref()
    }

    fn scopes(&self) -> Option<&Vec<Scope>> {
        None
    }
}

impl Answer {
    /// What is not said about scopes means that all were granted (RFC 6749, 5.1).
    fn tokens(self, asked: &[String]) -> Result<Tokens, TokenError> {
        if !self.token_type.0.eq_ignore_ascii_case("bearer") {
            return Err(TokenError::OtherType { found: shown(&self.token_type.0) });
        }
        let refresh = self.refresh_token.map(RefreshToken::into_secret);
        Ok(Tokens {
            access: Secret::new(self.access_token.into_secret()),
            refresh: refresh.filter(|token| !token.is_empty()).map(Secret::new),
            received: SystemTime::now(),
            lifetime: Lifetime::read(self.expires_in.as_ref()),
            scopes: match self.scope {
                Some(granted) => scope::read(&granted),
                None => asked.to_vec(),
            },
        })
    }
}

/// A code that came back, and what shows that it is ours.
pub(super) struct CodeInHand<'a> {
    pub(super) code: String,
    pub(super) verifier: &'a Secret,
    pub(super) redirect: &'a str,
    pub(super) resource: &'a str,
    pub(super) scopes: &'a [String],
}

/// Tokens for a code. Never asked twice: a code is good for one try.
pub(super) async fn exchange(
    net: &Net,
    client: &Client,
    token: &Url,
    hand: CodeInHand<'_>,
) -> Result<Tokens, TokenError> {
    let desk = Desk::new(net);
    let oauth = oauth(client).set_token_uri(TokenUrl::from_url(token.clone()));
    let mut request = oauth
        .exchange_code(AuthorizationCode::new(hand.code))
        .set_pkce_verifier(PkceCodeVerifier::new(hand.verifier.expose().to_owned()))
        .add_extra_param("resource", hand.resource);
    if let Ok(redirect) = RedirectUrl::new(hand.redirect.to_owned()) {
        request = request.set_redirect_uri(std::borrow::Cow::Owned(redirect));
    }
    let answer = request.request_async(&|request| desk.ask(request)).await;
    answer.map_err(|error| desk.classify(error))?.tokens(hand.scopes)
}

/// Other tokens in place of those of a grant. A refresh token that is not replaced stays.
pub(super) async fn refresh(net: &Net, grant: &Grant, token: &Secret) -> Result<Tokens, TokenError> {
    let desk = Desk::new(net);
    let oauth = oauth(&grant.client).set_token_uri(TokenUrl::from_url(grant.endpoints.token.clone()));
    let shown = RefreshToken::new(token.expose().to_owned());
    let request = oauth
        .exchange_refresh_token(&shown)
        .add_extra_param("resource", &grant.resource)
        .add_scopes(grant.tokens.scopes.iter().cloned().map(Scope::new));
    let answer = request.request_async(&|request| desk.ask(request)).await;
    let mut tokens = answer.map_err(|error| desk.classify(error))?.tokens(&grant.tokens.scopes)?;
    tokens.refresh.get_or_insert_with(|| token.clone());
    Ok(tokens)
}

/// Tokens for the client itself, where there is no user.
pub(super) async fn of_client(
    net: &Net,
    client: &Client,
    token: &Url,
    (resource, scopes): (&str, &[String]),
) -> Result<Tokens, TokenError> {
    let desk = Desk::new(net);
    let oauth = oauth(client).set_token_uri(TokenUrl::from_url(token.clone()));
    let request = oauth
        .exchange_client_credentials()
        .add_extra_param("resource", resource)
        .add_scopes(scopes.iter().cloned().map(Scope::new));
    let answer = request.request_async(&|request| desk.ask(request)).await;
    answer.map_err(|error| desk.classify(error))?.tokens(scopes)
}

/// What a user has to do elsewhere so that this device gets tokens (RFC 8628).
pub(super) type Device = StandardDeviceAuthorizationResponse;

pub(super) async fn device(
    net: &Net,
    client: &Client,
    device: &Url,
    (resource, scopes): (&str, &[String]),
) -> Result<Device, TokenError> {
    let desk = Desk::new(net);
    let address = DeviceAuthorizationUrl::from_url(device.clone());
    let oauth = oauth(client).set_device_authorization_url(address);
    let request = oauth
        .exchange_device_code()
        .add_extra_param("resource", resource)
        .add_scopes(scopes.iter().cloned().map(Scope::new));
    let answer = request.request_async(&|request| desk.ask(request)).await;
    answer.map_err(|error| desk.classify(error))
}

/// Waits until the user has done it, and asks no more often than the authority wants.
pub(super) async fn of_device(
    net: &Net,
    client: &Client,
    token: &Url,
    device: &Device,
    (resource, scopes): (&str, &[String]),
) -> Result<Tokens, TokenError> {
    let desk = Desk::new(net);
    let oauth = oauth(client).set_token_uri(TokenUrl::from_url(token.clone()));
    let request = oauth.exchange_device_access_token(device).add_extra_param("resource", resource);
    let patience = device.expires_in().min(LONGEST_DEVICE);
    let asked = |request| desk.ask(request);
    let answer = request.request_async(&asked, tokio::time::sleep, Some(patience)).await;
    let answer = answer.map_err(|error| match error {
        RequestTokenError::ServerResponse(response) => {
            desk.said(&response.error().to_string(), response.error_description())
        }
        RequestTokenError::Request(cause) => TokenError::Net(cause),
        RequestTokenError::Parse(..) | RequestTokenError::Other(_) => desk.nonsense(),
    });
    answer?.tokens(scopes)
}

/// Tells the authority that the tokens are no longer needed (RFC 7009).
pub(super) async fn revoke(net: &Net, grant: &Grant, revocation: &Url) -> Result<(), TokenError> {
    let desk = Desk::new(net);
    let oauth = oauth(&grant.client).set_revocation_url(RevocationUrl::from_url(revocation.clone()));
    let token = match &grant.tokens.refresh {
        Some(refresh) => RefreshToken::new(refresh.expose().to_owned()).into(),
        None => AccessToken::new(grant.tokens.access.expose().to_owned()).into(),
    };
    let Ok(request) = oauth.revoke_token(token) else { return Ok(()) };
    let answer = request.request_async(&|request| desk.ask(request)).await;
    answer.map_err(|error| match error {
        RequestTokenError::ServerResponse(response) => {
            desk.said(&response.error().to_string(), response.error_description())
        }
        RequestTokenError::Request(cause) => TokenError::Net(cause),
        RequestTokenError::Parse(..) | RequestTokenError::Other(_) => desk.nonsense(),
    })
}

fn oauth(client: &Client) -> OAuth {
    let auth_type = match client.method {
        Method::ClientSecretBasic => AuthType::BasicAuth,
        Method::None | Method::ClientSecretPost => AuthType::RequestBody,
    };
    let oauth = OAuth::new(ClientId::new(client.id.clone())).set_auth_type(auth_type);
    match (&client.secret, client.method) {
        (Some(secret), Method::ClientSecretBasic | Method::ClientSecretPost) => {
            oauth.set_client_secret(ClientSecret::new(secret.expose().to_owned()))
        }
        (_, Method::None) | (None, _) => oauth,
    }
}

/// One request at a time, and what was seen of its answer that the library does not keep.
struct Desk<'a> {
    net: &'a Net,
    seen: Mutex<Seen>,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    status: u16,
    retry_after: Option<Duration>,
}

impl<'a> Desk<'a> {
    fn new(net: &'a Net) -> Desk<'a> {
        Desk { net, seen: Mutex::default() }
    }

    async fn ask(&self, request: HttpRequest) -> Result<HttpResponse, NetError> {
        let (head, body) = request.into_parts();
        let url = Url::parse(&head.uri.to_string()).map_err(|_| NetError::NotAnAddress)?;
        let answer = self.net.post(&url, head.headers, body).await?;
        let seen = Seen { status: answer.status, retry_after: answer.retry_after };
        *self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = seen;
        // Any success is one: the library knows 200 alone.
        let status = if (200..300).contains(&answer.status) { 200 } else { answer.status };
        let mut response = HttpResponse::new(answer.body);
        *response.status_mut() = status.try_into().map_err(|_| NetError::NotAnAddress)?;
        Ok(response)
    }

    fn seen(&self) -> Seen {
        *self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn classify(&self, error: RequestTokenError<NetError, BasicErrorResponse>) -> TokenError {
        match error {
            RequestTokenError::ServerResponse(response) => {
                let description = response.error_description();
                let shown_description = shown(description.map_or("", String::as_str));
                match response.error() {
                    _ if self.is_trouble() => self.nonsense(),
                    BasicErrorResponseType::InvalidGrant => {
                        TokenError::InvalidGrant { description: shown_description }
                    }
                    BasicErrorResponseType::InvalidClient
                    | BasicErrorResponseType::UnauthorizedClient => {
                        TokenError::InvalidClient { description: shown_description }
                    }
                    other => self.said(other.as_ref(), description),
                }
            }
            RequestTokenError::Request(cause) => TokenError::Net(cause),
            RequestTokenError::Parse(..) | RequestTokenError::Other(_) => self.nonsense(),
        }
    }

    fn said(&self, error: &str, description: Option<&String>) -> TokenError {
        if self.is_trouble() {
            return self.nonsense();
        }
        let description = shown(description.map_or("", String::as_str));
        TokenError::Refused { error: shown(error), description }
    }

    /// Whatever it says with such a status, it does not mean us.
    fn is_trouble(&self) -> bool {
        matches!(self.seen().status, 408 | 425 | 429 | 500..)
    }

    fn nonsense(&self) -> TokenError {
        let Seen { status, retry_after } = self.seen();
        match self.is_trouble() {
            true => TokenError::Trouble { status, retry_after },
            false => TokenError::Malformed { status },
        }
    }
}

fn shown(text: &str) -> String {
    clean_line(text, SHOWN).into_owned()
}
