//! The headers of a server's entry: those with a fixed value, and those with a dynamic one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use switchboard_core::config::auth::{Auth, Credential};
use switchboard_core::config::expand::{self, ExpandError, Expanded, Surroundings};
use switchboard_core::config::values::Template;
use switchboard_wire::http_client::{HeaderMap, HeaderName, HeaderValue};

use super::RemoteRecipe;
use super::dynamic::{DynamicHeader, HeaderSource};
use crate::auth::vault::Holder;
use crate::upstream::DialError;

/// Headers of the HTTP connection, which a configuration must not set.
const CONNECTION_HEADERS: [&str; 8] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A header to be set, with all variables expanded.
struct Value {
    /// The name of the setting or header, for messages.
    name: String,
    header: String,
    form: HeaderForm,
    origin: ValueOrigin,
}

/// The origin of a header's value.
enum ValueOrigin {
    Text(String),
    Dynamic(HeaderSource),
}

impl ValueOrigin {
    fn of(template: &Template, with: &Surroundings<'_>) -> Result<ValueOrigin, ExpandError> {
        Ok(match expand::expand_value(template, with)? {
            Expanded::Text(text) => ValueOrigin::Text(text),
            Expanded::Command(words) => {
                let helper = template.program().unwrap_or_default();
                ValueOrigin::Dynamic(HeaderSource::Command { words, helper })
            }
        })
    }

    fn variable(name: &str, with: &Surroundings<'_>) -> Result<ValueOrigin, ExpandError> {
        let missing = || ExpandError::MissingVariable { name: name.to_owned() };
        (with.variable)(name).map(ValueOrigin::Text).ok_or_else(missing)
    }
}

/// How the value is formatted in its header.
pub(super) enum HeaderForm {
    Plain,
    Bearer,
    /// Basic authentication with this username.
    Basic(String),
}

impl HeaderForm {
    pub(super) fn fill(&self, text: &str) -> String {
        match self {
            HeaderForm::Plain => text.to_owned(),
            HeaderForm::Bearer => format!("Bearer {text}"),
            HeaderForm::Basic(user) => {
                format!("Basic {}", STANDARD.encode(format!("{user}:{text}")))
            }
        }
    }
}

/// The fixed and the dynamic headers. If two settings set the same header, the later one takes
/// precedence.
pub(super) fn of(
    recipe: &RemoteRecipe,
    address: &str,
    with: &Surroundings<'_>,
) -> Result<(HeaderMap, Vec<DynamicHeader>), DialError> {
    let mut single: Vec<Value> = Vec::new();
    for value in values(recipe, address, with)? {
        single.retain(|earlier| !earlier.header.eq_ignore_ascii_case(&value.header));
        single.push(value);
    }
    let (mut headers, mut asked) = (HeaderMap::new(), Vec::new());
    for Value { name, header: of, form, origin } in single {
        match origin {
            ValueOrigin::Text(text) => {
                let (of, value) =
                    header(&of, &form.fill(&text)).ok_or(DialError::Header { name })?;
                headers.insert(of, value);
            }
            ValueOrigin::Dynamic(source) => {
                asked.push(DynamicHeader { name, header: of, form, source })
            }
        }
    }
    Ok((headers, asked))
}

fn values(
    recipe: &RemoteRecipe,
    address: &str,
    with: &Surroundings<'_>,
) -> Result<Vec<Value>, ExpandError> {
    let mut values = Vec::new();
    for (name, value) in recipe.headers.iter() {
        values.push(Value::plain(name, name, ValueOrigin::of(value, with)?));
    }
    match &recipe.auth {
        Some(Auth::Basic { username, password }) => {
            let form = HeaderForm::Basic(expand::expand(username, with)?);
            values.push(authorization("auth.password", form, credential(password, with)?));
        }
        Some(Auth::ApiKey { header, key }) => {
            values.push(Value::plain("auth.key", header, credential(key, with)?));
        }
        // With these values of `auth`, no header for authentication is added to the configured
        // ones.
        Some(Auth::Custom | Auth::Off | Auth::OAuth) => {}
        Some(Auth::Bearer) | None => values.extend(bearer(recipe, address, with)?),
    }
    Ok(values)
}

impl Value {
    fn plain(name: &str, header: &str, origin: ValueOrigin) -> Value {
        Value { name: name.to_owned(), header: header.to_owned(), form: HeaderForm::Plain, origin }
    }
}

/// A valid header, with its value marked as sensitive; `None` if it is invalid or reserved.
pub(super) fn header(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    let mut value = HeaderValue::from_bytes(value.as_bytes()).ok()?;
    value.set_sensitive(true);
    (!CONNECTION_HEADERS.contains(&name.as_str())).then_some((name, value))
}

fn authorization(name: &str, form: HeaderForm, origin: ValueOrigin) -> Value {
    Value { name: name.to_owned(), header: "authorization".to_owned(), form, origin }
}

fn bearer(
    recipe: &RemoteRecipe,
    address: &str,
    with: &Surroundings<'_>,
) -> Result<Option<Value>, ExpandError> {
    let kept = recipe.bearer_token_store;
    let (name, token) = match (&recipe.bearer_token, &recipe.bearer_token_env, kept) {
        (Some(token), _, _) => ("bearerToken", ValueOrigin::of(token, with)?),
        (None, Some(variable), _) => ("bearerTokenEnv", ValueOrigin::variable(variable, with)?),
        (None, None, true) => {
            let (address, account) = (address.to_owned(), recipe.account.clone());
            let (vault, holder) = (recipe.vault.clone(), Holder { address, account });
            ("bearerTokenStore", ValueOrigin::Dynamic(HeaderSource::Vault { vault, holder }))
        }
        (None, None, false) => return Ok(None),
    };
    Ok(Some(authorization(name, HeaderForm::Bearer, token)))
}

fn credential(
    credential: &Credential,
    with: &Surroundings<'_>,
) -> Result<ValueOrigin, ExpandError> {
    match credential {
        Credential::Inline(secret) => ValueOrigin::of(secret, with),
        Credential::Variable(name) => ValueOrigin::variable(name, with),
    }
}
