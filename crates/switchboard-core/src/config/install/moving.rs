//! Converts the other servers of a host to our format, so that they can be moved into one of our
//! files.

use serde_json::{Map, Value as Json};

use super::{Target, is_ours, servers};
use crate::config::edit::EditError;
use crate::config::hosts;
use crate::config::layers::{ConfigSource, Tier};
use crate::config::server::ServerEntry;
use crate::config::snippet;
use crate::config::values::{Template, TemplateMap};

/// A server in a host's file.
#[derive(Clone, Debug, PartialEq)]
pub struct HostServer {
    pub name: String,
    /// The entry in our format. `None` if only the host can start the server, or if the conversion
    /// would not be exact.
    pub ours: Option<Map<String, Json>>,
}

/// Replaces the project directory while entries are converted. The variable stays in the converted
/// entries, and no settings of a single project match.
const NO_PROJECT: &str = "${workspaceFolder}";

/// All servers in the host's file except our own.
pub fn other_servers(target: Target, text: &str) -> Result<Vec<HostServer>, EditError> {
    let source = ConfigSource { path: "".into(), tier: Tier::User };
    let read = target.host().map(|host| hosts::parse(host, text, &source, NO_PROJECT).servers);
    let theirs = servers(target, text)?.into_iter().filter(|(_, entry)| !is_ours(entry));
    Ok(theirs
        .map(|(name, entry)| {
            let ours = match &read {
                None => entry.as_object().cloned().filter(|entry| parsed(&name, entry).is_some()),
                Some(read) => read
                    .iter()
                    .find(|server| server.name == name)
                    .and_then(|server| converted_exactly(&name, &server.entry)),
            };
            HostServer { name, ours }
        })
        .collect())
}

/// Whether two entries in our format define the same server.
pub fn defines_same(name: &str, one: &Map<String, Json>, other: &Map<String, Json>) -> bool {
    parsed(name, one).is_some_and(|one| parsed(name, other) == Some(one))
}

fn parsed(name: &str, entry: &Map<String, Json>) -> Option<ServerEntry> {
    snippet::check(name, entry, Tier::User).ok()
}

/// The entry in our format; `None` if parsing it would not give the same entry again.
fn converted_exactly(name: &str, entry: &ServerEntry) -> Option<Map<String, Json>> {
    let mut entry = entry.clone();
    entry.origins.clear();
    entry.args = entry.args.filter(|args| !args.is_empty());
    for map in [&mut entry.env, &mut entry.headers] {
        if map.as_ref().is_some_and(|map| map.iter().next().is_none()) {
            *map = None;
        }
    }
    let written = written(&entry);
    (parsed(name, &written).as_ref() == Some(&entry)).then_some(written)
}

/// The fields that a host's file can set, as an entry in our format.
fn written(entry: &ServerEntry) -> Map<String, Json> {
    let text = |template: &Template| Json::from(template.source());
    let texts = |texts: &Vec<Template>| texts.iter().map(text).collect::<Json>();
    let map = |map: &TemplateMap| {
        map.iter().map(|(name, value)| (name.to_owned(), text(value))).collect::<Json>()
    };
    let time = |time: &std::time::Duration| u64::try_from(time.as_millis()).ok().map(Json::from);
    let names = |names: &Vec<String>| Json::from(names.clone());
    let fields = [
        ("type", entry.transport_type.map(|kind| kind.as_str().into())),
        ("command", entry.command.as_ref().map(text)),
        ("args", entry.args.as_ref().map(texts)),
        ("env", entry.env.as_ref().map(map)),
        ("cwd", entry.cwd.as_ref().map(text)),
        ("url", entry.url.as_ref().map(text)),
        ("headers", entry.headers.as_ref().map(map)),
        ("auth", entry.auth.as_ref().map(|auth| auth.kind().into())),
        ("bearerTokenEnv", entry.bearer_token_env.as_deref().map(Json::from)),
        ("startTimeoutMs", entry.start_timeout.as_ref().and_then(time)),
        ("requestTimeoutMs", entry.request_timeout.as_ref().and_then(time)),
        ("includeTools", entry.include_tools.as_ref().map(names)),
        ("excludeTools", entry.exclude_tools.as_ref().map(names)),
        ("disabled", entry.disabled.map(Json::from)),
    ];
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}
