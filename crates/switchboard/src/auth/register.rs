//! The OAuth client of Switchboard: configured, identified by a metadata document, or registered
//! (RFC 7591).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::json;
use switchboard_core::config::auth::GrantType;
use switchboard_core::render::words::clean_line;
use switchboard_core::sign_in::metadata::Authority;
use url::Url;

use super::grant::{ClientSource, Grant, Method, OAuthClient};
use super::net::{Net, NetError};
use super::requests::clause;
use super::terms::Options;
use crate::secret::Secret;

/// The name of the client that users see on consent pages.
const NAME: &str = "Switchboard";

/// The redirect URI without a port, which authorization servers match with every port (RFC 8252,
/// 7.3).
const ANY_PORT: &str = "http://127.0.0.1/callback";

const SHOWN: usize = 200;

/// Why there is no OAuth client for an authorization server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegisterError {
    /// No client can be registered dynamically: the user has to register one by hand.
    #[error("the authorization server `{issuer}` offers no dynamic client registration")]
    NotOffered { issuer: String },
    #[error("the authorization server refused the client registration (HTTP status {status}{})", clause(.error))]
    Refused { status: u16, error: String },
    #[error("the response to the client registration is malformed")]
    Malformed,
    #[error("the `clientMetadataUrl` is not an https URL with a path")]
    Document,
    #[error("a `clientSecret` requires a `clientId`")]
    SecretAlone,
    #[error("the grant `client_credentials` requires a `clientId` and a `clientSecret`")]
    NoCredentials,
    /// Credentials of one authorization server must not be sent to another.
    #[error(
        "the entry's `clientId` belongs to the authorization server `{before}`, but the server now names `{now}`"
    )]
    OtherAuthority { before: String, now: String },
    #[error("the request to the authorization server failed")]
    Net(#[from] NetError),
}

/// What a sign-in requires of its OAuth client.
pub(super) struct Wanted<'a> {
    pub(super) authority: &'a Authority,
    /// The redirect URI; `None` for a sign-in without a browser.
    pub(super) redirect: Option<&'a str>,
    pub(super) scopes: &'a [String],
    /// The grant of an earlier sign-in, whose client may be used again.
    pub(super) known: Option<&'a Grant>,
}

/// Picks the client: the configured one, else one with a metadata document, else the earlier
/// registration, else a new registration.
pub(super) async fn client(
    net: &Net,
    options: &Options,
    wanted: Wanted<'_>,
) -> Result<OAuthClient, RegisterError> {
    let redirect = wanted.redirect.map(str::to_owned);
    if let Some(id) = &options.client_id {
        stays(options, &wanted)?;
        let method = method(wanted.authority, options.client_secret.is_some());
        let (id, secret) = (id.clone(), options.client_secret.clone());
        let source = ClientSource::Configured;
        return Ok(OAuthClient { id, secret, secret_expires: None, method, source, redirect });
    }
    if options.client_secret.is_some() {
        return Err(RegisterError::SecretAlone);
    }
    if options.grant == GrantType::ClientCredentials {
        return Err(RegisterError::NoCredentials);
    }
    if let Some(document) = &options.client_metadata_url {
        let url = Url::parse(document).ok();
        let fits = url.is_some_and(|url| url.scheme() == "https" && url.path() != "/");
        if !fits {
            return Err(RegisterError::Document);
        }
        if wanted.authority.client_documents {
            let (id, source) = (document.clone(), ClientSource::Document);
            let (secret, secret_expires, method) = (None, None, Method::None);
            return Ok(OAuthClient { id, secret, secret_expires, method, source, redirect });
        }
    }
    match wanted.known.filter(|grant| is_reusable(grant, &wanted)) {
        Some(known) => Ok(known.client.clone()),
        None => register(net, options, &wanted).await,
    }
}

/// Refuses to use a configured client at another authorization server than before, unless the entry
/// names the new one with `metadata_url`.
fn stays(options: &Options, wanted: &Wanted<'_>) -> Result<(), RegisterError> {
    let now = &wanted.authority.issuer;
    match wanted.known {
        Some(known) if known.issuer != *now && options.metadata_url.is_none() => {
            let shown = |issuer: &str| clean_line(issuer, SHOWN).into_owned();
            Err(RegisterError::OtherAuthority { before: shown(&known.issuer), now: shown(now) })
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether an earlier registration can be used again: only at the same authorization server, and
/// with the same redirect URI if the request has one.
fn is_reusable(grant: &Grant, wanted: &Wanted<'_>) -> bool {
    let client = &grant.client;
    let expired = client.secret_expires.is_some_and(|expires| expires <= SystemTime::now());
    client.source == ClientSource::Registered
        && grant.issuer == wanted.authority.issuer
        && wanted.redirect.is_none_or(|redirect| client.redirect.as_deref() == Some(redirect))
        && !expired
}

/// How the client authenticates at the token endpoint. If the metadata lists no methods, the
/// default is `client_secret_basic` (RFC 8414).
pub(super) fn method(authority: &Authority, has_secret: bool) -> Method {
    let offers = |name: &str| match &authority.methods {
        Some(methods) => methods.iter().any(|method| method == name),
        None => name == "client_secret_basic",
    };
    match has_secret {
        false => Method::None,
        true if offers("client_secret_basic") => Method::ClientSecretBasic,
        true if offers("client_secret_post") => Method::ClientSecretPost,
        true if offers("none") => Method::None,
        true => Method::ClientSecretBasic,
    }
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    client_secret_expires_at: Option<u64>,
    token_endpoint_auth_method: Option<String>,
}

#[derive(Deserialize)]
struct ErrorBody {
    error: Option<String>,
    error_description: Option<String>,
}

async fn register(
    net: &Net,
    options: &Options,
    wanted: &Wanted<'_>,
) -> Result<OAuthClient, RegisterError> {
    let authority = wanted.authority;
    let Some(url) = &authority.registration else {
        let issuer = clean_line(&authority.issuer, SHOWN).into_owned();
        return Err(RegisterError::NotOffered { issuer });
    };
    let headers =
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    let answer = net.post(url, headers, metadata(options, wanted).to_string().into_bytes()).await?;
    if !(200..300).contains(&answer.status) {
        let body: Option<ErrorBody> = serde_json::from_slice(&answer.body).ok();
        let words = body.map(|body| [body.error, body.error_description]);
        let words: Vec<String> = words.into_iter().flatten().flatten().collect();
        let error = clean_line(&words.join(": "), SHOWN).into_owned();
        return Err(RegisterError::Refused { status: answer.status, error });
    }
    let registered: Option<Registered> = serde_json::from_slice(&answer.body).ok();
    let registered = registered.filter(|registered| !registered.client_id.is_empty());
    let registered = registered.ok_or(RegisterError::Malformed)?;
    let secret = registered.client_secret.filter(|secret| !secret.is_empty());
    Ok(OAuthClient {
        method: match registered.token_endpoint_auth_method.as_deref() {
            Some("client_secret_basic") if secret.is_some() => Method::ClientSecretBasic,
            Some("client_secret_post") if secret.is_some() => Method::ClientSecretPost,
            Some("none") => Method::None,
            Some(_) | None => method(authority, secret.is_some()),
        },
        id: registered.client_id,
        secret: secret.map(Secret::new),
        // An expiry time of zero means that the client secret never expires.
        secret_expires: registered
            .client_secret_expires_at
            .filter(|seconds| *seconds > 0)
            .and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds))),
        source: ClientSource::Registered,
        redirect: wanted.redirect.map(str::to_owned),
    })
}

/// The client metadata for a registration. Switchboard registers as a public client where possible,
/// because it can keep no client secret.
fn metadata(options: &Options, wanted: &Wanted<'_>) -> serde_json::Value {
    let authority = wanted.authority;
    let mut redirects: Vec<&str> = wanted.redirect.into_iter().collect();
    // Authorization servers require a redirect URI, even for a flow without a browser.
    if wanted.redirect.is_none_or(|redirect| redirect.starts_with("http://127.0.0.1:")) {
        redirects.push(ANY_PORT);
    }
    let mut grants = vec!["authorization_code", "refresh_token"];
    if authority.device.is_some() {
        grants.push("urn:ietf:params:oauth:grant-type:device_code");
    }
    let public =
        authority.methods.as_ref().is_none_or(|methods| methods.iter().any(|m| m == "none"));
    let method = if public { Method::None } else { method(authority, true) };
    let mut metadata = json!({
        "client_name": options.client_name.as_deref().unwrap_or(NAME),
        "application_type": "native",
        "redirect_uris": redirects,
        "grant_types": grants,
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
    });
    if !wanted.scopes.is_empty() {
        metadata["scope"] = json!(wanted.scopes.join(" "));
    }
    for (name, value) in [("client_uri", &options.client_uri), ("logo_uri", &options.logo_uri)] {
        if let Some(value) = value {
            metadata[name] = json!(value);
        }
    }
    metadata
}
