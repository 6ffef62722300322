//! Keys of `pi-mcp-adapter`, which uses the same files. They have no effect here, and are not
//! reported as misspelt.

pub(super) const ROOT: &[&str] = &["claudePlugins"];

pub(super) const SERVER: &[&str] =
    &["httpTransport", "literalEnv", "pluginDataDir", "tasks", "trace"];

pub(super) const SETTINGS: &[&str] = &[
    "agentPluginPaths",
    "ancestorConfigRoots",
    "authRequiredMessage",
    "directToolResultDetails",
    "disableProxyTool",
    "hostConfigDiscovery",
    "jev",
    "namespaceProxyTools",
    "oauthDir",
    "samplingAutoApprove",
    "scriptMode",
    "strictDirectToolArguments",
    "trace",
];

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value as Json, json};

    use super::*;
    use crate::config::diagnostic::Level;
    use crate::config::layers::{ConfigSource, Tier};
    use crate::config::parse::{self, ROOT_KEYS};
    use crate::config::server::ServerEntry;
    use crate::config::settings::SettingsEntry;

    #[test]
    fn keys_of_pi_mcp_adapter_are_reported_as_ignored() {
        for (ignored, known) in
            [(ROOT, ROOT_KEYS), (SERVER, ServerEntry::KEYS), (SETTINGS, SettingsEntry::KEYS)]
        {
            assert!(ignored.iter().all(|key| !known.contains(key)), "{ignored:?}");
        }
        let all = |keys: &[&str]| -> Map<String, Json> {
            keys.iter().map(|key| ((*key).to_owned(), json!(7))).collect()
        };
        let mut server = all(SERVER);
        server.insert("command".to_owned(), json!("a"));
        let mut root = all(ROOT);
        root.insert("settings".to_owned(), Json::Object(all(SETTINGS)));
        root.insert("mcpServers".to_owned(), json!({ "a": server }));
        for tier in [Tier::User, Tier::Project] {
            let source = ConfigSource { path: "".into(), tier };
            let file = parse::parse(&Json::Object(root.clone()).to_string(), &source);
            let levels: Vec<Level> = file.diagnostics.iter().map(|found| found.level).collect();
            assert_eq!(levels, vec![Level::Note; ROOT.len() + SERVER.len() + SETTINGS.len()]);
            assert_eq!(file.servers.len(), 1);
        }
    }
}
