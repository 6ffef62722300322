//! Masks the secrets in the text of a configuration file, so that a diff can be shown.

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;

use super::install::{NAME, Target};
use super::layers::{ConfigSource, Tier};
use super::secrecy::{self, HIDDEN};
use super::syntax::{self, Syntax};
use super::transport::is_address;

/// `text`, with `…` in place of possible secrets: values of variables, headers and credentials, and
/// secrets in arguments, URLs and comments. Names, references such as `${TOKEN}` and line breaks
/// are preserved. `None` if the text cannot be parsed.
pub fn masked(text: &str) -> Option<String> {
    mask(text, Syntax::Jsonc, |root, mask| mask.value(root, Within::Open))
}

/// The masked text of a host's file. It shows only the servers, the strings that we write, and for
/// Pi the packages and extensions: the rest of the file may contain secrets.
pub fn masked_of_host(text: &str, target: Target) -> Option<String> {
    let open = target.shown();
    mask(text, target.syntax(), |root, mask| {
        for property in root.as_object().iter().flat_map(|root| &root.properties) {
            let open = open.contains(&property.name.as_str());
            let within = if open { Within::Open } else { Within::Foreign };
            mask.strings.push((property.name.start(), property.name.end(), None));
            mask.value(&property.value, within);
        }
    })
}

fn mask(text: &str, syntax: Syntax, find: impl FnOnce(&Value<'_>, &mut Mask)) -> Option<String> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut mask = Mask::default();
    let source = ConfigSource { path: "".into(), tier: Tier::User };
    let problems =
        syntax::read((body, syntax), &source, usize::MAX, |_, root| find(root, &mut mask));
    if !problems.is_empty() {
        return None;
    }
    // The strings are sorted by position, because a TOML table may continue after another table.
    mask.strings.sort_unstable();
    let mut out = String::with_capacity(body.len());
    let mut done = 0;
    for (start, end, shown) in mask.strings {
        push_between(&mut out, body.get(done..start).unwrap_or_default(), syntax);
        let written = body.get(start..end).unwrap_or_default();
        match shown {
            None => out.push_str(written),
            Some(shown) => {
                out.push_str(&serde_json::Value::from(shown).to_string());
                out.extend(written.matches('\n'));
            }
        }
        done = end;
    }
    push_between(&mut out, body.get(done..).unwrap_or_default(), syntax);
    Some(out)
}

/// Appends the text between two strings. Comments are masked unless they are prose.
fn push_between(out: &mut String, mut text: &str, syntax: Syntax) {
    let openings: &[(&str, &str)] = match syntax {
        Syntax::Jsonc => &[("//", "\n"), ("/*", "*/")],
        Syntax::Toml => &[("#", "\n")],
    };
    let first = |text: &str| {
        let found =
            openings.iter().filter_map(|(open, close)| Some((text.find(open)?, *open, *close)));
        found.min_by_key(|(at, ..)| *at)
    };
    while let Some((at, open, close)) = first(text) {
        let (before, rest) = text.split_at_checked(at + open.len()).unwrap_or((text, ""));
        let (comment, after) =
            rest.split_at_checked(rest.find(close).unwrap_or(rest.len())).unwrap_or((rest, ""));
        out.push_str(before);
        if secrecy::is_prose(comment) {
            out.push_str(comment);
        } else {
            out.push(' ');
            out.push_str(HIDDEN);
            out.extend(comment.matches('\n'));
        }
        // The end of the comment is skipped, so that its `*/` cannot begin another comment.
        let closing = if after.starts_with(close) { close } else { "" };
        out.push_str(closing);
        text = after.get(closing.len()..).unwrap_or_default();
    }
    out.push_str(text);
}

/// The byte range of each string in a text, with the masked form of those that are masked.
#[derive(Default)]
struct Mask {
    strings: Vec<(usize, usize, Option<String>)>,
}

/// The strings that we write into a host's file outside its servers. A diff shows them.
const OURS: [&str; 3] = [NAME, "mcp__switchboard", "always"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Open,
    Secrets,
    /// The command line of a program that prints secrets.
    Program,
    /// A part of a host's file that has nothing to do with MCP servers.
    Foreign,
}

/// Whether the value is a URL with a scheme.
fn has_scheme(url: &Value<'_>) -> bool {
    url.as_string_lit().is_some_and(|literal| is_address(&literal.value))
}

impl Mask {
    /// Adds the strings of a value. Recursion is safe, because the parser limits the depth.
    fn value(&mut self, value: &Value<'_>, within: Within) {
        match value {
            Value::StringLit(literal) => {
                let shown = match within {
                    Within::Open => secrecy::line(&literal.value),
                    Within::Secrets => secrecy::value(&literal.value),
                    Within::Program => secrecy::program(&literal.value),
                    Within::Foreign if OURS.contains(&&*literal.value) => literal.value.to_string(),
                    Within::Foreign => HIDDEN.to_owned(),
                };
                self.string(value, &literal.value, shown);
            }
            Value::NumberLit(literal) if matches!(within, Within::Secrets | Within::Foreign) => {
                self.string(value, literal.value, HIDDEN.to_owned());
            }
            Value::Array(array) if within == Within::Open => {
                let words = || {
                    let elements = array.elements.iter();
                    elements.filter_map(|element| Some((element, &*element.as_string_lit()?.value)))
                };
                let shown = secrecy::arguments(words().map(|(_, word)| word));
                words().zip(shown).for_each(|((at, word), shown)| self.string(at, word, shown));
                let others = array.elements.iter().filter(|e| !matches!(e, Value::StringLit(_)));
                others.for_each(|element| self.value(element, within));
            }
            // The program is shown; its arguments are masked, because they may contain the secret.
            Value::Array(array) if within == Within::Program => {
                for element in &array.elements {
                    match element {
                        Value::StringLit(literal) => {
                            let shown = secrecy::variables(&literal.value);
                            self.string(element, &literal.value, shown);
                        }
                        other => self.value(other, Within::Secrets),
                    }
                }
            }
            Value::Array(array) => {
                array.elements.iter().for_each(|element| self.value(element, within));
            }
            Value::Object(object) => self.object(object, within),
            Value::NumberLit(_) | Value::BooleanLit(_) | Value::NullKeyword(_) => {}
        }
    }

    fn object(&mut self, object: &Object<'_>, within: Within) {
        for property in &object.properties {
            let name = property.name.as_str();
            // A key whose value is an object is not treated as a secret, because it may be the name
            // of a server.
            let is_secret =
                !matches!(property.value, Value::Object(_)) && secrecy::is_secret_at(name);
            let inner = match within {
                Within::Open if name == "requestHeadersCommand" => Within::Program,
                Within::Program if secrecy::holds_secrets(name) => Within::Secrets,
                Within::Open if is_secret || secrecy::holds_secrets(name) => Within::Secrets,
                // Without a scheme, the parts of a URL cannot be told apart.
                Within::Open if name == "url" && !has_scheme(&property.value) => Within::Secrets,
                within => within,
            };
            self.strings.push((property.name.start(), property.name.end(), None));
            self.value(&property.value, inner);
        }
    }

    fn string(&mut self, at: &Value<'_>, written: &str, shown: String) {
        self.strings.push((at.start(), at.end(), (shown != written).then_some(shown)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::hosts::Host;

    #[test]
    fn masked_host_file_shows_values_only_of_servers() {
        let json = r#"{ "primaryApiKey": "s3cret", "projects": { "/p": { "env": ["${A}"] } },
            "mcpServers": { "a": { "command": "a", "env": { "T": "s3cret" } } } }"#;
        insta::assert_snapshot!(masked_of_host(json, Target::Host(Host::ClaudeCode)).unwrap(), @r#"
        { "primaryApiKey": "…", "projects": { "/p": { "env": ["…"] } },
                    "mcpServers": { "a": { "command": "a", "env": { "T": "…" } } } }
        "#);
        let toml = "[mcp_servers.a]\ncommand = 'a'\n[x]\ny = \"\"\"one\ntwo\"\"\"\n\
            [mcp_servers.a.http_headers]\nT = 's3cret'\n";
        let shown = masked_of_host(toml, Target::Host(Host::Codex)).unwrap();
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
    fn possible_secrets_are_masked_but_names_are_shown() {
        let text = r#"{ "mcpServers": { "secret-keeper": {
            "command": "npx", // a comment
            "args": ["-y", "x", "--token", "s3cret", "--api-key=s3cret", "--token=${T}"],
            "env": { "TOKEN": "s3cret", "FROM": "${TOKEN}", "N": "a\"b", "PIN": 1234 },
            // "PAT": "s3cret",
            "url": "https://me:s3cret@h/p?k=s3cret", /* key:
               s3cret */ "type": "http",
            "headers": { "Authorization": "Bearer s3cret" },
            "auth": { "type": "api-key", "key": "s3cret" },
            "bearerTokenEnv": "NAME", "oauth": { "clientSecret": "s3cret", "clientId": "id" },
        } } } // --token s3cret"#;
        let shown = masked(text).unwrap();
        insta::assert_snapshot!(shown, @r#"
        { "mcpServers": { "secret-keeper": {
                    "command": "npx", // a comment
                    "args": ["-y", "x", "--token", "…", "--api-key=…", "--token=${T}"],
                    "env": { "TOKEN": "…", "FROM": "${TOKEN}", "N": "…", "PIN": "…" },
                    // …
                    "url": "https://…@h/p?k=…", /* …
        */ "type": "http",
                    "headers": { "Authorization": "…" },
                    "auth": { "type": "api-key", "key": "…" },
                    "bearerTokenEnv": "NAME", "oauth": { "clientSecret": "…", "clientId": "id" },
                } } } // …
        "#);
        assert!(!shown.contains("s3cret"));
        assert_eq!(shown.lines().count(), text.lines().count());
    }

    #[test]
    fn malformed_configuration_text_is_not_shown() {
        assert_eq!(masked(r#"{ "env": { "TOKEN": "s3cret" }"#), None);
    }

    #[test]
    fn url_without_a_scheme_is_masked_as_a_whole() {
        for url in ["user:SECRET@h.example/mcp", "localhost:9/u?SECRET", "h:8080?x=SECRET"] {
            let text = format!(r#"{{ "mcpServers": {{ "a": {{ "url": "{url}" }} }} }}"#);
            let shown = masked(&text).unwrap();
            assert!(!shown.contains("SECRET") && shown.contains("\"url\""), "{shown}");
        }
        let shown = masked(r#"{ "mcpServers": { "a": { "url": "https://h.example/mcp" } } }"#);
        assert!(shown.unwrap().contains("https://h.example/mcp"));
    }
}
