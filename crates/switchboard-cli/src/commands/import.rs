//! Importing the servers of other hosts: shows what exists and what would be written, and asks
//! before writing.

use std::fmt::Write;

use serde_json::{Value, json};
use switchboard::config::conflicts::{Conflict, Differs};
use switchboard::config::hosts::Host;
use switchboard::config::layers::{ConfigOrigin, Tier};
use switchboard::config::parse::ParsedServer;
use switchboard::discover::{Discovery, FoundFile, FoundHost};
use switchboard::edit::{EditEffect, Edited};
use switchboard::explain;
use switchboard::failure::{Code, Failure, Hint, Subject};
use switchboard::render::words::{clean_line, list};

use crate::args::edit::Import;
use crate::boot::{App, diagnostic_line};
use crate::diff;
use crate::exit::Exit;
use crate::report::{CommandResult, Stop};
use crate::style::Palette;

const NAME: usize = 100;
const PATH: usize = 1_000;

#[derive(Debug, thiserror::Error)]
#[error("nothing was imported: the import requires confirmation, and the user cannot be asked")]
struct NoTerminal;

pub(super) async fn import(app: &App, options: &Import) -> CommandResult {
    let found = app.discover()?;
    let hosts = found.new_imports(&options.hosts);
    // The change is planned even without hosts, so that a file that cannot be changed is reported
    // first.
    let planned = app.editor().add_imports(&hosts, EditEffect::Planned).map_err(explain::edit)?;
    let conflicts = found.conflicts(&hosts);
    if !options.format.json {
        app.printer.text(&shown(&found, &hosts, app.printer.out))?;
        if !hosts.is_empty() {
            app.printer.text(&disagreement(&conflicts, app.printer.out))?;
        }
    }
    warn(app, &found, &hosts);
    let ending = write_if_confirmed(app, options, (&found, &hosts), &planned).await?;
    if options.format.json {
        let mut value = as_json(&found, &conflicts);
        value["imports"] = hosts.iter().map(|host| host.as_str()).collect();
        value["file"] = planned.path.to_string_lossy().into();
        value["written"] = (ending == Ending::Written).into();
        app.printer.json(&value)?;
    }
    Ok(match ending {
        Ending::NothingNew | Ending::NothingWritten | Ending::Written => Exit::Done,
        Ending::Refused => Exit::NotApproved,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// No host has servers to import.
    NothingNew,
    /// `--dry-run`: the change was shown, and no file was written.
    NothingWritten,
    Refused,
    Written,
}

/// Writes the imports after confirmation.
async fn write_if_confirmed(
    app: &App,
    options: &Import,
    (found, hosts): (&Discovery, &[Host]),
    planned: &Edited,
) -> Result<Ending, Stop> {
    let printer = app.printer;
    if hosts.is_empty() {
        printer.note(&nothing_new(found, &options.hosts));
        return Ok(Ending::NothingNew);
    }
    printer.note(&diff::text(planned, printer.err));
    if options.dry_run {
        return Ok(Ending::NothingWritten);
    }
    if !options.yes && !printer.can_ask() {
        let refused = Failure::new(Code::ApprovalRequired, Subject::Request, NoTerminal);
        return Err(refused.hint(Hint::AskUser).into());
    }
    if !options.yes && !printer.agrees("Write this?").await {
        printer.note("nothing was changed");
        return Ok(Ending::Refused);
    }
    app.editor().add_imports(hosts, EditEffect::Written).map_err(explain::edit)?;
    printer.note(&imported(hosts, printer.err));
    Ok(Ending::Written)
}

/// The message after an import: the resulting state and the next command.
pub(super) fn imported(hosts: &[Host], palette: Palette) -> String {
    let verb = if hosts.len() == 1 { "is" } else { "are" };
    let command = palette.command("`switchboard status`");
    format!("{} {verb} imported; see the servers with {command}", titles(hosts))
}

pub(super) fn nothing_new(found: &Discovery, named: &[Host]) -> String {
    let chosen = found.hosts.iter().filter(|host| named.is_empty() || named.contains(&host.host));
    let (imported, others): (Vec<&FoundHost>, Vec<&FoundHost>) =
        chosen.partition(|host| host.imported);
    let hosts = |found: &[&FoundHost]| found.iter().map(|host| host.host).collect::<Vec<_>>();
    let (imported, others) = (hosts(&imported), hosts(&others));
    if imported.is_empty() && named.is_empty() {
        return "nothing to import: no other host has servers of yours".to_owned();
    }
    if imported.is_empty() {
        return format!("nothing to import: no servers in {}", titles(&others));
    }
    let known = format!("nothing new: imported already from {}", titles(&imported));
    if named.is_empty() || others.is_empty() {
        return known;
    }
    format!("{known}, no servers in {}", titles(&others))
}

fn titles(hosts: &[Host]) -> String {
    let titles: Vec<&str> = hosts.iter().map(|host| host.title()).collect();
    list(&titles, Host::ALL.len())
}

/// Prints the problems of the hosts' files.
pub(super) fn warn(app: &App, found: &Discovery, hosts: &[Host]) {
    let chosen = found.hosts.iter().filter(|found| hosts.contains(&found.host));
    for diagnostic in chosen.flat_map(|found| &found.files).flat_map(|file| &file.diagnostics) {
        app.printer.note(&diagnostic_line(diagnostic, app.printer.err));
    }
}

/// Lists hosts with their files and servers. Endpoints are left out, because they may contain
/// secrets.
pub(super) fn shown(found: &Discovery, hosts: &[Host], palette: Palette) -> String {
    let mut out = String::new();
    let chosen = hosts.iter().filter_map(|host| found.hosts.iter().find(|f| f.host == *host));
    for FoundHost { host, files, .. } in chosen {
        let _ = writeln!(out, "{} {}", palette.heading(host.title()), palette.aside(host.as_str()));
        for FoundFile { path, tier, servers, .. } in files.iter().filter(|f| !f.servers.is_empty())
        {
            let path = path.to_string_lossy();
            let about = match tier {
                Tier::User => "",
                Tier::Project => " (of this project, pending until trusted)",
            };
            let path = palette.name(clean_line(&path, PATH));
            let _ = writeln!(out, "  {path}{}", palette.aside(about));
            for server in servers {
                let name = clean_line(&server.name, NAME);
                let _ = writeln!(out, "    {name}  {}", palette.aside(state(server)));
            }
        }
    }
    out
}

fn state(server: &ParsedServer) -> String {
    let kind = kind(server).unwrap_or("cannot be used");
    if server.entry.is_disabled() { format!("{kind}, disabled") } else { kind.to_owned() }
}

fn kind(server: &ParsedServer) -> Option<&'static str> {
    server.entry.transport(&server.name).ok().map(|transport| transport.kind())
}

/// Names the servers whose endpoint differs between files, and the file that takes precedence.
pub(super) fn disagreement(conflicts: &[Conflict], palette: Palette) -> String {
    let mut out = String::new();
    for Conflict { server, differs, places } in conflicts {
        let Some((first, others)) = places.split_first() else { continue };
        let name = palette.name(clean_line(server, NAME)).to_string();
        let others: Vec<String> = others.iter().map(place).collect();
        let differs = match differs {
            Differs::Endpoint => "differs",
            Differs::Arguments => "differs in its arguments",
        };
        let (first, others) = (place(first), others.join(", "));
        let _ = writeln!(out, "{name} {differs}: {first} takes precedence over {others}");
    }
    out
}

fn place(origin: &ConfigOrigin) -> String {
    clean_line(&format!("{}:{}", origin.path, origin.line), PATH).into_owned()
}

fn as_json(found: &Discovery, conflicts: &[Conflict]) -> Value {
    let server = |server: &ParsedServer| {
        json!({
            "name": server.name,
            "transport": kind(server),
            "disabled": server.entry.is_disabled(),
        })
    };
    let file = |file: &FoundFile| {
        let (path, tier) = (file.path.to_string_lossy(), file.tier.as_str());
        let servers: Vec<Value> = file.servers.iter().map(server).collect();
        json!({ "path": path, "tier": tier, "servers": servers })
    };
    let host = |found: &FoundHost| {
        let files: Vec<Value> = found.files.iter().filter(|file| file.found).map(file).collect();
        json!({ "host": found.host.as_str(), "imported": found.imported, "files": files })
    };
    let place = |origin: &ConfigOrigin| json!({ "file": &*origin.path, "line": origin.line });
    let conflict = |conflict: &Conflict| {
        let places: Vec<Value> = conflict.places.iter().map(place).collect();
        let differs = match conflict.differs {
            Differs::Endpoint => "endpoint",
            Differs::Arguments => "arguments",
        };
        json!({ "server": conflict.server, "differs": differs, "places": places })
    };
    json!({
        "hosts": found.hosts.iter().map(host).collect::<Vec<_>>(),
        "conflicts": conflicts.iter().map(conflict).collect::<Vec<_>>(),
    })
}
