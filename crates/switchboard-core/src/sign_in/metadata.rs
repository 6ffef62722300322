//! Locates and parses the metadata of servers and authorization servers (RFC 9728, RFC 8414, OpenID
//! Connect Discovery).

use serde_json::{Map, Value};
use url::Url;

use super::address::Reach;
use super::link::{self, BadLink, shown};
use super::scope;
use crate::nesting::is_deeper;

/// The maximum nesting of a metadata document.
const DEEPEST: usize = 16;

/// The maximum number of authorization servers of one server. Further authorization servers are
/// ignored.
const MOST_AUTHORITIES: usize = 4;

/// Protected resource metadata: the resource for which tokens are valid, and the authorization
/// servers that issue them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The resource exactly as it is written, because requests must repeat it byte for byte.
    pub resource: String,
    /// The issuers of the authorization servers, exactly as they are written.
    pub authorities: Vec<String>,
    pub scopes: Vec<String>,
}

/// Authorization server metadata, in which all URLs were checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The issuer exactly as it is written, because callbacks repeat it byte for byte.
    pub issuer: String,
    pub authorization: Option<Url>,
    pub token: Url,
    pub registration: Option<Url>,
    pub device: Option<Url>,
    pub revocation: Option<Url>,
    pub scopes: Vec<String>,
    /// The methods of client authentication; `None` if the document has none.
    pub methods: Option<Vec<String>>,
    /// Whether the authorization server supports client ID metadata documents.
    pub client_documents: bool,
    /// Whether each callback has `iss` (RFC 9207).
    pub issuer_promised: bool,
    pub proof: Proof,
}

/// Whether the authorization server supports PKCE with S256, which makes an intercepted code
/// useless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    Offered,
    NotOffered,
}

/// Why a metadata document is refused. Text from the document is limited in length, and safe for a
/// terminal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDocument {
    #[error("the document is not a JSON object")]
    NotJson,
    #[error("the document is nested deeper than {DEEPEST} levels")]
    TooDeep,
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`{0}` has the wrong type")]
    WrongType(&'static str),
    #[error("`resource` is `{found}`, which is not this server")]
    OtherResource { found: String },
    #[error("`issuer` is `{found}`, expected `{expected}`")]
    OtherIssuer { found: String, expected: String },
    #[error("the URL `{field}` is refused")]
    Link {
        field: &'static str,
        #[source]
        cause: BadLink,
    },
}

/// The issuer that a document must name.
#[derive(Clone, Copy, Debug)]
pub enum Issuer<'a> {
    /// The document must name the issuer from which its URL was derived.
    Is(&'a str),
    /// The issuer is not checked, because the user configured the document's URL or disabled the
    /// check. Without an issuer in the document, this one is assumed.
    Assumed(&'a str),
}

impl Resource {
    /// The URLs where the protected resource metadata may be, the most likely one first.
    pub fn locations(server: &Url) -> Vec<Url> {
        let path = server.path().trim_end_matches('/');
        let mut locations = vec![
            at(server, &format!("/.well-known/oauth-protected-resource{path}")),
            at(server, "/.well-known/oauth-protected-resource"),
        ];
        locations.dedup();
        locations
    }

    /// Parses protected resource metadata. The resource in it must be this server.
    pub fn read(body: &[u8], server: &Url) -> Result<Resource, BadDocument> {
        let document = Document::read(body)?;
        let resource = document.text("resource")?.ok_or(BadDocument::Missing("resource"))?;
        let parsed = Url::parse(&resource).ok().filter(|url| url.fragment().is_none());
        if !parsed.is_some_and(|resource| covers(&resource, server)) {
            return Err(BadDocument::OtherResource { found: shown(&resource) });
        }
        let mut authorities = document.texts("authorization_servers")?.unwrap_or_default();
        authorities.truncate(MOST_AUTHORITIES);
        if authorities.is_empty() {
            return Err(BadDocument::Missing("authorization_servers"));
        }
        let scopes = document.texts("scopes_supported")?.unwrap_or_default();
        let scopes = scope::of(scopes.iter().map(String::as_str));
        Ok(Resource { resource, authorities, scopes })
    }
}

/// Whether a resource is the server's URL, or a parent path of it with the same origin.
fn covers(resource: &Url, server: &Url) -> bool {
    let within = |whole: &str, part: &str| {
        let rest = part.strip_prefix(whole.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let same_place = resource.origin() == server.origin() && within(resource.path(), server.path());
    same_place && resource.query().is_none_or(|query| server.query() == Some(query))
}

impl Authority {
    /// The URLs where the authorization server metadata may be, in the order that the specification
    /// requires.
    pub fn locations(issuer: &Url) -> Vec<Url> {
        let path = issuer.path().trim_end_matches('/');
        let mut paths = vec![
            format!("/.well-known/oauth-authorization-server{path}"),
            format!("/.well-known/openid-configuration{path}"),
        ];
        if !path.is_empty() {
            paths.push(format!("{path}/.well-known/openid-configuration"));
        }
        paths.iter().map(|path| at(issuer, path)).collect()
    }

    /// The default endpoints of revision 2025-03-26, for a server that publishes no metadata.
    pub fn assumed(server: &Url) -> Authority {
        Authority {
            issuer: server.origin().ascii_serialization(),
            authorization: Some(at(server, "/authorize")),
            token: at(server, "/token"),
            registration: Some(at(server, "/register")),
            device: None,
            revocation: None,
            scopes: Vec::new(),
            methods: None,
            client_documents: false,
            issuer_promised: false,
            proof: Proof::Offered,
        }
    }

    /// Parses authorization server metadata, and checks the addresses of all URLs in it.
    pub fn read(body: &[u8], issuer: Issuer<'_>, reach: &Reach) -> Result<Authority, BadDocument> {
        let document = Document::read(body)?;
        let issuer = document.issuer(issuer)?;
        let address = |field| document.address(field, reach);
        let scopes = document.texts("scopes_supported")?.unwrap_or_default();
        let proofs = document.texts("code_challenge_methods_supported")?.unwrap_or_default();
        Ok(Authority {
            issuer,
            authorization: address("authorization_endpoint")?,
            token: address("token_endpoint")?.ok_or(BadDocument::Missing("token_endpoint"))?,
            registration: address("registration_endpoint")?,
            device: address("device_authorization_endpoint")?,
            revocation: address("revocation_endpoint")?,
            scopes: scope::of(scopes.iter().map(String::as_str)),
            methods: document.texts("token_endpoint_auth_methods_supported")?,
            client_documents: document.flag("client_id_metadata_document_supported")?,
            issuer_promised: document.flag("authorization_response_iss_parameter_supported")?,
            proof: match proofs.iter().any(|method| method == "S256") {
                true => Proof::Offered,
                false => Proof::NotOffered,
            },
        })
    }
}

/// The URL of `path` with the origin of `site`.
fn at(site: &Url, path: &str) -> Url {
    let mut url = site.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.set_path(path);
    url
}

/// A JSON object from the network.
struct Document(Map<String, Value>);

impl Document {
    fn read(body: &[u8]) -> Result<Document, BadDocument> {
        let text = std::str::from_utf8(body).map_err(|_| BadDocument::NotJson)?;
        if is_deeper(text, DEEPEST) {
            return Err(BadDocument::TooDeep);
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => Ok(Document(fields)),
            Ok(_) | Err(_) => Err(BadDocument::NotJson),
        }
    }

    /// A field of the document. `null` means missing, because authorization servers write it for
    /// missing fields.
    fn field(&self, name: &'static str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &'static str) -> Result<Option<String>, BadDocument> {
        match self.field(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(BadDocument::WrongType(name)),
        }
    }

    fn texts(&self, name: &'static str) -> Result<Option<Vec<String>>, BadDocument> {
        let texts = match self.field(name) {
            None => return Ok(None),
            Some(Value::Array(values)) => {
                values.iter().map(|value| value.as_str().map(str::to_owned))
            }
            Some(_) => return Err(BadDocument::WrongType(name)),
        };
        texts.collect::<Option<Vec<String>>>().ok_or(BadDocument::WrongType(name)).map(Some)
    }

    fn flag(&self, name: &'static str) -> Result<bool, BadDocument> {
        match self.field(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(BadDocument::WrongType(name)),
        }
    }

    /// The URL of an endpoint. It must not have a fragment (RFC 6749, 3.1 and 3.2).
    fn address(&self, field: &'static str, reach: &Reach) -> Result<Option<Url>, BadDocument> {
        let Some(text) = self.text(field)? else { return Ok(None) };
        link::endpoint(&text, reach).map(Some).map_err(|cause| BadDocument::Link { field, cause })
    }

    fn issuer(&self, expected: Issuer<'_>) -> Result<String, BadDocument> {
        let found = self.text("issuer")?;
        match (expected, found) {
            (Issuer::Is(_), None) => Err(BadDocument::Missing("issuer")),
            (Issuer::Is(expected), Some(found)) if !is_same(expected, &found) => {
                let (found, expected) = (shown(&found), shown(expected));
                Err(BadDocument::OtherIssuer { found, expected })
            }
            (Issuer::Is(_) | Issuer::Assumed(_), Some(found)) => Ok(found),
            (Issuer::Assumed(assumed), None) => Ok(assumed.to_owned()),
        }
    }
}

/// Whether two issuers are equal as text. If the path is only a slash, the slash is ignored,
/// because some authorization servers add it.
fn is_same(one: &str, other: &str) -> bool {
    let bare = |issuer: &str| issuer.strip_suffix('/').unwrap_or(issuer).to_owned();
    let is_root = |issuer: &str| Url::parse(issuer).is_ok_and(|url| url.path() == "/");
    one == other || (is_root(one) && bare(one) == bare(other))
}

#[cfg(test)]
mod tests;
