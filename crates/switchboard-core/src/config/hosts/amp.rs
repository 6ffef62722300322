//! Amp: `amp.mcpServers` among its settings; the dot is part of the key.

use jsonc_parser::ast::Value;

use super::draft::{Meaning, usual};
use super::variables::Dialect;
use super::{HostFile, Row};
use crate::config::install::form::Form;
use crate::config::syntax::Syntax;

const HOLDER: &str = "amp.mcpServers";

pub(super) const ROW: Row = Row {
    title: "Amp",
    syntax: Syntax::Jsonc,
    read,
    install: Form { holder: HOLDER, ..Form::USUAL },
};

fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, HOLDER, Dialect::Ours, meaning);
}

fn meaning(key: &str) -> Meaning {
    match key {
        "includeTools" => Meaning::Field("includeTools"),
        _ => usual(key),
    }
}
