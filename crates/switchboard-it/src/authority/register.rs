//! Dynamic client registration, device authorization and token revocation.

use std::time::{SystemTime, UNIX_EPOCH};

use hyper::Response;
use serde_json::{Map, Value, json};

use super::books::{Client, Device, Grant, secret};
use super::documents::{empty, error, json_text, mannered, replace};
use super::lock;
use super::route::Asked;
use super::setup::{AuthMethod, Manner, Registration, Setup};
use super::token::authenticated;
use crate::fixture::Reply;

const HOUR_S: u64 = 3600;

/// Dynamic registration (RFC 7591).
pub(super) async fn register(asked: &Asked<'_>) -> Response<Reply> {
    if asked.setup.registered != Manner::Right {
        return mannered(Map::new(), &asked.setup.registered).await;
    }
    let metadata: Value = serde_json::from_slice(asked.body).unwrap_or_default();
    let redirect_uris: Option<Vec<String>> =
        serde_json::from_value(metadata["redirect_uris"].clone()).ok();
    let Some(redirect_uris) = redirect_uris.filter(|uris| !uris.is_empty()) else {
        return error(400, "invalid_redirect_uri");
    };
    let native = metadata["application_type"] == "native";
    match asked.setup.registration {
        Registration::Open | Registration::ExpiringSecret => {}
        Registration::NoNative if !native => {}
        Registration::Off => return empty(404),
        Registration::Fails | Registration::NoNative => {
            return error(400, "invalid_client_metadata");
        }
    }
    let expiring = asked.setup.registration == Registration::ExpiringSecret;
    let wanted = metadata.get("token_endpoint_auth_method").cloned();
    let method = match wanted {
        _ if expiring => Ok(AuthMethod::Post),
        Some(wanted) => serde_json::from_value(wanted),
        None => Ok(AuthMethod::Basic),
    };
    let Ok(method) = method else {
        return error(400, "invalid_client_metadata");
    };
    let secret = match method {
        AuthMethod::None => None,
        AuthMethod::Basic | AuthMethod::Post => Some(secret(&asked.setup, "secret")),
    };
    let mut books = lock(&asked.stage.books);
    let id = format!("client-{}", books.clients.len() + 1);
    let mut answer = metadata;
    answer["client_id"] = json!(id);
    answer["token_endpoint_auth_method"] = json!(method);
    if let Some(secret) = &secret {
        // Zero means that the secret never expires.
        let ends = if expiring { now_s() + HOUR_S } else { 0 };
        answer["client_secret"] = json!(secret);
        answer["client_secret_expires_at"] = json!(ends);
    }
    let issuer = asked.issuer.clone();
    books.clients.push(Client { issuer, id, secret, method, redirect_uris });
    json_text(201, answer.to_string())
}

/// A client without dynamic registration: pre-registered with the first issuer, or identified by a
/// metadata document.
pub(super) fn known(setup: &Setup, origin: &str, issuer: &str, id: &str) -> Option<Client> {
    let issuer = issuer.to_owned();
    if setup.client_documents.iter().any(|document| document == id) {
        let method = AuthMethod::None;
        let id = id.to_owned();
        return Some(Client { issuer, id, secret: None, method, redirect_uris: Vec::new() });
    }
    let first = issuer == format!("{origin}{}", setup.tenant);
    let client = setup.clients.iter().find(|client| first && client.id == id)?.clone();
    let (secret, method, redirect_uris) = (client.secret, client.method, client.redirect_uris);
    Some(Client { issuer, id: client.id, secret, method, redirect_uris })
}

/// Device authorization (RFC 8628).
pub(super) fn device(asked: &Asked<'_>) -> Response<Reply> {
    let client = match authenticated(asked) {
        Ok(client) => client,
        Err(refused) => return refused.response(),
    };
    let Some(scopes) = asked.grantable() else {
        return error(400, "invalid_scope");
    };
    let device_code = secret(&asked.setup, "device");
    let letters = || std::iter::repeat_with(|| fastrand::char('A'..='Z')).take(4);
    let user_code: String = letters().chain(['-']).chain(letters()).collect();
    let page = format!("{}/device/approve", asked.issuer);
    let mut answer = json!({
        "device_code": device_code,
        "user_code": user_code,
        "verification_uri": page,
        "verification_uri_complete": format!("{page}?user_code={user_code}"),
        "expires_in": 600,
        "interval": asked.setup.poll_interval_s,
    });
    if let Some(fields) = answer.as_object_mut() {
        replace(fields, &asked.setup.device_fields);
    }
    let grant = Grant::new(&asked.issuer, &client.id, scopes);
    let device = Device { grant, user_code, answer: None };
    lock(&asked.stage.books).devices.insert(device_code, device);
    json_text(200, answer.to_string())
}

/// Token revocation (RFC 7009).
pub(super) fn revoke(asked: &Asked<'_>) -> Response<Reply> {
    let client = match authenticated(asked) {
        Ok(client) => client,
        Err(refused) => return refused.response(),
    };
    let Some(token) = asked.fields.value("token") else {
        return error(400, "invalid_request");
    };
    let ended = lock(&asked.stage.books).revoke(token, &client);
    asked.stage.ledger.note(|record| record.revocations += usize::from(ended));
    empty(200)
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
