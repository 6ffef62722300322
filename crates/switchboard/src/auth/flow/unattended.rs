//! Grants that need no user: client credentials, and the takeover from `pi-mcp-adapter`.

use std::time::{Duration, SystemTime};

use switchboard_core::sign_in::scope;
use switchboard_core::sign_in::token::Lifetime;

use super::{Prepared, grant, prepare};
use crate::auth::account::Account;
use crate::auth::discover;
use crate::auth::error::AuthError;
use crate::auth::grant::{ClientSource, Grant, OAuthClient, Tokens};
use crate::auth::net::Net;
use crate::auth::register;
use crate::auth::requests;
use crate::auth::takeover::OlderGrant;

/// Requests tokens for the client itself, with its client id and secret.
pub(in crate::auth) async fn by_credentials(account: &Account) -> Result<Grant, AuthError> {
    let net = account.net().await?;
    if let Some(held) = account.held() {
        return again(net, &held.grant).await;
    }
    let prepared = prepare(account, None).await?;
    let client = prepared.client(account, None).await?;
    let Prepared { found, scopes, .. } = prepared;
    let asked = (found.resource.as_str(), scopes.as_slice());
    let tokens = requests::of_client(net, &client, &found.authority.token, asked).await;
    Ok(grant(account, found, client, tokens.map_err(AuthError::NotGiven)?))
}

async fn again(net: &Net, held: &Grant) -> Result<Grant, AuthError> {
    let asked = (held.resource.as_str(), held.tokens.scopes.as_slice());
    let tokens = requests::of_client(net, &held.client, &held.endpoints.token, asked).await;
    Ok(Grant { tokens: tokens.map_err(AuthError::NotGiven)?, ..held.clone() })
}

/// A grant from the tokens of `pi-mcp-adapter`. Discovery supplies the endpoints, which were
/// not stored. The takeover fails if discovery finds an authorization server that did not issue the
/// tokens.
pub(in crate::auth) async fn of_older(
    account: &Account,
    left: OlderGrant,
) -> Result<Grant, AuthError> {
    let challenge = account.challenge();
    let found = discover::discover(account.net().await?, &account.terms, &challenge).await?;
    let same = left.issuer().is_none_or(|issuer| issuer == found.authority.issuer);
    let OlderGrant { tokens: older, client: known, .. } = left;
    let (Some(access), Some(id), true) = (older.access_token, known.client_id, same) else {
        return Err(AuthError::NotSignedIn);
    };
    let received = SystemTime::now();
    let lifetime =
        older.expires_at.map_or(Lifetime::Unknown, |at| Lifetime::For(until(at, received)));
    let client = OAuthClient {
        method: register::method(&found.authority, known.client_secret.is_some()),
        id,
        secret: known.client_secret,
        secret_expires: None,
        source: ClientSource::Registered,
        redirect: known.redirect_uris.into_iter().next(),
    };
    let scopes = older.scope.as_deref().map(scope::read).unwrap_or_default();
    let tokens = Tokens { access, refresh: older.refresh_token, received, lifetime, scopes };
    Ok(grant(account, found, client, tokens))
}

/// The time from `now` until a time in seconds since 1970. Zero for a time in the past, before
/// 1970, or beyond the range of the clock.
fn until(seconds: f64, now: SystemTime) -> Duration {
    let since_1970 = Duration::try_from_secs_f64(seconds.trunc()).unwrap_or_default();
    let at = SystemTime::UNIX_EPOCH.checked_add(since_1970);
    at.and_then(|at| at.duration_since(now).ok()).unwrap_or_default()
}
