//! Converts a pasted snippet in the format of any host to entries of ours.

use serde_json::{Map, Value as Json};

use super::diagnostic::DiagnosticKind;
use super::edit::{EditError, value_at};
use super::layers::{ConfigSource, Tier};
use super::parse::{self, ParsedServer};
use super::server::ServerEntry;

/// The keys that hold the servers in the files of hosts.
const HOLDERS: &[&str] =
    &["mcpServers", "mcp-servers", "servers", "context_servers", "mcp_servers", "mcp"];

/// The keys of an endpoint. An object with one of them is the entry of a server.
const ENDPOINTS: &[&str] = &["command", "url", "httpUrl", "serverUrl", "socket"];

/// The servers in a pasted snippet, and the keys that were ignored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snippet {
    /// The servers with their names, in the order of the snippet.
    pub servers: Vec<(String, Map<String, Json>)>,
    /// The keys that are unsupported here or have another meaning, and are ignored.
    pub left_out: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnippetError {
    #[error("the snippet is not JSON")]
    Syntax(#[source] EditError),
    #[error("the snippet contains no server")]
    NoServer,
    #[error("the snippet does not name its server")]
    NoName,
    #[error("the snippet contains {servers} servers, but a name was given for only one")]
    SeveralServers { servers: usize },
}

/// Parses a snippet. If the snippet has only one server, `name` is the name of that server.
pub fn read(text: &str, name: Option<&str>) -> Result<Snippet, SnippetError> {
    let text = text.trim();
    // The user may have copied a member of an object without the braces around it.
    let wrapped = if text.starts_with('"') { format!("{{{text}}}") } else { text.to_owned() };
    let root = match value_at(&wrapped, &[]).map_err(SnippetError::Syntax)? {
        Some(Json::Object(root)) => root,
        Some(_) | None => return Err(SnippetError::NoServer),
    };
    let mut snippet = Snippet::default();
    if is_entry(&root) {
        let own = root.get("name").and_then(Json::as_str);
        let name = name.or(own).ok_or(SnippetError::NoName)?;
        let mut entry = root.clone();
        entry.shift_remove("name");
        snippet.add(name, entry);
        return Ok(snippet);
    }
    let entries: Vec<_> = holder(&root)
        .iter()
        .filter_map(|(name, entry)| Some((name, entry.as_object().filter(|e| is_entry(e))?)))
        .collect();
    match (entries.as_slice(), name) {
        ([], _) => return Err(SnippetError::NoServer),
        ([(_, entry)], Some(name)) => snippet.add(name, (*entry).clone()),
        (several, Some(_)) => {
            return Err(SnippetError::SeveralServers { servers: several.len() });
        }
        (several, None) => {
            several.iter().for_each(|(name, entry)| snippet.add(name, (*entry).clone()));
        }
    }
    Ok(snippet)
}

/// The entry as parsed, or the reason why a file of this tier cannot contain it.
pub fn check(
    name: &str,
    entry: &Map<String, Json>,
    tier: Tier,
) -> Result<ServerEntry, DiagnosticKind> {
    let file = serde_json::json!({ "mcpServers": { name: entry } }).to_string();
    let parsed = parse::parse(&file, &ConfigSource { path: "".into(), tier });
    if let Some(diagnostic) = parsed.diagnostics.into_iter().find(|found| found.is_error()) {
        return Err(diagnostic.kind);
    }
    let Some(ParsedServer { mut entry, .. }) = parsed.servers.into_iter().next() else {
        return Err(DiagnosticKind::Gateway { server: name.to_owned() });
    };
    entry.transport(name)?;
    entry.origins.clear();
    Ok(entry)
}

/// The object in the snippet whose members are the servers.
fn holder(root: &Map<String, Json>) -> &Map<String, Json> {
    let inner = HOLDERS.iter().find_map(|key| root.get(*key)?.as_object().filter(|o| !is_entry(o)));
    // VS Code's settings have the servers in `mcp.servers`.
    match inner {
        Some(inner) => inner.get("servers").and_then(Json::as_object).unwrap_or(inner),
        None => root,
    }
}

fn is_entry(object: &Map<String, Json>) -> bool {
    ENDPOINTS.iter().any(|key| match object.get(*key) {
        Some(Json::String(_) | Json::Array(_)) => true,
        // An old format of Zed has the program in `path`.
        Some(Json::Object(command)) => *key == "command" && command.contains_key("path"),
        _ => false,
    })
}

impl Snippet {
    fn add(&mut self, name: &str, entry: Map<String, Json>) {
        let mut ours = Map::new();
        for (key, value) in entry {
            match (key.as_str(), value) {
                ("command", Json::Array(words)) => {
                    let mut words = words.into_iter();
                    ours.insert("command".to_owned(), words.next().unwrap_or_default());
                    insert_unless_empty(&mut ours, "args", words.collect());
                }
                ("command", Json::Object(mut command)) => {
                    for (theirs, key) in [("path", "command"), ("args", "args"), ("env", "env")] {
                        if let Some(value) = command.shift_remove(theirs) {
                            insert_unless_empty(&mut ours, key, value);
                        }
                    }
                }
                ("environment", value) => insert_unless_empty(&mut ours, "env", value),
                ("args" | "env" | "headers", value) => insert_unless_empty(&mut ours, &key, value),
                ("httpUrl" | "serverUrl", value) => insert_unless_empty(&mut ours, "url", value),
                // This `type` only repeats what the endpoint or the origin of the entry implies.
                ("type", Json::String(kind)) if kind == "local" || kind == "remote" => {}
                ("source", _) => {}
                ("type", Json::String(kind)) if is_streamable(&kind) => {
                    ours.insert(key, "streamable-http".into());
                }
                ("enabled", Json::Bool(enabled)) => {
                    if !enabled {
                        ours.insert("disabled".to_owned(), true.into());
                    }
                }
                // A pasted snippet must not approve tools.
                (known, value) if ServerEntry::KEYS.contains(&known) && known != "autoApprove" => {
                    ours.insert(key, value);
                }
                _ => self.left_out.push(key),
            }
        }
        self.servers.push((name.to_owned(), ours));
    }
}

fn is_streamable(kind: &str) -> bool {
    ["streamableHttp", "streamable_http", "streamable-http"].contains(&kind)
}

fn insert_unless_empty(entry: &mut Map<String, Json>, key: &str, value: Json) {
    let is_empty = match &value {
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
        _ => false,
    };
    if !is_empty {
        entry.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, name: Option<&str>) -> String {
        let snippet = match read(text, name) {
            Ok(snippet) => snippet,
            Err(error) => return error.to_string(),
        };
        let mut out = String::new();
        for (name, entry) in &snippet.servers {
            out += &format!("{name} {}\n", Json::Object(entry.clone()));
            check(name, entry, Tier::User).unwrap();
        }
        if !snippet.left_out.is_empty() {
            out += &format!("without {}\n", snippet.left_out.join(", "));
        }
        out
    }

    #[test]
    fn snippets_of_all_hosts_become_the_same_entry() {
        let files = r#"files {"command":"npx","args":["-y","files"],"env":{"A":"b"}}"#;
        for text in [
            r#"{ "mcpServers": { "files": { "command": "npx", "args": ["-y", "files"], "env": { "A": "b" } } } }"#,
            r#"{ "servers": { "files": { "type": "local", "command": "npx", "args": ["-y", "files"], "env": { "A": "b" } } } }"#,
            r#"{ "mcp": { "servers": { "files": { "command": "npx", "args": ["-y", "files"], "env": { "A": "b" } } } } }"#,
            r#"{ "context_servers": { "files": { "source": "custom", "command": "npx", "args": ["-y", "files"], "env": { "A": "b" } } } }"#,
            r#"{ "context_servers": { "files": { "command": { "path": "npx", "args": ["-y", "files"], "env": { "A": "b" } } } } }"#,
            r#"{ "$schema": "x", "mcp": { "files": { "type": "local", "enabled": true, "command": ["npx", "-y", "files"], "environment": { "A": "b" } } } }"#,
            r#"{ "files": { "command": "npx", "args": ["-y", "files"], "env": { "A": "b" } } }"#,
            "\"files\": {\n  // a member, cut out\n  \"command\": \"npx\", \"args\": [\"-y\", \"files\"], \"env\": { \"A\": \"b\" },\n},",
            r#"{ "name": "files", "command": "npx", "args": ["-y", "files"], "env": { "A": "b" } }"#,
        ] {
            assert_eq!(shown(text, None), format!("{files}\n"), "{text}");
        }
    }

    #[test]
    fn url_in_a_snippet_may_have_alternative_keys() {
        insta::assert_snapshot!(shown(r#"{ "mcpServers": {
            "a": { "serverUrl": "https://a" },
            "b": { "httpUrl": "https://b", "headers": {}, "timeout": 5, "trust": true },
            "c": { "type": "streamableHttp", "url": "https://c", "alwaysAllow": ["x"] },
            "d": { "type": "remote", "url": "https://d", "enabled": false, "autoApprove": ["x"] },
        } }"#, None), @r#"
        a {"url":"https://a"}
        b {"url":"https://b"}
        c {"type":"streamable-http","url":"https://c"}
        d {"url":"https://d","disabled":true}
        without timeout, trust, alwaysAllow, autoApprove
        "#);
    }

    #[test]
    fn snippet_with_missing_or_ambiguous_server_name_is_refused() {
        let entry = r#"{ "command": "x" }"#;
        assert_eq!(shown(entry, Some("mine")), "mine {\"command\":\"x\"}\n");
        assert_eq!(shown(entry, None), "the snippet does not name its server");
        let one = r#"{ "mcpServers": { "theirs": { "command": "x" } } }"#;
        assert_eq!(shown(one, Some("mine")), "mine {\"command\":\"x\"}\n");
        let two = r#"{ "a": { "command": "x" }, "b": { "command": "y" } }"#;
        assert_eq!(
            shown(two, Some("mine")),
            "the snippet contains 2 servers, but a name was given for only one"
        );
        assert_eq!(shown(r#"{ "mcp": { "command": "x" } }"#, None), "mcp {\"command\":\"x\"}\n");
    }

    #[test]
    fn snippet_without_a_server_is_refused() {
        for text in ["", "[]", "{}", "3", r#"{ "mcpServers": {} }"#, r#"{ "a": { "env": {} } }"#] {
            assert_eq!(shown(text, None), "the snippet contains no server", "{text}");
        }
        assert_eq!(shown("{ command: x }", None), "the snippet is not JSON");
    }

    #[test]
    fn invalid_server_entry_is_refused_with_the_reason() {
        let refusal = |entry: Json, tier| {
            check("x", entry.as_object().unwrap(), tier).unwrap_err().to_string()
        };
        use serde_json::json;
        insta::assert_snapshot!(refusal(json!({ "url": "gopher://x" }), Tier::User), @"the `url` of server `x` must begin with http://, https://, sse://, ws:// or wss://");
        insta::assert_snapshot!(refusal(json!({ "command": 3 }), Tier::User), @"`mcpServers.x.command` must be a string, found a number");
        insta::assert_snapshot!(refusal(json!({ "command": "x", "inheritEnv": true }), Tier::Project), @"`mcpServers.x.inheritEnv` is not allowed in a project file");
        insta::assert_snapshot!(refusal(json!({ "args": [] }), Tier::User), @"server `x` needs one of `command`, `url` and `socket`");
    }
}
