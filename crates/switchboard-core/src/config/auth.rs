//! The authentication settings of a server: `auth`, `oauth` and `requestHeadersCommand`.

use std::fmt;
use std::time::Duration;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;

use super::canonical::{Canon, Canonical};
use super::diagnostic::DiagnosticKind;
use super::fields::{
    boolean, choice as read_choice, endpoint, milliseconds, string, template, template_map,
    templates,
};
use super::reader::{Read, Reader, Reported};
use super::values::{Template, TemplateMap, choice};

/// The `auth` of a server: a method name, `false`, or an object whose `type` is the method name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    Off,
    OAuth,
    Bearer,
    Basic {
        username: Template,
        password: Credential,
    },
    ApiKey {
        header: String,
        key: Credential,
    },
    /// Only the server's `headers` authenticate it.
    Custom,
}

/// A secret in the file, or the environment variable that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    Inline(Template),
    Variable(String),
}

impl Auth {
    pub fn kind(&self) -> &'static str {
        match self {
            Auth::Off => "off",
            Auth::OAuth => "oauth",
            Auth::Bearer => "bearer",
            Auth::Basic { .. } => "basic",
            Auth::ApiKey { .. } => "api-key",
            Auth::Custom => "custom",
        }
    }

    fn read_object(reader: &mut Reader<'_>, key: &str, value: &Value<'_>) -> Read<Self> {
        let (mut word, mut username, mut header) = (None, None, None);
        let (mut password, mut api_key) = (None, None);
        for member in reader.members(key, value)? {
            let (at, value) = (&member.key, member.value);
            match member.name {
                "type" => word = Some(auth_word(reader, at, value)?),
                "username" => username = Some(template(reader, at, value)?),
                "header" => header = Some(string(reader, at, value)?),
                "password" => password = Some(Credential::Inline(template(reader, at, value)?)),
                "passwordEnv" => password = Some(Credential::Variable(string(reader, at, value)?)),
                "key" => api_key = Some(Credential::Inline(template(reader, at, value)?)),
                "keyEnv" => api_key = Some(Credential::Variable(string(reader, at, value)?)),
                _ => reader.unknown_key(&member, AUTH_KEYS),
            }
        }
        match word.ok_or_else(|| missing(reader, value, key, "type"))? {
            AuthWord::OAuth | AuthWord::OAuth2 => Ok(Auth::OAuth),
            AuthWord::Bearer => Ok(Auth::Bearer),
            AuthWord::Custom => Ok(Auth::Custom),
            AuthWord::Basic => Ok(Auth::Basic {
                username: username.ok_or_else(|| missing(reader, value, key, "username"))?,
                password: password.ok_or_else(|| missing(reader, value, key, "password"))?,
            }),
            AuthWord::ApiKey => Ok(Auth::ApiKey {
                header: header.unwrap_or_else(|| "X-API-Key".to_owned()),
                key: api_key.ok_or_else(|| missing(reader, value, key, "key"))?,
            }),
        }
    }
}

pub(super) fn auth(reader: &mut Reader<'_>, key: &str, value: &Value<'_>) -> Read<Auth> {
    match value {
        Value::BooleanLit(literal) if !literal.value => Ok(Auth::Off),
        Value::StringLit(_) => match auth_word(reader, key, value)? {
            AuthWord::OAuth | AuthWord::OAuth2 => Ok(Auth::OAuth),
            AuthWord::Bearer => Ok(Auth::Bearer),
            AuthWord::Custom => Ok(Auth::Custom),
            // These methods need an object with their credentials.
            AuthWord::Basic => Err(missing(reader, value, key, "username")),
            AuthWord::ApiKey => Err(missing(reader, value, key, "key")),
        },
        Value::Object(_) => Auth::read_object(reader, key, value),
        _ => Err(reader.wrong_type(key, value, "`false`, a string or an object")),
    }
}

fn auth_word(reader: &mut Reader<'_>, key: &str, value: &Value<'_>) -> Read<AuthWord> {
    let word = string(reader, key, value)?;
    AuthWord::from_word(&word).ok_or_else(|| {
        let kind = DiagnosticKind::NotAnAuth { key: key.to_owned(), choices: AuthWord::WORDS };
        reader.error(value.start(), kind)
    })
}

pub(super) const AUTH_KEYS: &[&str] =
    &["type", "username", "password", "passwordEnv", "header", "key", "keyEnv"];

choice! {
    pub(super) enum AuthWord {
        OAuth = "oauth",
        OAuth2 = "oauth2",
        Bearer = "bearer",
        Basic = "basic",
        ApiKey = "api-key",
        Custom = "custom",
    }
}

impl Canonical for Auth {
    fn encode(&self, canon: &mut Canon) {
        self.kind().encode(canon);
        match self {
            Auth::Off | Auth::OAuth | Auth::Bearer | Auth::Custom => {}
            Auth::Basic { username, password } => {
                username.encode(canon);
                password.encode(canon);
            }
            Auth::ApiKey { header, key } => {
                header.encode(canon);
                key.encode(canon);
            }
        }
    }
}

impl Canonical for Credential {
    fn encode(&self, canon: &mut Canon) {
        match self {
            Credential::Inline(secret) => {
                "inline".encode(canon);
                secret.encode(canon);
            }
            Credential::Variable(name) => {
                "variable".encode(canon);
                name.encode(canon);
            }
        }
    }
}

/// The `oauth` of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OAuth {
    Off,
    With(Box<OAuthOptions>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OAuthOptions {
    pub grant_type: GrantType,
    pub client_id: Option<Template>,
    pub client_secret: Option<Template>,
    pub client_metadata_url: Option<Template>,
    pub scope: Option<Template>,
    pub authorization_params: TemplateMap,
    pub redirect_uri: Option<Template>,
    pub client_name: Option<Template>,
    pub client_uri: Option<Template>,
    pub logo_uri: Option<Template>,
    pub auth_server_metadata_url: Option<Template>,
    pub skip_issuer_metadata_validation: bool,
}

choice! {
    #[derive(Default)]
    pub enum GrantType {
        #[default]
        AuthorizationCode = "authorization_code",
        ClientCredentials = "client_credentials",
    }
}

pub(super) const OAUTH_KEYS: &[&str] = &[
    "grantType",
    "clientId",
    "clientSecret",
    "clientMetadataUrl",
    "scope",
    "authorizationParams",
    "redirectUri",
    "clientName",
    "clientUri",
    "logoUri",
    "authServerMetadataUrl",
    "skipIssuerMetadataValidation",
];

pub(super) fn oauth(reader: &mut Reader<'_>, key: &str, value: &Value<'_>) -> Read<OAuth> {
    match value {
        Value::BooleanLit(literal) if !literal.value => return Ok(OAuth::Off),
        Value::Object(_) => {}
        _ => return Err(reader.wrong_type(key, value, "`false` or an object")),
    }
    let mut options = OAuthOptions::default();
    for member in reader.members(key, value)? {
        let (at, value) = (&member.key, member.value);
        let text = match member.name {
            "grantType" => {
                options.grant_type = read_choice(reader, at, value)?;
                continue;
            }
            "authorizationParams" => {
                options.authorization_params = template_map(reader, at, value)?;
                continue;
            }
            "skipIssuerMetadataValidation" => {
                options.skip_issuer_metadata_validation = boolean(reader, at, value)?;
                continue;
            }
            "clientId" => &mut options.client_id,
            "clientSecret" => &mut options.client_secret,
            "clientMetadataUrl" => &mut options.client_metadata_url,
            "scope" => &mut options.scope,
            "redirectUri" => &mut options.redirect_uri,
            "clientName" => &mut options.client_name,
            "clientUri" => &mut options.client_uri,
            "logoUri" => &mut options.logo_uri,
            "authServerMetadataUrl" => &mut options.auth_server_metadata_url,
            _ => {
                reader.unknown_key(&member, OAUTH_KEYS);
                continue;
            }
        };
        *text = Some(template(reader, at, value)?);
    }
    Ok(OAuth::With(Box::new(options)))
}

impl Canonical for OAuth {
    fn encode(&self, canon: &mut Canon) {
        let OAuth::With(options) = self else {
            return "off".encode(canon);
        };
        "with".encode(canon);
        // Destructured without `..`, so that a new option that is not hashed does not compile.
        let OAuthOptions {
            grant_type,
            client_id,
            client_secret,
            client_metadata_url,
            scope,
            authorization_params,
            redirect_uri,
            client_name,
            client_uri,
            logo_uri,
            auth_server_metadata_url,
            skip_issuer_metadata_validation,
        } = &**options;
        grant_type.encode(canon);
        client_id.encode(canon);
        client_secret.encode(canon);
        client_metadata_url.encode(canon);
        scope.encode(canon);
        authorization_params.encode(canon);
        redirect_uri.encode(canon);
        client_name.encode(canon);
        client_uri.encode(canon);
        logo_uri.encode(canon);
        auth_server_metadata_url.encode(canon);
        skip_issuer_metadata_validation.encode(canon);
    }
}

/// A program that prints the headers of each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeadersCommand {
    pub command: Template,
    pub args: Vec<Template>,
    pub env: TemplateMap,
    pub timeout: Duration,
}

impl RequestHeadersCommand {
    const KEYS: &'static [&'static str] = &["command", "args", "env", "timeoutMs"];
    const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
    const MAX_TIMEOUT: Duration = Duration::from_secs(60);
}

pub(super) fn request_headers_command(
    reader: &mut Reader<'_>,
    key: &str,
    value: &Value<'_>,
) -> Read<RequestHeadersCommand> {
    let mut command = None;
    let mut args = Vec::new();
    let mut env = TemplateMap::default();
    let mut timeout = RequestHeadersCommand::DEFAULT_TIMEOUT;
    for member in reader.members(key, value)? {
        let (at, value) = (&member.key, member.value);
        match member.name {
            "command" => command = Some(endpoint(reader, at, value)?),
            "args" => args = templates(reader, at, value)?,
            "env" => env = template_map(reader, at, value)?,
            "timeoutMs" => {
                timeout = milliseconds(reader, at, value)?;
                if timeout > RequestHeadersCommand::MAX_TIMEOUT {
                    let expected = "from 1 to 60000 (milliseconds)";
                    let kind = DiagnosticKind::OutOfRange { key: at.clone(), expected };
                    return Err(reader.error(value.start(), kind));
                }
            }
            _ => reader.unknown_key(&member, RequestHeadersCommand::KEYS),
        }
    }
    let command = command.ok_or_else(|| missing(reader, value, key, "command"))?;
    Ok(RequestHeadersCommand { command, args, env, timeout })
}

impl Canonical for RequestHeadersCommand {
    fn encode(&self, canon: &mut Canon) {
        let Self { command, args, env, timeout } = self;
        command.encode(canon);
        args.encode(canon);
        env.encode(canon);
        timeout.encode(canon);
    }
}

fn missing(reader: &mut Reader<'_>, value: &Value<'_>, key: &str, name: &str) -> Reported {
    reader.error(value.start(), DiagnosticKind::MissingKey { key: format!("{key}.{name}") })
}
