//! Detects elicitation forms that request a secret. The specification forbids such forms.

mod form;
mod spelling;
mod vocabulary;
mod words;

use serde_json::{Map, Value};

use self::form::Walk;
use self::vocabulary::{AnswerType, names_secret};
use crate::config::secrecy::TOKEN_PREFIXES;
use crate::name::ServerName;
use crate::render::words::{clean_block, clean_line};

/// The maximum length of a server's message that is shown.
const SHOWN_MESSAGE: usize = 4_000;

/// The maximum length of a field's name in the warning.
const FIELD: usize = 60;

/// Further prefixes of tokens and key files, also as they are written in regular expressions. A
/// form whose text contains one requests a secret.
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

/// The name of the field that requests a secret. If the message itself requests it, the name of the
/// first field that the user types into.
pub fn asks_for_secret(params: &Map<String, Value>) -> Option<String> {
    // In URL mode, a server may request secrets. Hosts show all other requests as a form, even with
    // a `url`, or if the mode is missing or unknown.
    let text = |key: &str| params.get(key).and_then(Value::as_str).unwrap_or_default();
    if text("mode") == "url" {
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

/// A name on one line and without quotes, so that it cannot end our quotation and imitate our text.
fn shown_name(name: &str) -> String {
    clean_line(&name.replace(['`', '´', '‘', '’'], "'"), FIELD).into_owned()
}

/// Whether a text requests a secret, which the user would type.
fn asks(text: &str) -> bool {
    names_secret(text, AnswerType::Text) || shows_token(text)
}

fn shows_token(text: &str) -> bool {
    let starts = |start: &&str| {
        text.match_indices(*start).any(|(at, _)| {
            // The prefix must begin a word: `task-x` does not contain the prefix `sk-`.
            !text[..at].ends_with(|c: char| c.is_alphanumeric())
        })
    };
    TOKEN_PREFIXES.iter().chain(&TOKEN_STARTS).any(starts) || shows_password_in_url(text)
}

/// Whether a text contains a URL with a password, such as `postgres://user:pass@host`.
fn shows_password_in_url(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let authority = rest.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or(rest);
        authority.split_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

/// The message for the user: the server's name, a warning if the form requests a secret, and the
/// server's message without control characters.
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

/// Whether the user may be asked to open this URL. It must use TLS or lead to this machine, and
/// must not contain user info, which disguises the host.
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
