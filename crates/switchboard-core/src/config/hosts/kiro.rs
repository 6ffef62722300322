//! Kiro: `mcpServers`, with lists of disabled tools.

use jsonc_parser::ast::Value;

use super::draft::{Meaning, usual};
use super::variables::Dialect;
use super::{HostFile, Row};
use crate::config::install::form::{Form, Off};
use crate::config::syntax::Syntax;

pub(super) const ROW: Row = Row {
    title: "Kiro",
    syntax: Syntax::Jsonc,
    read,
    install: Form { off: Off::Flag("disabled", true), ..Form::USUAL },
};

fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "mcpServers", Dialect::Ours, meaning);
}

fn meaning(key: &str) -> Meaning {
    match key {
        "disabledTools" => Meaning::Field("excludeTools"),
        _ => usual(key),
    }
}
