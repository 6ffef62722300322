//! Forms of servers: whether one asks for a secret, which no form should.

mod form;
mod spelling;
mod vocabulary;
mod words;

use serde_json::{Map, Value};

use self::form::Walk;
use self::vocabulary::{Answer, names_secret};
use crate::render::words::clean_line;

/// As much of a field as a mark names.
const FIELD: usize = 60;

/// Prefixes of tokens and API keys of well-known services, also as patterns write them, and the
/// beginnings of files with keys. A form that shows one asks for one.
const TOKEN_STARTS: [&str; 30] = [
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "gh[",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xapp-",
    "xox[",
    "sk-ant-",
    "sk-proj-",
    "sk-[",
    "sk-.",
    "sk-…",
    "sk-x",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "whsec_",
    "shpat_",
    "hf_[",
    "npm_[",
    "AKIA",
    "AIza",
    "eyJ",
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
    TOKEN_STARTS.iter().any(starts) || shows_password_in_url(text)
}

/// `postgres://user:pass@host`.
fn shows_password_in_url(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let authority = rest.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or(rest);
        authority.split_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

#[cfg(test)]
mod tests;
