//! Codex: tables `mcp_servers.NAME` of TOML, with keys of their own.

use jsonc_parser::ast::Value;

use super::HostFile;
use super::draft::{Meaning, usual};
use super::variables::Dialect;

pub(super) fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "mcp_servers", Dialect::Ours, meaning);
}

fn meaning(key: &str) -> Meaning {
    match key {
        "env_vars" => Meaning::PassedOn,
        "bearer_token_env_var" => Meaning::BearerVariable,
        "http_headers" => Meaning::Headers,
        "env_http_headers" => Meaning::HeadersFromVariables,
        "startup_timeout_sec" => Meaning::StartSeconds,
        "startup_timeout_ms" => Meaning::StartMilliseconds,
        "tool_timeout_sec" => Meaning::RequestSeconds,
        "enabled_tools" => Meaning::Field("includeTools"),
        "disabled_tools" => Meaning::Field("excludeTools"),
        _ => usual(key),
    }
}
