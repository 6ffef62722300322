//! Adds the token of the server's account to each request. If the server rejects the token, the
//! request is repeated once with a new token.

use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use switchboard_core::sign_in::challenge;
use switchboard_wire::http_client::{
    self, AuthDecision, HeaderMap, HeaderValue, Judging, MOST_REPEATS, Refused, Signer, Signing,
    Url,
};

use super::account::Account;
use super::error::AuthError;
use crate::secret::Secret;

impl Signer for Account {
    fn sign<'a>(&'a self, _: &'a str, url: &'a Url, _: &'a [u8]) -> Signing<'a> {
        Box::pin(async move {
            // The transport sends requests only to the origin of the server's URL. The check is
            // repeated here, so that tokens reach no other server.
            if url.origin() != self.terms.url.origin() {
                return Ok(HeaderMap::new());
            }
            let token =
                self.token().await.map_err(|error| Arc::new(error) as http_client::SignError)?;
            Ok(token.as_ref().and_then(header).into_iter().collect())
        })
    }

    fn refused<'a>(&'a self, refused: Refused<'a>) -> Judging<'a> {
        Box::pin(async move {
            let headers = refused.answer.get_all(WWW_AUTHENTICATE);
            let challenge =
                challenge::bearer(headers.iter().filter_map(|value| value.to_str().ok()));
            let wants_more = challenge.is_insufficient_scope().then(|| challenge.scopes.clone());
            self.was_challenged(challenge);
            let shown = shown(refused.sent);
            let outcome = match (refused.status, shown, wants_more) {
                // The server refused a token that was issued just now, so a newer token would not
                // help.
                (401, Some(token), _) if refused.repeats > 0 && self.is_given(&token) => {
                    Err(AuthError::NotAccepted)
                }
                (401, Some(_), _) if refused.repeats >= MOST_REPEATS => Err(AuthError::NotAccepted),
                (403, Some(token), Some(scopes)) => self.wants_more(&token, &scopes).await,
                (403, Some(_), None) => Err(AuthError::Forbidden),
                (401, Some(token), _) => self.renew(&token).await,
                // The user may have signed in meanwhile, in this process or another one.
                (_, _, _) => match self.open().await {
                    Ok(()) if self.held().is_none() => Err(AuthError::NotSignedIn),
                    opened => opened,
                },
            };
            match outcome {
                Ok(()) => AuthDecision::Again,
                Err(error) if error.wants_sign_in() => AuthDecision::SignIn(Arc::new(error)),
                Err(error @ (AuthError::Forbidden | AuthError::StillMoreScope { .. })) => {
                    AuthDecision::Forbidden(Arc::new(error))
                }
                Err(error) => AuthDecision::Unsigned(Arc::new(error)),
            }
        })
    }
}

fn header(token: &Secret) -> Option<(http_client::HeaderName, HeaderValue)> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose())).ok()?;
    value.set_sensitive(true);
    Some((AUTHORIZATION, value))
}

/// The bearer token in the headers of a sent request.
fn shown(sent: &HeaderMap) -> Option<Secret> {
    let value = sent.get(AUTHORIZATION)?.to_str().ok()?;
    value.strip_prefix("Bearer ").map(Secret::new)
}
