//! Claude Desktop: programs only, under `mcpServers`.

use jsonc_parser::ast::Value;

use super::draft::usual;
use super::variables::Dialect;
use super::{HostFile, Row};
use crate::config::install::form::{Form, Passing};
use crate::config::syntax::Syntax;

pub(super) const ROW: Row = Row {
    title: "Claude Desktop",
    syntax: Syntax::Jsonc,
    read,
    install: Form { passing: Passing::Literals, ..Form::USUAL },
};

fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "mcpServers", Dialect::Ours, usual);
}
