//! Routes a request to its endpoint and records it in the ledger.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hyper::Response;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::http::request::Parts;
use serde_json::Value;
use url::form_urlencoded;

use super::documents::{self, empty};
use super::ledger::{Endpoint, Seen, fingerprint};
use super::setup::{MetadataPlace, ResourcePlace, Setup};
use super::{MOVED, Stage, authorize, guard, lock, register, token};
use crate::fixture::Reply;

/// The servers at an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Resource,
    Authority,
    Both,
}

/// A parsed request to an endpoint of the authorization server.
pub(super) struct Asked<'a> {
    pub(super) stage: &'a Stage,
    /// The setup when the request arrived.
    pub(super) setup: Setup,
    /// The issuer that owns the endpoint.
    pub(super) issuer: String,
    pub(super) fields: Fields,
    /// The client authentication of the request.
    pub(super) claim: Option<token::Claim>,
    pub(super) body: &'a [u8],
}

/// The parameters of a request.
#[derive(Debug, Default)]
pub(super) struct Fields {
    by_name: BTreeMap<String, String>,
    /// Whether a parameter is repeated, which OAuth forbids.
    pub(super) repeated: bool,
}

impl Fields {
    fn parse(text: &[u8]) -> Self {
        let mut fields = Self::default();
        for (name, value) in form_urlencoded::parse(text) {
            let before = fields.by_name.insert(name.into_owned(), value.into_owned());
            fields.repeated |= before.is_some();
        }
        fields
    }

    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.by_name.get(name).map(String::as_str)
    }

    /// The requested scopes.
    pub(super) fn scopes(&self) -> Option<Vec<String>> {
        let scope = self.value("scope")?;
        Some(scope.split_ascii_whitespace().map(str::to_owned).collect())
    }
}

pub(super) async fn answer(
    stage: &Arc<Stage>,
    role: Role,
    head: &Parts,
    body: &[u8],
) -> Response<Reply> {
    let setup = stage.setup();
    let (endpoint, tenant) = endpoint(&setup, role, head.uri.path());
    let fields = match endpoint {
        Endpoint::Token | Endpoint::Device | Endpoint::Revoke => Fields::parse(body),
        Endpoint::Mcp
        | Endpoint::ResourceMetadata
        | Endpoint::Metadata
        | Endpoint::Register
        | Endpoint::Authorize
        | Endpoint::DevicePage
        | Endpoint::Unknown => Fields::parse(head.uri.query().unwrap_or_default().as_bytes()),
    };
    let claim = token::Claim::of(header(head, AUTHORIZATION.as_str()), &fields);
    let message = match endpoint == Endpoint::Mcp {
        true => serde_json::from_slice(body).unwrap_or_default(),
        false => Value::Null,
    };
    let bearer = guard::bearer(head);
    note(stage, head, (endpoint, &tenant), (&fields, claim.as_ref()), (&message, bearer));
    if endpoint == Endpoint::Mcp {
        return match (&setup.sends_on, guard::refusal(stage, &setup, bearer, &message)) {
            (Some(to), _) => documents::redirect(to),
            (None, Some(refusal)) => refusal,
            (None, None) => stage.mcp.answer(head, body).await,
        };
    }
    if setup.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(setup.delay_ms)).await;
    }
    let issuer = format!("{}{tenant}", stage.origin);
    let asked = Asked { stage, setup, issuer, fields, claim, body };
    match (endpoint, head.method.as_str()) {
        (Endpoint::ResourceMetadata, "GET") => documents::resource(&asked).await,
        (Endpoint::Metadata, "GET") => documents::metadata(&asked).await,
        (Endpoint::Authorize, "GET") => authorize::authorize(&asked),
        (Endpoint::DevicePage, "GET") => authorize::device_page(&asked),
        (Endpoint::Register, "POST") => register::register(&asked).await,
        (Endpoint::Device, "POST") => register::device(&asked),
        (Endpoint::Revoke, "POST") => register::revoke(&asked),
        (Endpoint::Token, "POST") => token::token(&asked).await,
        (Endpoint::Unknown, _) => empty(404),
        _ => empty(405),
    }
}

/// The endpoint at a path, and its tenant.
fn endpoint(setup: &Setup, role: Role, path: &str) -> (Endpoint, String) {
    let no_tenant = String::new();
    if role != Role::Authority {
        let published = |place: &ResourcePlace| documents::resource_path(*place) == path;
        if path == "/mcp" {
            return (Endpoint::Mcp, no_tenant);
        }
        if setup.resource.places.iter().any(published) {
            return (Endpoint::ResourceMetadata, no_tenant);
        }
    }
    if role != Role::Resource {
        for tenant in [setup.tenant.as_str(), MOVED] {
            let published =
                |place: &MetadataPlace| documents::metadata_path(*place, tenant) == path;
            let endpoint = match path.strip_prefix(tenant) {
                _ if setup.metadata.places.iter().any(published) => Endpoint::Metadata,
                Some("/authorize") => Endpoint::Authorize,
                Some("/token") => Endpoint::Token,
                Some("/register") => Endpoint::Register,
                Some("/device") => Endpoint::Device,
                Some("/device/approve") => Endpoint::DevicePage,
                Some("/revoke") => Endpoint::Revoke,
                _ => continue,
            };
            return (endpoint, tenant.to_owned());
        }
    }
    (Endpoint::Unknown, no_tenant)
}

fn note(
    stage: &Stage,
    head: &Parts,
    (endpoint, tenant): (Endpoint, &str),
    (fields, claim): (&Fields, Option<&token::Claim>),
    (message, bearer): (&Value, Option<&str>),
) {
    let field = |name: &str| fields.value(name).map(str::to_owned);
    let token = fields.value("refresh_token").or_else(|| fields.value("token")).or(bearer);
    let seen = Seen {
        endpoint,
        tenant: tenant.to_owned(),
        host: header(head, HOST.as_str()).unwrap_or_default().to_owned(),
        method: message["method"].as_str().map(str::to_owned),
        grant_type: field("grant_type"),
        client: claim.map(|claim| claim.client.clone()),
        client_auth: claim.map(|claim| claim.method),
        token: token.map(fingerprint),
        resource: field("resource"),
        scope: field("scope"),
    };
    stage.ledger.note(|record| {
        record.visits +=
            usize::from(matches!(endpoint, Endpoint::Authorize | Endpoint::DevicePage));
        record.requests.push(seen);
    });
}

pub(super) fn header<'a>(head: &'a Parts, name: &str) -> Option<&'a str> {
    head.headers.get(name)?.to_str().ok()
}

impl Asked<'_> {
    /// Whether the request names the protected resource (RFC 8707).
    pub(super) fn names_the_resource(&self) -> bool {
        self.fields.value("resource") == Some(&self.stage.mcp_url())
    }

    /// The requested scopes, if all of them can be granted.
    pub(super) fn grantable(&self) -> Option<Vec<String>> {
        let known = &self.setup.scopes;
        let asked = self.fields.scopes().unwrap_or_default();
        let all = known.is_empty() || asked.iter().all(|scope| known.contains(scope));
        all.then_some(asked)
    }

    pub(super) fn client(&self, id: &str) -> Option<super::books::Client> {
        let registered = {
            let books = lock(&self.stage.books);
            let mut clients = books.clients.iter();
            clients.find(|client| client.issuer == self.issuer && client.id == id).cloned()
        };
        registered.or_else(|| register::known(&self.setup, &self.stage.origin, &self.issuer, id))
    }
}
