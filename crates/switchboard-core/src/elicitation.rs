//! Forms of servers: whether one asks for a secret, which no form should.

mod vocabulary;
mod words;

use serde_json::{Map, Value};

use self::vocabulary::{Answer, names_secret};
use crate::render::words::clean_line;

/// As much of a field as a mark names.
const FIELD: usize = 60;

/// Prefixes of tokens and API keys of well-known services. A form that shows one asks for one.
const TOKEN_STARTS: [&str; 9] = [
    "ghp_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "sk-ant-",
    "sk_live_",
    "AKIA",
    "-----BEGIN ",
];

/// The field in which a secret would be typed, or the words of the message that ask for one.
pub fn asks_for_secret(params: &Map<String, Value>) -> Option<String> {
    // A page of the web is where secrets are asked for.
    if params.get("url").is_some_and(|url| !url.is_null()) {
        return None;
    }
    let schema = params.get("requestedSchema")?;
    let fields = schema.get("properties").and_then(Value::as_object)?;
    if let Some((name, _)) = fields.iter().find(|(name, field)| is_for_secret(name, field)) {
        return Some(shown_name(name));
    }
    let (name, _) = fields.iter().find(|(_, field)| takes_text(field))?;
    let about = [params.get("message"), schema.get("title"), schema.get("description")];
    let mut about = about.into_iter().flatten().filter_map(Value::as_str);
    about.any(asks).then(|| shown_name(name))
}

/// On one line and without the quotes of a name, so that none can end them and speak as we do.
fn shown_name(name: &str) -> String {
    clean_line(&name.replace(['`', '´', '‘', '’'], "'"), FIELD).into_owned()
}

fn is_for_secret(name: &str, field: &Value) -> bool {
    if !takes_text(field) {
        return choices(field).any(|choice| is_sentence(choice) && asks(choice));
    }
    let text = |key: &str| field.get(key).and_then(Value::as_str).unwrap_or_default();
    let answer = match text("type") {
        "integer" | "number" => Answer::Number,
        _ => Answer::Text,
    };
    let labels = [name, text("title"), text("description")];
    text("format").eq_ignore_ascii_case("password")
        || labels.iter().any(|label| names_secret(label, answer) || shows_token(label))
        || asks(text("default"))
}

/// Whether a text asks for something that is typed as text.
fn asks(text: &str) -> bool {
    names_secret(text, Answer::Text) || shows_token(text)
}

fn shows_token(text: &str) -> bool {
    TOKEN_STARTS.iter().any(|start| text.contains(start))
}

/// Whether a person types into the field, as far as its schema says.
fn takes_text(field: &Value) -> bool {
    let is = |kind: &str| field.get("type").and_then(Value::as_str) == Some(kind);
    let chosen = ["enum", "oneOf", "anyOf", "const"].iter().any(|key| field.get(key).is_some());
    !is("boolean") && !chosen
}

/// What a field offers to choose from: values, and how they read.
fn choices(field: &Value) -> impl Iterator<Item = &str> {
    let list = |key: &str| field.get(key).and_then(Value::as_array).into_iter().flatten();
    let named = ["oneOf", "anyOf"].into_iter().flat_map(list);
    let named = named.flat_map(|choice| [choice.get("title"), choice.get("const")]);
    let plain = ["enum", "enumNames"].into_iter().flat_map(list);
    named.flatten().chain(plain).chain(field.get("default")).filter_map(Value::as_str)
}

/// A choice of one word is a way to sign in, as in `password or token`.
fn is_sentence(choice: &str) -> bool {
    choice.split_whitespace().nth(1).is_some()
}

#[cfg(test)]
mod tests;
