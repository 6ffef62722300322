//! Servers at a URL: where they are, and what is said to them with every request.

mod client;
mod headers;
mod sign;

use std::path::PathBuf;
use std::sync::Arc;

use switchboard_core::config::auth::{Auth, RequestHeadersCommand};
use switchboard_core::config::expand;
use switchboard_core::config::transport::HttpMode;
use switchboard_core::config::values::{Template, TemplateMap};
use switchboard_wire::http_client::{Endpoint, Mode, Signer, Url};

pub(crate) use client::{Clients, NoSuchHost};

use super::sealed;
use super::spawn::Spawner;
use crate::env::Environment;
use crate::trust::Seal;
use crate::upstream::DialError;
use headers::Values;

/// A server at a URL as the configuration writes it: expanded only when it is dialled.
#[derive(PartialEq)]
pub(crate) struct RemoteRecipe {
    pub(crate) url: Template,
    pub(crate) mode: HttpMode,
    pub(crate) headers: TemplateMap,
    pub(crate) auth: Option<Auth>,
    pub(crate) bearer_token: Option<Template>,
    pub(crate) bearer_token_env: Option<String>,
    pub(crate) headers_command: Option<RequestHeadersCommand>,
    pub(crate) ca_file: Option<Template>,
    pub(crate) environment: Environment,
    /// The approval that a project's server is dialled under.
    pub(crate) seal: Option<Seal>,
}

impl RemoteRecipe {
    /// The endpoint with every variable filled in and every secret asked for. Nothing runs, and
    /// nothing is sent, unless the definition is still what was approved.
    pub(crate) async fn endpoint(
        &self,
        spawner: &Arc<dyn Spawner>,
        clients: &Clients,
    ) -> Result<Endpoint, DialError> {
        let url = self.environment.expanding(|with| expand::expand_url(&self.url, with))?;
        let url = Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.filter(Url::has_host).ok_or(DialError::BadUrl)?;
        let values = self.environment.expanding(|with| Values::of(self, with))?;
        sealed(self.seal.as_ref(), &self.environment, values.commands()).await?;
        let headers = values.headers(spawner, &self.environment).await?;
        let signer = self.headers_command.as_ref().map(|command| {
            let command = sign::HeadersCommand::new(command, &self.environment, spawner)?;
            Ok::<Arc<dyn Signer>, DialError>(Arc::new(command))
        });
        let client = match &self.ca_file {
            None => clients.client_for(&url).await?,
            Some(ca_file) => {
                let path = self.environment.expanding(|with| expand::expand(ca_file, with))?;
                clients.client_trusting(self.environment.cwd.join(PathBuf::from(path))).await?
            }
        };
        let (quiet, signer) = (clients.quiet_of(&url), signer.transpose()?);
        Ok(Endpoint { url, mode: self.mode(), client, headers, signer, quiet })
    }

    /// Whether nothing but the older event stream is spoken there.
    pub(crate) fn is_event_stream(&self) -> bool {
        self.mode() == Mode::Sse
    }

    fn mode(&self) -> Mode {
        match self.mode {
            HttpMode::Negotiated => Mode::Negotiated,
            HttpMode::Streamable => Mode::Streamable,
            HttpMode::Sse => Mode::Sse,
        }
    }
}
