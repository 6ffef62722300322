//! Cursor: `mcpServers`, with the variables of an editor.

use jsonc_parser::ast::Value;

use super::draft::usual;
use super::variables::Dialect;
use super::{HostFile, Row};
use crate::config::install::form::Form;
use crate::config::syntax::Syntax;

pub(super) const ROW: Row =
    Row { title: "Cursor", syntax: Syntax::Jsonc, read, install: Form::USUAL };

fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "mcpServers", Dialect::Editor, usual);
}
