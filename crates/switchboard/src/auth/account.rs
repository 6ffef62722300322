//! The account of one server: the tokens that its requests carry, and their refresh.
//!
//! All connections to a server share its account. All processes share the grant in the vault. A
//! task that refreshes a token holds a turn in this process and a lock between processes. The task
//! reads the vault again. If another process has stored a newer token, the task adopts that token;
//! otherwise it sends a request to the authorization server.

mod state;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use switchboard_core::config::auth::GrantType;
use switchboard_core::failure::Failure;
use switchboard_core::sign_in::scope;
use switchboard_core::sign_in::token::Condition;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::error::AuthError;
use super::flow;
use super::grant::{Grant, OAuthClient, Tokens};
use super::net::Net;
use super::requests::{self, TokenError};
use super::takeover;
use super::terms::Terms;
use super::vault::{self, IndexEntry, TokenKind, Vault, VaultError};
use crate::dial::http::Clients;
use crate::explain;
use crate::paths::{Lock, Paths};
use crate::secret::Secret;
use state::{AccountState, TokenSource};

/// How long a refresh waits for the lock of another process: longer than a request to an
/// authorization server takes.
const LOCKED: Duration = Duration::from_secs(45);

/// The maximum number of sign-ins in a row for more scopes; further ones are not offered.
const MOST_STEPS: u32 = 2;

/// The sign-in to one server.
pub(crate) struct Account {
    pub(super) terms: Terms,
    pub(super) vault: Vault,
    pub(super) paths: Paths,
    clients: Arc<Clients>,
    /// Tracks the tasks that refresh tokens; they continue even if their caller is cancelled.
    tasks: TaskTracker,
    this: Weak<Account>,
    net: OnceCell<Net>,
    state: Mutex<AccountState>,
    /// Admits one task at a time to change the grant in use.
    turn: Semaphore,
}

impl Account {
    pub(super) fn new(
        terms: Terms,
        vault: Vault,
        paths: Paths,
        clients: Arc<Clients>,
        tasks: TaskTracker,
    ) -> Arc<Account> {
        Arc::new_cyclic(|this| Account {
            terms,
            vault,
            paths,
            clients,
            tasks,
            this: Weak::clone(this),
            net: OnceCell::new(),
            state: Mutex::default(),
            turn: Semaphore::new(1),
        })
    }

    pub(super) async fn net(&self) -> Result<&Net, AuthError> {
        let make = || Net::of(&self.clients, self.terms.reach(), self.terms.ca_file.clone());
        let made = self.net.get_or_try_init(make).await;
        made.map_err(|error| AuthError::Requests(Arc::new(error)))
    }

    /// Loads the stored grant, if none is loaded yet.
    pub(crate) async fn open(&self) -> Result<(), AuthError> {
        if self.held().is_none() {
            let _turn = self.turn.acquire().await;
            self.take_up().await?;
        }
        Ok(())
    }

    /// Drops the grant if the user signed out in another process, and loads the new grant if the
    /// user signed in there. While nothing has changed, reads only the metadata of the vault's
    /// index file.
    pub(crate) async fn follow(&self) -> Result<(), AuthError> {
        let Some(held) = self.held().filter(|held| held.kept.load(Ordering::Relaxed)) else {
            return Ok(());
        };
        let directory = self.paths.tokens();
        let index = vault::index_version(&directory);
        if index.is_some() && self.state().index == index {
            return Ok(());
        }
        let _turn = self.turn.acquire().await;
        // The grant stays if the vault's index is malformed: that does not prove a sign-out.
        let Ok(kept) = vault::known_identity(&directory, &self.terms.holder(), TokenKind::SignIn)
        else {
            return Ok(());
        };
        self.state().index = index;
        if kept == held.identity || !self.held().is_some_and(|now| Arc::ptr_eq(&now, &held)) {
            return Ok(());
        }
        self.let_go();
        if kept.is_some() { self.take_up().await } else { Ok(()) }
    }

    /// The access token for a request, refreshed if it expires soon. `None` if the user has not
    /// signed in: the server may not require it.
    pub(crate) async fn token(&self) -> Result<Option<Secret>, AuthError> {
        self.follow().await?;
        let Some(held) = self.held() else {
            return match self.terms.options.grant {
                GrantType::ClientCredentials => self.of_client(None).await.map(Some),
                GrantType::AuthorizationCode => Ok(None),
            };
        };
        let access = held.grant.tokens.access.clone();
        let renewed = match held.condition() {
            Condition::Fresh => return Ok(Some(access)),
            Condition::Ageing | Condition::Spent if self.is_resting() => return Ok(Some(access)),
            Condition::Ageing | Condition::Spent => self.renew(&access).await,
        };
        match renewed {
            Ok(()) => Ok(self.held().map(|held| held.grant.tokens.access.clone())),
            // The current token is returned, because it may still be valid.
            Err(AuthError::Expired) => Ok(Some(access)),
            Err(AuthError::NotRenewed(error)) if held.condition() == Condition::Ageing => {
                tracing::warn!(server = %self.terms.server, %error, "cannot refresh a token; using the current one");
                Ok(Some(access))
            }
            Err(error) => Err(error),
        }
    }

    /// Gets a new token in place of `refused`, which the server refused, unless another task
    /// already did.
    pub(super) async fn renew(&self, refused: &Secret) -> Result<(), AuthError> {
        if self.terms.options.grant == GrantType::ClientCredentials {
            return self.of_client(Some(refused)).await.map(|_| ());
        }
        let Some(this) = self.this.upgrade() else { return Err(AuthError::CutShort) };
        let refused = refused.clone();
        // A task of its own continues if the caller is cancelled: the authorization server may
        // already have replaced the old refresh token, and the new one must not be lost.
        let renewing = self.tasks.spawn(async move { this.renew_for_all(&refused).await });
        renewing.await.map_err(|_| AuthError::CutShort)?
    }

    async fn renew_for_all(&self, refused: &Secret) -> Result<(), AuthError> {
        let called_at = Instant::now();
        let _turn = self.turn.acquire().await;
        if let Some((error, at)) = self.state().failure.clone()
            && at > called_at
        {
            // The waiting callers get the same error: otherwise each would repeat the failed
            // request.
            return Err(AuthError::NotRenewed(error));
        }
        let Some(held) = self.holding(refused) else { return Ok(()) };
        let _lock = self.vault.lock(&self.kept_under(&held.grant), LOCKED).await?;
        let Some((entry, kept)) = self.kept().await? else { return Err(AuthError::NotSignedIn) };
        if kept.tokens.access != *refused {
            self.adopt(kept, &entry);
            return Ok(());
        }
        let Some(refresh) = kept.tokens.refresh.clone() else { return Err(AuthError::Expired) };
        match requests::refresh(self.net().await?, &kept, &refresh).await {
            Ok(tokens) => {
                let renewed = Grant { tokens, ..kept };
                let _in_memory_at_least = self.keep(renewed, entry.identity()).await;
                Ok(())
            }
            Err(error) if error.is_passing() => {
                let error = Arc::new(error);
                self.state().failure = Some((Arc::clone(&error), Instant::now()));
                Err(AuthError::NotRenewed(error))
            }
            Err(error) => {
                self.remove_rejected(entry, kept, &error).await;
                Err(AuthError::Ended(error))
            }
        }
    }

    /// Handles a server that requires more scopes than `token` has. Succeeds if a newer token
    /// exists, which may have the scopes; otherwise the error names the scopes for a sign-in.
    pub(super) async fn wants_more(
        &self,
        token: &Secret,
        scopes: &[String],
    ) -> Result<(), AuthError> {
        if self.has_changed(token).await? {
            return Ok(());
        }
        let times = self.steps();
        if times >= MOST_STEPS {
            return Err(AuthError::StillMoreScope { times });
        }
        let granted = self.held().map(|held| held.grant.tokens.scopes.clone()).unwrap_or_default();
        let scopes = scope::union(&granted, scopes);
        if let Err(error) = self.vault.want(&self.terms.holder(), scopes.clone()).await {
            tracing::warn!(server = %self.terms.server, %error, "cannot store the scopes that the server requires");
        }
        Err(AuthError::MoreScope { scopes })
    }

    /// Whether a token newer than `token` is in use. Adopts a newer one that another process
    /// stored.
    async fn has_changed(&self, token: &Secret) -> Result<bool, AuthError> {
        let _turn = self.turn.acquire().await;
        if self.holding(token).is_none() {
            return Ok(true);
        }
        match self.kept().await? {
            Some((entry, kept)) if kept.tokens.access != *token => {
                self.adopt(kept, &entry);
                Ok(true)
            }
            Some(_) | None => Ok(false),
        }
    }

    /// The index entry and the grant that are stored for this server's URL and client.
    pub(super) async fn kept(&self) -> Result<Option<(IndexEntry, Grant)>, AuthError> {
        let kept = self.in_vault().await?;
        let state = self.state();
        Ok(kept.map(|(entry, grant)| match &state.held {
            // The vault still holds an outdated grant, so the grant in memory is returned: an
            // authorization server treats the reuse of an old refresh token as theft.
            Some(held) if state.outdated.as_ref() == Some(&grant.tokens.access) => {
                (entry, held.grant.clone())
            }
            Some(_) | None => (entry, grant),
        }))
    }

    async fn in_vault(&self) -> Result<Option<(IndexEntry, Grant)>, AuthError> {
        let found = self.vault.find(&self.terms.holder(), TokenKind::SignIn).await?;
        let Some(entry) = found else { return Ok(None) };
        let Some(kept) = self.vault.read(&entry).await? else { return Ok(None) };
        let grant = Grant::of_kept(&kept)?;
        let configured = &self.terms.options.client_id;
        let of_this_client = configured.as_ref().is_none_or(|id| *id == grant.client.id);
        let fits = grant.server == self.terms.url && of_this_client;
        Ok(fits.then_some((entry, grant)))
    }

    /// Stores and uses the grant of a sign-in, and clears the scopes that the server required
    /// before it.
    pub(super) async fn signed_in(&self, grant: Grant) -> Result<IndexEntry, VaultError> {
        let _lock = self.lock_kept().await;
        let entry = self.keep(grant, vault::new_identity()).await?;
        self.vault.want(&self.terms.holder(), Vec::new()).await?;
        Ok(entry)
    }

    /// Stores and uses a grant. The grant is used even if it cannot be stored: the authorization
    /// server may have invalidated the old one.
    pub(super) async fn keep(
        &self,
        grant: Grant,
        identity: String,
    ) -> Result<IndexEntry, VaultError> {
        let (account, secret) = (self.kept_under(&grant), grant.to_kept());
        self.hold(grant, TokenSource::Authority, Some(identity.clone()));
        let under = (account.as_str(), Some(identity));
        let kept = self.vault.keep(&self.terms.holder(), TokenKind::SignIn, under, secret).await;
        match &kept {
            Ok(_) => self.held().iter().for_each(|held| held.kept.store(true, Ordering::Relaxed)),
            Err(error) => {
                tracing::error!(server = %self.terms.server, %error, "cannot store new tokens");
                let older = self.in_vault().await.ok().flatten();
                self.state().outdated = older.map(|(_, grant)| grant.tokens.access);
            }
        }
        kept
    }

    /// Locks the stored tokens. Waits a limited time for another process that refreshes them, so
    /// that it does not overwrite the tokens that the caller stores next.
    pub(super) async fn lock_kept(&self) -> Option<Lock> {
        let kept = self.vault.find(&self.terms.holder(), TokenKind::SignIn).await.ok()??;
        self.vault.lock(&kept.account, LOCKED).await.ok()
    }

    /// Uses a grant that another process stored.
    pub(super) fn adopt(&self, grant: Grant, entry: &IndexEntry) {
        self.hold(grant, TokenSource::Vault, Some(entry.identity()));
    }

    pub(super) fn failure(&self, error: AuthError) -> Failure {
        explain::auth(error, &self.terms.server)
    }

    pub(super) fn url(&self) -> &str {
        self.terms.url.as_str()
    }

    fn kept_under(&self, grant: &Grant) -> String {
        grant.account(self.terms.account.as_deref())
    }

    async fn take_up(&self) -> Result<(), AuthError> {
        if self.held().is_some() {
            return Ok(());
        }
        match self.kept().await? {
            Some((entry, grant)) => self.adopt(grant, &entry),
            None => self.take_over().await,
        }
        Ok(())
    }

    /// Takes over the grant of `pi-mcp-adapter` for this server, once. If that fails, the next
    /// call of this function tries again.
    async fn take_over(&self) {
        if self.terms.account.is_some() {
            // The entry names an account, and the grant of `pi-mcp-adapter` may belong to
            // another account.
            return;
        }
        let left = takeover::left_behind(&self.paths, &self.terms.server, self.url());
        let Some(left) = left.filter(|_| !takeover::was_taken(&self.paths, self.url())) else {
            return;
        };
        match flow::of_older(self, left).await {
            Ok(grant) => self.keep_older(grant).await,
            Err(error) => {
                tracing::warn!(server = %self.terms.server, %error, "cannot take over the tokens of `pi-mcp-adapter`");
            }
        }
    }

    /// Stores the grant of `pi-mcp-adapter`, unless another process has already taken it over.
    async fn keep_older(&self, grant: Grant) {
        let _lock = self.vault.lock(&self.kept_under(&grant), LOCKED).await;
        match self.in_vault().await {
            Ok(Some((entry, kept))) => self.adopt(kept, &entry),
            Ok(None) if self.keep(grant, vault::new_identity()).await.is_ok() => {
                takeover::mark_taken(&self.paths, self.url());
            }
            Ok(None) | Err(_) => {}
        }
    }

    /// Gets a token for the client itself (client credentials), in place of `refused`.
    async fn of_client(&self, refused: Option<&Secret>) -> Result<Secret, AuthError> {
        let _turn = self.turn.acquire().await;
        if let Some(held) = self.held().filter(|held| Some(&held.grant.tokens.access) != refused) {
            return Ok(held.grant.tokens.access.clone());
        }
        let grant = flow::by_credentials(self).await?;
        let access = grant.tokens.access.clone();
        // The token is not stored: Switchboard can request another one with the credentials at any
        // time.
        self.hold(grant, TokenSource::Authority, None);
        Ok(access)
    }

    /// Removes from the vault a token or client that the authorization server rejected permanently,
    /// so that it is not sent again.
    async fn remove_rejected(&self, entry: IndexEntry, kept: Grant, error: &TokenError) {
        let grant = match error {
            TokenError::InvalidGrant { .. } => {
                Grant { tokens: Tokens { refresh: None, ..kept.tokens }, ..kept }
            }
            // The redirect URI is removed, so that the next sign-in registers a new client.
            TokenError::InvalidClient { .. } => {
                Grant { client: OAuthClient { redirect: None, ..kept.client }, ..kept }
            }
            _ => return,
        };
        let account = self.kept_under(&grant);
        let under = (account.as_str(), Some(entry.identity()));
        let stored = self.vault.keep(&entry.holder(), entry.kind, under, grant.to_kept()).await;
        if let Err(error) = stored {
            tracing::warn!(server = %self.terms.server, %error, "cannot remove a rejected token");
        }
    }
}
