//! Cline: `mcpServers`, with the endpoint under `transport`, or beside it in older files.

use jsonc_parser::ast::Value;

use super::draft::{Meaning, usual};
use super::variables::Dialect;
use super::{HostFile, Row};
use crate::config::install::form::{Form, Launch, Off};
use crate::config::syntax::Syntax;

pub(super) const ROW: Row = Row {
    title: "Cline",
    syntax: Syntax::Jsonc,
    read,
    install: Form {
        off: Off::Flag("disabled", true),
        launch: Launch::Nested("transport"),
        ..Form::USUAL
    },
};

fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "mcpServers", Dialect::Editor, meaning);
}

fn meaning(key: &str) -> Meaning {
    match key {
        "transport" => Meaning::Nested,
        "timeout" => Meaning::RequestSeconds,
        _ => usual(key),
    }
}
