//! Gemini CLI: `mcpServers`, where the key of the URL says the transport, and two lists of names.

use jsonc_parser::ast::Value;

use super::draft::{Meaning, usual};
use super::variables::Dialect;
use super::{HostFile, names};
use crate::config::values::TransportType;

pub(super) fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "mcpServers", Dialect::Dollar, meaning);
    let Some(lists) = root.as_object().and_then(|root| root.get("mcp")) else {
        return;
    };
    if let Some((offset, allowed)) = names(&lists.value, "allowed") {
        let origin = file.reader.origin(offset);
        file.disable(&origin, |name| !allowed.contains(name));
    }
    if let Some((offset, excluded)) = names(&lists.value, "excluded") {
        let origin = file.reader.origin(offset);
        file.disable(&origin, |name| excluded.contains(name));
    }
}

fn meaning(key: &str) -> Meaning {
    match key {
        "httpUrl" => Meaning::UrlOf(TransportType::StreamableHttp),
        "url" => Meaning::UrlOf(TransportType::Sse),
        "timeout" => Meaning::RequestMilliseconds,
        "includeTools" => Meaning::Field("includeTools"),
        "excludeTools" => Meaning::Field("excludeTools"),
        _ => usual(key),
    }
}
