//! Tools that are not what was accepted: how they differ, and the user's word that it is fine.

use std::fmt::Write;

use serde_json::{Value, json};
use switchboard::catalog::pin::{Change, Drift, ServerPins};
use switchboard::config::values::Pins;
use switchboard::render::words::{clean_line, list, plural};

use crate::args::Format;
use crate::conversation::Conversation;
use crate::exit::Exit;
use crate::report::Outcome;
use crate::style::Palette;

const NAME: usize = 100;

/// As many accepted tools as are named.
const NAMES: usize = 12;

pub(super) async fn show(on: &Conversation<'_>, server: Option<&str>, format: Format) -> Outcome {
    let gateway = on.session.gateway();
    let servers = gateway.pins(server).await?;
    let printer = on.app.printer;
    if format.json {
        let servers: Vec<Value> = servers.iter().map(in_json).collect();
        printer.json(&json!({ "servers": servers }))?;
        return Ok(Exit::Done);
    }
    let drifting: Vec<&ServerPins> = servers.iter().filter(|s| !s.drifts.is_empty()).collect();
    let blocks: Vec<String> = drifting.iter().map(|s| in_words(s, printer.out)).collect();
    printer.text(&blocks.join("\n"))?;
    if gateway.settings().pins == Pins::Off {
        printer.note("the setting `pins` is `off`: nothing is compared");
    } else if let Some(first) = drifting.first() {
        let server = clean_line(first.server.as_str(), NAME);
        let command = printer.err.command(format!("`switchboard pins accept {server}`"));
        printer.note(&format!("{command} accepts them as they are now"));
    } else {
        printer.note("every tool is as it was accepted");
    }
    Ok(Exit::Done)
}

pub(super) async fn accept(on: &Conversation<'_>, server: &str, tools: &[String]) -> Outcome {
    let accepted = on.session.gateway().accept_pins(server, tools).await?;
    let names: Vec<_> =
        accepted.drifts.iter().map(|drift| clean_line(&drift.shown, NAME)).collect();
    on.app.printer.note(&match names.len() {
        0 => "every tool is as it was accepted".to_owned(),
        count => format!("accepted {}: {}", plural(count, "tool"), list(&names, NAMES)),
    });
    Ok(Exit::Done)
}

fn in_json(server: &ServerPins) -> Value {
    let change =
        |change: &Change| json!({ "field": change.field, "old": change.old, "new": change.new });
    let tool = |drift: &Drift| {
        json!({
            "name": drift.shown,
            "tool": drift.tool,
            "pin": drift.pin.mark(),
            "changes": drift.changes.iter().map(change).collect::<Vec<_>>(),
        })
    };
    let tools: Vec<Value> = server.drifts.iter().map(tool).collect();
    json!({ "server": server.server.as_str(), "tools": tools })
}

fn in_words(server: &ServerPins, palette: Palette) -> String {
    let mut out = String::new();
    let name = clean_line(server.server.as_str(), NAME);
    let _ = writeln!(out, "{}", palette.heading(name));
    for drift in &server.drifts {
        let mark = drift.pin.mark().unwrap_or_default();
        let name = palette.name(clean_line(&drift.shown, NAME));
        let _ = writeln!(out, "{name} {}", palette.warning(format!("({mark})")));
        for Change { field, old, new } in &drift.changes {
            let field = if field.is_empty() { String::new() } else { format!("{field}: ") };
            if let Some(old) = old {
                let _ = writeln!(out, "  {}", palette.error(format!("- {field}{old}")));
            }
            if let Some(new) = new {
                let _ = writeln!(out, "  {}", palette.command(format!("+ {field}{new}")));
            }
        }
    }
    out
}
