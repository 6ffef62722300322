//! Approving the servers of a project, each by its exact definition, on a terminal only.

use switchboard::config::layers::{PendingServer, Trust};
use switchboard::explain;
use switchboard::failure::{Code, Failure, Hint, Subject};
use switchboard::load::Loaded;
use switchboard::render::definition::{Part, spelled_out};
use switchboard::render::words::clean_line;
use switchboard::trust::{TrustError, TrustStore};

use crate::boot::App;
use crate::exit::Exit;
use crate::report::{CommandResult, Stop};

#[derive(Debug, thiserror::Error)]
enum TrustCommandError {
    #[error("servers must be approved on a terminal, one by one, after reading the definition")]
    NoTerminal,
    #[error("no server of this project is named `{name}`")]
    Unknown { name: String },
    #[error("`{name}` was not approved in this project")]
    NotApproved { name: String },
    #[error("cannot change the approvals")]
    Store(#[source] TrustError),
}

impl TrustCommandError {
    fn with(self, code: Code) -> Failure {
        Failure::new(code, Subject::Request, self)
    }
}

pub(super) async fn trust(app: &App, names: &[String]) -> CommandResult {
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
        return Err(TrustCommandError::NoTerminal.with(Code::ApprovalRequired).into());
    }
    let store = TrustStore::at(app.paths.trust());
    let mut exit = Exit::Done;
    for pending in chosen {
        app.printer.note(&described(app, &loaded, pending));
        let name = shown_name(pending);
        let palette = app.printer.err;
        let question = format!("Trust `{}` in this project?", palette.name(spelled_out(&name)));
        if !app.printer.agrees(&question).await {
            app.printer.note(&format!("`{name}` stays pending"));
            exit = Exit::NotApproved;
            continue;
        }
        store
            .approve(&pending.hash, &pending.name, &app.environment.cwd)
            .map_err(|error| TrustCommandError::Store(error).with(Code::Storage))?;
        app.printer.note(&format!("`{name}` is trusted, as long as its definition stays the same"));
    }
    Ok(exit)
}

pub(super) fn untrust(app: &App, names: &[String]) -> CommandResult {
    let store = TrustStore::at(app.paths.trust());
    for name in names {
        let shown = clean_line(name, 100).into_owned();
        let revoked = store
            .revoke(name, &app.environment.cwd)
            .map_err(|error| TrustCommandError::Store(error).with(Code::Storage))?;
        if !revoked {
            let failure = TrustCommandError::NotApproved { name: shown }.with(Code::UnknownServer);
            return Err(failure.hint(Hint::ListServers).into());
        }
        app.printer.note(&format!("`{shown}` is no longer trusted in this project"));
    }
    Ok(Exit::Done)
}

/// The pending servers with these names. For any other name, an error tells why it is not pending.
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
            Some(Trust::UserFile) => {
                app.printer.note(&format!("`{shown}` is in a file of yours and needs no approval"))
            }
            Some(Trust::Approved(_)) => app.printer.note(&format!("`{shown}` is trusted already")),
            None => {
                if let Some(refused) = loaded.refused(name) {
                    return Err(explain::refused_entry(refused).into());
                }
                let failure = TrustCommandError::Unknown { name: shown }.with(Code::UnknownServer);
                return Err(failure.hint(Hint::ListServers).into());
            }
        }
    }
    Ok(chosen)
}

/// The definition of a pending server, with colours.
fn described(app: &App, loaded: &Loaded, pending: &PendingServer) -> String {
    let palette = app.printer.err;
    loaded.definition(pending, &app.environment).text(|part, text| match part {
        Part::Name => palette.name(text).to_string(),
        Part::Warning => palette.warning(text).to_string(),
        Part::Key => palette.aside(text).to_string(),
    })
}

fn shown_name(pending: &PendingServer) -> String {
    clean_line(&pending.name, 100).into_owned()
}
