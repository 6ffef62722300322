//! The HTTP requests of a sign-in: to permitted addresses only, with a bounded time and a bounded
//! response.

mod guard;

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use reqwest::header::{ACCEPT, LOCATION, WWW_AUTHENTICATE};
use reqwest::{RequestBuilder, Response};
use switchboard_core::render::words::clean_line;
use switchboard_core::sign_in::address::Reach;
use switchboard_core::sign_in::link::{self, BadLink};
use switchboard_wire::http_client::{
    Client, HeaderMap, HeaderValue, Url, content_type, retry_after,
};
use tokio::time::timeout;

use crate::dial::http::Clients;
use crate::upstream::{DialError, Unreachable};
use guard::{Guard, OutOfReach};

/// The timeout for a metadata document, including redirects.
const DOCUMENT: Duration = Duration::from_secs(5);

/// The timeout for an endpoint of an authorization server, which may have to query other services.
/// The timeout is shorter than a server's start timeout, so that a slow authorization server is not
/// reported as a server that does not respond.
const ENDPOINT: Duration = Duration::from_secs(20);

const LARGEST_BODY: usize = 64 * 1024;

const MOST_REDIRECTS: usize = 3;

/// The maximum length, in characters, of a hostname or origin in an error message.
const SHOWN: usize = 100;

/// Makes all requests of one sign-in.
///
/// If a proxy is configured, it resolves the hostnames, so their addresses cannot be checked here.
/// IP addresses in URLs are always checked.
#[derive(Clone)]
pub(crate) struct Net {
    client: Client,
    guard: Guard,
}

/// A response of an authorization server, which can hold tokens.
pub(crate) struct NetResponse {
    pub(crate) status: u16,
    /// Whether the content type of the response is JSON.
    pub(crate) json: bool,
    pub(crate) body: Vec<u8>,
    pub(crate) retry_after: Option<Duration>,
    /// The `WWW-Authenticate` challenges of the server.
    pub(crate) challenges: Vec<String>,
}

impl fmt::Debug for NetResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Why a request got no response. The error contains no data of the request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NetError {
    #[error("`{host}` resolves to an internal or reserved address")]
    Forbidden { host: String },
    #[error("the URL of the request is not permitted")]
    Address(#[source] BadLink),
    #[error("the request was redirected to another origin, `{origin}`")]
    Elsewhere { origin: String },
    #[error("the request was redirected more than {MOST_REDIRECTS} times")]
    EndlessRedirects,
    #[error("the response is larger than {} KiB", LARGEST_BODY / 1024)]
    TooLarge,
    #[error("the request timed out")]
    TimedOut,
    #[error("no response from `{origin}`")]
    Unreachable {
        origin: String,
        #[source]
        cause: Unreachable,
    },
}

impl Net {
    /// Creates the client for requests on behalf of a server with this reach. `ca_file` holds
    /// additional root certificates.
    pub(crate) async fn of(
        clients: &Clients,
        reach: Reach,
        ca_file: Option<PathBuf>,
    ) -> Result<Net, DialError> {
        let guard = Guard::new(clients, reach);
        let client = clients.client_looking_up(guard.clone(), ca_file).await?;
        Ok(Net { client, guard })
    }

    /// Fetches a document, and follows redirects within the same origin.
    pub(crate) async fn get(&self, url: &Url) -> Result<NetResponse, NetError> {
        timeout(DOCUMENT, self.follow(url)).await.map_err(|_| NetError::TimedOut)?
    }

    /// Posts to an endpoint with these headers, and follows no redirect.
    pub(crate) async fn post(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<NetResponse, NetError> {
        let asking = async {
            let request = self.client.post(url.clone()).headers(headers).body(body);
            NetResponse::of(self.send(url, request).await?).await
        };
        timeout(ENDPOINT, asking).await.map_err(|_| NetError::TimedOut)?
    }

    async fn follow(&self, url: &Url) -> Result<NetResponse, NetError> {
        let mut url = url.clone();
        for _ in 0..=MOST_REDIRECTS {
            let response = self.send(&url, self.client.get(url.clone())).await?;
            match sent_on(&response)? {
                None => return NetResponse::of(response).await,
                Some(to) => url = to,
            }
        }
        Err(NetError::EndlessRedirects)
    }

    async fn send(&self, url: &Url, request: RequestBuilder) -> Result<Response, NetError> {
        link::admissible(url, &self.guard.reach).map_err(|bad| match bad {
            BadLink::Internal { host } => NetError::Forbidden { host },
            bad => NetError::Address(bad),
        })?;
        if let Some(host) = url.domain()
            && !self.guard.admits(host).await
        {
            return Err(NetError::Forbidden { host: clean_line(host, SHOWN).into_owned() });
        }
        let request = request.header(ACCEPT, HeaderValue::from_static("application/json"));
        request.send().await.map_err(|error| failed(error, url))
    }
}

impl NetResponse {
    async fn of(mut response: Response) -> Result<NetResponse, NetError> {
        let headers = response.headers();
        let kind = content_type(headers);
        let mut answer = NetResponse {
            status: response.status().as_u16(),
            json: kind == "application/json" || kind.ends_with("+json"),
            body: Vec::new(),
            retry_after: retry_after(headers, SystemTime::now()),
            challenges: headers
                .get_all(WWW_AUTHENTICATE)
                .iter()
                .filter_map(|value| value.to_str().ok().map(str::to_owned))
                .collect(),
        };
        let url = response.url().clone();
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(error, &url))? {
            if answer.body.len() + chunk.len() > LARGEST_BODY {
                return Err(NetError::TooLarge);
            }
            answer.body.extend_from_slice(&chunk);
        }
        Ok(answer)
    }
}

/// The target of a redirect within the same origin; `None` if the response is no redirect.
fn sent_on(response: &Response) -> Result<Option<Url>, NetError> {
    let redirects = matches!(response.status().as_u16(), 301..=303 | 307 | 308);
    let Some(location) = response.headers().get(LOCATION).filter(|_| redirects) else {
        return Ok(None);
    };
    let from = response.url();
    let to = location.to_str().ok().and_then(|location| from.join(location).ok());
    match to {
        Some(to) if to.origin() == from.origin() => Ok(Some(to)),
        to => {
            let origin = to.map_or_else(String::new, |to| to.origin().ascii_serialization());
            Err(NetError::Elsewhere { origin: clean_line(&origin, SHOWN).into_owned() })
        }
    }
}

fn failed(error: reqwest::Error, url: &Url) -> NetError {
    // Without `without_url`, the error's message would contain the URL, whose query can hold
    // secrets.
    let error = error.without_url();
    let cause: &(dyn Error + 'static) = &error;
    let mut causes = std::iter::successors(Some(cause), |&error| error.source());
    if let Some(OutOfReach { host }) = causes.find_map(|cause| cause.downcast_ref()) {
        return NetError::Forbidden { host: clean_line(host, SHOWN).into_owned() };
    }
    match Unreachable::of(&error) {
        Unreachable::TimedOut => NetError::TimedOut,
        cause => NetError::Unreachable { origin: url.origin().ascii_serialization(), cause },
    }
}

#[cfg(test)]
mod tests;
