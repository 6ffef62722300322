//! The authentication settings of a server: `auth`, `oauth` and `requestHeadersCommand`.

use std::fmt;
use std::time::Duration;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use serde_json::{Map, Value as Json};

use super::canonical::{Canon, Canonical};
use super::diagnostic::DiagnosticKind;
use super::fields::{
    boolean, choice, endpoint, milliseconds, string, template, template_map, templates,
};
use super::reader::{ConfigReader, KeyedValue, Read, Reported};
use super::schema::row_schema;
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
    /// Only the `headers` of the server authenticate requests.
    Custom,
}

/// A secret in the configuration file itself, or the name of the environment variable that holds
/// it.
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
}

pub(super) fn auth(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<Auth> {
    let (mut word, mut username, mut header) = (None, None, None);
    let (mut password, mut api_key) = (None, None);
    match input.value {
        Value::BooleanLit(literal) if !literal.value => return Ok(Auth::Off),
        // A method that needs credentials must be an object, because a method name alone has none.
        Value::StringLit(_) => word = Some(auth_word(reader, input)?),
        Value::Object(_) => {
            for member in reader.members(input)? {
                let input = member.input();
                match member.name {
                    "type" => word = Some(auth_word(reader, input)?),
                    "username" => username = Some(template(reader, input)?),
                    "header" => header = Some(string(reader, input)?),
                    "password" => password = Some(Credential::Inline(template(reader, input)?)),
                    "passwordEnv" => password = Some(Credential::Variable(string(reader, input)?)),
                    "key" => api_key = Some(Credential::Inline(template(reader, input)?)),
                    "keyEnv" => api_key = Some(Credential::Variable(string(reader, input)?)),
                    _ => reader.unknown_key(&member, AUTH_KEYS),
                }
            }
        }
        _ => return Err(reader.wrong_type(input, "`false`, a string or an object")),
    }
    match word.ok_or_else(|| missing(reader, input, "type"))? {
        AuthWord::OAuth | AuthWord::OAuth2 => Ok(Auth::OAuth),
        AuthWord::Bearer => Ok(Auth::Bearer),
        AuthWord::Custom => Ok(Auth::Custom),
        AuthWord::Basic => Ok(Auth::Basic {
            username: username.ok_or_else(|| missing(reader, input, "username"))?,
            password: password.ok_or_else(|| missing(reader, input, "password"))?,
        }),
        AuthWord::ApiKey => Ok(Auth::ApiKey {
            header: header.unwrap_or_else(|| "X-API-Key".to_owned()),
            key: api_key.ok_or_else(|| missing(reader, input, "key"))?,
        }),
    }
}

fn auth_word(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<AuthWord> {
    let word = string(reader, input)?;
    AuthWord::from_word(&word).ok_or_else(|| {
        let kind =
            DiagnosticKind::NotAnAuth { key: input.key.to_owned(), choices: AuthWord::WORDS };
        reader.error(input.value.start(), kind)
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
            Auth::Basic { username, password } => (username, password).encode(canon),
            Auth::ApiKey { header, key } => (header, key).encode(canon),
        }
    }
}

impl Canonical for Credential {
    fn encode(&self, canon: &mut Canon) {
        match self {
            Credential::Inline(secret) => ("inline", secret).encode(canon),
            Credential::Variable(name) => ("variable", name).encode(canon),
        }
    }
}

/// The `oauth` of a server: `false`, or an object with options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OAuth {
    Off,
    With(Box<OAuthOptions>),
}

/// A macro with one row per option: field name in Rust, type, key in the file, reader function. The
/// struct, the known keys, the trust hash and the schema are made from these rows.
macro_rules! oauth_options {
    ($($field:ident: $kind:ty = $key:literal, $read:ident;)*) => {
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct OAuthOptions {
            $(pub $field: $kind,)*
        }

        impl OAuthOptions {
            fn read(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<Self> {
                let mut options = Self::default();
                for member in reader.members(input)? {
                    match member.name {
                        $($key => options.$field = $read(reader, member.input())?,)*
                        _ => reader.unknown_key(&member, &[$($key),*]),
                    }
                }
                Ok(options)
            }

            /// The JSON Schema of each option, by its key.
            pub(super) fn schema() -> Map<String, Json> {
                Map::from_iter([$(($key.to_owned(), row_schema!($read, $kind))),*])
            }
        }

        impl Canonical for OAuthOptions {
            fn encode(&self, canon: &mut Canon) {
                $(self.$field.encode(canon);)*
            }
        }
    };
}

oauth_options! {
    grant_type: GrantType = "grantType", choice;
    client_id: Option<Template> = "clientId", text;
    client_secret: Option<Template> = "clientSecret", text;
    client_metadata_url: Option<Template> = "clientMetadataUrl", text;
    scope: Option<Template> = "scope", text;
    authorization_params: TemplateMap = "authorizationParams", template_map;
    redirect_uri: Option<Template> = "redirectUri", text;
    client_name: Option<Template> = "clientName", text;
    client_uri: Option<Template> = "clientUri", text;
    logo_uri: Option<Template> = "logoUri", text;
    auth_server_metadata_url: Option<Template> = "authServerMetadataUrl", text;
    skip_issuer_metadata_validation: bool = "skipIssuerMetadataValidation", boolean;
}

fn text(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<Option<Template>> {
    template(reader, input).map(Some)
}

choice! {
    #[derive(Default)]
    pub enum GrantType {
        #[default]
        AuthorizationCode = "authorization_code",
        ClientCredentials = "client_credentials",
    }
}

pub(super) fn oauth(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<OAuth> {
    match input.value {
        Value::BooleanLit(literal) if !literal.value => Ok(OAuth::Off),
        Value::Object(_) => Ok(OAuth::With(Box::new(OAuthOptions::read(reader, input)?))),
        _ => Err(reader.wrong_type(input, "`false` or an object")),
    }
}

impl Canonical for OAuth {
    fn encode(&self, canon: &mut Canon) {
        match self {
            OAuth::Off => "off".encode(canon),
            OAuth::With(options) => ("with", &**options).encode(canon),
        }
    }
}

/// A program that prints headers, which are added to each request.
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
    reader: &mut ConfigReader<'_>,
    input: KeyedValue<'_>,
) -> Read<RequestHeadersCommand> {
    let mut command = None;
    let mut args = Vec::new();
    let mut env = TemplateMap::default();
    let mut timeout = RequestHeadersCommand::DEFAULT_TIMEOUT;
    for member in reader.members(input)? {
        let input = member.input();
        match member.name {
            "command" => command = Some(endpoint(reader, input)?),
            "args" => args = templates(reader, input)?,
            "env" => env = template_map(reader, input)?,
            "timeoutMs" => {
                timeout = milliseconds(reader, input)?;
                if timeout > RequestHeadersCommand::MAX_TIMEOUT {
                    return Err(reader.out_of_range(input, "from 1 to 60000 (milliseconds)"));
                }
            }
            _ => reader.unknown_key(&member, RequestHeadersCommand::KEYS),
        }
    }
    let command = command.ok_or_else(|| missing(reader, input, "command"))?;
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

fn missing(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>, name: &str) -> Reported {
    let key = format!("{}.{name}", input.key);
    reader.error(input.value.start(), DiagnosticKind::MissingKey { key })
}
