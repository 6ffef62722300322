//! What is asked of an authority once it is known: tokens for a code, a refresh token, a secret or a
//! device, and the end of tokens.

mod desk;
mod sent;

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use oauth2::basic::{
    BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenIntrospectionResponse,
};
use oauth2::{
    AccessToken, AuthType, AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken,
    DeviceAuthorizationUrl, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RefreshToken,
    RevocationUrl, Scope, StandardDeviceAuthorizationResponse, StandardRevocableToken,
    TokenResponse, TokenType, TokenUrl,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_core::sign_in::scope;
use switchboard_core::sign_in::token::Lifetime;
use url::Url;

use super::grant::{Client, Grant, Method, Tokens};
use super::net::{Net, NetError};
use crate::secret::Secret;
use desk::Desk;

/// As much of what an authority says as a message has.
const SHOWN: usize = 200;

/// An authority that wants to be asked more often is not.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

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
    #[error("nobody signed in at the other device in time")]
    TooLate,
    /// It may be better later.
    #[error("the authority is in trouble (HTTP status {status})")]
    Trouble { status: u16, retry_after: Option<Duration> },
    #[error("the authority's answer makes no sense (HTTP status {status})")]
    Malformed { status: u16 },
    #[error("the authority gave a token that no request can show")]
    NoToken,
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
            TokenError::Trouble { .. }
            | TokenError::Malformed { .. }
            | TokenError::NoToken
            | TokenError::Net(_) => true,
            TokenError::InvalidGrant { .. }
            | TokenError::InvalidClient { .. }
            | TokenError::Refused { .. }
            | TokenError::TooLate
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
            return Err(TokenError::OtherType { found: self.token_type.0 });
        }
        let access = self.access_token.into_secret();
        if access.is_empty() || !access.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::NoToken);
        }
        let refresh = self.refresh_token.map(RefreshToken::into_secret);
        Ok(Tokens {
            access: Secret::new(access),
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

/// What the user is asked to agree to.
pub(super) struct Asked<'a> {
    /// Comes back with the answer.
    pub(super) state: &'a Secret,
    /// Shows later that the answer is ours.
    pub(super) verifier: &'a Secret,
    pub(super) redirect: &'a str,
    pub(super) resource: &'a str,
    pub(super) scopes: &'a [String],
    /// Of the user's configuration.
    pub(super) params: &'a [(String, String)],
}

/// The page at which the user agrees.
pub(super) fn page(client: &Client, page: &Url, asked: &Asked<'_>) -> Url {
    let oauth = oauth(client).set_auth_uri(AuthUrl::from_url(page.clone()));
    let verifier = PkceCodeVerifier::new(asked.verifier.expose().to_owned());
    let mut request = oauth
        .authorize_url(|| CsrfToken::new(asked.state.expose().to_owned()))
        .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier))
        .add_extra_param("resource", asked.resource)
        .add_scopes(asked.scopes.iter().cloned().map(Scope::new));
    if let Ok(redirect) = RedirectUrl::new(asked.redirect.to_owned()) {
        request = request.set_redirect_uri(Cow::Owned(redirect));
    }
    if asked.scopes.iter().any(|scope| scope == scope::OFFLINE) {
        // Without being asked, users give no consent to that (OpenID Connect Core, 11).
        request = request.add_extra_param("prompt", "consent");
    }
    for (name, value) in asked.params {
        request = request.add_extra_param(name, value);
    }
    let (url, _state) = request.url();
    url
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
    let desk = Desk::new(net, token);
    let oauth = oauth(client).set_token_uri(TokenUrl::from_url(token.clone()));
    let mut request = oauth
        .exchange_code(AuthorizationCode::new(hand.code))
        .set_pkce_verifier(PkceCodeVerifier::new(hand.verifier.expose().to_owned()))
        .add_extra_param("resource", hand.resource);
    if let Ok(redirect) = RedirectUrl::new(hand.redirect.to_owned()) {
        request = request.set_redirect_uri(Cow::Owned(redirect));
    }
    let answer = request.request_async(&desk).await;
    desk.tokens(answer.map_err(|error| desk.classify(error))?, hand.scopes)
}

/// Other tokens in place of those of a grant. A refresh token that is not replaced stays.
pub(super) async fn refresh(
    net: &Net,
    grant: &Grant,
    token: &Secret,
) -> Result<Tokens, TokenError> {
    let desk = Desk::new(net, &grant.endpoints.token);
    let oauth =
        oauth(&grant.client).set_token_uri(TokenUrl::from_url(grant.endpoints.token.clone()));
    let shown = RefreshToken::new(token.expose().to_owned());
    let request = oauth
        .exchange_refresh_token(&shown)
        .add_extra_param("resource", &grant.resource)
        .add_scopes(grant.tokens.scopes.iter().cloned().map(Scope::new));
    let answer = request.request_async(&desk).await;
    let answer = answer.map_err(|error| desk.classify(error))?;
    let mut tokens = desk.tokens(answer, &grant.tokens.scopes)?;
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
    let desk = Desk::new(net, token);
    let oauth = oauth(client).set_token_uri(TokenUrl::from_url(token.clone()));
    let request = oauth
        .exchange_client_credentials()
        .add_extra_param("resource", resource)
        .add_scopes(scopes.iter().cloned().map(Scope::new));
    let answer = request.request_async(&desk).await;
    desk.tokens(answer.map_err(|error| desk.classify(error))?, scopes)
}

/// What a user has to do elsewhere so that this device gets tokens (RFC 8628).
pub(super) type Device = StandardDeviceAuthorizationResponse;

pub(super) async fn device(
    net: &Net,
    client: &Client,
    device: &Url,
    (resource, scopes): (&str, &[String]),
) -> Result<Device, TokenError> {
    let desk = Desk::new(net, device);
    let address = DeviceAuthorizationUrl::from_url(device.clone());
    let oauth = oauth(client).set_device_authorization_url(address);
    let request = oauth
        .exchange_device_code()
        .add_extra_param("resource", resource)
        .add_scopes(scopes.iter().cloned().map(Scope::new));
    let answer = request.request_async(&desk).await;
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
    let desk = Desk::new(net, token);
    let oauth = oauth(client).set_token_uri(TokenUrl::from_url(token.clone()));
    let request = oauth.exchange_device_access_token(device).add_extra_param("resource", resource);
    let patience = device.expires_in().min(LONGEST_DEVICE);
    let pause = |wanted: Duration| tokio::time::sleep(wanted.max(SHORTEST_PAUSE));
    let asking = request.request_async(&desk, pause, Some(patience));
    // Between two questions it waits for as long as the authority says, and that may be for ever.
    let answer = tokio::time::timeout(patience, asking).await.map_err(|_| TokenError::TooLate)?;
    desk.tokens(answer.map_err(|error| desk.other(error))?, scopes)
}

/// Tells the authority that the tokens are no longer needed (RFC 7009).
pub(super) async fn revoke(net: &Net, grant: &Grant, revocation: &Url) -> Result<(), TokenError> {
    let desk = Desk::new(net, revocation);
    // The library makes no such request but to `https`. Where it goes is the desk's to say.
    let mut named = revocation.clone();
    let _set = named.set_scheme("https");
    let oauth = oauth(&grant.client).set_revocation_url(RevocationUrl::from_url(named));
    let token = match &grant.tokens.refresh {
        Some(refresh) => RefreshToken::new(refresh.expose().to_owned()).into(),
        None => AccessToken::new(grant.tokens.access.expose().to_owned()).into(),
    };
    let Ok(request) = oauth.revoke_token(token) else { return Err(desk.nonsense()) };
    let answer = request.request_async(&desk).await;
    answer.map_err(|error| desk.other(error))
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

#[cfg(test)]
mod tests;
