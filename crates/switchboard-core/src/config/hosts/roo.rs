//! Roo Code: `mcpServers` in the storage of its extension for VS Code.

use jsonc_parser::ast::Value;

use super::draft::{Meaning, usual};
use super::variables::Dialect;
use super::{HostFile, Row};
use crate::config::install::form::{Form, Off, Passing};
use crate::config::syntax::Syntax;

pub(super) const ROW: Row = Row {
    title: "Roo Code",
    syntax: Syntax::Jsonc,
    read,
    install: Form {
        off: Off::Flag("disabled", true),
        passing: Passing::Named { key: "env", opening: "${env:", closing: "}" },
        ..Form::USUAL
    },
};

fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "mcpServers", Dialect::Editor, meaning);
}

fn meaning(key: &str) -> Meaning {
    match key {
        "disabledTools" => Meaning::Field("excludeTools"),
        "timeout" => Meaning::RequestSeconds,
        _ => usual(key),
    }
}
