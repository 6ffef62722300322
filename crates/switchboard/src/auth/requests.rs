//! Requests to an authorization server: tokens for a code, a refresh token, a client secret or a
//! device code, and the revocation of tokens.

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

use super::grant::{Grant, Method, OAuthClient, Tokens};
use super::net::{Net, NetError};
use crate::secret::Secret;
use desk::Desk;

/// The maximum length, in characters, of an authorization server's text in an error message.
const SHOWN: usize = 200;

/// The minimum interval between polls for a device code, even if the authorization server sets a
/// shorter one.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

/// The maximum time of polling for a device code, even if the authorization server sets a longer
/// one.
const LONGEST_DEVICE: Duration = Duration::from_secs(15 * 60);

/// Why an authorization server issued no tokens.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    /// `invalid_grant`: the code or the refresh token is no longer valid.
    #[error("the authorization server no longer accepts the code or refresh token{}", clause(.description))]
    InvalidGrant { description: String },
    /// `invalid_client`: the client is unknown, or its credentials are wrong.
    #[error("the authorization server does not know this client{}", clause(.description))]
    InvalidClient { description: String },
    #[error("the authorization server refused with `{error}`{}", clause(.description))]
    Refused { error: String, description: String },
    #[error("the user did not complete the device authorization in time")]
    TooLate,
    /// A temporary failure: the same request may succeed later.
    #[error("the authorization server failed (HTTP status {status})")]
    Trouble { status: u16, retry_after: Option<Duration> },
    #[error("the authorization server's response is invalid (HTTP status {status})")]
    Malformed { status: u16 },
    #[error(
        "the authorization server issued an access token that is empty or not valid in a header"
    )]
    NoToken,
    #[error("the authorization server issued a token of type `{found}`, not `Bearer`")]
    OtherType { found: String },
    #[error("the request to the authorization server failed")]
    Net(#[from] NetError),
}

/// The authorization server's description of an error, to append to a message; empty if there is
/// none.
pub(super) fn clause(description: &str) -> String {
    if description.is_empty() { String::new() } else { format!(": {description}") }
}

impl TokenError {
    /// Whether the error is temporary, so that the same request may succeed later.
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
    TokenAnswer,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
>;

/// A token response, as the authorization server sends it.
#[derive(Debug, Serialize, Deserialize)]
struct TokenAnswer {
    access_token: AccessToken,
    #[serde(default = "AccessTokenType::bearer")]
    token_type: AccessTokenType,
    /// The lifetime in seconds: a number in the specification, a string from some authorization
    /// servers.
    expires_in: Option<Value>,
    refresh_token: Option<RefreshToken>,
    scope: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct AccessTokenType(String);

impl AccessTokenType {
    /// The token type of a response that names none.
    fn bearer() -> AccessTokenType {
        AccessTokenType("Bearer".to_owned())
    }
}

impl TokenType for AccessTokenType {}

impl TokenResponse for TokenAnswer {
    type TokenType = AccessTokenType;

    fn access_token(&self) -> &AccessToken {
        &self.access_token
    }

    fn token_type(&self) -> &AccessTokenType {
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

impl TokenAnswer {
    /// Converts the response to tokens. A response without scopes means that all requested scopes
    /// (`asked`) were granted (RFC 6749, 5.1).
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

/// The request that sends the user to the page of the authorization server.
pub(super) struct AuthorizationRequest {
    /// The `state` parameter, which the authorization response repeats unchanged.
    pub(super) state: Secret,
    /// The PKCE code verifier, which proves that the authorization code belongs to this request.
    pub(super) verifier: Secret,
    pub(super) redirect: String,
    pub(super) resource: String,
    pub(super) scopes: Vec<String>,
    /// The parameters that the user configured (`authorizationParams`).
    pub(super) params: Vec<(String, String)>,
}

impl AuthorizationRequest {
    fn verifier(&self) -> PkceCodeVerifier {
        PkceCodeVerifier::new(self.verifier.expose().to_owned())
    }

    fn redirect(&self) -> Option<Cow<'_, RedirectUrl>> {
        RedirectUrl::new(self.redirect.clone()).ok().map(Cow::Owned)
    }

    /// The URL of the page at which the user signs in.
    pub(super) fn url(&self, client: &OAuthClient, page: &Url) -> Url {
        let oauth = oauth(client).set_auth_uri(AuthUrl::from_url(page.clone()));
        let mut request = oauth
            .authorize_url(|| CsrfToken::new(self.state.expose().to_owned()))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&self.verifier()))
            .add_extra_param("resource", &self.resource)
            .add_scopes(self.scopes.iter().cloned().map(Scope::new));
        if let Some(redirect) = self.redirect() {
            request = request.set_redirect_uri(redirect);
        }
        if self.scopes.iter().any(|scope| scope == scope::OFFLINE) {
            // The scope `offline_access` requires `prompt=consent` (OpenID Connect Core, 11).
            request = request.add_extra_param("prompt", "consent");
        }
        for (name, value) in &self.params {
            request = request.add_extra_param(name, value);
        }
        let (url, _state) = request.url();
        url
    }

    /// Exchanges a code for tokens, without a retry: a code is valid once.
    pub(super) async fn exchange(
        &self,
        net: &Net,
        client: &OAuthClient,
        token: &Url,
        code: String,
    ) -> Result<Tokens, TokenError> {
        let desk = Desk::new(net, token);
        let oauth = oauth(client).set_token_uri(TokenUrl::from_url(token.clone()));
        let mut request = oauth
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(self.verifier())
            .add_extra_param("resource", &self.resource);
        if let Some(redirect) = self.redirect() {
            request = request.set_redirect_uri(redirect);
        }
        desk.tokens(request.request_async(&desk).await, &self.scopes)
    }
}

/// Refreshes the tokens of a grant. If the response has no refresh token, the old one stays.
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
    let mut tokens = desk.tokens(request.request_async(&desk).await, &grant.tokens.scopes)?;
    tokens.refresh.get_or_insert_with(|| token.clone());
    Ok(tokens)
}

/// Requests tokens for the client itself (client credentials), without a user.
pub(super) async fn of_client(
    net: &Net,
    client: &OAuthClient,
    token: &Url,
    (resource, scopes): (&str, &[String]),
) -> Result<Tokens, TokenError> {
    let desk = Desk::new(net, token);
    let oauth = oauth(client).set_token_uri(TokenUrl::from_url(token.clone()));
    let request = oauth
        .exchange_client_credentials()
        .add_extra_param("resource", resource)
        .add_scopes(scopes.iter().cloned().map(Scope::new));
    desk.tokens(request.request_async(&desk).await, scopes)
}

/// The code and URL for a sign-in on another device (RFC 8628).
pub(super) type Device = StandardDeviceAuthorizationResponse;

pub(super) async fn device(
    net: &Net,
    client: &OAuthClient,
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

/// Polls for the tokens until the user has signed in, at the interval of the authorization server.
pub(super) async fn of_device(
    net: &Net,
    client: &OAuthClient,
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
    // The authorization server sets the polling interval, which may exceed `patience`.
    let answer = tokio::time::timeout(patience, asking).await.map_err(|_| TokenError::TooLate)?;
    desk.checked(answer.map_err(|error| desk.other(error))?, scopes)
}

/// Revokes the tokens of a grant (RFC 7009).
pub(super) async fn revoke(net: &Net, grant: &Grant, revocation: &Url) -> Result<(), TokenError> {
    let desk = Desk::new(net, revocation);
    // The OAuth library refuses a revocation URL that is not `https`, so it gets an `https` URL;
    // the desk sends the request to the real one.
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

fn oauth(client: &OAuthClient) -> OAuth {
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
