//! VS Code: `servers`, whose `inputs` only the editor can prompt for.

use jsonc_parser::ast::Value;

use super::draft::usual;
use super::variables::Dialect;
use super::{HostFile, Row};
use crate::config::install::form::{Form, Word};
use crate::config::syntax::Syntax;

pub(super) const ROW: Row = Row {
    title: "VS Code",
    syntax: Syntax::Jsonc,
    read,
    install: Form { holder: "servers", first: &[("type", Word::Text("stdio"))], ..Form::USUAL },
};

/// `mcpServers` is the key of other hosts, which users copy.
fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "servers", Dialect::Editor, usual);
    file.servers(root, "mcpServers", Dialect::Editor, usual);
}
