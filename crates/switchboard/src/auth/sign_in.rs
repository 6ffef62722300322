//! The sign-in operations of the faces: begin, complete and forget a sign-in.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::failure::Failure;
use switchboard_core::name::ServerName;
use switchboard_core::sign_in::callback::Code;
use switchboard_core::sign_in::link::Link;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::account::Account;
use super::error::AuthError;
use super::flow::{self, DeviceFlow, Flow, PATIENCE};
use super::grant::Grant;
use super::requests;
use super::tokens::{Granted, TokenLocation};
use super::vault::{IndexEntry, TokenKind};

pub use super::flow::SignInMethod;

/// How long a non-interactive caller waits for another process that signs in.
const BACKGROUND_LOCK_WAIT: Duration = Duration::from_secs(2);

/// The sign-in to one server.
pub struct SignIn {
    account: Arc<Account>,
    queued: watch::Sender<bool>,
}

/// The result of a sign-in that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// The server that the user signed in to.
    pub server: ServerName,
    /// The grant that the authorization server issued.
    pub grant: Granted,
    /// Where the tokens are stored; `None` if there is nothing to store.
    pub kept: Option<TokenLocation>,
}

/// The outcome of a sign-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// No sign-in was stored.
    NothingKept,
    /// The authorization server revoked the tokens.
    Revoked,
    /// The authorization server does not support revocation, or the request failed.
    NotRevoked,
}

/// The result of [`SignIn::begin`].
pub enum Begun {
    /// The user has nothing to do: the sign-in is complete.
    Done(SignedIn),
    /// The user signs in at a page in the browser.
    Page(Pending),
    /// The user types a code on another device.
    Device(DevicePending),
}

/// A sign-in that waits for the user at a page.
pub struct Pending {
    account: Arc<Account>,
    stage: PendingStage,
    link: Link,
    /// The time at which the sign-in fails if the user has not completed it.
    until: Instant,
}

enum PendingStage {
    Waiting(Box<Flow>),
    /// The response has arrived. The exchange continues even if the future that waits for it is
    /// dropped.
    Redeeming(Pin<Box<dyn Future<Output = Redeemed> + Send>>),
    Over,
}

type Redeemed = Result<(Grant, IndexEntry), AuthError>;

/// A sign-in that waits for the user on another device.
pub struct DevicePending {
    account: Arc<Account>,
    flow: Box<DeviceFlow>,
}

impl SignIn {
    pub(crate) fn new(account: Arc<Account>) -> SignIn {
        SignIn { account, queued: watch::Sender::new(false) }
    }

    /// Whether [`SignIn::begin`] is waiting for another process that signs in to the same server.
    pub fn queued(&self) -> watch::Receiver<bool> {
        self.queued.subscribe()
    }

    /// Begins a sign-in. If another process signs in to the same server, this waits for it and
    /// adopts its tokens.
    pub async fn begin(&self, method: SignInMethod) -> Result<Begun, Failure> {
        self.begin_within(method, PATIENCE).await
    }

    async fn begin_within(
        &self,
        method: SignInMethod,
        patience: Duration,
    ) -> Result<Begun, Failure> {
        let begun = flow::begin(&self.account, method, patience, &self.queued).await;
        Ok(match begun.map_err(|error| self.account.failure(error))? {
            flow::Begun::Done(grant, entry) => {
                Begun::Done(signed_in(&self.account, &grant, entry.as_ref()))
            }
            flow::Begun::Page(flow) => {
                let link = flow.link.clone();
                let (account, stage) = (Arc::clone(&self.account), PendingStage::Waiting(flow));
                Begun::Page(Pending { account, stage, link, until: Instant::now() + PATIENCE })
            }
            flow::Begun::Device(flow) => {
                Begun::Device(DevicePending { account: Arc::clone(&self.account), flow })
            }
        })
    }

    /// Begins a sign-in in the background. The sign-in's listener receives the response of the
    /// browser; [`SignIn::complete`] passes on a response that the user pasted. The caller has to
    /// spawn the returned future.
    pub(crate) async fn begin_beside(
        &self,
    ) -> Result<(Started, Option<impl Future<Output = ()> + Send + 'static>), Failure> {
        if let Some(beside) = self.account.pending() {
            return Ok((Started::Page(beside.link), None));
        }
        let pending = match self.begin_within(SignInMethod::Page, BACKGROUND_LOCK_WAIT).await? {
            Begun::Done(done) => return Ok((Started::Done(done), None)),
            Begun::Page(pending) => pending,
            Begun::Device(_) => return Err(self.account.failure(AuthError::CutShort)),
        };
        let link = pending.link.clone();
        let (paste, pasted) = mpsc::channel(1);
        self.account.awaits(Some(Beside { link: link.clone(), paste }));
        let account = Arc::clone(&self.account);
        let waiting = async move {
            let _timed_out = tokio::time::timeout(PATIENCE, wait_beside(pending, pasted)).await;
            account.awaits(None);
        };
        Ok((Started::Page(link), Some(waiting)))
    }

    /// Completes a sign-in in the background with the response that the user pasted.
    pub(crate) async fn complete(&self, text: &str) -> Result<SignedIn, Failure> {
        let nothing_begun = || self.account.failure(AuthError::NothingBegun);
        let Beside { paste, .. } = self.account.pending().ok_or_else(nothing_begun)?;
        let (outcome, done) = oneshot::channel();
        let sent = paste.send(Pasted { text: text.to_owned(), outcome }).await;
        sent.map_err(|_| nothing_begun())?;
        done.await.map_err(|_| self.account.failure(AuthError::CutShort))?
    }

    /// Signs out: revokes the tokens if the authorization server supports it, and removes every
    /// stored copy of them.
    pub async fn forget(&self) -> Result<Forgotten, Failure> {
        let account = &self.account;
        account.let_go();
        let _lock = account.lock_kept().await;
        let kept = account.kept().await;
        let revoked = match &kept {
            Ok(Some((_, grant))) => match (&grant.endpoints.revocation, account.net().await) {
                (Some(url), Ok(net)) => requests::revoke(net, grant, url).await.is_ok(),
                (Some(_), Err(_)) | (None, _) => false,
            },
            Ok(None) | Err(_) => false,
        };
        let failed = |error| account.failure(AuthError::Vault(error));
        let found =
            account.vault.find(&account.terms.holder(), TokenKind::SignIn).await.map_err(failed)?;
        let Some(entry) = found else { return Ok(Forgotten::NothingKept) };
        account.vault.forget(&entry).await.map_err(failed)?;
        Ok(if revoked { Forgotten::Revoked } else { Forgotten::NotRevoked })
    }
}

/// The result of beginning a background sign-in.
pub(crate) enum Started {
    Done(SignedIn),
    Page(Link),
}

/// A sign-in in the background, to which a pasted response can be sent.
#[derive(Clone)]
pub(super) struct Beside {
    link: Link,
    /// The channel for an authorization response that the user pastes.
    pub(super) paste: mpsc::Sender<Pasted>,
}

/// A pasted response, and the channel for its outcome.
pub(super) struct Pasted {
    text: String,
    outcome: oneshot::Sender<Result<SignedIn, Failure>>,
}

/// Waits for the browser and for pasted responses; the first code completes the sign-in.
async fn wait_beside(mut pending: Pending, mut pasted: mpsc::Receiver<Pasted>) {
    while !pending.is_over() {
        tokio::select! {
            finished = pending.finished() => match finished {
                Err(error) if Instant::now() < pending.until => {
                    tracing::warn!(%error, "a sign-in failed");
                }
                Ok(_) | Err(_) => {}
            },
            Some(Pasted { text, outcome }) = pasted.recv() => {
                let _caller_gone = outcome.send(pending.complete(&text).await);
            }
        }
    }
}

impl Pending {
    /// The link that the user has to open.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Waits until the browser delivers the authorization response. If the future is dropped,
    /// another call continues the wait.
    pub async fn finished(&mut self) -> Result<SignedIn, Failure> {
        if let PendingStage::Waiting(flow) = &mut self.stage {
            match tokio::time::timeout_at(self.until, flow.answered()).await {
                Ok(Ok(code)) => self.redeem(code),
                Ok(Err(error)) => return Err(self.ends(error)),
                Err(_elapsed) => return Err(self.ends(AuthError::TimedOut(PATIENCE))),
            }
        }
        self.redeemed().await
    }

    /// Completes the sign-in with the redirect URL that the user pasted, or with the code in that
    /// URL. A response to another request changes nothing; see [`Pending::is_over`].
    pub async fn complete(&mut self, pasted: &str) -> Result<SignedIn, Failure> {
        if let PendingStage::Waiting(flow) = &self.stage {
            match flow.pasted(pasted) {
                Ok(code) => self.redeem(code),
                Err(error) if error.leaves_it_open() => {
                    return Err(self.account.failure(error.into()));
                }
                Err(error) => return Err(self.ends(error.into())),
            }
        }
        self.redeemed().await
    }

    /// Whether the sign-in has ended, so that no response can complete it.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, PendingStage::Over)
    }

    fn redeem(&mut self, code: Code) {
        self.stage = match std::mem::replace(&mut self.stage, PendingStage::Over) {
            PendingStage::Waiting(flow) => PendingStage::Redeeming(Box::pin(flow.redeem(code))),
            later @ (PendingStage::Redeeming(_) | PendingStage::Over) => later,
        };
    }

    async fn redeemed(&mut self) -> Result<SignedIn, Failure> {
        let outcome = match &mut self.stage {
            PendingStage::Redeeming(outcome) => outcome.await,
            PendingStage::Waiting(_) | PendingStage::Over => Err(AuthError::NothingBegun),
        };
        match outcome {
            Ok((grant, entry)) => {
                self.stage = PendingStage::Over;
                Ok(signed_in(&self.account, &grant, Some(&entry)))
            }
            Err(error) => Err(self.ends(error)),
        }
    }

    fn ends(&mut self, error: AuthError) -> Failure {
        self.stage = PendingStage::Over;
        self.account.failure(error)
    }
}

impl DevicePending {
    /// The page at which the user types the code.
    pub fn link(&self) -> &Link {
        &self.flow.link
    }

    /// The code that the user types on the other device.
    pub fn user_code(&self) -> &str {
        &self.flow.code
    }

    /// Waits until the user has signed in on the other device.
    pub async fn finished(self) -> Result<SignedIn, Failure> {
        let DevicePending { account, flow } = self;
        let finished = flow.finished().await;
        let (grant, entry) = finished.map_err(|error| account.failure(error))?;
        Ok(signed_in(&account, &grant, Some(&entry)))
    }
}

fn signed_in(account: &Account, grant: &Grant, entry: Option<&IndexEntry>) -> SignedIn {
    SignedIn {
        server: account.terms.server.clone(),
        grant: grant.into(),
        kept: entry.map(|entry| account.vault.kept(entry)),
    }
}
