//! The text of a configuration file without the secrets that stand in it, for showing a change.

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, parse_to_ast};

use super::syntax::STRICT;

/// Objects and fields whose strings are as often secrets as not.
const HOLDERS: &[&str] = &[
    "env",
    "environment",
    "headers",
    "http_headers",
    "bearerToken",
    "password",
    "key",
    "clientSecret",
    "token",
    "apiKey",
];

/// `text` with `…` for the values of variables, headers and credentials; names, and values that
/// only lead to a secret, such as `${TOKEN}`, stay. It has the same lines. `None` if it does not
/// parse.
pub fn masked(text: &str) -> Option<String> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parsed = parse_to_ast(body, &CollectOptions::default(), &STRICT).ok()?;
    let mut secrets = Vec::new();
    if let Some(root) = &parsed.value {
        collect(root, Within::Open, &mut secrets);
    }
    let mut out = String::with_capacity(body.len());
    let mut done = 0;
    for (start, end) in secrets {
        out.push_str(body.get(done..start).unwrap_or_default());
        out.push_str("\"…\"");
        done = end;
    }
    out.push_str(body.get(done..).unwrap_or_default());
    Some(out)
}

#[derive(Clone, Copy)]
enum Within {
    Open,
    Secrets,
}

/// In the order of the text. The parser bounds the depth.
fn collect(value: &Value<'_>, within: Within, secrets: &mut Vec<(usize, usize)>) {
    match (value, within) {
        (Value::StringLit(literal), Within::Secrets) if !leads_elsewhere(&literal.value) => {
            secrets.push((literal.start(), literal.end()));
        }
        (Value::Object(object), _) => {
            for property in &object.properties {
                let holds = HOLDERS.contains(&property.name.as_str());
                let inner = if holds { Within::Secrets } else { within };
                collect(&property.value, inner, secrets);
            }
        }
        (Value::Array(array), _) => {
            array.elements.iter().for_each(|element| collect(element, within, secrets));
        }
        _ => {}
    }
}

fn leads_elsewhere(text: &str) -> bool {
    text.starts_with('!') || ["${", "$env:", "{env:"].iter().any(|form| text.contains(form))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_may_be_secret_are_not_shown_and_their_names_are() {
        let text = r#"{ "mcpServers": { "a": {
            "command": "a", // a comment
            "env": { "TOKEN": "s3cret", "FROM": "${TOKEN}", "N": "a\"b" },
            "headers": { "Authorization": "Bearer s3cret" },
            "auth": { "type": "api-key", "key": "s3cret" },
        } } }"#;
        let shown = masked(text).unwrap();
        insta::assert_snapshot!(shown, @r#"
        { "mcpServers": { "a": {
                    "command": "a", // a comment
                    "env": { "TOKEN": "…", "FROM": "${TOKEN}", "N": "…" },
                    "headers": { "Authorization": "…" },
                    "auth": { "type": "api-key", "key": "…" },
                } } }
        "#);
        assert_eq!(shown.lines().count(), text.lines().count());
    }

    #[test]
    fn a_text_that_does_not_parse_is_not_shown() {
        assert_eq!(masked(r#"{ "env": { "TOKEN": "s3cret" }"#), None);
    }
}
