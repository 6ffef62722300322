//! Discovers the authorization server of a server (RFC 9728, RFC 8414), and reads its metadata.

use std::time::Duration;

use switchboard_core::config::secrecy::address;
use switchboard_core::render::words::clean_line;
use switchboard_core::sign_in::challenge::Challenge;
use switchboard_core::sign_in::link::{self, BadLink};
use switchboard_core::sign_in::metadata::{Authority, BadDocument, Issuer, Resource};
use url::Url;

use super::net::{Net, NetError, NetResponse};
use super::terms::Terms;

/// The maximum length, in characters, of a URL in an error message.
const SHOWN: usize = 100;

/// A server that requires tokens, and the authorization server that issues them.
#[derive(Debug)]
pub(super) struct ProtectedResource {
    pub(super) authority: Authority,
    /// The resource that tokens are requested for (RFC 8707).
    pub(super) resource: String,
    /// The scopes that the server lists in its metadata.
    pub(super) scopes: Vec<String>,
}

/// Why the authorization server of a server is unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiscoverError {
    #[error("cannot read `{url}`")]
    Net {
        url: String,
        #[source]
        cause: NetError,
    },
    #[error("`{url}` answered with HTTP status {status}")]
    Trouble { url: String, status: u16, retry_after: Option<Duration> },
    #[error("the metadata document at `{url}` is invalid")]
    Document {
        url: String,
        #[source]
        cause: BadDocument,
    },
    #[error("cannot use the authorization server `{issuer}` that the server names")]
    Issuer {
        issuer: String,
        #[source]
        cause: BadLink,
    },
    #[error("the authorization server `{issuer}` that the server names has no metadata")]
    Nowhere { issuer: String },
    #[error("cannot sign in: the URL of the server is not allowed")]
    Server(#[source] BadLink),
}

/// Finds the authorization server by the metadata that the server's challenge points to, else by
/// the well-known locations, else by the locations of revision 2025-03-26.
pub(super) async fn discover(
    net: &Net,
    terms: &Terms,
    challenge: &Challenge,
) -> Result<ProtectedResource, DiscoverError> {
    link::admissible(&terms.url, &terms.reach()).map_err(DiscoverError::Server)?;
    let resource = describe(net, &terms.url, challenge).await?;
    let (name, scopes) = match &resource {
        Some(resource) => (resource.resource.clone(), resource.scopes.clone()),
        None => (canonical(&terms.url), Vec::new()),
    };
    let authority = match (&terms.options.metadata_url, resource) {
        (Some(document), _) => {
            let origin = document.origin().ascii_serialization();
            let read = read_authority(net, terms, document, Issuer::Assumed(&origin)).await?;
            read.ok_or_else(|| DiscoverError::Nowhere { issuer: shown(document.as_str()) })?
        }
        (None, Some(resource)) => of_issuers(net, terms, &resource.authorities).await?,
        (None, None) => of_old(net, terms).await?,
    };
    Ok(ProtectedResource { authority, resource: name, scopes })
}

/// The metadata document of the server (RFC 9728); `None` if there is none. A metadata URL of
/// another origin in the challenge is ignored.
async fn describe(
    net: &Net,
    server: &Url,
    challenge: &Challenge,
) -> Result<Option<Resource>, DiscoverError> {
    let pointed = challenge.resource_metadata.as_deref().and_then(|text| server.join(text).ok());
    let pointed = pointed.filter(|url| url.origin() == server.origin());
    let usual = Resource::locations(server);
    let usual = usual.into_iter().filter(|url| pointed.as_ref() != Some(url));
    for url in pointed.iter().cloned().chain(usual) {
        let Some(answer) = document(net, &url).await? else { continue };
        match Resource::read(&answer.body, server) {
            Ok(resource) => return Ok(Some(resource)),
            // A page that is not JSON is ignored at a guessed location: some sites answer every
            // path with an HTML page.
            Err(BadDocument::NotJson) if pointed.as_ref() != Some(&url) => {}
            Err(cause) => return Err(DiscoverError::Document { url: shown_url(&url), cause }),
        }
    }
    Ok(None)
}

/// The first authorization server in `issuers` that has metadata.
async fn of_issuers(
    net: &Net,
    terms: &Terms,
    issuers: &[String],
) -> Result<Authority, DiscoverError> {
    let mut first = None;
    for issuer in issuers {
        match of_issuer(net, terms, issuer).await {
            Ok(authority) => return Ok(authority),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| DiscoverError::Nowhere { issuer: String::new() }))
}

async fn of_issuer(net: &Net, terms: &Terms, issuer: &str) -> Result<Authority, DiscoverError> {
    let bad = |cause| DiscoverError::Issuer { issuer: shown(issuer), cause };
    let url = link::endpoint(issuer, &terms.reach()).map_err(bad)?;
    for location in Authority::locations(&url) {
        let read = read_authority(net, terms, &location, expected(terms, issuer)).await?;
        if let Some(authority) = read {
            return Ok(authority);
        }
    }
    Err(DiscoverError::Nowhere { issuer: shown(issuer) })
}

/// The authorization server of a server without resource metadata (revision 2025-03-26): the
/// server's own origin, with metadata there or with endpoints at the default paths.
async fn of_old(net: &Net, terms: &Terms) -> Result<Authority, DiscoverError> {
    let origin = terms.url.origin().ascii_serialization();
    let own = canonical(&terms.url);
    let mut places = vec![(own.as_str(), terms.url.clone())];
    if own != origin
        && let Ok(root) = Url::parse(&origin)
    {
        places.push((&origin, root));
    }
    for (issuer, url) in places {
        for location in Authority::locations(&url) {
            match read_authority(net, terms, &location, expected(terms, issuer)).await {
                Ok(None) => {}
                Ok(Some(authority)) => return Ok(authority),
                // A page that is not JSON is ignored at a guessed location: some sites answer every
                // path with an HTML page.
                Err(DiscoverError::Document { cause: BadDocument::NotJson, .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(Authority::assumed(&terms.url))
}

fn expected<'a>(terms: &Terms, issuer: &'a str) -> Issuer<'a> {
    if terms.options.issuer_unchecked { Issuer::Assumed(issuer) } else { Issuer::Is(issuer) }
}

async fn read_authority(
    net: &Net,
    terms: &Terms,
    url: &Url,
    issuer: Issuer<'_>,
) -> Result<Option<Authority>, DiscoverError> {
    let Some(answer) = document(net, url).await? else { return Ok(None) };
    let read = Authority::read(&answer.body, issuer, &terms.reach());
    let bad = |cause| DiscoverError::Document { url: shown_url(url), cause };
    read.map(Some).map_err(bad)
}

/// Fetches a metadata document; `None` if it does not exist. A temporary HTTP error, such as status
/// 503, is an error, not a missing document.
async fn document(net: &Net, url: &Url) -> Result<Option<NetResponse>, DiscoverError> {
    let failed = |cause| DiscoverError::Net { url: shown_url(url), cause };
    let answer = net.get(url).await.map_err(failed)?;
    match answer.status {
        200 if answer.json => Ok(Some(answer)),
        408 | 425 | 429 | 500.. => Err(DiscoverError::Trouble {
            url: shown_url(url),
            status: answer.status,
            retry_after: answer.retry_after,
        }),
        _ => Ok(None),
    }
}

/// The resource identifier of a server without metadata: its URL without the fragment.
fn canonical(server: &Url) -> String {
    let mut url = server.clone();
    url.set_fragment(None);
    let text = String::from(url);
    match text.strip_suffix('/') {
        Some(bare) if server.path() == "/" && server.query().is_none() => bare.to_owned(),
        Some(_) | None => text,
    }
}

fn shown_url(url: &Url) -> String {
    shown(&address(url.as_str()))
}

fn shown(text: &str) -> String {
    clean_line(text, SHOWN).into_owned()
}
