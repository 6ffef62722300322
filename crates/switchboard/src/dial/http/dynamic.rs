//! Headers whose values come from a program or the vault: requested when a server is connected, and
//! again when they have become old.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard_wire::http_client::{
    AuthDecision, HeaderMap, HeaderName, HeaderValue, Judging, Refused, Signer, Signing, Url,
};
use tokio::time::Instant;

use super::headers::{HeaderForm, header};
use crate::auth::tokens;
use crate::auth::vault::{Holder, Vault};
use crate::dial::sealed;
use crate::dial::secret;
use crate::dial::spawn::Spawner;
use crate::env::Environment;
use crate::secret::Secret;
use crate::trust::Seal;
use crate::upstream::{DialError, secret_program};

/// How long a value counts as new, in milliseconds.
const TTL_VARIABLE: &str = "SWITCHBOARD_TOKEN_COMMAND_TTL_MS";
const TTL: Duration = Duration::from_secs(5 * 60);

/// Whom a value is asked of.
pub(super) enum HeaderSource {
    /// A program, whose first word as it is written is for messages.
    Command { words: Vec<String>, helper: String },
    /// The token that the user gave.
    Vault { vault: Vault, holder: Holder },
}

/// A header whose value is asked for.
pub(super) struct DynamicHeader {
    /// As the user knows it, for messages.
    pub(super) name: String,
    pub(super) header: String,
    pub(super) form: HeaderForm,
    pub(super) source: HeaderSource,
}

/// What asking takes.
#[derive(Clone)]
pub(super) struct Asking {
    pub(super) spawner: Arc<dyn Spawner>,
    pub(super) environment: Environment,
    /// The approval that a project's server is asked for under.
    pub(super) seal: Option<Seal>,
}

/// A header with its value, and the identity of a token from the vault.
type Resolved = (HeaderName, HeaderValue, Option<String>);

/// The headers of a connection. An old value is good enough while a new one is asked for, and if
/// there is none.
pub(super) struct DynamicHeaders {
    values: Vec<Remembered>,
    asking: Asking,
    ttl: Duration,
    /// A program gave another value than before: the lists may be those of another credential.
    changed: AtomicBool,
}

struct Remembered {
    asked: DynamicHeader,
    header: HeaderName,
    memory: Mutex<Memory>,
}

struct Memory {
    /// `None` once its user took it back.
    value: Option<HeaderValue>,
    /// Of a token from the vault.
    identity: Option<String>,
    /// `None` if it was refused.
    since: Option<Instant>,
    /// A request asks for it already.
    renewing: bool,
}

impl DynamicHeaders {
    /// Asks for all values, side by side.
    pub(super) async fn new(
        asked: Vec<DynamicHeader>,
        asking: Asking,
    ) -> Result<DynamicHeaders, DialError> {
        let answers = asked.iter().map(|asked| asked.ask(&asking));
        let answers = futures_util::future::try_join_all(answers).await?;
        let since = Some(Instant::now());
        let values = asked.into_iter().zip(answers).map(|(asked, (header, value, identity))| {
            let memory = Memory { value: Some(value), identity, since, renewing: false };
            let memory = Mutex::new(memory);
            Remembered { asked, header, memory }
        });
        let ttl = asking.environment.variable(TTL_VARIABLE).and_then(|text| text.parse().ok());
        let ttl = ttl.map_or(TTL, Duration::from_millis);
        let changed = AtomicBool::new(false);
        Ok(DynamicHeaders { values: values.collect(), asking, ttl, changed })
    }

    /// The identity of the token from the vault that requests are made with.
    pub(super) fn identity(&self) -> Option<String> {
        self.values.iter().find_map(|value| value.memory().identity.clone())
    }

    /// Asks again for values that have become old.
    pub(super) async fn follow(&self) {
        let _headers = self.headers().await;
    }

    /// Whether a program gave another value since this was asked last.
    pub(super) fn take_change(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }

    /// Takes back that the change was taken care of.
    pub(super) fn keep_change(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    async fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in &self.values {
            let before = value.memory().value.clone();
            let Some(current) = value.current(&self.asking, self.ttl).await else { continue };
            // A token of the vault has an identity, which says more than its value.
            if before.is_some_and(|before| before != current) && value.asked.command().is_some() {
                self.keep_change();
            }
            headers.insert(value.header.clone(), current);
        }
        headers
    }
}

impl Signer for DynamicHeaders {
    fn sign<'a>(&'a self, _method: &'a str, _url: &'a Url, _body: &'a [u8]) -> Signing<'a> {
        Box::pin(async move { Ok(self.headers().await) })
    }

    /// What was refused is asked for anew, once.
    fn refused<'a>(&'a self, refused: Refused<'a>) -> Judging<'a> {
        let again = refused.status == 401 && refused.repeats == 0;
        if again {
            self.values.iter().for_each(|value| value.memory().since = None);
        }
        let verdict = if again { AuthDecision::Again } else { AuthDecision::Stands };
        Box::pin(std::future::ready(verdict))
    }
}

impl Remembered {
    async fn current(&self, asking: &Asking, ttl: Duration) -> Option<HeaderValue> {
        {
            let mut memory = self.memory();
            let is_new = memory.since.is_some_and(|since| since.elapsed() < ttl);
            if memory.renewing || is_new {
                return memory.value.clone();
            }
            memory.renewing = true;
        }
        // Also if this request is given up.
        let _no_longer = Renewing(self);
        let answer = self.asked.ask_again(asking).await;
        let mut memory = self.memory();
        match answer {
            Ok((_, value, identity)) => (memory.value, memory.identity) = (Some(value), identity),
            Err(DialError::NoToken) => memory.value = None,
            Err(error) => {
                tracing::warn!(name = self.asked.name, %error, "an old value is used");
            }
        }
        memory.since = Some(Instant::now());
        memory.value.clone()
    }

    /// Never held across an await.
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Renewing<'a>(&'a Remembered);

impl Drop for Renewing<'_> {
    fn drop(&mut self) {
        self.0.memory().renewing = false;
    }
}

impl DynamicHeader {
    /// The words of the command that is run for it.
    pub(super) fn command(&self) -> Option<Vec<String>> {
        match &self.source {
            HeaderSource::Command { words, .. } => Some(words.clone()),
            HeaderSource::Vault { .. } => None,
        }
    }

    async fn ask(&self, asking: &Asking) -> Result<Resolved, DialError> {
        let (secret, identity) = self.secret(asking).await?;
        let text = Secret::new(self.form.fill(secret.expose()));
        let (header, value) = header(&self.header, text.expose())
            .ok_or_else(|| DialError::Header { name: self.name.clone() })?;
        Ok((header, value, identity))
    }

    /// Much may have changed since the connection was made.
    async fn ask_again(&self, asking: &Asking) -> Result<Resolved, DialError> {
        let commands = self.command().into_iter().collect();
        sealed(asking.seal.as_ref(), &asking.environment, commands).await?;
        self.ask(asking).await
    }

    /// The secret, and the identity of one from the vault.
    async fn secret(&self, asking: &Asking) -> Result<(Secret, Option<String>), DialError> {
        match &self.source {
            HeaderSource::Command { words, helper } => {
                let environment = &asking.environment;
                let program = secret_program(environment, words.clone(), &environment.cwd);
                let answer = secret::ask(Arc::clone(&asking.spawner), program).await;
                let answer = answer.map_err(|cause| {
                    let (name, helper) = (self.name.clone(), helper.clone());
                    DialError::Secret { name, helper, cause }
                })?;
                Ok((answer, None))
            }
            HeaderSource::Vault { vault, holder } => {
                let token = tokens::bearer(vault, holder).await.map_err(DialError::Vault)?;
                let (token, identity) = token.ok_or(DialError::NoToken)?;
                Ok((token, Some(identity)))
            }
        }
    }
}
