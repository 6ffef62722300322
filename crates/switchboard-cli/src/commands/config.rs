//! The configuration files: their paths, their effective content, and their problems.

use std::fmt::Write;

use serde_json::{Map, Value, json};
use switchboard::config::diagnostic::{Diagnostic, Level};
use switchboard::config::{schema, show};
use switchboard::render::words::{clean_line, plural};

use super::config_edit;
use crate::args::Format;
use crate::args::config::{Config, SchemaForm};
use crate::boot::{App, diagnostic_line};
use crate::exit::Exit;
use crate::report::CommandResult;
use crate::style::Palette;

pub(super) fn run(app: &App, command: &Config) -> CommandResult {
    match command {
        Config::Path { format } => path(app, *format),
        Config::Show { origin, format } => {
            let origins = if *origin { Origins::Shown } else { Origins::Hidden };
            show(app, origins, *format)
        }
        Config::Check { format } => check(app, *format),
        Config::Set { key, value, server, .. } => {
            config_edit::set(app, key, value.as_deref(), server.as_deref())
        }
        Config::Edit => config_edit::edit(app),
        Config::Schema { form } => {
            let schema = match form {
                SchemaForm::Mcp => schema::file(),
                SchemaForm::McpServers => schema::pi_servers(),
            };
            app.printer.json(&schema)?;
            Ok(Exit::Done)
        }
    }
}

fn path(app: &App, format: Format) -> CommandResult {
    let loaded = app.load()?;
    if format.json {
        let files = loaded.files.iter().map(|file| {
            let mut row =
                json!({ "path": file.path, "tier": file.tier.as_str(), "found": file.found });
            if let Some(host) = file.host {
                row["host"] = host.as_str().into();
            }
            row
        });
        let files: Vec<Value> = files.collect();
        app.printer.json(&json!({ "files": files, "writes": loaded.user_file }))?;
        return Ok(Exit::Done);
    }
    let palette = app.printer.out;
    let lines = loaded.files.iter().map(|file| {
        let path = file.path.to_string_lossy();
        let path = clean_line(&path, 1_000);
        let mut about = file.tier.to_string();
        if let Some(host) = file.host {
            about = format!("{about}, of {}", host.title());
        }
        if file.path == loaded.user_file {
            about.push_str(", where changes go");
        }
        match file.found {
            true => format!("{} {} ({about})", palette.command("✓"), palette.name(path)),
            false => palette.aside(format!("○ {path} ({about}), not there")).to_string(),
        }
    });
    app.printer.text(&lines.collect::<Vec<_>>().join("\n"))?;
    Ok(Exit::Done)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origins {
    Shown,
    Hidden,
}

fn show(app: &App, origins: Origins, format: Format) -> CommandResult {
    let loaded = app.load_strictly()?;
    let shown = show::config(&loaded.config);
    if format.json {
        app.printer.json(&shown)?;
        return Ok(Exit::Done);
    }
    let palette = app.printer.out;
    let mut out = String::new();
    for (name, server) in shown["servers"].as_object().into_iter().flatten() {
        definition(&mut out, name, server, (origins, palette));
        if let Some(pending) = server.get("pending") {
            definition(&mut out, name, pending, (origins, palette));
        }
    }
    let _ = writeln!(out, "{}", palette.heading("settings"));
    fields(&mut out, &shown["settings"], (origins, palette));
    app.printer.text(&out)?;
    Ok(Exit::Done)
}

fn definition(out: &mut String, name: &str, server: &Value, look: (Origins, Palette)) {
    let trust = server["trust"].as_str().unwrap_or_default();
    let (_, palette) = look;
    let _ = writeln!(out, "{} {}", palette.name(clean_line(name, 256)), palette.aside(trust));
    fields(out, server, look);
    out.push('\n');
}

/// Appends one line for each field of a server or of the settings.
fn fields(out: &mut String, object: &Value, (origins, palette): (Origins, Palette)) {
    let about = ["origin", "trust", "pending"];
    let none = Map::new();
    for (key, value) in object.as_object().unwrap_or(&none) {
        if about.contains(&key.as_str()) {
            continue;
        }
        let _ = write!(out, "  {key}: {}", clean_line(&value.to_string(), 10_000));
        let at = &object["origin"][key];
        if let (Origins::Shown, Some(file)) = (origins, at["file"].as_str()) {
            let place = format!("{file}:{}", at["line"]);
            let _ = write!(out, "  {}", palette.aside(clean_line(&place, 1_000)));
        }
        out.push('\n');
    }
}

/// The diagnostics of each file in the order of their lines. The files keep their order.
fn in_file_order(diagnostics: &[Diagnostic]) -> Vec<&Diagnostic> {
    let mut sorted: Vec<&Diagnostic> = diagnostics.iter().collect();
    let first_of = |one: &Diagnostic| diagnostics.iter().position(|other| other.path == one.path);
    sorted.sort_by_cached_key(|found| (first_of(found), found.line, found.column));
    sorted
}

pub(super) fn check(app: &App, format: Format) -> CommandResult {
    let loaded = app.load()?;
    let diagnostics = &loaded.config.diagnostics;
    let exit = if diagnostics.iter().any(Diagnostic::is_error) { Exit::Usage } else { Exit::Done };
    if format.json {
        let rows = diagnostics.iter().map(|diagnostic| {
            json!({
                "level": diagnostic.level.as_str(),
                "path": diagnostic.path.as_deref(),
                "line": diagnostic.line,
                "column": diagnostic.column,
                "message": diagnostic.kind.to_string(),
            })
        });
        app.printer.json(&json!({ "diagnostics": rows.collect::<Vec<_>>() }))?;
        return Ok(exit);
    }
    for diagnostic in in_file_order(diagnostics) {
        app.printer.text(&diagnostic_line(diagnostic, app.printer.out))?;
    }
    let problems = diagnostics.iter().filter(|found| found.level != Level::Note).count();
    let found = loaded.files.iter().filter(|file| file.found).count();
    let servers = loaded.config.servers.len() + loaded.config.pending.len();
    app.printer.note(&format!(
        "checked {} with {}: {}",
        plural(found, "file"),
        plural(servers, "server"),
        if problems == 0 { "no problem".to_owned() } else { plural(problems, "problem") }
    ));
    Ok(exit)
}
