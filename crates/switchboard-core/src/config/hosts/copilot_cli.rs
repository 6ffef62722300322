//! Copilot CLI: `mcpServers`, each with a list of allowed tools.

use jsonc_parser::ast::Value;

use super::draft::{Meaning, usual};
use super::variables::Dialect;
use super::{HostFile, Row};
use crate::config::install::form::{Extra, Form, Word};
use crate::config::syntax::Syntax;

pub(super) const ROW: Row = Row {
    title: "Copilot CLI",
    syntax: Syntax::Jsonc,
    read,
    install: Form {
        first: &[("type", Word::Text("local"))],
        then: &[Extra {
            key: "tools",
            value: Word::Texts(&["*"]),
            why: "Copilot CLI uses only the tools that this key lists",
        }],
        ..Form::USUAL
    },
};

fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "mcpServers", Dialect::Dollar, meaning);
}

fn meaning(key: &str) -> Meaning {
    match key {
        "timeout" => Meaning::RequestMilliseconds,
        _ => usual(key),
    }
}
