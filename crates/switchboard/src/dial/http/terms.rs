//! Whether a server's entry permits a sign-in, and the terms of the sign-in.

use std::sync::Arc;

use switchboard_core::config::auth::OAuthOptions;
use switchboard_core::config::expand::{self, ExpandError, Expanded, Surroundings};
use switchboard_core::config::values::Template;
use switchboard_wire::http_client::Url;

use super::RemoteRecipe;
use crate::auth::terms::{Options, Terms};
use crate::dial::spawn::Spawner;
use crate::dial::{sealed, secret};
use crate::secret::Secret;
use crate::upstream::{DialError, secret_program};

impl RemoteRecipe {
    /// The terms of a sign-in to this server; `None` if its entry configures other credentials or
    /// none.
    pub(super) async fn terms(
        &self,
        url: &Url,
        spawner: &Arc<dyn Spawner>,
    ) -> Result<Option<Terms>, DialError> {
        let Some(configured) = &self.oauth else { return Ok(None) };
        let (mut options, secret) = self.environment.expanding(|with| fill(configured, with))?;
        options.client_secret = match secret {
            None => None,
            Some(Expanded::Text(text)) => Some(Secret::new(text)),
            Some(Expanded::Command(words)) => {
                sealed(self.seal.as_ref(), &self.environment, vec![words.clone()]).await?;
                let program = secret_program(&self.environment, words, &self.environment.cwd);
                let asked = secret::ask(Arc::clone(spawner), program).await;
                let helper = configured.client_secret.as_ref().and_then(Template::program);
                let name = "oauth.clientSecret".to_owned();
                let failed =
                    |cause| DialError::Secret { name, helper: helper.unwrap_or_default(), cause };
                Some(asked.map_err(failed)?)
            }
        };
        if self.seal.is_some() {
            options = of_project(options);
        }
        Ok(Some(Terms {
            server: self.server.clone(),
            url: url.clone(),
            account: self.account.clone(),
            ca_file: self.ca_path()?,
            named: options.metadata_url.clone(),
            options,
        }))
    }
}

/// Removes the options with which a project could choose the authorization server. A project that
/// combines the sign-in page of one server with its own token endpoint would receive the
/// authorization codes.
fn of_project(options: Options) -> Options {
    Options { metadata_url: None, issuer_unchecked: false, ..options }
}

/// The options and the client secret with all variables expanded; a command may supply the secret.
fn fill(
    options: &OAuthOptions,
    with: &Surroundings<'_>,
) -> Result<(Options, Option<Expanded>), DialError> {
    let text = |template: &Option<Template>| -> Result<Option<String>, ExpandError> {
        template.as_ref().map(|template| expand::expand(template, with)).transpose()
    };
    let metadata_url = text(&options.auth_server_metadata_url)?;
    let metadata_url = metadata_url.map(|url| {
        let incorrect = |_| DialError::Incorrect { name: "oauth.authServerMetadataUrl" };
        Url::parse(&url).map_err(incorrect)
    });
    let mut params = Vec::new();
    for (name, value) in options.authorization_params.iter() {
        params.push((name.to_owned(), expand::expand(value, with)?));
    }
    let secret = options.client_secret.as_ref();
    let secret = secret.map(|secret| expand::expand_value(secret, with)).transpose()?;
    let options = Options {
        grant: options.grant_type,
        client_id: text(&options.client_id)?,
        client_secret: None,
        client_metadata_url: text(&options.client_metadata_url)?,
        scope: text(&options.scope)?,
        params,
        redirect: text(&options.redirect_uri)?,
        client_name: text(&options.client_name)?,
        client_uri: text(&options.client_uri)?,
        logo_uri: text(&options.logo_uri)?,
        metadata_url: metadata_url.transpose()?,
        issuer_unchecked: options.skip_issuer_metadata_validation,
    };
    Ok((options, secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn project_cannot_set_the_authorization_server() {
        let options = Options {
            client_id: Some("client".to_owned()),
            metadata_url: Some(Url::parse("https://auth.example/metadata").unwrap()),
            issuer_unchecked: true,
            ..Options::default()
        };
        let expected = Options { client_id: options.client_id.clone(), ..Options::default() };
        assert_eq!(of_project(options), expected);
    }
}
