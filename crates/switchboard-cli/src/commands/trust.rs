//! Approving the servers of a project, each by its exact definition, on a terminal only.

use std::fmt::Write;
use std::path::Path;

use switchboard::config::layers::{PendingCause, PendingServer, Tier, Trust};
use switchboard::config::server::ServerEntry;
use switchboard::config::transport::Transport;
use switchboard::config::trust::reach;
use switchboard::config::values::{Template, TemplateMap};
use switchboard::explain;
use switchboard::failure::{Code, Failure, Hint, Subject};
use switchboard::load::Loaded;
use switchboard::render::words::{clean_line, visible};
use switchboard::trust::{TrustError, TrustStore, script_hashes};

use crate::boot::App;
use crate::exit::Exit;
use crate::report::{Outcome, Stop};

#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("servers are approved on a terminal, one by one, by a person who reads the definition")]
    NoTerminal,
    #[error("no server of this project is named `{name}`")]
    Unknown { name: String },
    #[error("`{name}` was not approved in this project")]
    NotApproved { name: String },
    #[error("the approvals cannot be changed")]
    Store(#[source] TrustError),
}

impl Refusal {
    fn with(self, code: Code) -> Failure {
        Failure::new(code, Subject::Request, self)
    }
}

pub(super) async fn trust(app: &App, names: &[String]) -> Outcome {
    let loaded = app.load_and_warn()?;
    let chosen = chosen(app, &loaded, names)?;
    if chosen.is_empty() && !names.is_empty() {
        return Ok(Exit::Done);
    }
    if chosen.is_empty() {
        app.printer.note("nothing to approve: no server of this project is pending");
        return Ok(Exit::Done);
    }
    if !app.printer.can_ask() {
        for pending in &chosen {
            app.printer.note(&described(app, &loaded, pending));
        }
        return Err(Refusal::NoTerminal.with(Code::ApprovalRequired).into());
    }
    let store = TrustStore::at(app.paths.trust());
    let mut exit = Exit::Done;
    for pending in chosen {
        app.printer.note(&described(app, &loaded, pending));
        let name = shown_name(pending);
        let palette = app.printer.err;
        let asked = format!("Trust {} in this project?", palette.name(spelled_out(&name)));
        if !app.printer.agrees(&asked).await {
            app.printer.note(&format!("`{name}` stays pending"));
            exit = Exit::NotApproved;
            continue;
        }
        store
            .approve(&pending.hash, &pending.name, &app.environment.cwd)
            .map_err(|error| Refusal::Store(error).with(Code::Storage))?;
        app.printer.note(&format!("`{name}` is trusted, as long as its definition stays the same"));
    }
    Ok(exit)
}

pub(super) fn untrust(app: &App, names: &[String]) -> Outcome {
    let store = TrustStore::at(app.paths.trust());
    for name in names {
        let shown = clean_line(name, 100).into_owned();
        let revoked = store
            .revoke(name, &app.environment.cwd)
            .map_err(|error| Refusal::Store(error).with(Code::Storage))?;
        if !revoked {
            let failure = Refusal::NotApproved { name: shown }.with(Code::UnknownServer);
            return Err(failure.hint(Hint::ListServers).into());
        }
        app.printer.note(&format!("`{shown}` is no longer trusted in this project"));
    }
    Ok(Exit::Done)
}

/// The pending servers that are meant; a name that means none of them is explained.
fn chosen<'l>(
    app: &App,
    loaded: &'l Loaded,
    names: &[String],
) -> Result<Vec<&'l PendingServer>, Stop> {
    if names.is_empty() {
        return Ok(loaded.config.pending.iter().collect());
    }
    let mut chosen = Vec::new();
    for name in names {
        if let Some(pending) = loaded.config.pending.iter().find(|p| p.name == *name) {
            chosen.push(pending);
            continue;
        }
        let shown = clean_line(name, 100).into_owned();
        match loaded.config.servers.get(name).map(|server| server.trust) {
            Some(Trust::UserFile) => app
                .printer
                .note(&format!("`{shown}` stands in a file of yours and needs no approval")),
            Some(Trust::Approved(_)) => app.printer.note(&format!("`{shown}` is trusted already")),
            None => {
                if let Some(refused) = loaded.refused(name) {
                    return Err(explain::refused_entry(refused).into());
                }
                let failure = Refusal::Unknown { name: shown }.with(Code::UnknownServer);
                return Err(failure.hint(Hint::ListServers).into());
            }
        }
    }
    Ok(chosen)
}

/// The definition, every value as it is written, and last what it comes to.
fn described(app: &App, loaded: &Loaded, pending: &PendingServer) -> String {
    let palette = app.printer.err;
    let mut out = String::new();
    let origin = &pending.origin;
    let place = format!("{}:{}:{}", origin.path, origin.line, origin.column);
    let name = palette.name(spelled_out(&shown_name(pending))).to_string();
    let _ = writeln!(out, "{name} from {}", clean_line(&place, 1_000));
    if pending.cause == PendingCause::Changed {
        let _ = writeln!(out, "  {}", palette.warning("changed since you approved it"));
    }
    let mut field = |key: &str, value: &str| {
        let _ = writeln!(out, "  {} {value}", palette.aside(format!("{key:<12}")));
    };
    field("transport", pending.transport.kind());
    let fields = fields(loaded, &pending.definition);
    for (key, value) in &fields {
        field(key, value);
    }
    let reach = reach(&pending.definition);
    if !reach.variables.is_empty() {
        let names: Vec<String> = reach.variables.iter().map(|name| visible(name)).collect();
        field("reads", &names.join(", "));
    }
    for command in reach.commands {
        field("asks", &quoted(&command));
    }
    for (file, _) in script_hashes(&pending.definition, &app.environment) {
        field("runs", &format!("{}, as it is now", quoted(&file)));
    }
    let (does, keys): (&str, &[&str]) = match &pending.transport {
        Transport::Stdio { .. } => ("starts", &["command", "args"]),
        Transport::CommandLine { .. } => ("starts", &["url"]),
        Transport::Http { .. } | Transport::WebSocket { .. } => ("connects", &["url"]),
        Transport::Socket { .. } => ("connects", &["socket"]),
    };
    let line: Vec<&str> = fields
        .iter()
        .filter(|(key, _)| keys.contains(&key.as_str()))
        .map(|(_, value)| value.as_str())
        .collect();
    field(does, &spelled_out(&line.join(" ")));
    out
}

/// Every field that is set. What decides what runs and who is spoken to comes first and to the letter;
/// the rest, and what the user's own files add, may be secret and is shown as `config show` does.
fn fields(loaded: &Loaded, entry: &ServerEntry) -> Vec<(String, String)> {
    let text = |template: &Template| quoted(template.source());
    let map = |map: &TemplateMap| {
        let rows = map.iter().map(|(name, value)| format!("{} = {}", quoted(name), text(value)));
        rows.collect::<Vec<_>>().join(", ")
    };
    let args = entry.args.as_ref().map(|args| args.iter().map(text).collect::<Vec<_>>().join(" "));
    let exact = [
        ("command", entry.command.as_ref().map(text)),
        ("args", args),
        ("cwd", entry.cwd.as_ref().map(text)),
        ("env", entry.env.as_ref().map(map)),
        ("url", entry.url.as_ref().map(text)),
        ("headers", entry.headers.as_ref().map(map)),
    ];
    let of_project = |key: &str| {
        let file = entry.origins.get(key).map(|origin| Path::new(&*origin.path));
        let mut projects = loaded.files.iter().filter(|file| file.tier == Tier::Project);
        projects.any(|project| Some(project.path.as_path()) == file)
    };
    let mut masked = entry.show();
    let mut fields = Vec::new();
    for (key, value) in exact {
        let shown = masked.shift_remove(key).map(|json| visible(&json.to_string()));
        let value = value.filter(|_| of_project(key)).or(shown);
        fields.extend(value.map(|value| (key.to_owned(), value)));
    }
    fields.extend(masked.into_iter().map(|(key, json)| (key, visible(&json.to_string()))));
    fields
}

/// In quotes, with what a terminal would hide or obey as Rust's own escapes.
fn quoted(text: &str) -> String {
    visible(&format!("{text:?}"))
}

/// Followed by its code points where letters of one script can pass for those of another.
fn spelled_out(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let spell = |c: char| match c {
        c if c.is_ascii() => c.to_string(),
        c => c.escape_unicode().to_string(),
    };
    format!("{text} (spelled {})", text.chars().map(spell).collect::<String>())
}

fn shown_name(pending: &PendingServer) -> String {
    clean_line(&pending.name, 100).into_owned()
}
