//! The headers that a server's entry asks for: those that are known, and those to ask for.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use switchboard_core::config::auth::{Auth, Credential};
use switchboard_core::config::expand::{self, ExpandError, Expanded, Surroundings};
use switchboard_core::config::values::Template;
use switchboard_wire::http_client::{HeaderMap, HeaderName, HeaderValue};

use super::RemoteRecipe;
use super::asked::{Asked, Source};
use crate::auth::vault::Holder;
use crate::upstream::DialError;

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
    /// One for each header: a later one of the entry wins.
    values: Vec<Value>,
}

struct Value {
    /// As the user knows it, for messages.
    name: String,
    header: String,
    form: Form,
    origin: Origin,
}

/// Where a value comes from.
enum Origin {
    Text(String),
    Asked(Source),
}

impl Origin {
    fn of(template: &Template, with: &Surroundings<'_>) -> Result<Origin, ExpandError> {
        Ok(match expand::expand_value(template, with)? {
            Expanded::Text(text) => Origin::Text(text),
            Expanded::Command(words) => {
                let helper = template.program().unwrap_or_default();
                Origin::Asked(Source::Command { words, helper })
            }
        })
    }

    fn variable(name: &str, with: &Surroundings<'_>) -> Result<Origin, ExpandError> {
        let missing = || ExpandError::MissingVariable { name: name.to_owned() };
        (with.variable)(name).map(Origin::Text).ok_or_else(missing)
    }
}

/// How the value goes into its header.
pub(super) enum Form {
    Plain,
    Bearer,
    /// With this user name.
    Basic(String),
}

impl Form {
    pub(super) fn fill(&self, text: &str) -> String {
        match self {
            Form::Plain => text.to_owned(),
            Form::Bearer => format!("Bearer {text}"),
            Form::Basic(user) => format!("Basic {}", STANDARD.encode(format!("{user}:{text}"))),
        }
    }
}

impl Values {
    pub(super) fn of(
        recipe: &RemoteRecipe,
        address: &str,
        with: &Surroundings<'_>,
    ) -> Result<Values, ExpandError> {
        let mut values = Vec::new();
        for (name, value) in recipe.headers.iter() {
            let origin = Origin::of(value, with)?;
            let name = name.to_owned();
            values.push(Value { header: name.clone(), name, form: Form::Plain, origin });
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
                origin: credential(key, with)?,
            }),
            // The headers are all there is.
            Some(Auth::Custom | Auth::Off | Auth::OAuth) => {}
            Some(Auth::Bearer) | None => values.extend(bearer(recipe, address, with)?),
        }
        let mut single: Vec<Value> = Vec::new();
        for value in values {
            single.retain(|earlier| !earlier.header.eq_ignore_ascii_case(&value.header));
            single.push(value);
        }
        Ok(Values { values: single })
    }

    /// The headers that are known, and those to ask for.
    pub(super) fn sorted(self) -> Result<(HeaderMap, Vec<Asked>), DialError> {
        let (mut headers, mut asked) = (HeaderMap::new(), Vec::new());
        for Value { name, header: of, form, origin } in self.values {
            match origin {
                Origin::Text(text) => {
                    let (of, value) =
                        header(&of, &form.fill(&text)).ok_or(DialError::Header { name })?;
                    headers.insert(of, value);
                }
                Origin::Asked(source) => asked.push(Asked { name, header: of, form, source }),
            }
        }
        Ok((headers, asked))
    }
}

/// A header as it can be sent, if it can be. Its value is not shown by anyone.
pub(super) fn header(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    let mut value = HeaderValue::from_bytes(value.as_bytes()).ok()?;
    value.set_sensitive(true);
    (!OURS.contains(&name.as_str())).then_some((name, value))
}

fn authorization(name: &str, form: Form, origin: Origin) -> Value {
    Value { name: name.to_owned(), header: "authorization".to_owned(), form, origin }
}

fn bearer(
    recipe: &RemoteRecipe,
    address: &str,
    with: &Surroundings<'_>,
) -> Result<Option<Value>, ExpandError> {
    let kept = recipe.bearer_token_store;
    let (name, token) = match (&recipe.bearer_token, &recipe.bearer_token_env, kept) {
        (Some(token), _, _) => ("bearerToken", Origin::of(token, with)?),
        (None, Some(variable), _) => ("bearerTokenEnv", Origin::variable(variable, with)?),
        (None, None, true) => {
            let (address, account) = (address.to_owned(), recipe.account.clone());
            let (vault, holder) = (recipe.vault.clone(), Holder { address, account });
            ("bearerTokenStore", Origin::Asked(Source::Vault { vault, holder }))
        }
        (None, None, false) => return Ok(None),
    };
    Ok(Some(authorization(name, Form::Bearer, token)))
}

fn credential(credential: &Credential, with: &Surroundings<'_>) -> Result<Origin, ExpandError> {
    match credential {
        Credential::Inline(secret) => Origin::of(secret, with),
        Credential::Variable(name) => Origin::variable(name, with),
    }
}
