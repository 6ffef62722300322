//! Windsurf: `mcpServers`, with `serverUrl` for remote ones.

use jsonc_parser::ast::Value;

use super::HostFile;
use super::draft::{Meaning, usual};
use super::variables::Dialect;

pub(super) fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "mcpServers", Dialect::Editor, meaning);
}

fn meaning(key: &str) -> Meaning {
    match key {
        "serverUrl" => Meaning::Field("url"),
        "disabledTools" => Meaning::Field("excludeTools"),
        _ => usual(key),
    }
}
