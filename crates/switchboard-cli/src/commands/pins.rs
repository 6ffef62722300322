//! Tools that changed since they were pinned: shows the differences, and accepts them.

use std::fmt::Write;

use serde_json::{Value, json};
use switchboard::catalog::pin::{Change, Drift, Pin, Pinned, ServerPins};
use switchboard::config::values::Pins;
use switchboard::hidden::{Hidden, strip};
use switchboard::render::caution;
use switchboard::render::words::{clean_line, list};

use crate::args::Format;
use crate::conversation::Conversation;
use crate::exit::Exit;
use crate::report::CommandResult;
use crate::style::Palette;

const NAME: usize = 100;

/// The maximum number of accepted tools that a message names.
const NAMES: usize = 12;

pub(super) async fn show(
    conversation: &Conversation<'_>,
    server: Option<&str>,
    format: Format,
) -> CommandResult {
    let gateway = conversation.session.gateway();
    let servers = gateway.pins(server).await?;
    let printer = conversation.app.printer;
    if format.json {
        let servers: Vec<Value> = servers.iter().map(in_json).collect();
        printer.json(&json!({ "servers": servers }))?;
        return Ok(Exit::Done);
    }
    let drifting: Vec<&ServerPins> = servers.iter().filter(|s| !s.drifts.is_empty()).collect();
    let blocks: Vec<String> = drifting.iter().map(|s| in_words(s, printer.out)).collect();
    printer.text(&blocks.join("\n"))?;
    let has_changed =
        |server: &&&ServerPins| server.drifts.iter().any(|drift| drift.pin != Pin::Same);
    if gateway.settings().pins == Pins::Off {
        printer.note("the setting `pins` is `off`: nothing is compared");
    } else if let Some(first) = drifting.iter().find(has_changed) {
        let server = clean_line(first.server.as_str(), NAME);
        let command = printer.err.command(format!("`switchboard pins accept {server}`"));
        printer.note(&format!("{command} accepts the changes"));
    } else {
        printer.note("no tool changed since it was pinned");
    }
    let mut hidden =
        drifting.iter().flat_map(|server| &server.drifts).flat_map(|drift| &drift.hidden);
    if hidden.any(Hidden::is_left_out) {
        printer.note("models do not get the hidden text; ask its server's author what it is for");
    }
    Ok(Exit::Done)
}

pub(super) async fn accept(
    conversation: &Conversation<'_>,
    server: &str,
    tools: &[String],
) -> CommandResult {
    let accepted = conversation.session.gateway().accept_pins(server, tools).await?;
    let names: Vec<_> =
        accepted.drifts.iter().map(|drift| clean_line(&drift.shown, NAME)).collect();
    conversation.app.printer.note(&match names.len() {
        0 => "no tool changed since it was pinned".to_owned(),
        _ => format!("accepted: {}", list(&names, NAMES)),
    });
    Ok(Exit::Done)
}

fn in_json(server: &ServerPins) -> Value {
    let change =
        |change: &Change| json!({ "field": change.field, "old": change.old, "new": change.new });
    let tool = |drift: &Drift| {
        let mut json = json!({
            "name": drift.shown,
            "tool": strip(&drift.tool),
            "pin": drift.pin.mark(),
            "changes": drift.changes.iter().map(change).collect::<Vec<_>>(),
        });
        match drift.of {
            Pinned::Tool => {}
            Pinned::Prompt => json["kind"] = json!("prompt"),
            Pinned::Instructions => json["kind"] = json!("instructions"),
        }
        if !drift.listed_to.is_empty() {
            json["listedTo"] = json!(drift.listed_to);
        }
        if let Some(hidden) = &drift.hidden {
            json["hidden"] = json!(hidden.text);
        }
        json
    };
    let tools: Vec<Value> = server.drifts.iter().map(tool).collect();
    json!({ "server": server.server.as_str(), "tools": tools })
}

fn in_words(server: &ServerPins, palette: Palette) -> String {
    let mut out = String::new();
    let name = clean_line(server.server.as_str(), NAME);
    let _ = writeln!(out, "{}", palette.heading(name));
    for drift in &server.drifts {
        let hidden = drift.hidden.as_ref();
        let marks = drift.pin.mark().into_iter().chain(hidden.map(caution::of_hidden));
        let marks: Vec<String> = marks.map(|mark| format!("({mark})")).collect();
        let name = palette.name(clean_line(&drift.shown, NAME));
        let kind = match drift.of {
            Pinned::Prompt => "prompt ",
            Pinned::Tool | Pinned::Instructions => "",
        };
        let _ = writeln!(out, "{kind}{name} {}", palette.warning(marks.join(" ")));
        if !drift.listed_to.is_empty() {
            let clients = list(&drift.listed_to, NAMES);
            let _ =
                writeln!(out, "  {}", palette.aside(format!("listed to clients with {clients}")));
        }
        if let Some(hidden) = hidden {
            let _ = writeln!(out, "  {}", palette.error(format!("hidden: {hidden}")));
        }
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
