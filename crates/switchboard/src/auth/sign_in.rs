//! What faces do about signing in: begin, finish, and end it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use switchboard_core::failure::Failure;
use switchboard_core::name::ServerName;
use switchboard_core::sign_in::callback::CallbackError;
use switchboard_core::sign_in::link::Link;
use tokio::sync::{mpsc, oneshot};

use super::account::Account;
use super::error::AuthError;
use super::flow::{self, DeviceFlow, Flow, PATIENCE, Pasted};
use super::grant::Grant;
use super::requests;
use super::vault::{Entry, Kind};
use crate::explain;

pub use super::flow::Way;

/// How long a client that cannot wait is held up by another process that signs in.
const SHORTLY: Duration = Duration::from_secs(2);

/// The sign-in to one server.
pub struct SignIn {
    account: Arc<Account>,
}

/// Whoever signed in is known to the server from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    pub server: ServerName,
    pub issuer: String,
    pub scopes: Vec<String>,
    /// When the token ends, as far as that is known; it is renewed before.
    pub expires: Option<SystemTime>,
    /// Whether it goes on without the user when it ends.
    pub renewable: bool,
    /// `None` if there is nothing to be kept.
    pub kept: Option<Kept>,
}

/// What was found when a sign-in was to be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgotten {
    NothingKept,
    /// The authority was told.
    Revoked,
    /// It takes no notice of such, or could not be told.
    NotRevoked,
}

/// Where a token is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    Keyring,
    File(std::path::PathBuf),
    EncryptedFile(std::path::PathBuf),
}

/// A sign-in that was begun.
pub enum Begun {
    /// There is nothing to do for the user.
    Done(SignedIn),
    Page(Pending),
    Device(DevicePending),
}

/// A sign-in that waits for the user at a page.
pub struct Pending {
    account: Arc<Account>,
    /// `None` once it is over.
    flow: Option<Box<Flow>>,
    link: Link,
}

/// A sign-in that waits for the user at another device.
pub struct DevicePending {
    account: Arc<Account>,
    flow: Box<DeviceFlow>,
}

impl SignIn {
    pub(crate) fn new(account: Arc<Account>) -> SignIn {
        SignIn { account }
    }

    /// Begins; waits while another process signs in to the same server, and is then done.
    pub async fn begin(&self, way: Way) -> Result<Begun, Failure> {
        let begun = flow::begin(&self.account, way, PATIENCE).await;
        Ok(match begun.map_err(|error| self.failure(error))? {
            flow::Begun::Done(grant, entry) => {
                Begun::Done(signed_in(&self.account, &grant, entry.as_ref()))
            }
            flow::Begun::Page(flow) => {
                let link = flow.link.clone();
                let account = Arc::clone(&self.account);
                Begun::Page(Pending { account, flow: Some(flow), link })
            }
            flow::Begun::Device(flow) => {
                Begun::Device(DevicePending { account: Arc::clone(&self.account), flow })
            }
        })
    }

    /// Begins a sign-in that goes on beside: the browser comes back to it, or what it showed is
    /// given to [`SignIn::complete`]. What is returned has to be run.
    pub(crate) async fn begin_beside(
        &self,
    ) -> Result<(Started, Option<impl Future<Output = ()> + Send + 'static>), Failure> {
        let begun = flow::begin(&self.account, Way::Page, SHORTLY).await;
        let flow = match begun.map_err(|error| self.failure(error))? {
            flow::Begun::Done(grant, entry) => {
                let done = signed_in(&self.account, &grant, entry.as_ref());
                return Ok((Started::Done(done), None));
            }
            flow::Begun::Page(flow) => flow,
            flow::Begun::Device(_) => return Err(self.failure(AuthError::CutShort)),
        };
        let link = flow.link.clone();
        let (paste, pasted) = mpsc::channel(1);
        self.account.awaits(Some(paste));
        let account = Arc::clone(&self.account);
        let waiting = async move {
            let _nobody_came = tokio::time::timeout(PATIENCE, wait_beside(flow, pasted)).await;
            account.awaits(None);
        };
        Ok((Started::Page(link), Some(waiting)))
    }

    /// Finishes a sign-in that was begun beside with what the user brings from the browser.
    pub(crate) async fn complete(&self, text: &str) -> Result<SignedIn, Failure> {
        let paste = self.account.pending().ok_or_else(|| self.failure(AuthError::NothingBegun))?;
        let (outcome, done) = oneshot::channel();
        let sent = paste.send(Pasted { text: text.to_owned(), outcome }).await;
        let cut_short = || self.failure(AuthError::CutShort);
        sent.map_err(|_| self.failure(AuthError::NothingBegun))?;
        let (grant, entry) =
            done.await.map_err(|_| cut_short())?.map_err(|error| self.failure(error))?;
        Ok(signed_in(&self.account, &grant, Some(&entry)))
    }

    /// Ends the sign-in: the authority is told where it wants to know, and every copy is removed.
    pub async fn forget(&self) -> Result<Forgotten, Failure> {
        let account = &self.account;
        account.let_go();
        let kept = account.kept().await;
        let revoked = match &kept {
            Ok(Some((_, grant))) => match (&grant.endpoints.revocation, account.net().await) {
                (Some(url), Ok(net)) => requests::revoke(net, grant, url).await.is_ok(),
                (Some(_), Err(_)) | (None, _) => false,
            },
            Ok(None) | Err(_) => false,
        };
        let failed = |error| self.failure(AuthError::Vault(error));
        let found = account.vault.find(account.url(), Kind::Grant).await.map_err(failed)?;
        let Some(entry) = found else { return Ok(Forgotten::NothingKept) };
        account.vault.forget(&entry).await.map_err(failed)?;
        Ok(if revoked { Forgotten::Revoked } else { Forgotten::NotRevoked })
    }

    fn failure(&self, error: AuthError) -> Failure {
        explain::auth(error, &self.account.terms.server)
    }
}

/// How a sign-in beside began.
pub(crate) enum Started {
    Done(SignedIn),
    Page(Link),
}

/// Waits for the browser and for what is pasted, whichever comes first with a code.
async fn wait_beside(mut flow: Box<Flow>, mut pasted: mpsc::Receiver<Pasted>) {
    loop {
        tokio::select! {
            answered = flow.answered() => {
                let outcome = match answered {
                    Ok(code) => flow.redeem(code).await,
                    Err(error) => Err(error),
                };
                if let Err(error) = outcome {
                    tracing::warn!(%error, "a sign-in did not come about");
                }
                return;
            }
            Some(Pasted { text, outcome }) = pasted.recv() => match flow.pasted(&text) {
                Ok(code) => {
                    let _asker_gone = outcome.send(flow.redeem(code).await);
                    return;
                }
                Err(error) => {
                    let over = error != CallbackError::Stray && error != CallbackError::NoCode;
                    let _asker_gone = outcome.send(Err(AuthError::Callback(error)));
                    if over {
                        return;
                    }
                }
            },
        }
    }
}

impl Pending {
    /// What the user has to open.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Waits for the browser to come back. May be dropped and asked again.
    pub async fn finished(&mut self) -> Result<SignedIn, Failure> {
        let Some(flow) = &mut self.flow else { return Err(self.failed(AuthError::NothingBegun)) };
        let code = match tokio::time::timeout(PATIENCE, flow.answered()).await {
            Ok(Ok(code)) => code,
            Ok(Err(error)) => return Err(self.failed(error)),
            Err(_elapsed) => return Err(self.failed(AuthError::TimedOut(PATIENCE))),
        };
        self.redeem(code).await
    }

    /// Finishes with what the user pasted: the address that the browser was sent to, or the code
    /// in it. One that belongs to something else changes nothing.
    pub async fn complete(&mut self, pasted: &str) -> Result<SignedIn, Failure> {
        let Some(flow) = &self.flow else { return Err(self.failed(AuthError::NothingBegun)) };
        match flow.pasted(pasted) {
            Ok(code) => self.redeem(code).await,
            Err(error) => Err(self.failed(AuthError::Callback(error))),
        }
    }

    async fn redeem(
        &mut self,
        code: switchboard_core::sign_in::callback::Code,
    ) -> Result<SignedIn, Failure> {
        let Some(flow) = self.flow.take() else { return Err(self.failed(AuthError::NothingBegun)) };
        let (grant, entry) = flow.redeem(code).await.map_err(|error| self.failed(error))?;
        Ok(signed_in(&self.account, &grant, Some(&entry)))
    }

    fn failed(&self, error: AuthError) -> Failure {
        explain::auth(error, &self.account.terms.server)
    }
}

impl DevicePending {
    /// The page at which the user types the code.
    pub fn link(&self) -> &Link {
        &self.flow.link
    }

    pub fn user_code(&self) -> &str {
        &self.flow.code
    }

    /// Waits until the user has done it.
    pub async fn finished(self) -> Result<SignedIn, Failure> {
        let DevicePending { account, flow } = self;
        let finished = flow.finished().await;
        let (grant, entry) =
            finished.map_err(|error| explain::auth(error, &account.terms.server))?;
        Ok(signed_in(&account, &grant, Some(&entry)))
    }
}

fn signed_in(account: &Account, grant: &Grant, entry: Option<&Entry>) -> SignedIn {
    SignedIn {
        server: account.terms.server.clone(),
        issuer: grant.issuer.clone(),
        scopes: grant.tokens.scopes.clone(),
        expires: grant.tokens.expires(),
        renewable: grant.tokens.refresh.is_some(),
        kept: entry.map(|entry| {
            let path = || account.vault.path_of(&entry.account);
            match entry.place {
                super::vault::Place::Keyring => Kept::Keyring,
                super::vault::Place::File => Kept::File(path()),
                super::vault::Place::EncryptedFile => Kept::EncryptedFile(path()),
            }
        }),
    }
}
