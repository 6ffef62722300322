//! Changes one key of the user's file: a setting, or a field of a server's entry.

use serde_json::Value;
use switchboard_core::catalog::resolve::nearest;
use switchboard_core::config::diagnostic::{Diagnostic, DiagnosticKind};
use switchboard_core::config::edit::{self, Change, Edit};
use switchboard_core::config::layers::{ConfigSource, Tier};
use switchboard_core::config::parse::parse;
use switchboard_core::config::server::ServerEntry;
use switchboard_core::config::settings::SettingsEntry;
use switchboard_core::name::ServerName;

use super::error::EditRefusal;
use super::{EditError, Edited, Editor, NextText, Scope, find, standing, unknown};

impl Editor<'_> {
    /// Sets a key; `None` removes it. A dot descends into an object: `env.LOG_LEVEL`. A value that
    /// would make the file invalid is not written.
    pub fn set(
        &self,
        server: Option<&ServerName>,
        key: &str,
        value: Option<Value>,
    ) -> Result<Edited, EditError> {
        let (known, of): (&[&str], _) = match server {
            Some(_) => (ServerEntry::KEYS, "the entry of a server"),
            None => (SettingsEntry::KEYS, "`settings`"),
        };
        let first = key.split('.').next().unwrap_or_default();
        if !known.contains(&first) {
            let names = known.iter().map(|name| (*name).to_owned());
            let suggestions = nearest(first, names);
            return Err(EditError::UnknownKey { key: first.to_owned(), of, suggestions });
        }
        let path = self.file(Scope::User);
        if let Some(server) = server
            && self.content_of(&path, server)?.is_none()
        {
            let loaded = self.load()?;
            return Err(match standing(&loaded, server) {
                Some(standing) => {
                    let path = standing.file.into();
                    EditError::Elsewhere { server: server.clone(), path }
                }
                None => unknown(server, &loaded),
            });
        }
        let change = value.map_or(Change::Remove, Change::Set);
        self.write(&path, |text| changed(text, server, key, change.clone()))
    }
}

fn changed(
    text: &str,
    server: Option<&ServerName>,
    key: &str,
    change: Change,
) -> Result<NextText, EditRefusal> {
    let parents: Vec<String> = match server {
        Some(server) => {
            let (servers, _) = find(text, server)?;
            vec![servers.to_owned(), server.to_string()]
        }
        None => vec!["settings".to_owned()],
    };
    let at = parents.into_iter().chain(key.split('.').map(str::to_owned)).collect();
    let after = edit::apply(text, &[Edit { at, change }]).map_err(EditRefusal::Text)?;
    let known = problems(text);
    match problems(&after).into_iter().find(|problem| !known.contains(problem)) {
        Some(problem) => {
            Err(EditRefusal::Value { key: key.to_owned(), problem: Box::new(problem) })
        }
        None => Ok(Some(after)),
    }
}

/// The errors in the text of a configuration file, without their positions.
fn problems(text: &str) -> Vec<DiagnosticKind> {
    let source = ConfigSource { path: "".into(), tier: Tier::User };
    let found = parse(text, &source).diagnostics.into_iter().filter(Diagnostic::is_error);
    found.map(|problem| problem.kind).filter(|kind| *kind != DiagnosticKind::Empty).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(text: &str, server: Option<&str>, key: &str, value: Option<Value>) -> String {
        let server = server.map(|name| ServerName::new(name).unwrap());
        let change = value.map_or(Change::Remove, Change::Set);
        match changed(text, server.as_ref(), key, change) {
            Ok(next) => next.unwrap_or_default(),
            Err(EditRefusal::Value { problem, .. }) => format!("refused: {problem}"),
            Err(EditRefusal::Text(error)) => format!("refused: {error}"),
            Err(EditRefusal::Exists(_)) => "exists".to_owned(),
        }
    }

    #[test]
    fn config_set_changes_only_the_named_key() {
        let text = "{\n  // mine\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\" }\n  }\n}\n";
        let quiet = set(text, None, "toolPrefix", Some("short".into()));
        assert!(quiet.contains("// mine") && quiet.contains(r#""toolPrefix": "short""#), "{quiet}");
        assert_eq!(set(&quiet, None, "toolPrefix", Some("short".into())), quiet);
        let entry = set(text, Some("a"), "env.LOG", Some("debug".into()));
        assert!(entry.contains(r#""LOG": "debug""#) && entry.contains("// mine"), "{entry}");
        let gone = set(&entry, Some("a"), "env", None);
        assert!(!gone.contains("LOG"), "{gone}");
        let first = set("", None, "maxTools", Some(json!(5)));
        assert!(first.contains(r#""maxTools": 5"#), "{first}");
    }

    #[test]
    fn config_set_refuses_value_that_would_invalidate_the_file() {
        let text = r#"{ "mcpServers": { "a": { "command": "x" } } }"#;
        for (server, key, value) in [
            (None, "toolPrefix", json!("shorter")),
            (None, "maxTools", json!("many")),
            (None, "deny", json!(["!x"])),
            (None, "passEnv", json!(["A=B"])),
            (Some("a"), "lifecycle", json!("sometimes")),
            (Some("a"), "env", json!(["A"])),
            (Some("a"), "url", json!("htp://x")),
        ] {
            let refused = set(text, server, key, Some(value.clone()));
            assert!(refused.starts_with("refused: "), "{key} {value}: {refused}");
        }
        // An existing mistake in the file does not prevent the edit of another key.
        let broken = r#"{ "mcpServers": { "a": { "command": 5 } } }"#;
        assert!(set(broken, None, "maxTools", Some(json!(5))).contains("maxTools"));
    }
}
