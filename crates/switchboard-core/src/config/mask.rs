//! The text of a configuration file without the secrets that stand in it, for showing a change.

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;

use super::install::Target;
use super::layers::{Source, Tier};
use super::syntax::{self, Syntax};

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
    mask(text, Syntax::Jsonc, |root, secrets| collect(root, Within::Open, secrets))
}

/// The same for the file of a host, of which nothing but the servers is ours to show.
pub fn masked_of_host(text: &str, target: Target) -> Option<String> {
    mask(text, target.syntax(), |root, secrets| {
        for property in root.as_object().iter().flat_map(|root| &root.properties) {
            let servers = property.name.as_str() == target.holder();
            let within = if servers { Within::Open } else { Within::Foreign };
            collect(&property.value, within, secrets);
        }
    })
}

type Secrets = Vec<(usize, usize)>;

fn mask(text: &str, syntax: Syntax, find: impl FnOnce(&Value<'_>, &mut Secrets)) -> Option<String> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut secrets = Vec::new();
    let source = Source { path: "".into(), tier: Tier::User };
    let problems =
        syntax::read((body, syntax), &source, usize::MAX, |_, root| find(root, &mut secrets));
    if !problems.is_empty() {
        return None;
    }
    // A table of TOML may go on after another one.
    secrets.sort_unstable();
    let mut out = String::with_capacity(body.len());
    let mut done = 0;
    for (start, end) in secrets {
        out.push_str(body.get(done..start).unwrap_or_default());
        out.push_str("\"…\"");
        let lines = body.get(start..end).unwrap_or_default().matches('\n').count();
        out.extend(std::iter::repeat_n('\n', lines));
        done = end;
    }
    out.push_str(body.get(done..).unwrap_or_default());
    Some(out)
}

#[derive(Clone, Copy)]
enum Within {
    Open,
    Secrets,
    /// What is none of our business.
    Foreign,
}

/// In the order of the text. The parser bounds the depth.
fn collect(value: &Value<'_>, within: Within, secrets: &mut Secrets) {
    match (value, within) {
        (Value::StringLit(literal), Within::Secrets) if !leads_elsewhere(&literal.value) => {
            secrets.push((literal.start(), literal.end()));
        }
        (Value::StringLit(literal), Within::Foreign) => {
            secrets.push((literal.start(), literal.end()));
        }
        (Value::Object(object), Within::Foreign) => {
            let values = object.properties.iter().map(|property| &property.value);
            values.for_each(|value| collect(value, within, secrets));
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
    fn of_a_hosts_file_only_the_servers_are_shown() {
        let json = r#"{ "primaryApiKey": "s3cret", "projects": { "/p": { "env": ["${A}"] } },
            "mcpServers": { "a": { "command": "a", "env": { "T": "s3cret" } } } }"#;
        insta::assert_snapshot!(masked_of_host(json, Target::ClaudeCode).unwrap(), @r#"
        { "primaryApiKey": "…", "projects": { "/p": { "env": ["…"] } },
                    "mcpServers": { "a": { "command": "a", "env": { "T": "…" } } } }
        "#);
        let toml = "[mcp_servers.a]\ncommand = 'a'\n[x]\ny = \"\"\"one\ntwo\"\"\"\n\
            [mcp_servers.a.http_headers]\nT = 's3cret'\n";
        let shown = masked_of_host(toml, Target::Codex).unwrap();
        insta::assert_snapshot!(shown, @r#"
        [mcp_servers.a]
        command = 'a'
        [x]
        y = "…"

        [mcp_servers.a.http_headers]
        T = "…"
        "#);
        assert_eq!(shown.lines().count(), toml.lines().count());
    }

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
