//! The configuration files: where they are looked for, and what is wrong with them.

use serde_json::json;
use switchboard::config::diagnostic::Diagnostic;
use switchboard::config::layers::Tier;
use switchboard::load::FileState;
use switchboard::render::words::{clean_line, plural};

use crate::args::{Config, Format};
use crate::boot::{App, diagnostic_line};
use crate::exit::Exit;
use crate::report::Outcome;

pub(super) fn run(app: &App, command: &Config) -> Outcome {
    match command {
        Config::Path { format } => path(app, *format),
        Config::Check { format } => check(app, *format),
    }
}

fn path(app: &App, format: Format) -> Outcome {
    let loaded = app.load()?;
    if format.json {
        let files = loaded
            .files
            .iter()
            .map(|file| json!({ "path": file.path, "tier": tier(file), "found": file.found }));
        app.printer.json(&json!({ "files": files.collect::<Vec<_>>() }))?;
        return Ok(Exit::Done);
    }
    let palette = app.printer.out;
    let lines = loaded.files.iter().map(|file| {
        let path = file.path.to_string_lossy();
        let path = clean_line(&path, 1_000);
        let about = format!("({})", tier(file));
        match file.found {
            true => format!("{} {} {}", palette.command("✓"), palette.name(path), about),
            false => palette.aside(format!("○ {path} {about}, not there")).to_string(),
        }
    });
    app.printer.text(&lines.collect::<Vec<_>>().join("\n"))?;
    Ok(Exit::Done)
}

fn tier(file: &FileState) -> &'static str {
    match file.tier {
        Tier::User => "user",
        Tier::Project => "project",
    }
}

fn check(app: &App, format: Format) -> Outcome {
    let loaded = app.load()?;
    let diagnostics = &loaded.config.diagnostics;
    let exit = if diagnostics.iter().any(Diagnostic::is_error) { Exit::Usage } else { Exit::Done };
    if format.json {
        let rows = diagnostics.iter().map(|diagnostic| {
            json!({
                "level": diagnostic.level.to_string(),
                "path": diagnostic.path.as_deref(),
                "line": diagnostic.line,
                "column": diagnostic.column,
                "message": diagnostic.kind.to_string(),
            })
        });
        app.printer.json(&json!({ "diagnostics": rows.collect::<Vec<_>>() }))?;
        return Ok(exit);
    }
    for diagnostic in diagnostics {
        app.printer.text(&diagnostic_line(diagnostic, app.printer.out))?;
    }
    let found = loaded.files.iter().filter(|file| file.found).count();
    let servers = loaded.config.servers.len() + loaded.config.pending.len();
    app.printer.note(&format!(
        "checked {} with {}: {}",
        plural(found, "file"),
        plural(servers, "server"),
        if diagnostics.is_empty() {
            "no problem".to_owned()
        } else {
            plural(diagnostics.len(), "problem")
        }
    ));
    Ok(exit)
}
