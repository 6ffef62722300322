//! OpenCode: `mcp`, with the command line as one list.

use jsonc_parser::ast::Value;

use super::HostFile;
use super::draft::{Meaning, usual};
use super::variables::Dialect;

pub(super) fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "mcp", Dialect::Braces, meaning);
}

fn meaning(key: &str) -> Meaning {
    match key {
        "environment" => Meaning::Env,
        "oauth" => Meaning::Field("oauth"),
        _ => usual(key),
    }
}
