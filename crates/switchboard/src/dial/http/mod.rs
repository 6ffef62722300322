//! Servers at a URL: the endpoint, and the headers and credentials of each request.

mod client;
mod dynamic;
mod headers;
mod sign;
mod terms;

use std::path::PathBuf;
use std::sync::Arc;

use switchboard_core::config::auth::{Auth, OAuthOptions, RequestHeadersCommand};
use switchboard_core::config::expand;
use switchboard_core::config::transport::HttpMode;
use switchboard_core::config::values::{Template, TemplateMap};
use switchboard_core::name::ServerName;
use switchboard_wire::http_client::{Client, Endpoint, HeaderMap, HttpTransport, Signer, Url};
use switchboard_wire::websocket;

pub(crate) use client::Clients;
use client::Versions;

use super::sealed;
use super::spawn::Spawner;
use crate::auth::{Account, Accounts, SignIn, Vault, tokens};
use crate::env::Environment;
use crate::trust::Seal;
use crate::upstream::DialError;
use dynamic::{Asking, DynamicHeaders};
use sign::Signers;

/// A server at a URL as written in the configuration; variables are expanded at dial time.
#[derive(PartialEq)]
pub(crate) struct RemoteRecipe {
    pub(crate) server: ServerName,
    pub(crate) url: Template,
    pub(crate) speaks: Speaks,
    pub(crate) headers: TemplateMap,
    pub(crate) auth: Option<Auth>,
    pub(crate) bearer_token: Option<Template>,
    pub(crate) bearer_token_env: Option<String>,
    pub(crate) bearer_token_store: bool,
    /// The `account` of the entry, for a URL with several accounts.
    pub(crate) account: Option<String>,
    /// The options for a sign-in; `None` if the entry excludes it.
    pub(crate) oauth: Option<OAuthOptions>,
    /// The vault that holds the tokens of the server.
    pub(crate) vault: Vault,
    pub(crate) headers_command: Option<RequestHeadersCommand>,
    pub(crate) ca_file: Option<Template>,
    pub(crate) environment: Environment,
    /// The approval, checked at dial time; `None` unless the server belongs to a project.
    pub(crate) seal: Option<Seal>,
}

/// The protocol that the server at a URL speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Http(HttpMode),
    WebSocket,
}

/// The client, headers and signer for the requests to a server.
struct Means {
    client: Client,
    headers: HeaderMap,
    signer: Option<Arc<dyn Signer>>,
    signed_in: SignedIn,
}

/// The credentials of a connection's requests, if they come from the vault or a program.
#[derive(Clone, Default)]
pub(crate) struct SignedIn {
    account: Option<Arc<Account>>,
    asked: Option<Arc<DynamicHeaders>>,
}

impl SignedIn {
    /// Whether the credentials can change during the connection.
    pub(crate) fn can_change(&self) -> bool {
        self.account.is_some() || self.asked.is_some()
    }

    /// Adopts changes that other processes made to the account, and requests new values for headers
    /// whose lifetime is over.
    pub(crate) async fn follow(&self) {
        if let Some(account) = &self.account {
            // An error is ignored, because it will also fail the next request, which reports it.
            let _reported_by_next_request = account.follow().await;
        }
        if let Some(asked) = &self.asked {
            asked.follow().await;
        }
    }

    /// Whether a program has returned another credential since this method was last called.
    pub(crate) fn take_change(&self) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.take_change())
    }

    /// Marks the credential as changed again, because the server could not be listed with it.
    pub(crate) fn keep_change(&self) {
        self.asked.iter().for_each(|asked| asked.keep_change());
    }

    /// The identity of the secret that requests use now, which may change during the connection.
    pub(crate) fn identity(&self) -> Option<String> {
        let of_account = self.account.as_ref().and_then(|account| account.identity());
        of_account.or_else(|| self.asked.as_ref()?.identity())
    }
}

impl std::fmt::Debug for SignedIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignedIn").finish_non_exhaustive()
    }
}

impl RemoteRecipe {
    /// The endpoint of a server over HTTP.
    pub(crate) async fn endpoint(
        &self,
        mode: HttpMode,
        spawner: &Arc<dyn Spawner>,
        accounts: &Accounts,
    ) -> Result<(Endpoint, SignedIn), DialError> {
        let url = self.url()?;
        let Means { client, headers, signer, signed_in } =
            self.means(&url, Versions::Newest, spawner, accounts).await?;
        let mode = match mode {
            HttpMode::Negotiated => HttpTransport::Negotiated,
            HttpMode::Streamable => HttpTransport::Streamable,
            HttpMode::Sse => HttpTransport::Sse,
        };
        let quiet = accounts.clients().quiet_of(&url);
        Ok((Endpoint { url, mode, client, headers, signer, quiet }, signed_in))
    }

    /// The endpoint of a server over WebSocket.
    pub(crate) async fn handshake(
        &self,
        spawner: &Arc<dyn Spawner>,
        accounts: &Accounts,
    ) -> Result<(websocket::Endpoint, SignedIn), DialError> {
        let url = self.url()?;
        let Means { client, headers, signer, signed_in } =
            self.means(&url, Versions::Http1, spawner, accounts).await?;
        Ok((websocket::Endpoint { url, client, headers, signer }, signed_in))
    }

    /// The URL of the entry with all variables expanded, to which tokens are bound.
    fn address(&self) -> Result<String, DialError> {
        let address = self.environment.expanding(|with| expand::expand_url(&self.url, with))?;
        Ok(tokens::one_spelling(address))
    }

    /// The URL that requests go to. A WebSocket handshake is an HTTP request, too.
    fn url(&self) -> Result<Url, DialError> {
        let mut url =
            Url::parse(&self.address()?).ok().filter(Url::has_host).ok_or(DialError::BadUrl)?;
        let scheme = match (self.speaks, url.scheme()) {
            (_, "http") | (Speaks::WebSocket, "ws") => "http",
            (_, "https") | (Speaks::WebSocket, "wss") => "https",
            (Speaks::Http(_) | Speaks::WebSocket, _) => return Err(DialError::BadUrl),
        };
        url.set_scheme(scheme).map_err(|()| DialError::BadUrl)?;
        Ok(url)
    }

    /// Creates the client, headers and signer, and requests all secrets for them. If the definition
    /// has changed since the approval, no program runs and nothing is sent.
    async fn means(
        &self,
        url: &Url,
        versions: Versions,
        spawner: &Arc<dyn Spawner>,
        accounts: &Accounts,
    ) -> Result<Means, DialError> {
        let address = self.address()?;
        let headers = self.environment.expanding(|with| headers::of(self, &address, with));
        let (headers, asked) = headers?;
        let commands = asked.iter().filter_map(|asked| asked.command()).collect();
        sealed(self.seal.as_ref(), &self.environment, commands).await?;
        let mut signers: Vec<Arc<dyn Signer>> = Vec::new();
        let mut signed_in = SignedIn::default();
        if !asked.is_empty() {
            let (spawner, environment) = (Arc::clone(spawner), self.environment.clone());
            let asking = Asking { spawner, environment, seal: self.seal.clone() };
            let asked = Arc::new(DynamicHeaders::new(asked, asking).await?);
            signed_in.asked = Some(Arc::clone(&asked));
            signers.push(asked);
        }
        if let Some(account) = self.account(url, spawner, accounts).await? {
            account.open().await.map_err(DialError::Account)?;
            signed_in.account = Some(Arc::clone(&account));
            signers.push(account);
        }
        if let Some(command) = &self.headers_command {
            let command = sign::HeadersCommand::new(command, &self.environment, spawner)?;
            signers.push(Arc::new(command));
        }
        let client = match self.ca_path()? {
            None => accounts.clients().client_for(url, versions).await?,
            Some(path) => accounts.clients().client_trusting(path, versions).await?,
        };
        Ok(Means { client, headers, signer: Signers::of(signers), signed_in })
    }

    /// The account for the requests, unless the entry excludes a sign-in.
    async fn account(
        &self,
        url: &Url,
        spawner: &Arc<dyn Spawner>,
        accounts: &Accounts,
    ) -> Result<Option<Arc<Account>>, DialError> {
        let terms = self.terms(url, spawner).await?;
        Ok(terms.map(|terms| accounts.of(terms, &self.vault)))
    }

    /// The sign-in to this server, unless the entry excludes it.
    pub(crate) async fn sign_in(
        &self,
        spawner: &Arc<dyn Spawner>,
        accounts: &Accounts,
    ) -> Result<Option<SignIn>, DialError> {
        let account = self.account(&self.url()?, spawner, accounts).await?;
        Ok(account.map(SignIn::new))
    }

    fn ca_path(&self) -> Result<Option<PathBuf>, DialError> {
        let Some(ca_file) = &self.ca_file else { return Ok(None) };
        let path = self.environment.expanding(|with| expand::expand(ca_file, with))?;
        Ok(Some(self.environment.cwd.join(path)))
    }

    /// Whether each message is an HTTP request with its own headers.
    pub(crate) fn has_headers(&self) -> bool {
        matches!(self.speaks, Speaks::Http(_))
    }

    /// Whether only the HTTP+SSE transport is configured.
    pub(crate) fn is_event_stream(&self) -> bool {
        matches!(self.speaks, Speaks::Http(HttpMode::Sse))
    }
}
