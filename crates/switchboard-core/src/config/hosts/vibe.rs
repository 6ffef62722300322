//! Mistral Vibe: an array of tables `mcp_servers`, each with a name.

use jsonc_parser::ast::Value;

use super::draft::{Meaning, usual};
use super::variables::Dialect;
use super::{HostFile, Row};
use crate::config::install::form::{Form, Grant, Listing, Off, Passing, Word};
use crate::config::syntax::Syntax;

pub(super) const ROW: Row = Row {
    title: "Mistral Vibe",
    syntax: Syntax::Toml,
    read,
    install: Form {
        holder: "mcp_servers",
        listing: Listing::Array,
        off: Off::Flag("disabled", true),
        first: &[("transport", Word::Text("stdio"))],
        passing: Passing::Literals,
        grants: &[
            Grant::value(&["tools", "switchboard_mcp", "permission"], Word::Text("always"), WHY),
            Grant::value(
                &["tools", "switchboard_mcp_write", "permission"],
                Word::Text("always"),
                WHY,
            ),
        ],
        ..Form::USUAL
    },
};

const WHY: &str =
    "Mistral Vibe does not ask for approval: Switchboard asks before destructive calls";

fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.listed(root, "mcp_servers", Dialect::Ours, meaning);
}

fn meaning(key: &str) -> Meaning {
    match key {
        "disabled_tools" => Meaning::Field("excludeTools"),
        "startup_timeout_sec" => Meaning::StartSeconds,
        "tool_timeout_sec" => Meaning::RequestSeconds,
        "api_key_env" => Meaning::BearerVariable,
        _ => usual(key),
    }
}
