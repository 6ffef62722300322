//! Authorizes requests to the MCP server; other requests get a 401 or 403 challenge.

use hyper::Response;
use hyper::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use hyper::http::request::Parts;
use serde_json::Value;

use super::documents::{empty, resource_path};
use super::route::header;
use super::setup::{Challenge, ResourcePlace, Setup, StepUp};
use super::{Stage, lock};
use crate::fixture::Reply;

/// The bearer token of the `Authorization` header.
pub(super) fn bearer(head: &Parts) -> Option<&str> {
    let (scheme, token) = header(head, AUTHORIZATION.as_str())?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// The 401 or 403 response for a message without a valid token or scope.
pub(super) fn refusal(
    stage: &Stage,
    setup: &Setup,
    bearer: Option<&str>,
    message: &Value,
) -> Option<Response<Reply>> {
    let Some(token) = bearer else {
        return Some(challenge(stage, setup, 401, None, setup.challenge_scope.as_deref()));
    };
    let issuer = stage.issuer();
    let scopes = lock(&stage.books).scopes_of(token, &issuer).map(<[String]>::to_vec);
    let Some(scopes) = scopes else {
        let scope = setup.challenge_scope.as_deref();
        return Some(challenge(stage, setup, 401, Some("invalid_token"), scope));
    };
    let tool = match message["method"].as_str() {
        Some("tools/call") => message["params"]["name"].as_str().unwrap_or_default(),
        Some(_) | None => return None,
    };
    match setup.tool_scopes.get(tool) {
        Some(needed) if setup.step_up == StepUp::Loop || !scopes.contains(needed) => {
            Some(challenge(stage, setup, 403, Some("insufficient_scope"), Some(needed)))
        }
        Some(_) | None => None,
    }
}

fn challenge(
    stage: &Stage,
    setup: &Setup,
    status: u16,
    error: Option<&str>,
    scope: Option<&str>,
) -> Response<Reply> {
    let path = resource_path(ResourcePlace::Pointed);
    let here = format!("{}{path}", stage.mcp_origin);
    let pointed = setup.resource.places.contains(&ResourcePlace::Pointed);
    let pointer = match setup.challenge {
        // Another origin for the same machine.
        Challenge::CrossOrigin => Some(here.replace("127.0.0.1", "localhost")),
        Challenge::Proper | Challenge::Missing | Challenge::Malformed | Challenge::Multi => {
            pointed.then_some(here)
        }
    };
    let fields: Vec<String> = [
        ("error", error.map(str::to_owned)),
        ("scope", scope.map(str::to_owned)),
        ("resource_metadata", pointer),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some(format!("{name}=\"{}\"", value?)))
    .collect();
    let proper = format!("Bearer {}", fields.join(", "));
    let text = match setup.challenge {
        Challenge::Proper | Challenge::CrossOrigin => proper.trim_end().to_owned(),
        Challenge::Missing => return empty(status),
        Challenge::Malformed => format!("{}, ==", proper.trim_end_matches('"')),
        Challenge::Multi => {
            format!(r#"Negotiate, Basic realm="a, \"Bearer\" b", {}, Digest qop="auth""#, proper)
        }
    };
    let mut response = empty(status);
    let text = text.parse().expect("a scripted challenge is a valid header value");
    response.headers_mut().insert(WWW_AUTHENTICATE, text);
    response
}
