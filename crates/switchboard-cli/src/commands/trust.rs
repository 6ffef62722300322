//! Approving the servers of a project, each by its exact definition, on a terminal only.

use std::fmt::Write;

use switchboard::config::auth::OAuth;
use switchboard::config::layers::{PendingServer, Trust};
use switchboard::config::server::ServerEntry;
use switchboard::config::trust::reach;
use switchboard::config::values::{Template, TemplateMap};
use switchboard::failure::{Code, Failure, Hint, Subject};
use switchboard::load::Loaded;
use switchboard::render::words::clean_line;
use switchboard::trust::{TrustError, TrustStore, script_hashes};

use crate::boot::App;
use crate::exit::Exit;
use crate::report::{Outcome, Stop};
use crate::style::Palette;

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
            app.printer.note(&described(app, pending));
        }
        return Err(Refusal::NoTerminal.with(Code::ApprovalRequired).into());
    }
    let store = TrustStore::at(app.paths.trust());
    let mut exit = Exit::Done;
    for pending in chosen {
        app.printer.note(&described(app, pending));
        let name = clean_line(&pending.name, 100);
        let palette = app.printer.err;
        let asked =
            format!("Trust {} in this project? {}", palette.name(&name), palette.aside("[y/N]"));
        let printer = app.printer;
        if !answered_yes(tokio::task::spawn_blocking(move || printer.ask(&asked)).await) {
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

/// Anything but `y` is a no.
pub(super) fn answered_yes(
    answer: Result<std::io::Result<String>, tokio::task::JoinError>,
) -> bool {
    matches!(answer, Ok(Ok(answer)) if answer.eq_ignore_ascii_case("y"))
}

pub(super) fn untrust(app: &App, names: &[String]) -> Outcome {
    let store = TrustStore::at(app.paths.trust());
    for name in names {
        let shown = clean_line(name, 100).into_owned();
        let revoked = store
            .revoke(name, &app.environment.cwd)
            .map_err(|error| Refusal::Store(error).with(Code::Storage))?;
        if !revoked {
            return Err(Refusal::NotApproved { name: shown }.with(Code::UnknownServer).into());
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
                let failure = Refusal::Unknown { name: shown }.with(Code::UnknownServer);
                return Err(failure.hint(Hint::ListServers).into());
            }
        }
    }
    Ok(chosen)
}

/// The definition, every value as it is written.
fn described(app: &App, pending: &PendingServer) -> String {
    let palette = app.printer.err;
    let mut out = String::new();
    let origin = &pending.origin;
    let place = format!("{}:{}:{}", origin.path, origin.line, origin.column);
    let name = palette.name(clean_line(&pending.name, 100)).to_string();
    let _ = writeln!(out, "{name} from {}", clean_line(&place, 1_000));
    definition(&mut out, &pending.definition, palette);
    let reach = reach(&pending.definition);
    if !reach.variables.is_empty() {
        let names: Vec<String> =
            reach.variables.iter().map(|name| name.escape_debug().to_string()).collect();
        field(&mut out, "reads", &names.join(", "), palette);
    }
    for command in reach.commands {
        field(&mut out, "asks", &format!("{command:?}"), palette);
    }
    for (file, _) in script_hashes(&pending.definition, &app.environment) {
        field(&mut out, "runs", &format!("{file:?}, as it is now"), palette);
    }
    out
}

fn definition(out: &mut String, entry: &ServerEntry, palette: Palette) {
    // Rust's own escapes show what a terminal would hide or obey.
    let text = |template: &Template| format!("{:?}", template.source());
    let map = |map: &TemplateMap| {
        let rows = map.iter().map(|(name, value)| format!("{name:?} = {}", text(value)));
        rows.collect::<Vec<_>>().join(", ")
    };
    let args = entry.args.as_ref().map(|args| args.iter().map(text).collect::<Vec<_>>().join(" "));
    let shown: [(&str, Option<String>); 12] = [
        ("command", entry.command.as_ref().map(text)),
        ("args", args),
        ("cwd", entry.cwd.as_ref().map(text)),
        ("env", entry.env.as_ref().map(map)),
        ("inheritEnv", entry.inherit_env.map(|inherits| inherits.to_string())),
        ("url", entry.url.as_ref().map(text)),
        ("socket", entry.socket.as_ref().map(text)),
        ("headers", entry.headers.as_ref().map(map)),
        ("auth", entry.auth.as_ref().map(|auth| auth.kind().to_owned())),
        ("bearerToken", entry.bearer_token.as_ref().map(text)),
        ("oauth", entry.oauth.as_ref().map(oauth)),
        (
            "requestHeadersCommand",
            entry.request_headers_command.as_ref().map(|program| {
                let words = std::iter::once(&program.command).chain(&program.args);
                words.map(text).collect::<Vec<_>>().join(" ")
            }),
        ),
    ];
    for (key, value) in &shown {
        if let Some(value) = value {
            field(out, key, value, palette);
        }
    }
    let others: Vec<&str> = entry
        .origins
        .keys()
        .copied()
        .filter(|key| !shown.iter().any(|(shown, _)| shown == key))
        .collect();
    if !others.is_empty() {
        field(out, "also sets", &others.join(", "), palette);
    }
}

/// Who would be asked for a token, and as whom.
fn oauth(oauth: &OAuth) -> String {
    let options = match oauth {
        OAuth::Off => return "off".to_owned(),
        OAuth::With(options) => options,
    };
    let shown = [
        ("clientId", &options.client_id),
        ("clientMetadataUrl", &options.client_metadata_url),
        ("authServerMetadataUrl", &options.auth_server_metadata_url),
        ("redirectUri", &options.redirect_uri),
        ("scope", &options.scope),
    ];
    let rows = shown.iter().filter_map(|(key, value)| {
        value.as_ref().map(|value| format!("{key} = {:?}", value.source()))
    });
    rows.collect::<Vec<_>>().join(", ")
}

fn field(out: &mut String, key: &str, value: &str, palette: Palette) {
    let _ = writeln!(out, "  {} {value}", palette.aside(format!("{key:<12}")));
}
