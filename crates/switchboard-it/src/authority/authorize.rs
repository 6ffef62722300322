//! The authorization and device pages: the user consents or denies at once, as the
//! setup decides.

use hyper::Response;
use url::Url;

use super::books::{Authorized, Grant, secret};
use super::documents::{page, redirect};
use super::route::Asked;
use super::setup::{Consent, Iss};
use super::{Stage, lock};
use crate::fixture::Reply;

/// Redirects the browser back with a code or an OAuth error.
pub(super) fn authorize(asked: &Asked<'_>) -> Response<Reply> {
    let fields = &asked.fields;
    // No redirect before the client and its `redirect_uri` are validated.
    let client = fields.value("client_id").and_then(|id| asked.client(id));
    let redirect_uri = fields.value("redirect_uri");
    let (Some(client), Some(redirect_uri)) = (client, redirect_uri) else {
        return page(400, "Unknown client.");
    };
    if !client.may_return_to(redirect_uri) {
        return page(400, "The redirect URI is not registered for this client.");
    }
    let Ok(mut back) = Url::parse(redirect_uri) else {
        return page(400, "The redirect URI is not a valid URL.");
    };
    let outcome = agree(asked, &client.id, redirect_uri);
    let issuer = match asked.setup.iss {
        Iss::Right => Some(asked.issuer.clone()),
        Iss::Missing => None,
        Iss::Wrong => Some("https://elsewhere.example".to_owned()),
        Iss::Normalised => Some(format!("{}/", asked.issuer.replace("http:", "HTTP:"))),
    };
    let mut query = back.query_pairs_mut();
    match &outcome {
        Ok(code) => query.append_pair("code", code),
        Err(error) => query.append_pair("error", error),
    };
    for (name, value) in [("state", fields.value("state")), ("iss", issuer.as_deref())] {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    drop(query);
    redirect(back.as_str())
}

/// The authorization code, or an OAuth error code.
fn agree(asked: &Asked<'_>, client: &str, redirect_uri: &str) -> Result<String, &'static str> {
    let fields = &asked.fields;
    if fields.repeated {
        return Err("invalid_request");
    }
    if fields.value("response_type") != Some("code") {
        return Err("unsupported_response_type");
    }
    // The length of a SHA-256 in base64url.
    let challenge = fields.value("code_challenge").filter(|challenge| challenge.len() == 43);
    let (Some(challenge), Some("S256")) = (challenge, fields.value("code_challenge_method")) else {
        return Err("invalid_request");
    };
    if !asked.names_the_resource() {
        return Err("invalid_target");
    }
    let scopes = asked.grantable().ok_or("invalid_scope")?;
    if asked.setup.consent == Consent::Denied {
        return Err("access_denied");
    }
    let code = secret(&asked.setup, "code");
    let grant = Grant::new(&asked.issuer, client, scopes);
    let (redirect_uri, challenge) = (redirect_uri.to_owned(), challenge.to_owned());
    let authorized = Authorized { grant, redirect_uri, challenge };
    lock(&asked.stage.books).codes.insert(code.clone(), authorized);
    Ok(code)
}

/// The verification page of the device flow.
pub(super) fn device_page(asked: &Asked<'_>) -> Response<Reply> {
    let user_code = asked.fields.value("user_code").unwrap_or_default();
    match asked.stage.answer_device(user_code, asked.setup.consent) {
        true => page(200, "The device is approved."),
        false => page(404, "Unknown user code."),
    }
}

impl Stage {
    pub(super) fn answer_device(&self, user_code: &str, consent: Consent) -> bool {
        let mut books = lock(&self.books);
        let device = books.devices.values_mut().find(|device| device.user_code == user_code);
        device.map(|device| device.answer = Some(consent)).is_some()
    }
}
