//! Codex: TOML tables `mcp_servers.NAME`, with keys of their own.

use jsonc_parser::ast::Value;

use super::draft::{Meaning, usual};
use super::variables::Dialect;
use super::{HostFile, Row};
use crate::config::install::form::{Extra, Form, Grant, Needs, Off, Passing, Word};
use crate::config::syntax::Syntax;

/// In code mode, Codex shows the model only the tools of these servers. Before 0.142, this table
/// made the whole file a parse error.
const DIRECT_NAMESPACE: Grant = Grant {
    needs: Needs::Version([0, 142]),
    ..Grant::item(
        &["features", "code_mode", "direct_only_tool_namespaces"],
        "mcp__switchboard",
        "in code mode, Codex shows the tool in its first request",
    )
};

pub(super) const ROW: Row = Row {
    title: "Codex",
    syntax: Syntax::Toml,
    read,
    install: Form {
        holder: "mcp_servers",
        off: Off::Flag("enabled", false),
        then: &[Extra {
            key: "default_tools_approval_mode",
            value: Word::Text("approve"),
            why: "Codex does not ask for approval: Switchboard asks before destructive calls",
        }],
        passing: Passing::Listed("env_vars"),
        grants: &[DIRECT_NAMESPACE],
        ..Form::USUAL
    },
};

fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
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
