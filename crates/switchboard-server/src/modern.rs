//! Metadata of the stateless revision: each request states its revision and the client's
//! capabilities; each result states its type and for how long it may be cached.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard::exact::{Args, Exact};
use switchboard::host::Abilities;
use switchboard::log_level::LogLevel;
use switchboard_wire::era::Revision;
use switchboard_wire::modern::{DISCOVER, REVISION, UNSUPPORTED_VERSION, meta};
use switchboard_wire::{Raw, RpcError};

use crate::host::abilities;
use crate::params::{Passed, invalid_params};
use crate::rounds::read_answers;

/// Methods that the stateless revision removed.
pub(crate) const REMOVED: [&str; 5] =
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// Methods whose results carry cache hints.
const CACHEABLE: [&str; 6] = [
    DISCOVER,
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// Methods whose result may request input.
pub(crate) const MAY_REQUEST_INPUT: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// A parsed request of the stateless revision, without its method.
#[derive(Debug)]
pub(crate) struct ModernRequest {
    pub(crate) abilities: Abilities,
    pub(crate) level: Option<LogLevel>,
    /// The `name` in the client's `clientInfo`; `None` if the client sent none.
    pub(crate) client: Option<String>,
    /// The part of `_meta` that is forwarded to servers.
    pub(crate) about: Args,
    pub(crate) progress_token: Option<Exact>,
    /// The parameters of the request that are not in another field.
    pub(crate) request: Args,
    /// `requestState`: identifies a parked call.
    pub(crate) state: Option<String>,
    /// `inputResponses`: the client's responses to server-to-client requests.
    pub(crate) answers: Args,
}

impl ModernRequest {
    pub(crate) fn read(params: Option<&Raw>) -> Result<ModernRequest, RpcError> {
        let Passed { params: mut request, mut meta, progress_token } = Passed::read(params)?;
        let missing =
            |name: &str| invalid_params(format!("`_meta` must contain `{name}` in every request"));
        let revision = meta.take(meta::PROTOCOL_VERSION).map(Exact::into_value);
        let Some(Value::String(revision)) = revision else {
            return Err(missing(meta::PROTOCOL_VERSION));
        };
        if revision != REVISION {
            return Err(unsupported(&revision));
        }
        let declared = meta.take(meta::CLIENT_CAPABILITIES).map(|declared| text(&declared));
        let abilities = declared.and_then(|declared| abilities(&declared));
        let abilities = abilities.ok_or_else(|| missing(meta::CLIENT_CAPABILITIES))?;
        let level = meta.values().get(meta::LOG_LEVEL).map(LogLevel::deserialize).transpose();
        let level = level.map_err(|_| invalid_params("unknown log level"))?;
        let state = match request.take("requestState").map(Exact::into_value) {
            None => None,
            Some(Value::String(state)) => Some(state),
            Some(_) => return Err(invalid_params("`requestState` must be a string")),
        };
        let answers = request.take("inputResponses").map(read_answers).transpose()?;
        let client = meta.values().get(meta::CLIENT_INFO).and_then(|info| info["name"].as_str());
        let client = client.map(str::to_owned);
        let mut about = Args::default();
        for name in [meta::CLIENT_INFO, meta::LOG_LEVEL] {
            meta.take(name).into_iter().for_each(|member| about.insert(name, member));
        }
        let answers = answers.unwrap_or_default();
        Ok(ModernRequest {
            abilities,
            level,
            client,
            about,
            progress_token,
            request,
            state,
            answers,
        })
    }
}

fn text(value: &Exact) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The error for a request that states an unsupported revision.
pub(crate) fn unsupported(requested: &str) -> RpcError {
    let data = json!({ "supported": revisions(), "requested": requested });
    RpcError {
        code: UNSUPPORTED_VERSION,
        message: "unsupported protocol version".to_owned(),
        data: Some(Raw::from_json(data.to_string())),
    }
}

/// All supported revisions, the newest first.
pub(crate) fn revisions() -> Vec<&'static str> {
    let older = Revision::ALL.into_iter().rev().map(Revision::as_str);
    std::iter::once(REVISION).chain(older).collect()
}

/// The revision that a request states, supported or not; `None` if it states none.
pub(crate) fn stated_revision(params: Option<&Raw>) -> Option<String> {
    #[derive(Deserialize)]
    struct RevisionParams {
        #[serde(rename = "_meta")]
        meta: RevisionMeta,
    }
    #[derive(Deserialize)]
    struct RevisionMeta {
        #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
        revision: String,
    }
    let params = params?;
    // Most requests state no revision. Searching the text is cheaper than parsing it.
    if !params.as_str().contains(meta::PROTOCOL_VERSION) {
        return None;
    }
    params.parse::<RevisionParams>().ok().map(|params| params.meta.revision)
}

/// The text of a header, decoded if it is marked as Base64.
pub(crate) fn header_text(value: &str) -> Option<Cow<'_, str>> {
    let encoded = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let Some(encoded) = encoded else { return Some(Cow::Borrowed(value)) };
    let bytes = STANDARD.decode(encoded).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// Adds the members that every stateless result must have to the result that `out` contains from
/// `start` on. Members that the server wrote are not changed.
pub(crate) fn stamp(out: &mut String, start: usize, method: &str, server_info: &Value) {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Result<'a> {
        #[serde(borrow, default)]
        result_type: Option<&'a RawValue>,
        #[serde(borrow, default)]
        ttl_ms: Option<&'a RawValue>,
        #[serde(borrow, default)]
        cache_scope: Option<&'a RawValue>,
        #[serde(borrow, default, rename = "_meta")]
        meta: Option<&'a RawValue>,
    }
    let result = out.get(start..).unwrap_or_default();
    let Ok(read) = serde_json::from_str::<Result<'_>>(result) else { return };
    let mut first = Vec::new();
    if read.result_type.is_none() {
        first.push("\"resultType\":\"complete\"".to_owned());
    }
    if CACHEABLE.contains(&method) {
        // `ttlMs` is zero, because the gateway announces changes and can promise no lifetime.
        read.ttl_ms.is_none().then(|| first.push("\"ttlMs\":0".to_owned()));
        read.cache_scope.is_none().then(|| first.push("\"cacheScope\":\"private\"".to_owned()));
    }
    let info = format!("\"{}\":{server_info}", meta::SERVER_INFO);
    let into_meta = match read.meta.map(RawValue::get) {
        Some(meta) if !lacks(meta, meta::SERVER_INFO) => None,
        Some(meta) => Some(start + meta.as_ptr().addr() - result.as_ptr().addr()),
        None => {
            first.push(format!("\"_meta\":{{{info}}}"));
            None
        }
    };
    // The insertion at the later offset is first, so that the earlier offset stays valid.
    into_meta.into_iter().for_each(|meta| insert(out, meta, &info));
    if !first.is_empty() {
        insert(out, start, &first.join(","));
    }
}

/// Whether `object` is a JSON object without the member `member`.
fn lacks(object: &str, member: &str) -> bool {
    let members = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(object);
    members.is_ok_and(|members| !members.contains_key(member))
}

/// Inserts members at the beginning of the JSON object at offset `object`.
fn insert(out: &mut String, object: usize, members: &str) {
    let Some(brace) = out.get(object..).and_then(|text| text.find('{')) else { return };
    let place = object + brace + 1;
    let is_empty = out.get(place..).is_some_and(|rest| rest.trim_start().starts_with('}'));
    let comma = if is_empty { "" } else { "," };
    out.insert_str(place, &format!("{members}{comma}"));
}

#[cfg(test)]
mod tests;
