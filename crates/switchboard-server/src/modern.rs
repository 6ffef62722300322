//! Requests of the stateless revision: each says in which revision it is, and what its client can
//! do; each answer says what it is, and how long it holds.

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
use switchboard_wire::envelope::INVALID_PARAMS;
use switchboard_wire::era::Revision;
use switchboard_wire::modern::{DISCOVER, REVISION, UNSUPPORTED_VERSION, meta};
use switchboard_wire::{Raw, RpcError};

use crate::host::abilities;
use crate::params::Passed;
use crate::rounds::read_answers;

/// Methods that the stateless revision does not have any more.
const REMOVED: [&str; 5] =
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// Methods whose answers say for how long they hold.
const CACHEABLE: [&str; 6] = [
    DISCOVER,
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// Methods that may be answered with a question.
const ASKING: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// What a request says beside its method.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) abilities: Abilities,
    pub(crate) level: Option<LogLevel>,
    /// What the client calls itself.
    pub(crate) client: Option<String>,
    /// What servers are told of the client.
    pub(crate) about: Args,
    pub(crate) progress_token: Option<Exact>,
    /// What is asked for.
    pub(crate) request: Args,
    /// Leads to a call that waits.
    pub(crate) state: Option<String>,
    /// What the client answers to what it was asked.
    pub(crate) answers: Args,
}

impl Said {
    pub(crate) fn read(params: Option<&Raw>) -> Result<Said, RpcError> {
        let Passed { mut params, mut meta, progress_token } = Passed::read(params)?;
        let missing = |name: &str| {
            RpcError::new(INVALID_PARAMS, format!("`_meta` has to say `{name}` in every request"))
        };
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
        let level = level.map_err(|_| RpcError::new(INVALID_PARAMS, "no such log level"))?;
        let state = params.take("requestState").map(Exact::into_value);
        let state = match state {
            None => None,
            Some(Value::String(state)) => Some(state),
            Some(_) => {
                return Err(RpcError::new(INVALID_PARAMS, "`requestState` has to be a string"));
            }
        };
        let answers = params.take("inputResponses").map(read_answers).transpose()?;
        let client = meta.values().get(meta::CLIENT_INFO).and_then(|info| info["name"].as_str());
        let client = client.map(str::to_owned);
        let mut about = Args::default();
        for name in [meta::CLIENT_INFO, meta::LOG_LEVEL] {
            meta.take(name).into_iter().for_each(|member| about.insert(name, member));
        }
        let answers = answers.unwrap_or_default();
        Ok(Said {
            abilities,
            level,
            client,
            about,
            progress_token,
            request: params,
            state,
            answers,
        })
    }
}

fn text(value: &Exact) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// What a client of another revision hears.
pub(crate) fn unsupported(requested: &str) -> RpcError {
    let data = json!({ "supported": revisions(), "requested": requested });
    RpcError {
        code: UNSUPPORTED_VERSION,
        message: "this revision of the protocol is not spoken here".to_owned(),
        data: Some(Raw::from_json(data.to_string())),
    }
}

/// All revisions that are spoken here, the newest first.
pub(crate) fn revisions() -> Vec<&'static str> {
    let older = Revision::ALL.into_iter().rev().map(Revision::as_str);
    std::iter::once(REVISION).chain(older).collect()
}

/// The revision that a request says it is in, whichever that is.
pub(crate) fn stated_revision(params: Option<&Raw>) -> Option<String> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
        revision: String,
    }
    let params = params?;
    // Most requests do not say so; a look at the text is cheaper than reading it.
    if !params.as_str().contains(meta::PROTOCOL_VERSION) {
        return None;
    }
    params.parse::<Params>().ok().map(|params| params.meta.revision)
}

pub(crate) fn is_removed(method: &str) -> bool {
    REMOVED.contains(&method)
}

/// Whether a request can be answered with a question.
pub(crate) fn may_ask(method: &str) -> bool {
    ASKING.contains(&method)
}

/// What a header says: as it stands there, unless it says that it is encoded.
pub(crate) fn header_text(value: &str) -> Option<Cow<'_, str>> {
    let encoded = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let Some(encoded) = encoded else { return Some(Cow::Borrowed(value)) };
    let bytes = STANDARD.decode(encoded).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// What every answer bears.
pub(crate) struct Stamp<'a> {
    pub(crate) method: &'a str,
    /// Who answers, as JSON.
    pub(crate) server_info: &'a str,
}

impl Stamp<'_> {
    /// Marks the result that stands at the end of `out`, from `start` on; what its server wrote
    /// there stays.
    pub(crate) fn put(&self, out: &mut String, start: usize) {
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
        if CACHEABLE.contains(&self.method) {
            // Changes are told; until then nobody can say how long something holds.
            read.ttl_ms.is_none().then(|| first.push("\"ttlMs\":0".to_owned()));
            read.cache_scope.is_none().then(|| first.push("\"cacheScope\":\"private\"".to_owned()));
        }
        let info = format!("\"{}\":{}", meta::SERVER_INFO, self.server_info);
        let into_meta = match read.meta.map(RawValue::get) {
            Some(meta) if !lacks(meta, meta::SERVER_INFO) => None,
            Some(meta) => Some(start + meta.as_ptr().addr() - result.as_ptr().addr()),
            None => {
                first.push(format!("\"_meta\":{{{info}}}"));
                None
            }
        };
        // The later place first, so that the earlier one stays where it is.
        into_meta.into_iter().for_each(|meta| insert(out, meta, &info));
        if !first.is_empty() {
            insert(out, start, &first.join(","));
        }
    }
}

/// Whether it is an object without this member.
fn lacks(object: &str, member: &str) -> bool {
    let members = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(object);
    members.is_ok_and(|members| !members.contains_key(member))
}

/// Puts members at the beginning of the object that stands at `object`.
fn insert(out: &mut String, object: usize, members: &str) {
    let Some(brace) = out.get(object..).and_then(|text| text.find('{')) else { return };
    let place = object + brace + 1;
    let is_empty = out.get(place..).is_some_and(|rest| rest.trim_start().starts_with('}'));
    let comma = if is_empty { "" } else { "," };
    out.insert_str(place, &format!("{members}{comma}"));
}

#[cfg(test)]
mod tests;
