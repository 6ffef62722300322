//! The published metadata documents, and faulty forms of responses.

use std::future::pending;

use bytes::Bytes;
use hyper::Response;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use hyper::http::response::Builder;
use serde_json::{Map, Value, json};

use super::route::Asked;
use super::setup::{Manner, MetadataPlace, Registration, ResourcePlace};
use crate::fixture::{Reply, whole};

/// The padding in bytes of a huge document, and the nesting of a deep one.
const HUGE: usize = 1 << 20;
const DEEP: usize = 10_000;

pub(super) fn resource_path(place: ResourcePlace) -> &'static str {
    match place {
        ResourcePlace::Pointed => "/resource.json",
        ResourcePlace::Path => "/.well-known/oauth-protected-resource/mcp",
        ResourcePlace::Root => "/.well-known/oauth-protected-resource",
    }
}

pub(super) fn metadata_path(place: MetadataPlace, tenant: &str) -> String {
    match place {
        MetadataPlace::Oauth => format!("/.well-known/oauth-authorization-server{tenant}"),
        MetadataPlace::OpenId => format!("/.well-known/openid-configuration{tenant}"),
        MetadataPlace::OpenIdAppended => format!("{tenant}/.well-known/openid-configuration"),
    }
}

pub(super) async fn resource(asked: &Asked<'_>) -> Response<Reply> {
    let setup = &asked.setup;
    let mut document = Map::new();
    document.insert("resource".into(), asked.stage.mcp_url().into());
    document.insert("authorization_servers".into(), json!([asked.stage.issuer()]));
    document.insert("bearer_methods_supported".into(), json!(["header"]));
    if !setup.scopes.is_empty() {
        document.insert("scopes_supported".into(), json!(setup.scopes));
    }
    published(document, &setup.resource.fields, &setup.resource.manner).await
}

pub(super) async fn metadata(asked: &Asked<'_>) -> Response<Reply> {
    let (setup, issuer) = (&asked.setup, &asked.issuer);
    let mut document = Map::new();
    document.insert("issuer".into(), issuer.as_str().into());
    for (field, path) in [
        ("authorization_endpoint", "/authorize"),
        ("token_endpoint", "/token"),
        ("registration_endpoint", "/register"),
        ("device_authorization_endpoint", "/device"),
        ("revocation_endpoint", "/revoke"),
    ] {
        document.insert(field.into(), format!("{issuer}{path}").into());
    }
    if setup.registration == Registration::Off {
        document.remove("registration_endpoint");
    }
    let grants = [
        "authorization_code",
        "refresh_token",
        "client_credentials",
        "urn:ietf:params:oauth:grant-type:device_code",
    ];
    let methods = ["none", "client_secret_basic", "client_secret_post"];
    document.insert("response_types_supported".into(), json!(["code"]));
    document.insert("grant_types_supported".into(), json!(grants));
    document.insert("token_endpoint_auth_methods_supported".into(), json!(methods));
    document.insert("code_challenge_methods_supported".into(), json!(["S256"]));
    document.insert("authorization_response_iss_parameter_supported".into(), true.into());
    if !setup.client_documents.is_empty() {
        document.insert("client_id_metadata_document_supported".into(), true.into());
    }
    if !setup.scopes.is_empty() {
        document.insert("scopes_supported".into(), json!(setup.scopes));
    }
    published(document, &setup.metadata.fields, &setup.metadata.manner).await
}

async fn published(
    mut document: Map<String, Value>,
    replaced: &Map<String, Value>,
    manner: &Manner,
) -> Response<Reply> {
    replace(&mut document, replaced);
    mannered(document, manner).await
}

/// Replaces fields of a document; `null` removes one.
pub(super) fn replace(document: &mut Map<String, Value>, replaced: &Map<String, Value>) {
    for (field, value) in replaced {
        match value {
            Value::Null => drop(document.remove(field)),
            value => drop(document.insert(field.clone(), value.clone())),
        }
    }
}

/// A JSON object as a response with the scripted fault.
pub(super) async fn mannered(object: Map<String, Value>, manner: &Manner) -> Response<Reply> {
    let text = Value::from(object).to_string();
    let members = text.strip_suffix('}').unwrap_or_default();
    match manner {
        Manner::Right | Manner::Late => json_text(200, text),
        Manner::Status(status) => empty(*status),
        Manner::Busy { retry_after } => {
            sealed(Response::builder().status(429).header(RETRY_AFTER, *retry_after), "")
        }
        Manner::Error(code) => error(400, code),
        Manner::Hang => pending().await,
        Manner::Html => page(200, "Sign in to the network first."),
        Manner::PlainText => sealed(Response::builder().header(CONTENT_TYPE, "text/plain"), text),
        Manner::Huge => json_text(200, format!(r#"{members},"padding":"{}"}}"#, "x".repeat(HUGE))),
        Manner::Deep => {
            let (open, close) = ("[".repeat(DEEP), "]".repeat(DEEP));
            json_text(200, format!(r#"{members},"depth":{open}{close}}}"#))
        }
        Manner::Redirect(to) => redirect(to),
        Manner::Raw { headers, body } => {
            let response = headers.iter().fold(Response::builder(), |response, (name, value)| {
                response.header(name.as_str(), value.as_str())
            });
            sealed(response, body.clone())
        }
    }
}

pub(super) fn json_text(status: u16, text: String) -> Response<Reply> {
    let response = Response::builder().status(status).header(CONTENT_TYPE, "application/json");
    sealed(response.header(CACHE_CONTROL, "no-store"), text)
}

/// An error response of RFC 6749.
pub(super) fn error(status: u16, code: &str) -> Response<Reply> {
    json_text(status, json!({ "error": code }).to_string())
}

pub(super) fn page(status: u16, text: &str) -> Response<Reply> {
    let response = Response::builder().status(status).header(CONTENT_TYPE, "text/html");
    sealed(response, format!("<!doctype html><title>authority</title><p>{text}</p>"))
}

pub(super) fn redirect(to: &str) -> Response<Reply> {
    sealed(Response::builder().status(302).header(LOCATION, to), "")
}

pub(super) fn empty(status: u16) -> Response<Reply> {
    sealed(Response::builder().status(status), "")
}

fn sealed(response: Builder, body: impl Into<Bytes>) -> Response<Reply> {
    response.body(whole(body)).expect("a scripted response is valid")
}
