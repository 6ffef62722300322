//! Claude Code: the user's servers, those of one directory, and those disabled there.

use jsonc_parser::ast::Value;

use super::draft::usual;
use super::variables::Dialect;
use super::{HostFile, Row, names};
use crate::config::install::form::{Extra, Form, Grant, Word};
use crate::config::syntax::Syntax;

pub(super) const ROW: Row = Row {
    title: "Claude Code",
    syntax: Syntax::Jsonc,
    read,
    install: Form {
        first: &[("type", Word::Text("stdio"))],
        then: &[Extra {
            key: "alwaysLoad",
            value: Word::True,
            why: "Claude Code shows the tool in its first request, not only after a tool search",
        }],
        settings: &[Grant::item(
            &["permissions", "allow"],
            "mcp__switchboard",
            "Claude Code does not ask for approval: Switchboard asks before destructive calls",
        )],
        ..Form::USUAL
    },
};

/// `projects` has a section for each directory, which takes precedence over the top level.
fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    let project = file.project;
    let section = root
        .as_object()
        .and_then(|root| root.get_object("projects"))
        .and_then(|projects| projects.get(project))
        .map(|property| &property.value);
    if let Some(section) = section {
        file.servers(section, "mcpServers", Dialect::Ours, usual);
    }
    file.servers(root, "mcpServers", Dialect::Ours, usual);
    if let Some((offset, off)) = section.and_then(|section| names(section, "disabledMcpServers")) {
        let origin = file.reader.origin(offset);
        file.disable(&origin, |name| off.contains(name));
    }
}
