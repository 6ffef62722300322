//! Forms of servers: whether one asks for a secret, which no form should.

mod form;
mod spelling;
mod vocabulary;
mod words;

use serde_json::{Map, Value};

use self::form::Walk;
use self::vocabulary::{Answer, names_secret};
use crate::config::secrecy::TOKEN_PREFIXES;
use crate::name::ServerName;
use crate::render::words::{clean_block, clean_line};

/// How much of a server's message is shown.
const SHOWN_MESSAGE: usize = 4_000;

/// As much of a field as a mark names.
const FIELD: usize = 60;

/// More beginnings of tokens, also as patterns write them, and of files with keys. A form that shows one
/// asks for one.
const TOKEN_STARTS: [&str; 13] = [
    "gh[",
    "xox[",
    "sk-ant-",
    "sk-proj-",
    "sk-[",
    "sk-.",
    "sk-…",
    "sk-x",
    "whsec_",
    "shpat_",
    "hf_[",
    "npm_[",
    "-----BEGIN ",
];

/// The field in which a secret would be typed, or the words of the message that ask for one.
pub fn asks_for_secret(params: &Map<String, Value>) -> Option<String> {
    // A page of the web is where secrets are asked for. A form does not become one by an address
    // beside it.
    let text = |key: &str| params.get(key).and_then(Value::as_str).unwrap_or_default();
    if text("mode") != "form" && !text("url").is_empty() {
        return None;
    }
    let mut walk = Walk::new();
    if let Some(name) = walk.form(params.get("requestedSchema")?) {
        return Some(shown_name(name));
    }
    let name = walk.typed?;
    walk.about.push(text("message"));
    walk.about.iter().any(|about| asks(about)).then(|| shown_name(name))
}

/// On one line and without the quotes of a name, so that none can end them and speak as we do.
fn shown_name(name: &str) -> String {
    clean_line(&name.replace(['`', '´', '‘', '’'], "'"), FIELD).into_owned()
}

/// Whether a text asks for something that is typed as text.
fn asks(text: &str) -> bool {
    names_secret(text, Answer::Text) || shows_token(text)
}

fn shows_token(text: &str) -> bool {
    let starts = |start: &&str| {
        text.match_indices(*start).any(|(at, _)| {
            // `task-x` has none.
            !text[..at].ends_with(|c: char| c.is_alphanumeric())
        })
    };
    TOKEN_PREFIXES.iter().chain(&TOKEN_STARTS).any(starts) || shows_password_in_url(text)
}

/// `postgres://user:pass@host`.
fn shows_password_in_url(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let authority = rest.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or(rest);
        authority.split_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

/// What a person reads before they answer: who asks, with a warning where the form asks for a secret.
/// Nothing in it is more than text.
pub fn signed_message(server: &ServerName, message: &str, secret: Option<&str>) -> String {
    let message = clean_block(message, SHOWN_MESSAGE);
    let server = clean_line(server.as_str(), 200);
    match secret {
        None => format!("The server `{server}` asks: {message}"),
        Some(field) => format!(
            "⚠ The server `{server}` asks for a secret (`{field}`). A form is no safe place for one: \
             decline, unless you want this server to have it.\n\nIt says: {message}"
        ),
    }
}

/// Whether an elicitation may lead to this address: over TLS, or on this machine, and without a name
/// that hides the host.
pub fn is_web_page(url: &str) -> bool {
    let local = ["http://localhost", "http://127.0.0.1", "http://[::1]"];
    let rest = match url.strip_prefix("https://") {
        Some(rest) => Some(rest),
        None => local.iter().find_map(|host| {
            let rest = url.strip_prefix(host)?;
            (rest.is_empty() || rest.starts_with([':', '/', '?', '#'])).then_some(rest)
        }),
    };
    let Some(rest) = rest else { return false };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    url.is_ascii()
        && !authority.contains('@')
        && !url.contains(|c: char| c.is_ascii_control() || c == ' ')
}

#[cfg(test)]
mod tests;
