//! A sign-in on another device, with a short code (RFC 8628).

use std::sync::Arc;

use switchboard_core::render::words::clean_line;
use switchboard_core::sign_in::link::Link;

use super::{Prepared, keep};
use crate::auth::account::Account;
use crate::auth::discover::ProtectedResource;
use crate::auth::error::AuthError;
use crate::auth::grant::{Grant, OAuthClient};
use crate::auth::requests::{self, Device};
use crate::auth::vault::IndexEntry;
use crate::paths::Lock;

/// A sign-in that the user completes on another device.
pub(in crate::auth) struct DeviceFlow {
    account: Arc<Account>,
    found: ProtectedResource,
    client: OAuthClient,
    scopes: Vec<String>,
    device: Device,
    pub(in crate::auth) link: Link,
    pub(in crate::auth) code: String,
    _alone: Lock,
}

impl DeviceFlow {
    pub(super) async fn begin(
        account: &Arc<Account>,
        prepared: Prepared,
        alone: Lock,
    ) -> Result<DeviceFlow, AuthError> {
        let url = prepared.found.authority.device.clone();
        let url = url.ok_or_else(|| AuthError::NoDevice { issuer: prepared.issuer() })?;
        let client = prepared.client(account, None).await?;
        let (net, Prepared { found, scopes, .. }) = (account.net().await?, prepared);
        let asked = (found.resource.as_str(), scopes.as_slice());
        let device =
            requests::device(net, &client, &url, asked).await.map_err(AuthError::Exchange)?;
        let link = Link::of(device.verification_uri().as_str(), &account.terms.reach());
        let link = link.map_err(AuthError::Link)?;
        let code = clean_line(device.user_code().secret(), 40).into_owned();
        let account = Arc::clone(account);
        Ok(DeviceFlow { account, found, client, scopes, device, link, code, _alone: alone })
    }

    /// Waits until the user has signed in on the other device, and stores the tokens.
    pub(in crate::auth) async fn finished(self) -> Result<(Grant, IndexEntry), AuthError> {
        let asked = (self.found.resource.as_str(), self.scopes.as_slice());
        let (net, token) = (self.account.net().await?, &self.found.authority.token);
        let tokens = requests::of_device(net, &self.client, token, &self.device, asked).await;
        keep(&self.account, self.found, self.client, tokens).await
    }
}
