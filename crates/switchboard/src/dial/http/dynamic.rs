//! Headers whose values come from a program or the vault. The values are requested at connect time,
//! and again after their lifetime.

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

/// The environment variable that sets how long the value of a header is reused, in milliseconds.
const TTL_VARIABLE: &str = "SWITCHBOARD_TOKEN_COMMAND_TTL_MS";
const TTL: Duration = Duration::from_secs(5 * 60);

/// The source of a header's value.
pub(super) enum HeaderSource {
    /// A program. `helper` is the name of the program as written in the configuration, for
    /// messages.
    Command { words: Vec<String>, helper: String },
    /// The token that the user stored in the vault.
    Vault { vault: Vault, holder: Holder },
}

/// A header whose value is requested at run time.
pub(super) struct DynamicHeader {
    /// The name of the setting or header, for messages.
    pub(super) name: String,
    pub(super) header: String,
    pub(super) form: HeaderForm,
    pub(super) source: HeaderSource,
}

/// The objects that a request of a header's value uses.
#[derive(Clone)]
pub(super) struct Asking {
    pub(super) spawner: Arc<dyn Spawner>,
    pub(super) environment: Environment,
    /// The approval, checked before each request of a value; `None` unless the server belongs to a
    /// project.
    pub(super) seal: Option<Seal>,
}

/// A header with its value, and the identity if it is a token from the vault.
type Resolved = (HeaderName, HeaderValue, Option<String>);

/// The dynamic headers of a connection. An old value is used while a new one is requested, and if
/// that fails.
pub(super) struct DynamicHeaders {
    values: Vec<Remembered>,
    asking: Asking,
    ttl: Duration,
    /// Whether a program has returned another value than before: the listings may depend on the
    /// credential.
    changed: AtomicBool,
}

struct Remembered {
    asked: DynamicHeader,
    header: HeaderName,
    memory: Mutex<Memory>,
}

struct Memory {
    /// The current value of the header; `None` after the user removed the token.
    value: Option<HeaderValue>,
    /// The identity of the token, if it comes from the vault.
    identity: Option<String>,
    /// When the value was last requested; `None` after the server refused the value.
    since: Option<Instant>,
    /// Whether a task is requesting a new value.
    renewing: bool,
}

impl DynamicHeaders {
    /// Creates the headers, and requests all their values concurrently.
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

    /// The identity of the vault token in use.
    pub(super) fn identity(&self) -> Option<String> {
        self.values.iter().find_map(|value| value.memory().identity.clone())
    }

    /// Requests new values in place of those whose lifetime is over.
    pub(super) async fn follow(&self) {
        let _headers = self.headers().await;
    }

    /// Whether a program has returned another value since this method was last called.
    pub(super) fn take_change(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }

    /// Marks the credential as changed: a program returned another value, or an earlier change
    /// could not be handled.
    pub(super) fn keep_change(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    async fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in &self.values {
            let before = value.memory().value.clone();
            let Some(current) = value.current(&self.asking, self.ttl).await else { continue };
            // A vault token is compared by its identity, so only programs are compared by value.
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

    /// After a response with status 401, all values are requested again, once.
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
        // The guard resets `renewing` even if the future is dropped.
        let _no_longer = Renewing(self);
        let answer = self.asked.ask_again(asking).await;
        let mut memory = self.memory();
        match answer {
            Ok((_, value, identity)) => (memory.value, memory.identity) = (Some(value), identity),
            Err(DialError::NoToken) => memory.value = None,
            Err(error) => {
                tracing::warn!(name = self.asked.name, %error, "cannot request a new header value; using the old one");
            }
        }
        memory.since = Some(Instant::now());
        memory.value.clone()
    }

    /// Locks the memory. The guard must not be held across an `await`.
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
    /// The command that prints the header's value; `None` for a token from the vault.
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

    /// Requests the value again. The definition may have changed since the dial, so the approval is
    /// checked again.
    async fn ask_again(&self, asking: &Asking) -> Result<Resolved, DialError> {
        let commands = self.command().into_iter().collect();
        sealed(asking.seal.as_ref(), &asking.environment, commands).await?;
        self.ask(asking).await
    }

    /// The secret, and its identity if it comes from the vault.
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
