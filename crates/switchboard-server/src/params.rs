//! Parses request parameters, and forwards progress.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value};
use switchboard::Caller;
use switchboard::exact::{Args, Exact};
use switchboard::log_level::LogLevel;
use switchboard::nesting::plain;
use switchboard_wire::envelope::{INVALID_PARAMS, METHOD_NOT_FOUND};
use switchboard_wire::era::Revision;
use switchboard_wire::{Peer, Raw, RpcError};
use tokio::sync::mpsc;

/// The maximum number of progress notifications that are queued for a slow client; further ones are
/// dropped.
pub(crate) const WAITING_STEPS: usize = 16;

#[derive(Deserialize)]
pub(crate) struct NamedParams<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    #[serde(default)]
    pub(crate) arguments: Option<Args>,
}

#[derive(Deserialize)]
pub(crate) struct UriParams<'a> {
    #[serde(borrow)]
    pub(crate) uri: Cow<'a, str>,
}

/// The `level` of log messages and of `logging/setLevel`.
#[derive(Deserialize)]
pub(crate) struct LevelParams {
    pub(crate) level: LogLevel,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestMeta {
    #[serde(default)]
    pub(crate) progress_token: Option<Exact>,
}

/// The revision for a client with these `initialize` parameters.
pub(crate) fn agreed_revision(params: Option<&Raw>) -> Revision {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Hello {
        protocol_version: String,
    }
    let requested = params.and_then(|params| params.parse::<Hello>().ok());
    Revision::negotiate(&requested.map(|hello| hello.protocol_version).unwrap_or_default())
}

/// The result of `initialize`. `hello` contains the capabilities and instructions.
pub(crate) fn initialize_result(
    mut hello: Map<String, Value>,
    server_info: Value,
    params: Option<&Raw>,
) -> Raw {
    let revision = agreed_revision(params);
    hello.insert("protocolVersion".to_owned(), Value::from(revision.as_str()));
    hello.insert("serverInfo".to_owned(), server_info);
    Raw::from_json(Value::Object(hello).to_string())
}

pub(crate) fn unsupported_method() -> RpcError {
    RpcError::new(METHOD_NOT_FOUND, "this method is not supported")
}

pub(crate) fn invalid_params(message: impl Into<String>) -> RpcError {
    RpcError::new(INVALID_PARAMS, message)
}

pub(crate) fn read<'a, T: Deserialize<'a>>(params: Option<&'a Raw>) -> Result<T, RpcError> {
    let params = params.ok_or_else(|| invalid_params("`params` is missing"))?;
    params.parse().map_err(|error| invalid_params(format!("cannot parse `params`: {error}")))
}

/// The parameters of a request that is forwarded to a server. `_meta` is separate, because the
/// client's progress token is not valid on our connection to the server.
pub(crate) struct Passed {
    pub(crate) params: Args,
    pub(crate) meta: Args,
    pub(crate) progress_token: Option<Exact>,
}

impl Passed {
    pub(crate) fn read(params: Option<&Raw>) -> Result<Passed, RpcError> {
        let mut params: Args = params.map_or_else(|| Ok(Args::default()), |raw| read(Some(raw)))?;
        let mut meta = member(&mut params, "_meta")?;
        let progress_token = meta.take("progressToken").filter(|token| !token.value().is_null());
        Ok(Passed { params, meta, progress_token })
    }

    /// Removes a required string from the parameters and returns it.
    pub(crate) fn text(&mut self, name: &str) -> Result<String, RpcError> {
        match self.params.take(name).map(Exact::into_value) {
            Some(Value::String(text)) => Ok(text),
            _ => Err(invalid_params(format!("`{name}` must be a string"))),
        }
    }

    /// Removes the arguments of a tool or prompt from the parameters and returns them.
    pub(crate) fn arguments(&mut self) -> Result<Args, RpcError> {
        member(&mut self.params, "arguments")
    }
}

/// Removes an object from the parameters and returns it; a missing object is taken as empty.
fn member(params: &mut Args, name: &str) -> Result<Args, RpcError> {
    let Some(member) = params.take(name).filter(|member| !member.value().is_null()) else {
        return Ok(Args::default());
    };
    member.try_into().map_err(|error| invalid_params(format!("`{name}` is {error}")))
}

/// Runs a call. Its progress is forwarded under the progress token of the client, if the client
/// sent one, and always before the response.
pub(crate) async fn with_progress<T, F: Future<Output = T>>(
    caller: Caller,
    call: impl FnOnce(Caller) -> F,
    progress: Option<(&Exact, &Peer)>,
) -> T {
    let Some((token, client)) = progress else { return call(caller).await };
    let (sender, mut steps) = mpsc::channel(WAITING_STEPS);
    let mut call = Box::pin(call(caller.with_progress(Some(sender))));
    let outcome = loop {
        tokio::select! {
            biased;
            Some(step) = steps.recv() => pass_on(&step, token, client),
            outcome = &mut call => break outcome,
        }
    };
    while let Ok(step) = steps.try_recv() {
        pass_on(&step, token, client);
    }
    outcome
}

pub(crate) fn pass_on(step: &Raw, token: &Exact, client: &Peer) {
    let Ok(mut step) = Args::parse(step.as_str()) else { return };
    step.insert("progressToken", token.clone());
    client.try_notify("notifications/progress", &plain(&step.to_string()));
}
