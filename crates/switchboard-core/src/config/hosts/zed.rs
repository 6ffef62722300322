//! Zed: `context_servers` in its settings; servers of extensions have no command and are ignored.

use jsonc_parser::ast::Value;

use super::draft::usual;
use super::variables::Dialect;
use super::{HostFile, Row};
use crate::config::install::form::{Form, Off, Word};
use crate::config::syntax::Syntax;

pub(super) const ROW: Row = Row {
    title: "Zed",
    syntax: Syntax::Jsonc,
    read,
    install: Form {
        holder: "context_servers",
        off: Off::Flag("enabled", false),
        first: &[("source", Word::Text("custom"))],
        ..Form::USUAL
    },
};

fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "context_servers", Dialect::Ours, usual);
}
