//! A configuration as JSON for people and programs: every value with its origin, and no secret.
//!
//! There is a function for each reader of `fields.rs`, under the same name; the tables call both.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::auth::{Auth, Credential, OAuth, OAuthOptions, RequestHeadersCommand};
use super::expand::{Surroundings, expand};
use super::layers::{Config, Origin, Trust};
use super::server::ServerEntry;
use super::values::{DirectTools, IdleTimeout, OutputGuard, Template, TemplateMap, ToolRule};

/// What stands for a value that may be secret.
const HIDDEN: &str = "…";

/// `{servers: {NAME: {field: value, …, origin, trust}}, settings}`. A definition that waits for
/// approval is marked by its `trust`; beside a server of the user's it stands under `pending`.
pub fn config(config: &Config) -> Value {
    let mut servers = Map::new();
    for (name, server) in &config.servers {
        let trust = match server.trust {
            Trust::UserFile => "user",
            Trust::Approved(_) => "approved",
        };
        servers.insert(name.clone(), shown(&server.definition, trust));
    }
    for pending in &config.pending {
        let definition = shown(&pending.definition, "pending");
        match servers.get_mut(&pending.name).and_then(Value::as_object_mut) {
            Some(users) => drop(users.insert("pending".to_owned(), definition)),
            None => drop(servers.insert(pending.name.clone(), definition)),
        }
    }
    let mut settings = config.settings.show();
    settings.insert("origin".to_owned(), origins(&config.settings_origins));
    json!({ "servers": servers, "settings": settings })
}

fn shown(definition: &ServerEntry, trust: &str) -> Value {
    let mut shown = definition.show();
    shown.insert("origin".to_owned(), origins(&definition.origins));
    shown.insert("trust".to_owned(), trust.into());
    shown.into()
}

fn origins(origins: &BTreeMap<&'static str, Origin>) -> Value {
    let place = |at: &Origin| json!({ "file": &*at.path, "line": at.line });
    origins.iter().map(|(key, at)| ((*key).to_owned(), place(at))).collect::<Map<_, _>>().into()
}

pub(super) fn string(text: &str) -> Value {
    text.into()
}

pub(super) fn strings(texts: &[String]) -> Value {
    texts.into()
}

pub(super) fn template(template: &Template) -> Value {
    template.source().into()
}

pub(super) fn endpoint(endpoint: &Template) -> Value {
    template(endpoint)
}

pub(super) fn templates(words: &[Template]) -> Value {
    arguments(words.iter().map(Template::source)).map(Value::from).collect()
}

/// Arguments are shown, but not what follows a word such as `--token` or `Authorization:`.
fn arguments<'w>(words: impl Iterator<Item = &'w str>) -> impl Iterator<Item = String> {
    let mut after_a_name = false;
    words.map(move |word| {
        let hidden = after_a_name;
        after_a_name = word.starts_with('-') && !word.contains('=') && names_a_secret(word);
        match word.split_once(['=', ':']) {
            _ if hidden => revealed(word).unwrap_or(HIDDEN).to_owned(),
            _ if word.contains("://") => address(word),
            Some((name, value)) if names_a_secret(name) => {
                let kept = word.get(..=name.len()).unwrap_or_default();
                format!("{kept}{}", revealed(value).unwrap_or(HIDDEN))
            }
            Some(_) | None => word.to_owned(),
        }
    })
}

fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words = ["token", "secret", "passw", "authorization", "credential", "apikey"];
    words.iter().any(|word| name.contains(word)) || name.ends_with("key")
}

/// A value that may be a token: what it is made of may be shown if that is variables alone.
pub(super) fn secret(value: &Template) -> Value {
    revealed(value.source()).unwrap_or(HIDDEN).into()
}

fn revealed(text: &str) -> Option<&str> {
    // A command is no secret, and says where the secret is.
    if text.starts_with('!') && !text.starts_with("!!") {
        return Some(text);
    }
    let nothing = |_: &str| Some(String::new());
    let with = Surroundings { variable: &nothing, home: Some(""), project: Some("") };
    let literal = expand(&Template::new(text), &with).ok()?;
    let harmless = |word: &str| {
        let schemes = ["", "bearer", "basic", "token", "http", "https"];
        schemes.iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
    };
    let words = literal.split(|c: char| !c.is_alphanumeric());
    (literal != text && words.into_iter().all(harmless)).then_some(text)
}

pub(super) fn template_map(map: &TemplateMap) -> Value {
    map.iter().map(|(name, value)| (name.to_owned(), secret(value))).collect::<Map<_, _>>().into()
}

/// An address without what people hide in it, or a command line as its arguments.
pub(super) fn url(url: &Template) -> Value {
    match url.source() {
        text if text.contains("://") => address(text).into(),
        line => arguments(line.split(' ')).collect::<Vec<_>>().join(" ").into(),
    }
}

/// Without literals in the query and before the host.
fn address(text: &str) -> String {
    let (before, query) = text.split_once('?').unwrap_or((text, ""));
    let mut shown = before.to_owned();
    if let Some((scheme, rest)) = before.split_once("://")
        && let Some((user, _)) = rest.split('/').next().unwrap_or_default().rsplit_once('@')
        && revealed(user).is_none()
    {
        let host = rest.get(user.len()..).unwrap_or_default();
        shown = format!("{scheme}://{HIDDEN}{host}");
    }
    for (index, pair) in query.split('&').filter(|pair| !pair.is_empty()).enumerate() {
        shown.push(if index == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, value)) => {
                shown.push_str(&format!("{name}={}", revealed(value).unwrap_or(HIDDEN)));
            }
            None => shown.push_str(HIDDEN),
        }
    }
    shown
}

pub(super) fn boolean(value: &bool) -> Value {
    (*value).into()
}

pub(super) fn choice(word: &impl ToString) -> Value {
    word.to_string().into()
}

pub(super) fn count(count: &usize) -> Value {
    (*count).into()
}

pub(super) fn milliseconds(time: &Duration) -> Value {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into()
}

pub(super) fn start_timeout(time: &Duration) -> Value {
    milliseconds(time)
}

pub(super) fn idle_timeout(time: &IdleTimeout) -> Value {
    let minutes = match time {
        IdleTimeout::Never => 0.0,
        IdleTimeout::After(time) => time.as_secs_f64() / 60.0,
    };
    if minutes.fract() == 0.0 { json!(minutes as u64) } else { json!(minutes) }
}

pub(super) fn keywords(keywords: &[(String, Vec<String>)]) -> Value {
    keywords.iter().map(|(name, words)| (name.clone(), json!(words))).collect::<Map<_, _>>().into()
}

pub(super) fn tool_rule(rule: &ToolRule) -> Value {
    match rule {
        ToolRule::None => false.into(),
        ToolRule::All => true.into(),
        ToolRule::Matching(globs) => json!(globs),
    }
}

pub(super) fn direct_tools(tools: &DirectTools) -> Value {
    match tools {
        DirectTools::None => false.into(),
        DirectTools::All => true.into(),
        DirectTools::Search => "search".into(),
        DirectTools::Named(names) => json!(names),
    }
}

pub(super) fn output_guard(guard: &OutputGuard) -> Value {
    match guard {
        OutputGuard::Off => false.into(),
        OutputGuard::Limits { max_bytes, max_lines, details_max_bytes } => json!({
            "maxBytes": max_bytes, "maxLines": max_lines, "detailsMaxBytes": details_max_bytes,
        }),
    }
}

pub(super) fn auth(auth: &Auth) -> Value {
    let credential = |name: &str, credential: &Credential| match credential {
        Credential::Inline(value) => (name.to_owned(), secret(value)),
        Credential::Variable(variable) => (format!("{name}Env"), variable.as_str().into()),
    };
    match auth {
        Auth::Off => false.into(),
        Auth::OAuth | Auth::Bearer | Auth::Custom => auth.kind().into(),
        Auth::Basic { username, password } => {
            let mut shown = Map::from_iter([credential("password", password)]);
            shown.insert("type".to_owned(), auth.kind().into());
            shown.insert("username".to_owned(), template(username));
            shown.into()
        }
        Auth::ApiKey { header, key } => {
            let mut shown = Map::from_iter([credential("key", key)]);
            shown.insert("type".to_owned(), auth.kind().into());
            shown.insert("header".to_owned(), header.as_str().into());
            shown.into()
        }
    }
}

pub(super) fn oauth(oauth: &OAuth) -> Value {
    let OAuth::With(options) = oauth else {
        return false.into();
    };
    // Taken apart by name: a new option that is not shown does not compile.
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
    let texts = [
        ("clientId", client_id.as_ref().map(template)),
        ("clientSecret", client_secret.as_ref().map(secret)),
        ("clientMetadataUrl", client_metadata_url.as_ref().map(url)),
        ("scope", scope.as_ref().map(template)),
        ("redirectUri", redirect_uri.as_ref().map(url)),
        ("clientName", client_name.as_ref().map(template)),
        ("clientUri", client_uri.as_ref().map(url)),
        ("logoUri", logo_uri.as_ref().map(url)),
        ("authServerMetadataUrl", auth_server_metadata_url.as_ref().map(url)),
    ];
    let mut shown = Map::from_iter([("grantType".to_owned(), choice(grant_type))]);
    shown.extend(texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?))));
    if authorization_params.iter().next().is_some() {
        shown.insert("authorizationParams".to_owned(), template_map(authorization_params));
    }
    if *skip_issuer_metadata_validation {
        shown.insert("skipIssuerMetadataValidation".to_owned(), true.into());
    }
    shown.into()
}

pub(super) fn request_headers_command(program: &RequestHeadersCommand) -> Value {
    let RequestHeadersCommand { command, args, env, timeout } = program;
    json!({
        "command": template(command),
        "args": templates(args),
        "env": template_map(env),
        "timeoutMs": milliseconds(timeout),
    })
}
