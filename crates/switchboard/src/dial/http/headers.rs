//! The headers that a server's entry asks for, with their secrets.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use switchboard_core::config::auth::{Auth, Credential};
use switchboard_core::config::expand::{self, ExpandError, Expanded, Surroundings};
use switchboard_core::config::values::Template;
use switchboard_wire::http_client::{HeaderMap, HeaderName, HeaderValue};
use tokio::task::JoinSet;

use super::RemoteRecipe;
use crate::dial::secret;
use crate::dial::spawn::Spawner;
use crate::env::Environment;
use crate::upstream::{DialError, secret_program};

/// Headers that say how a message is carried, which is not for a configuration to say.
const OURS: [&str; 8] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What becomes headers, with every variable filled in.
pub(super) struct Values {
    /// In order of precedence: a later one of the same header wins.
    values: Vec<Value>,
}

struct Value {
    /// As the user knows it, for messages.
    name: String,
    header: String,
    form: Form,
    source: Source,
}

/// Where a value comes from.
struct Source {
    value: Expanded,
    /// The program of a command as it is written, for messages.
    helper: String,
}

impl Source {
    fn of(template: &Template, with: &Surroundings<'_>) -> Result<Source, ExpandError> {
        let value = expand::expand_value(template, with)?;
        Ok(Source { value, helper: template.program().unwrap_or_default() })
    }

    fn variable(name: &str, with: &Surroundings<'_>) -> Result<Source, ExpandError> {
        let missing = || ExpandError::MissingVariable { name: name.to_owned() };
        let value = (with.variable)(name).ok_or_else(missing)?;
        Ok(Source { value: Expanded::Text(value), helper: String::new() })
    }
}

/// How the value goes into its header.
enum Form {
    Plain,
    Bearer,
    /// With this user name.
    Basic(String),
}

impl Values {
    pub(super) fn of(
        recipe: &RemoteRecipe,
        with: &Surroundings<'_>,
    ) -> Result<Values, ExpandError> {
        let mut values = Vec::new();
        for (name, value) in recipe.headers.iter() {
            let source = Source::of(value, with)?;
            let name = name.to_owned();
            values.push(Value { header: name.clone(), name, form: Form::Plain, source });
        }
        match &recipe.auth {
            Some(Auth::Basic { username, password }) => {
                let form = Form::Basic(expand::expand(username, with)?);
                values.push(authorization("auth.password", form, credential(password, with)?));
            }
            Some(Auth::ApiKey { header, key }) => values.push(Value {
                name: "auth.key".to_owned(),
                header: header.clone(),
                form: Form::Plain,
                source: credential(key, with)?,
            }),
            // The headers are all there is.
            Some(Auth::Custom | Auth::Off | Auth::OAuth) => {}
            Some(Auth::Bearer) | None => values.extend(bearer(recipe, with)?),
        }
        Ok(Values { values })
    }

    /// The words of the commands that are run for values.
    pub(super) fn commands(&self) -> Vec<Vec<String>> {
        let commands = self.values.iter().filter_map(|value| match &value.source.value {
            Expanded::Text(_) => None,
            Expanded::Command(words) => Some(words.clone()),
        });
        commands.collect()
    }

    /// Asks for the secrets, and writes the headers.
    pub(super) async fn headers(
        self,
        spawner: &Arc<dyn Spawner>,
        environment: &Environment,
    ) -> Result<HeaderMap, DialError> {
        let mut texts: Vec<Option<String>> = Vec::new();
        let mut asking = JoinSet::new();
        for (place, Value { source, .. }) in self.values.iter().enumerate() {
            texts.push(match &source.value {
                Expanded::Text(text) => Some(text.clone()),
                Expanded::Command(words) => {
                    let program = secret_program(environment, words.clone(), &environment.cwd);
                    let secret = secret::ask(Arc::clone(spawner), program);
                    asking.spawn(async move { (place, secret.await) });
                    None
                }
            });
        }
        while let Some(answered) = asking.join_next().await {
            let (place, secret) = answered.map_err(|_| DialError::Unchecked)?;
            let (Some(value), Some(text)) = (self.values.get(place), texts.get_mut(place)) else {
                continue;
            };
            let secret = secret.map_err(|cause| {
                let (name, helper) = (value.name.clone(), value.source.helper.clone());
                DialError::Secret { name, helper, cause }
            });
            *text = Some(secret?.reveal());
        }
        let mut headers = HeaderMap::new();
        for (value, text) in self.values.into_iter().zip(texts.into_iter().flatten()) {
            let text = match value.form {
                Form::Plain => text,
                Form::Bearer => format!("Bearer {text}"),
                Form::Basic(user) => format!("Basic {}", STANDARD.encode(format!("{user}:{text}"))),
            };
            let (name, text) =
                header(&value.header, &text).ok_or(DialError::Header { name: value.name })?;
            headers.insert(name, text);
        }
        Ok(headers)
    }
}

/// A header as it can be sent, if it can be. Its value is not shown by anyone.
pub(super) fn header(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    let mut value = HeaderValue::from_bytes(value.as_bytes()).ok()?;
    value.set_sensitive(true);
    (!OURS.contains(&name.as_str())).then_some((name, value))
}

fn authorization(name: &str, form: Form, source: Source) -> Value {
    Value { name: name.to_owned(), header: "authorization".to_owned(), form, source }
}

fn bearer(recipe: &RemoteRecipe, with: &Surroundings<'_>) -> Result<Option<Value>, ExpandError> {
    let (name, token) = match (&recipe.bearer_token, &recipe.bearer_token_env) {
        (Some(token), _) => ("bearerToken", Source::of(token, with)?),
        (None, Some(variable)) => ("bearerTokenEnv", Source::variable(variable, with)?),
        (None, None) => return Ok(None),
    };
    Ok(Some(authorization(name, Form::Bearer, token)))
}

fn credential(credential: &Credential, with: &Surroundings<'_>) -> Result<Source, ExpandError> {
    match credential {
        Credential::Inline(secret) => Source::of(secret, with),
        Credential::Variable(name) => Source::variable(name, with),
    }
}
