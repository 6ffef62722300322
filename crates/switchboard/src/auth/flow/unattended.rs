//! Grants for which nobody has to sign in: those of a client by itself, and those that were there
//! before.

use std::time::{Duration, SystemTime};

use switchboard_core::sign_in::scope;
use switchboard_core::sign_in::token::Lifetime;

use super::{Prepared, grant, prepare};
use crate::auth::account::Account;
use crate::auth::discover;
use crate::auth::error::AuthError;
use crate::auth::grant::{Client, Grant, Source, Tokens};
use crate::auth::register::{self, Wanted};
use crate::auth::requests;
use crate::auth::takeover::Foreign;

/// Tokens for the client itself, which has a secret of its own.
pub(in crate::auth) async fn by_credentials(account: &Account) -> Result<Grant, AuthError> {
    let net = account.net().await?;
    let (found, client, scopes) = match account.held() {
        Some(held) => return again(account, &held.grant).await,
        None => {
            let Prepared { found, scopes, .. } = prepare(account, None).await?;
            let wanted = Wanted {
                authority: &found.authority,
                redirect: None,
                scopes: &scopes,
                known: None,
            };
            let client = register::client(net, &account.terms.options, wanted).await?;
            (found, client, scopes)
        }
    };
    let asked = (found.resource.as_str(), scopes.as_slice());
    let tokens = requests::of_client(net, &client, &found.authority.token, asked).await;
    Ok(grant(account, found, client, tokens.map_err(AuthError::NotGiven)?))
}

async fn again(account: &Account, held: &Grant) -> Result<Grant, AuthError> {
    let asked = (held.resource.as_str(), held.tokens.scopes.as_slice());
    let net = account.net().await?;
    let tokens = requests::of_client(net, &held.client, &held.endpoints.token, asked).await;
    Ok(Grant { tokens: tokens.map_err(AuthError::NotGiven)?, ..held.clone() })
}

/// What an older installation was granted, with what it did not write down: where the authority
/// takes requests. It has to be the authority that granted it.
pub(in crate::auth) async fn of_older(
    account: &Account,
    left: Foreign,
) -> Result<Grant, AuthError> {
    let net = account.net().await?;
    let found = discover::discover(net, &account.terms, &account.challenge()).await?;
    let same = left.issuer.as_ref().is_none_or(|issuer| *issuer == found.authority.issuer);
    let (Some(access), Some(id), true) = (left.access_token, left.client_id, same) else {
        return Err(AuthError::NotSignedIn);
    };
    let received = SystemTime::now();
    let lifetime = match left.expires_at {
        None => Lifetime::Unknown,
        Some(at) => {
            let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(at));
            Lifetime::For(at.and_then(|at| at.duration_since(received).ok()).unwrap_or_default())
        }
    };
    let client = Client {
        method: register::method(&found.authority, left.client_secret.is_some()),
        id,
        secret: left.client_secret,
        secret_expires: None,
        source: Source::Registered,
        redirect: left.redirect_uris.into_iter().next(),
    };
    let scopes = left.scope.as_deref().map(scope::read).unwrap_or_default();
    let tokens = Tokens { access, refresh: left.refresh_token, received, lifetime, scopes };
    Ok(grant(account, found, client, tokens))
}
