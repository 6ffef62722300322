//! Renders a configuration as JSON: every value with its origin, and secrets masked.
//!
//! For each reader in `fields.rs`, a function of the same name here renders its value. The key
//! tables in `server.rs` and `settings.rs` use the name for both.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::auth::{Auth, Credential, OAuth, OAuthOptions, RequestHeadersCommand};
use super::layers::{Config, ConfigOrigin, Trust};
use super::secrecy;
use super::server::ServerEntry;
use super::values::{
    CollapsedLines, DirectTools, IdleTimeout, OutputGuard, Template, TemplateMap, ToolRule,
};

/// The configuration as `{servers: {NAME: {field: value, …, origin, trust}}, settings}`. A pending
/// definition has the `trust` `pending`. If the user has a server of the same name, it is under the
/// key `pending` of that server.
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

fn origins(origins: &BTreeMap<&'static str, ConfigOrigin>) -> Value {
    let place = |at: &ConfigOrigin| json!({ "file": &*at.path, "line": at.line });
    origins.iter().map(|(key, at)| ((*key).to_owned(), place(at))).collect::<Map<_, _>>().into()
}

// An endpoint is masked like a URL, because some users write a whole command line as `command`.
pub(super) use self::{
    milliseconds as start_timeout, string as account, strings as patterns,
    strings as variable_names, url as endpoint,
};

pub(super) fn string(text: &str) -> Value {
    text.into()
}

pub(super) fn strings(texts: &[String]) -> Value {
    texts.into()
}

pub(super) fn template(template: &Template) -> Value {
    template.source().into()
}

pub(super) fn templates(words: &[Template]) -> Value {
    secrecy::arguments(words.iter().map(Template::source)).map(Value::from).collect()
}

pub(super) fn secret(value: &Template) -> Value {
    secrecy::value(value.source()).into()
}

pub(super) fn template_map(map: &TemplateMap) -> Value {
    map.iter().map(|(name, value)| (name.to_owned(), secret(value))).collect::<Map<_, _>>().into()
}

pub(super) fn url(url: &Template) -> Value {
    secrecy::line(url.source()).into()
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

pub(super) fn collapsed_lines(lines: &CollapsedLines) -> Value {
    match lines {
        CollapsedLines::Fitting => Value::Null,
        CollapsedLines::Exactly(lines) => (*lines).into(),
    }
}

pub(super) fn milliseconds(time: &Duration) -> Value {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into()
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
        OutputGuard::Limits { max_bytes, max_lines } => {
            json!({ "maxBytes": max_bytes, "maxLines": max_lines })
        }
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
        Auth::Basic { username, password } => Map::from_iter([
            credential("password", password),
            ("type".to_owned(), auth.kind().into()),
            ("username".to_owned(), template(username)),
        ])
        .into(),
        Auth::ApiKey { header, key } => Map::from_iter([
            credential("key", key),
            ("type".to_owned(), auth.kind().into()),
            ("header".to_owned(), header.as_str().into()),
        ])
        .into(),
    }
}

pub(super) fn oauth(oauth: &OAuth) -> Value {
    let OAuth::With(options) = oauth else {
        return false.into();
    };
    // The pattern has no `..`, so that the compiler reports a new option that is not shown.
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
        "command": secrecy::program(command.source()),
        "args": args.iter().map(|arg| secrecy::variables(arg.source())).collect::<Vec<_>>(),
        "env": template_map(env),
        "timeoutMs": milliseconds(timeout),
    })
}
