//! The account of one server: the tokens that its requests show, and how they stay good.
//!
//! All connections to a server share its account, and all processes the grant in the vault. A task
//! that refreshes a token holds a turn in this process and a lock among all: it reads the vault
//! again, takes what another process was given meanwhile, and only then asks the authorization
//! server.

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

/// Longer than any answer of an authorization server takes.
const LOCKED: Duration = Duration::from_secs(45);

/// Sign-ins in a row because a server wanted more, before it is believed that more does not help.
const MOST_STEPS: u32 = 2;

/// The sign-in to one server.
pub(crate) struct Account {
    pub(super) terms: Terms,
    pub(super) vault: Vault,
    pub(super) paths: Paths,
    clients: Arc<Clients>,
    /// Refreshes that go on even if their caller is cancelled.
    tasks: TaskTracker,
    this: Weak<Account>,
    net: OnceCell<Net>,
    state: Mutex<AccountState>,
    /// Only the holder of the turn changes the grant in use.
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

    /// Takes up what is kept, if nothing is held yet.
    pub(crate) async fn open(&self) -> Result<(), AuthError> {
        if self.held().is_none() {
            let _turn = self.turn.acquire().await;
            self.take_up().await?;
        }
        Ok(())
    }

    /// Lets go of a grant that another process signed out of, and takes up what another one signed
    /// in to. Costs a look at a file's date while nothing changed.
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
        // A malformed index says nothing about a sign-out.
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

    /// The token for a request, renewed if it is time. `None`: the server may not want any.
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
            // The server tells whether it is still good.
            Err(AuthError::Expired) => Ok(Some(access)),
            Err(AuthError::NotRenewed(error)) if held.condition() == Condition::Ageing => {
                tracing::warn!(server = %self.terms.server, %error, "a token was not renewed");
                Ok(Some(access))
            }
            Err(error) => Err(error),
        }
    }

    /// Gets another token in place of `refused`, unless there is another one already.
    pub(super) async fn renew(&self, refused: &Secret) -> Result<(), AuthError> {
        if self.terms.options.grant == GrantType::ClientCredentials {
            return self.of_client(Some(refused)).await.map(|_| ());
        }
        let Some(this) = self.this.upgrade() else { return Err(AuthError::CutShort) };
        let refused = refused.clone();
        // The caller may be cancelled. The authorization server may have replaced the old refresh
        // token by then, and the new one would be lost.
        let renewing = self.tasks.spawn(async move { this.renew_for_all(&refused).await });
        renewing.await.map_err(|_| AuthError::CutShort)?
    }

    async fn renew_for_all(&self, refused: &Secret) -> Result<(), AuthError> {
        let asked = Instant::now();
        let _turn = self.turn.acquire().await;
        if let Some((error, at)) = self.state().failure.clone()
            && at > asked
        {
            // Otherwise each waiting caller would wait as long once more, one after the other.
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
                self.bury(entry, kept, &error).await;
                Err(AuthError::Ended(error))
            }
        }
    }

    /// The server requires more scopes than this token has; a sign-in may have got them already.
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
            tracing::warn!(server = %self.terms.server, %error, "what a server wants was not kept");
        }
        Err(AuthError::MoreScope { scopes })
    }

    /// Whether there is another token than this one by now: what another process was given is taken.
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

    /// Whether there was a sign-in since, by this or another process.
    pub(super) async fn has_come(&self) -> Result<bool, AuthError> {
        self.open().await?;
        Ok(self.held().is_some())
    }

    /// The index line and the grant that are kept for this server, if they are for it.
    pub(super) async fn kept(&self) -> Result<Option<(IndexEntry, Grant)>, AuthError> {
        let kept = self.in_vault().await?;
        let state = self.state();
        Ok(kept.map(|(entry, grant)| match &state.held {
            // The authorization server takes the older one for stolen.
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

    /// Keeps what a sign-in gave, and uses it; what the server wanted before is asked for by now.
    pub(super) async fn signed_in(&self, grant: Grant) -> Result<IndexEntry, VaultError> {
        let _lock = self.lock_kept().await;
        let entry = self.keep(grant, vault::new_identity()).await?;
        self.vault.want(&self.terms.holder(), Vec::new()).await?;
        Ok(entry)
    }

    /// Keeps a grant, and uses it. What cannot be written down is used all the same: the authority
    /// may not take the old one any more.
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
                tracing::error!(server = %self.terms.server, %error, "new tokens were not kept");
                let older = self.in_vault().await.ok().flatten();
                self.state().outdated = older.map(|(_, grant)| grant.tokens.access);
            }
        }
        kept
    }

    /// Waits for a process that refreshes the stored tokens: its tokens must not replace what comes
    /// next. One that takes too long is not waited for any longer.
    pub(super) async fn lock_kept(&self) -> Option<Lock> {
        let kept = self.vault.find(&self.terms.holder(), TokenKind::SignIn).await.ok()??;
        self.vault.lock(&kept.account, LOCKED).await.ok()
    }

    /// Takes what another process was given.
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

    /// Takes what an older installation was granted for this server, once. If that does not work
    /// out now, it may next time.
    async fn take_over(&self) {
        if self.terms.account.is_some() {
            // It was granted to another account, for all that is known.
            return;
        }
        let left = takeover::left_behind(&self.paths, &self.terms.server, self.url());
        let Some(left) = left.filter(|_| !takeover::was_taken(&self.paths, self.url())) else {
            return;
        };
        match flow::of_older(self, left).await {
            Ok(grant) => self.keep_older(grant).await,
            Err(error) => {
                tracing::warn!(server = %self.terms.server, %error, "older tokens were not taken over");
            }
        }
    }

    /// Another process may have taken it over already, and renewed it since.
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

    /// A token for the client itself, in place of `refused`.
    async fn of_client(&self, refused: Option<&Secret>) -> Result<Secret, AuthError> {
        let _turn = self.turn.acquire().await;
        if let Some(held) = self.held().filter(|held| Some(&held.grant.tokens.access) != refused) {
            return Ok(held.grant.tokens.access.clone());
        }
        let grant = flow::by_credentials(self).await?;
        let access = grant.tokens.access.clone();
        // The credentials give another one at any time, so there is nothing to keep.
        self.hold(grant, TokenSource::Authority, None);
        Ok(access)
    }

    /// What the authorization server definitely does not take any more is not shown to it again.
    async fn bury(&self, entry: IndexEntry, kept: Grant, error: &TokenError) {
        let grant = match error {
            TokenError::InvalidGrant { .. } => {
                Grant { tokens: Tokens { refresh: None, ..kept.tokens }, ..kept }
            }
            // Another client has to be registered at the next sign-in.
            TokenError::InvalidClient { .. } => {
                Grant { client: OAuthClient { redirect: None, ..kept.client }, ..kept }
            }
            _ => return,
        };
        let account = self.kept_under(&grant);
        let under = (account.as_str(), Some(entry.identity()));
        let dead = self.vault.keep(&entry.holder(), entry.kind, under, grant.to_kept()).await;
        if let Err(error) = dead {
            tracing::warn!(server = %self.terms.server, %error, "a dead token stays");
        }
    }
}
