//! Gemini CLI: `mcpServers`, where the URL's key implies the transport, and two lists of names.

use jsonc_parser::ast::Value;

use super::draft::{Meaning, usual};
use super::variables::Dialect;
use super::{HostFile, Row, names};
use crate::config::install::form::{Extra, Form, Grant, Needs, Passing, Word};
use crate::config::syntax::Syntax;
use crate::config::values::TransportType;

/// If this list exists, only the servers in it are used.
pub(super) const ALLOWED: Grant = Grant {
    needs: Needs::Present,
    ..Grant::item(&["mcp", "allowed"], "switchboard", "only servers in this list are started")
};

pub(super) const ROW: Row = Row {
    title: "Gemini CLI",
    syntax: Syntax::Jsonc,
    read,
    install: Form {
        then: &[Extra {
            key: "trust",
            value: Word::True,
            why: "Gemini CLI does not ask for approval: Switchboard asks before destructive calls",
        }],
        passing: Passing::Named { key: "env", opening: "$", closing: "" },
        grants: &[ALLOWED],
        ..Form::USUAL
    },
};

pub(super) fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "mcpServers", Dialect::Dollar, meaning);
    let Some(lists) = root.as_object().and_then(|root| root.get("mcp")) else {
        return;
    };
    if let Some((offset, allowed)) = names(&lists.value, "allowed") {
        let origin = file.reader.origin(offset);
        file.disable(&origin, |name| !allowed.contains(name));
    }
    if let Some((offset, excluded)) = names(&lists.value, "excluded") {
        let origin = file.reader.origin(offset);
        file.disable(&origin, |name| excluded.contains(name));
    }
}

fn meaning(key: &str) -> Meaning {
    match key {
        "httpUrl" => Meaning::UrlOf(TransportType::StreamableHttp),
        "url" => Meaning::UrlOf(TransportType::Sse),
        "timeout" => Meaning::RequestMilliseconds,
        "includeTools" => Meaning::Field("includeTools"),
        "excludeTools" => Meaning::Field("excludeTools"),
        _ => usual(key),
    }
}
