//! Crush: `mcp`, whose values a shell expands.

use jsonc_parser::ast::Value;

use super::draft::{Meaning, usual};
use super::variables::Dialect;
use super::{HostFile, Row};
use crate::config::install::form::{Form, Off, Word};
use crate::config::syntax::Syntax;

pub(super) const ROW: Row = Row {
    title: "Crush",
    syntax: Syntax::Jsonc,
    read,
    install: Form {
        holder: "mcp",
        off: Off::Flag("disabled", true),
        first: &[("type", Word::Text("stdio"))],
        ..Form::USUAL
    },
};

fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "mcp", Dialect::Shell, meaning);
}

fn meaning(key: &str) -> Meaning {
    match key {
        "disabled_tools" => Meaning::Field("excludeTools"),
        "timeout" => Meaning::RequestSeconds,
        _ => usual(key),
    }
}
