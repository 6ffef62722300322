//! Requests without a session: their headers must match the message.

use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName};
use serde::Deserialize;
use switchboard::host::Abilities;
use switchboard_wire::envelope::METHOD_NOT_FOUND;
use switchboard_wire::era::Revision;
use switchboard_wire::modern::{
    HEADER_MISMATCH, LISTEN, MISSING_CAPABILITY, REVISION as OURS, UNSUPPORTED_VERSION,
};
use switchboard_wire::{Id, Message, Raw, RpcError};

use super::guard::{REVISION, Twice, only};
use super::sessions::Sessions;
use crate::conversation::Conversation;
use crate::modern::{self, ModernRequest};

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The kind of a message without a session id.
pub(super) enum Judged {
    /// A valid stateless request, with the conversation that it belongs to.
    Fits(Arc<Conversation>),
    /// An invalid stateless request, with its id and the error to return.
    Wrong(Option<Id>, RpcError),
    /// A message of a session-based client.
    Other,
}

/// Classifies a message, and checks its headers against it.
pub(super) fn judge(message: &Message, headers: &HeaderMap, sessions: &Sessions) -> Judged {
    let header = match only(headers, &REVISION) {
        Ok(header) => header,
        Err(Twice) => return Judged::Wrong(None, mismatch(&REVISION)),
    };
    let (id, method, params) = match message {
        Message::Request { id, method, params } => (Some(id.clone()), method, params.as_ref()),
        Message::Notification { method, params } => (None, method, params.as_ref()),
        Message::Answer { .. } => return Judged::Other,
    };
    let stated = modern::stated_revision(params);
    let older = |revision: &str| Revision::parse(revision).is_some();
    let is_stateless = match (header, &stated) {
        (_, Some(_)) => true,
        (Some(header), None) => !older(header),
        (None, None) => false,
    };
    if !is_stateless {
        return Judged::Other;
    }
    let checked = check_revision(header, stated.as_deref()).and_then(|()| match id {
        Some(_) => check(method, params, headers, sessions),
        // A notification is not checked further, because it has no response.
        None => Ok(sessions.common(&Abilities::default())),
    });
    match checked {
        Ok(talk) => Judged::Fits(talk),
        Err(error) => Judged::Wrong(id, error),
    }
}

fn check_revision(header: Option<&str>, stated: Option<&str>) -> Result<(), RpcError> {
    match (header, stated) {
        (Some(header), Some(stated)) if header != stated => Err(mismatch(&REVISION)),
        (None, _) => Err(mismatch(&REVISION)),
        (Some(header), _) if header != OURS => Err(modern::unsupported(header)),
        (Some(_), _) => Ok(()),
    }
}

fn check(
    method: &str,
    params: Option<&Raw>,
    headers: &HeaderMap,
    sessions: &Sessions,
) -> Result<Arc<Conversation>, RpcError> {
    if only(headers, &METHOD).ok().flatten() != Some(method) {
        return Err(mismatch(&METHOD));
    }
    let named = match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        _ => None,
    };
    let parsed = ModernRequest::read(params)?;
    let talk = sessions.common(&parsed.abilities);
    let name = named.and_then(|named| parsed.request.values().get(named)?.as_str());
    let Some(name) = name else { return Ok(talk) };
    if !header_matches(headers, &NAME, name) {
        return Err(mismatch(&NAME));
    }
    if method != "tools/call" {
        return Ok(talk);
    }
    let args = parsed.request.values().get("arguments").and_then(|args| args.as_object());
    for (parameter, value) in args.map(|args| talk.mirrored(name, args)).unwrap_or_default() {
        let header = HeaderName::try_from(format!("mcp-param-{parameter}"));
        if let Ok(header) = header
            && !header_matches(headers, &header, &value)
        {
            return Err(mismatch(&header));
        }
    }
    Ok(talk)
}

fn header_matches(headers: &HeaderMap, name: &HeaderName, value: &str) -> bool {
    let header = only(headers, name).ok().flatten().map(str::trim);
    header.and_then(modern::header_text).as_deref() == Some(value)
}

/// Whether the message is a `subscriptions/listen` request, which the client can repeat on another
/// connection.
pub(super) fn listens(message: &Message) -> bool {
    matches!(message, Message::Request { method, .. } if method == LISTEN)
}

fn mismatch(header: &HeaderName) -> RpcError {
    let message = format!("the header `{header}` does not match the message");
    RpcError::new(HEADER_MISMATCH, message)
}

/// The HTTP status for a JSON-RPC response.
pub(super) fn status_of(frame: &Bytes) -> StatusCode {
    #[derive(Deserialize)]
    struct ErrorFrame {
        error: ErrorMember,
    }
    #[derive(Deserialize)]
    struct ErrorMember {
        code: i64,
    }
    let failed = serde_json::from_slice::<ErrorFrame>(frame).ok();
    match failed.map(|frame| frame.error.code) {
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION) => StatusCode::BAD_REQUEST,
        Some(_) | None => StatusCode::OK,
    }
}
