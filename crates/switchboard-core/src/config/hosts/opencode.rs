//! OpenCode: `mcp`, with command and arguments in one list.

use jsonc_parser::ast::Value;

use super::draft::{Meaning, usual};
use super::variables::Dialect;
use super::{HostFile, Row};
use crate::config::install::form::{Form, Launch, Off, Word};
use crate::config::syntax::Syntax;

pub(super) const ROW: Row = Row {
    title: "OpenCode",
    syntax: Syntax::Jsonc,
    read,
    install: Form {
        holder: "mcp",
        off: Off::Flag("enabled", false),
        first: &[("type", Word::Text("local"))],
        launch: Launch::OneList,
        ..Form::USUAL
    },
};

fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "mcp", Dialect::Braces, meaning);
}

fn meaning(key: &str) -> Meaning {
    match key {
        "environment" => Meaning::Env,
        "oauth" => Meaning::Field("oauth"),
        _ => usual(key),
    }
}
