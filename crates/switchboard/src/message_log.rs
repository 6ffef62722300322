//! Logs the messages of a connection: each request at level debug, and each message, without
//! secrets, at level trace or for a server with `debug: true`.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use switchboard_core::config::values::TemplateMap;
use switchboard_core::message_trace::KnownSecrets;
use switchboard_core::name::ServerName;
use switchboard_core::render::words::clean_line;
use switchboard_wire::http_client::{HeaderMap, Judging, Refused, Signer, Signing, Url};
use switchboard_wire::peer::{ObservedRequest, Observer};
use switchboard_wire::{Raw, RequestError};
use tokio::time::Instant;

use crate::dial::spawn::Program;
use crate::mutex::lock;

/// The `tracing` target of all messages, at level trace.
pub const MESSAGES: &str = "switchboard::messages";

/// The target of the messages of servers with `debug: true`, at level trace.
pub const DEBUGGED: &str = "switchboard::debugged";

/// The most detailed messages that a process logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum LogLimit {
    /// Only the messages of servers with `debug: true` are logged.
    Debugged,
    /// Each request is logged with its duration.
    Requests,
    /// All messages are logged, without secrets.
    Messages,
}

/// The most detailed messages that are logged. If each layer has a filter, `tracing` reports an
/// event as enabled even if every layer drops it; with the limit, calls do not prepare events that
/// would be dropped.
static LIMIT: AtomicU8 = AtomicU8::new(LogLimit::Messages as u8);

/// Limits which messages are logged. Without a limit, the `tracing` subscriber alone decides.
pub fn limit(most: LogLimit) {
    LIMIT.store(most as u8, Ordering::Relaxed);
}

fn is_wanted(wanted: LogLimit) -> bool {
    LIMIT.load(Ordering::Relaxed) >= wanted as u8
}

/// The maximum length, in characters, of the name of a method or tool in a log line.
const NAME: usize = 100;

/// The `tracing` target for the messages of a connection.
#[derive(Clone, Copy, Debug)]
enum LogTarget {
    Nothing,
    Messages,
    Debugged,
}

/// Logs the messages of one connection.
#[derive(Debug)]
pub(crate) struct Watcher {
    server: ServerName,
    shown: LogTarget,
    secrets: Secrets,
}

/// The secrets to mask in logged messages. The list is shared, because tokens are refreshed while
/// messages are logged. The mutex is locked only briefly, never across an `await`.
type Secrets = Arc<Mutex<KnownSecrets>>;

fn add_headers(secrets: &Secrets, headers: &HeaderMap) {
    let mut known = lock(secrets);
    for value in headers.values() {
        known.add_header(&String::from_utf8_lossy(value.as_bytes()));
    }
}

impl Watcher {
    /// The watcher of a connection; `None` if nothing would be logged.
    pub(crate) fn of(server: &ServerName, debug: bool) -> Option<Arc<Watcher>> {
        let debugged = debug && tracing::enabled!(target: DEBUGGED, tracing::Level::TRACE);
        let shown = if debugged {
            LogTarget::Debugged
        } else if is_wanted(LogLimit::Messages)
            && tracing::enabled!(target: MESSAGES, tracing::Level::TRACE)
        {
            LogTarget::Messages
        } else if is_wanted(LogLimit::Requests) && tracing::enabled!(tracing::Level::DEBUG) {
            LogTarget::Nothing
        } else {
            return None;
        };
        Some(Arc::new(Watcher { server: server.clone(), shown, secrets: Secrets::default() }))
    }

    /// Adds the secrets of a program. Every variable that its entry sets is treated as a secret.
    pub(crate) fn learn_program(&self, program: &Program, set: &TemplateMap) {
        let mut known = lock(&self.secrets);
        let variables = program.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        known.add_variables(variables, |name| set.names().any(|set| set == name));
        known.add_arguments(&program.args);
    }

    /// Adds the secrets in requests to a remote server, including headers that are refreshed later.
    pub(crate) fn learn_remote(
        &self,
        url: &Url,
        headers: &HeaderMap,
        signer: &mut Option<Arc<dyn Signer>>,
    ) {
        lock(&self.secrets).add_url(url.as_str());
        add_headers(&self.secrets, headers);
        if let Some(inner) = signer.take() {
            *signer = Some(Arc::new(Remembering { inner, secrets: Arc::clone(&self.secrets) }));
        }
    }

    fn log(&self, direction: &'static str, message: &[u8]) {
        let server = &self.server;
        match self.shown {
            LogTarget::Nothing => {}
            LogTarget::Messages => {
                let json = lock(&self.secrets).trace_line(message);
                tracing::trace!(target: MESSAGES, %server, %json, "{direction}");
            }
            LogTarget::Debugged => {
                let json = lock(&self.secrets).trace_line(message);
                tracing::trace!(target: DEBUGGED, %server, %json, "{direction}");
            }
        }
    }
}

impl Observer for Watcher {
    fn sent(&self, message: &[u8]) {
        self.log("sent", message);
    }

    fn received(&self, message: &[u8]) {
        self.log("received", message);
    }

    fn begin(&self, method: &str, params: &str) -> Option<Box<dyn ObservedRequest>> {
        tracing::enabled!(tracing::Level::DEBUG).then(|| {
            Box::new(Timed {
                server: self.server.clone(),
                method: clean_line(method, NAME).into_owned(),
                name: name_in(method, params),
                began: Instant::now(),
                outcome: "cancelled".into(),
            }) as Box<dyn ObservedRequest>
        })
    }
}

/// The name of the tool or prompt in a request. A resource URI may contain a secret, so it is not
/// logged.
fn name_in(method: &str, params: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct NamedParams {
        name: String,
    }
    if !matches!(method, "tools/call" | "prompts/get") {
        return None;
    }
    let NamedParams { name } = serde_json::from_str(params).ok()?;
    Some(clean_line(&name, NAME).into_owned())
}

/// One request, logged when it is over.
struct Timed {
    server: ServerName,
    method: String,
    name: Option<String>,
    began: Instant,
    outcome: Cow<'static, str>,
}

impl ObservedRequest for Timed {
    fn end(mut self: Box<Self>, outcome: &Result<Raw, RequestError>) {
        self.outcome = match outcome {
            Ok(_) => "answered".into(),
            Err(RequestError::Refused(error)) => format!("error {}", error.code).into(),
            Err(RequestError::TimedOut(_)) => "timed out".into(),
            Err(RequestError::AnswerTooLarge { .. }) => "response too large".into(),
            Err(RequestError::Closed) => "connection closed".into(),
            Err(RequestError::NotSent) => "not sent".into(),
            Err(RequestError::Http(_)) => "HTTP error".into(),
        };
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        let Timed { server, method, name, began, outcome } = self;
        let (method, name) = (method.as_str(), name.as_deref());
        tracing::debug!(%server, method, name, took = ?began.elapsed(), %outcome, "request");
    }
}

/// Records the headers of signed requests as secrets, so that a trace masks them.
struct Remembering {
    inner: Arc<dyn Signer>,
    secrets: Secrets,
}

impl Signer for Remembering {
    fn sign<'a>(&'a self, method: &'a str, url: &'a Url, body: &'a [u8]) -> Signing<'a> {
        Box::pin(async move {
            let headers = self.inner.sign(method, url, body).await?;
            add_headers(&self.secrets, &headers);
            Ok(headers)
        })
    }

    fn refused<'a>(&'a self, refused: Refused<'a>) -> Judging<'a> {
        self.inner.refused(refused)
    }
}
