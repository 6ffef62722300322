//! The pages that a person sees: they agree at once, or refuse, as the setup says.

use hyper::Response;
use url::Url;

use super::books::{Authorized, Grant, secret};
use super::documents::{page, redirect};
use super::route::Asked;
use super::setup::{Consent, Iss};
use super::{Stage, lock};
use crate::fixture::Reply;

/// Sends the browser back with a code, or with the reason why there is none.
pub(super) fn authorize(asked: &Asked<'_>) -> Response<Reply> {
    let fields = &asked.fields;
    // Before these two are known to belong together nobody is sent anywhere.
    let client = fields.value("client_id").and_then(|id| asked.client(id));
    let redirect_uri = fields.value("redirect_uri");
    let (Some(client), Some(redirect_uri)) = (client, redirect_uri) else {
        return page(400, "Nobody knows this client.");
    };
    if !client.may_return_to(redirect_uri) {
        return page(400, "The client does not live there.");
    }
    let Ok(mut back) = Url::parse(redirect_uri) else {
        return page(400, "That is no address.");
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

/// The code, or the error of OAuth.
fn agree(asked: &Asked<'_>, client: &str, redirect_uri: &str) -> Result<String, &'static str> {
    let fields = &asked.fields;
    if fields.repeated {
        return Err("invalid_request");
    }
    if fields.value("response_type") != Some("code") {
        return Err("unsupported_response_type");
    }
    // What a SHA-256 comes to.
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

/// A person follows the link that a device shows.
pub(super) fn device_page(asked: &Asked<'_>) -> Response<Reply> {
    let user_code = asked.fields.value("user_code").unwrap_or_default();
    match asked.stage.answer_device(user_code, asked.setup.consent) {
        true => page(200, "The device may go on."),
        false => page(404, "No device shows this code."),
    }
}

impl Stage {
    pub(super) fn answer_device(&self, user_code: &str, consent: Consent) -> bool {
        let mut books = lock(&self.books);
        let device = books.devices.values_mut().find(|device| device.user_code == user_code);
        device.map(|device| device.answer = Some(consent)).is_some()
    }
}
