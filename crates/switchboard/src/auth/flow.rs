//! One sign-in, from discovery to the stored tokens.

mod device;
mod unattended;

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::json;
use switchboard_core::config::auth::GrantType;
use switchboard_core::render::words::clean_line;
use switchboard_core::sign_in::callback::{self as answer, CallbackError, Code, Expected};
use switchboard_core::sign_in::challenge::{self, Challenge};
use switchboard_core::sign_in::link::Link;
use switchboard_core::sign_in::metadata::{Authority, Proof};
use switchboard_core::sign_in::redirect::{Redirect, Return};
use switchboard_core::sign_in::scope::{self, Wishes};
use tokio::sync::watch;

use super::account::Account;
use super::callback::Callback;
use super::discover::{self, ProtectedResource};
use super::error::AuthError;
use super::grant::{ClientSource, Endpoints, Grant, OAuthClient, Tokens};
use super::register::{self, Wanted};
use super::requests::{AuthorizationRequest, TokenError};
use super::vault::{IndexEntry, VaultError};
use crate::paths::Lock;
use crate::secret::{Secret, unguessable};
pub(super) use device::DeviceFlow;
pub(super) use unattended::{by_credentials, of_older};

/// How long a user may take to sign in.
pub(super) const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// If the lock is not free within this time, another process is signing in.
const LOCK_ATTEMPT: Duration = Duration::from_secs(1);

/// Authorization parameters that only Switchboard sets.
const RESERVED: [&str; 10] = [
    "client_id",
    "code_challenge",
    "code_challenge_method",
    "redirect_uri",
    // `request` and `request_uri` carry the whole request as a JWT or its URL, which would take
    // precedence (RFC 9101).
    "request",
    "request_uri",
    "resource",
    "response_type",
    "scope",
    "state",
];

/// Whether only Switchboard may set this parameter. Ignores the case of the name, as some
/// authorization servers do.
fn is_reserved(parameter: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(parameter))
}

/// How the user signs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInMethod {
    /// The user signs in at a page in the browser. The response returns to this machine, or the
    /// user pastes it.
    Page,
    /// The user signs in on another device, with a short code.
    Device,
}

/// The result of beginning a sign-in.
pub(super) enum Begun {
    /// The user has nothing to do: the grant already exists.
    Done(Box<Grant>, Option<IndexEntry>),
    Page(Box<Flow>),
    Device(Box<DeviceFlow>),
}

/// A sign-in in the browser ([`SignInMethod::Page`]). Its lock keeps other processes from signing
/// in at the same time.
pub(super) struct Flow {
    account: Arc<Account>,
    found: ProtectedResource,
    client: OAuthClient,
    request: AuthorizationRequest,
    callback: Option<Callback>,
    pub(super) link: Link,
    _alone: Lock,
}

/// The result of discovery, and the stored grant, from which a sign-in begins.
struct Prepared {
    found: ProtectedResource,
    scopes: Vec<String>,
    known: Option<Grant>,
    /// Whether the server answers without authentication, and no metadata requires a sign-in.
    is_open: bool,
}

/// Begins a sign-in. Waits up to `patience` for another process that signs in, and adopts its
/// grant. `queued` is true during the wait.
pub(super) async fn begin(
    account: &Arc<Account>,
    method: SignInMethod,
    patience: Duration,
    queued: &watch::Sender<bool>,
) -> Result<Begun, AuthError> {
    if account.terms.options.grant == GrantType::ClientCredentials {
        return by_credentials(account).await.map(|grant| Begun::Done(Box::new(grant), None));
    }
    let before = known(account).await?;
    let alone = lock_out_others(account, patience, queued).await?;
    let now = known(account).await?;
    let access = |known: &Option<(IndexEntry, Grant)>| {
        known.as_ref().map(|(_, grant)| grant.tokens.access.clone())
    };
    if access(&now) != access(&before)
        && let Some((entry, grant)) = now
    {
        account.adopt(grant.clone(), &entry);
        return Ok(Begun::Done(Box::new(grant), Some(entry)));
    }
    let prepared = prepare(account, now).await?;
    let is_open = prepared.is_open;
    let begun = match method {
        SignInMethod::Page => {
            Flow::begin(account, prepared, alone).await.map(Box::new).map(Begun::Page)
        }
        SignInMethod::Device => {
            DeviceFlow::begin(account, prepared, alone).await.map(Box::new).map(Begun::Device)
        }
    };
    begun.map_err(|error| match error {
        AuthError::Register(_) | AuthError::NoDevice { .. } if is_open => AuthError::NotWanted,
        error => error,
    })
}

/// Locks the sign-in to the server, and waits while another process holds the lock.
async fn lock_out_others(
    account: &Account,
    patience: Duration,
    queued: &watch::Sender<bool>,
) -> Result<Lock, AuthError> {
    let name = account.terms.account.as_deref().unwrap_or_default();
    let name = super::grant::account(&["sign-in", "", account.url(), name]);
    let mut alone = account.vault.lock(&name, LOCK_ATTEMPT).await;
    if let Err(VaultError::Held { .. }) = alone {
        queued.send_replace(true);
        alone = account.vault.lock(&name, patience).await;
        queued.send_replace(false);
    }
    alone.map_err(|error| match error {
        VaultError::Held { .. } => AuthError::Elsewhere,
        error => AuthError::Vault(error),
    })
}

/// The stored grant. An unreadable grant is treated as missing, so that a new sign-in can
/// replace it.
async fn known(account: &Account) -> Result<Option<(IndexEntry, Grant)>, AuthError> {
    match account.kept().await {
        Err(AuthError::Unreadable(_)) => Ok(None),
        known => known,
    }
}

async fn prepare(
    account: &Account,
    known: Option<(IndexEntry, Grant)>,
) -> Result<Prepared, AuthError> {
    let (challenge, answers) = match account.challenge() {
        unknown if unknown == Challenge::default() => probe(account).await?,
        challenge => (challenge, false),
    };
    let found = discover::discover(account.net().await?, &account.terms, &challenge).await?;
    let (held, known) = match known {
        Some((entry, grant)) => (entry.wanted, Some(grant)),
        None => (Vec::new(), None),
    };
    if !held.is_empty() {
        account.steps_up();
    }
    let scopes = scope::wanted(Wishes {
        configured: account.terms.options.scope.as_deref(),
        challenged: &challenge.scopes,
        described: &found.scopes,
        held: &held,
        authority: &found.authority.scopes,
    });
    let is_open = answers && found.authority == Authority::assumed(&account.terms.url);
    Ok(Prepared { found, scopes, known, is_open })
}

/// Sends the server a request without authentication, for its challenge, and to learn whether it
/// responds without a token.
async fn probe(account: &Account) -> Result<(Challenge, bool), AuthError> {
    let plain = HeaderValue::from_static;
    let headers = HeaderMap::from_iter([
        (CONTENT_TYPE, plain("application/json")),
        (ACCEPT, plain("application/json, text/event-stream")),
    ]);
    let info = json!({ "name": "switchboard", "version": env!("CARGO_PKG_VERSION") });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let answer =
        account.net().await?.post(&account.terms.url, headers, hello.to_string().into()).await;
    // An error of this request is ignored: discovery fails for the same reason and reports it.
    let Ok(answer) = answer else { return Ok((Challenge::default(), false)) };
    let challenge = challenge::bearer(answer.challenges.iter().map(String::as_str));
    Ok((challenge, (200..300).contains(&answer.status)))
}

impl Prepared {
    /// The OAuth client for the sign-in, with `redirect` as its redirect URI.
    async fn client(
        &self,
        account: &Account,
        redirect: Option<&str>,
    ) -> Result<OAuthClient, AuthError> {
        let Prepared { found, scopes, known, .. } = self;
        let (authority, known) = (&found.authority, known.as_ref());
        let wanted = Wanted { authority, redirect, scopes, known };
        Ok(register::client(account.net().await?, &account.terms.options, wanted).await?)
    }

    fn issuer(&self) -> String {
        clean_line(&self.found.authority.issuer, 100).into_owned()
    }
}

impl Flow {
    async fn begin(
        account: &Arc<Account>,
        prepared: Prepared,
        alone: Lock,
    ) -> Result<Flow, AuthError> {
        let (options, authority) = (&account.terms.options, &prepared.found.authority);
        let page = authority.authorization.clone();
        let page = page.ok_or_else(|| AuthError::NoPage { issuer: prepared.issuer() })?;
        if authority.proof == Proof::NotOffered {
            return Err(AuthError::NoProof { issuer: prepared.issuer() });
        }
        if let Some((name, _)) = options.params.iter().find(|(name, _)| is_reserved(name)) {
            return Err(AuthError::Reserved { name: name.clone() });
        }
        let known = prepared.known.as_ref();
        let (callback, redirect) = listen(options.redirect.as_deref(), known).await?;
        let client = prepared.client(account, Some(&redirect)).await?;
        let Prepared { found, scopes, .. } = prepared;
        let request = AuthorizationRequest {
            state: Secret::new(unguessable()),
            verifier: Secret::new(unguessable()),
            redirect,
            resource: found.resource.clone(),
            scopes,
            params: options.params.clone(),
        };
        let url = request.url(&client, &page);
        let link = Link::of(url.as_str(), &account.terms.reach()).map_err(AuthError::Link)?;
        let account = Arc::clone(account);
        Ok(Flow { account, found, client, request, callback, link, _alone: alone })
    }

    /// Waits for the authorization response from the browser. If the future is dropped, another
    /// call continues the wait.
    pub(super) async fn answered(&mut self) -> Result<Code, AuthError> {
        let Flow { callback, request, found, .. } = self;
        let expected = expected(&request.state, found);
        match callback {
            None => std::future::pending().await,
            Some(callback) => Ok(callback.wait(|query| answer::of_query(query, &expected)).await?),
        }
    }

    /// Parses the response that the user pasted from the browser.
    pub(super) fn pasted(&self, text: &str) -> Result<Code, CallbackError> {
        answer::of_pasted(text, &expected(&self.request.state, &self.found))
    }

    /// Exchanges the authorization code for tokens, and stores the tokens.
    pub(super) async fn redeem(self, code: Code) -> Result<(Grant, IndexEntry), AuthError> {
        let (net, token) = (self.account.net().await?, &self.found.authority.token);
        let tokens = self.request.exchange(net, &self.client, token, code.reveal()).await;
        keep(&self.account, self.found, self.client, tokens).await
    }
}

fn expected<'a>(state: &'a Secret, found: &'a ProtectedResource) -> Expected<'a> {
    let ProtectedResource { authority, .. } = found;
    let (issuer, issuer_promised) = (authority.issuer.as_str(), authority.issuer_promised);
    Expected { state: state.expose(), issuer, issuer_promised }
}

/// The listener for the browser's authorization response, and the redirect URI. Uses the port of an
/// earlier client registration, if that port is free.
async fn listen(
    configured: Option<&str>,
    known: Option<&Grant>,
) -> Result<(Option<Callback>, String), AuthError> {
    if let Some(configured) = configured {
        return match Return::of(configured)? {
            Return::Here(redirect) => bound(&redirect).await,
            Return::Elsewhere(page) => Ok((None, page)),
        };
    }
    let registered = known.filter(|grant| grant.client.source == ClientSource::Registered);
    let registered =
        registered.and_then(|grant| Return::of(grant.client.redirect.as_deref()?).ok());
    if let Some(Return::Here(redirect)) = registered
        && let Ok(bound) = bound(&redirect).await
    {
        return Ok(bound);
    }
    bound(&Redirect::default()).await
}

async fn bound(redirect: &Redirect) -> Result<(Option<Callback>, String), AuthError> {
    let callback = Callback::bind(redirect).await?;
    let address = callback.redirect_uri().to_owned();
    Ok((Some(callback), address))
}

/// Stores the tokens of a sign-in.
async fn keep(
    account: &Account,
    found: ProtectedResource,
    client: OAuthClient,
    tokens: Result<Tokens, TokenError>,
) -> Result<(Grant, IndexEntry), AuthError> {
    let grant = grant(account, found, client, tokens.map_err(AuthError::Exchange)?);
    let entry = account.signed_in(grant.clone()).await?;
    Ok((grant, entry))
}

fn grant(
    account: &Account,
    found: ProtectedResource,
    client: OAuthClient,
    tokens: Tokens,
) -> Grant {
    Grant {
        server: account.terms.url.clone(),
        issuer: found.authority.issuer,
        resource: found.resource,
        client,
        endpoints: Endpoints {
            token: found.authority.token,
            revocation: found.authority.revocation,
        },
        tokens,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_authorization_parameters_cannot_replace_protocol_parameters() {
        for ours in ["state", "redirect_uri", "Redirect_URI", "request", "request_uri"] {
            assert!(is_reserved(ours), "{ours}");
        }
        for theirs in ["audience", "prompt", "login_hint", "state2", ""] {
            assert!(!is_reserved(theirs), "{theirs}");
        }
    }
}
