//! What the parameters of a request say, and the progress that they ask for.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use switchboard::Caller;
use switchboard_wire::envelope::INVALID_PARAMS;
use switchboard_wire::era::Revision;
use switchboard_wire::{Peer, Raw, RpcError};
use tokio::sync::mpsc;

/// Progress steps that may wait for a slow client before some are skipped.
const WAITING_STEPS: usize = 16;

#[derive(Deserialize)]
pub(crate) struct Named<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    #[serde(default)]
    pub(crate) arguments: Option<Map<String, Value>>,
    #[serde(borrow, default, rename = "_meta")]
    pub(crate) meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
pub(crate) struct Located<'a> {
    #[serde(borrow)]
    pub(crate) uri: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Meta<'a> {
    #[serde(borrow, default)]
    pub(crate) progress_token: Option<&'a RawValue>,
}

/// The revision that is spoken with a client that opens so.
pub(crate) fn agreed_revision(params: Option<&Raw>) -> Revision {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Hello {
        protocol_version: String,
    }
    let requested = params.and_then(|params| params.parse::<Hello>().ok());
    Revision::negotiate(&requested.map(|hello| hello.protocol_version).unwrap_or_default())
}

pub(crate) fn read<'a, T: Deserialize<'a>>(params: Option<&'a Raw>) -> Result<T, RpcError> {
    let missing = || RpcError::new(INVALID_PARAMS, "`params` is missing");
    params.ok_or_else(missing)?.parse().map_err(|error: serde_json::Error| {
        RpcError::new(INVALID_PARAMS, format!("`params` does not read: {error}"))
    })
}

/// The client's progress token means nothing on our connection to the server.
pub(crate) fn without_token(params: Option<&Raw>) -> Result<Map<String, Value>, RpcError> {
    let Some(params) = params else { return Ok(Map::new()) };
    let mut params: Map<String, Value> = read(Some(params))?;
    if let Some(meta) = params.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.shift_remove("progressToken");
    }
    Ok(params)
}

/// Passes the steps of a call on under the client's own token, all of them before the answer.
pub(crate) async fn with_progress<T, F: Future<Output = T>>(
    caller: Caller,
    call: impl FnOnce(Caller) -> F,
    token: &RawValue,
    client: &Peer,
) -> T {
    let (sender, mut steps) = mpsc::channel(WAITING_STEPS);
    let mut call = std::pin::pin!(call(caller.with_progress(Some(sender))));
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

fn pass_on(step: &Raw, token: &RawValue, client: &Peer) {
    let Ok(mut step) = step.parse::<Map<String, Value>>() else { return };
    let Ok(token) = serde_json::from_str(token.get()) else { return };
    step.insert("progressToken".to_owned(), token);
    client.try_notify("notifications/progress", &Value::Object(step).to_string());
}
