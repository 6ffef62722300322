//! The guided first run: imports to adopt, a server to add, and each write only after a yes.

mod form;

use switchboard::discover::Discovery;
use switchboard::edit::{Effect, Existing, NewServer, Scope};
use switchboard::explain;
use switchboard::failure::{Code, Failure, Hint, Subject};
use switchboard::name::ServerName;
use switchboard::render::words::plural;
use switchboard::reply::Reply;
use switchboard::request::Request;

use self::form::Form;
use super::add::{trust_what_was_typed, wanted};
use super::edit::shown;
use super::import;
use crate::boot::App;
use crate::dialogue::{Dialogue, Written};
use crate::diff;
use crate::exit::Exit;
use crate::host::Consent;
use crate::report::{self, Outcome, Stop};

#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("a setup asks questions, and there is nobody to ask")]
    NobodyToAsk,
    #[error("the name of a server is missing")]
    NoName,
}

pub(super) async fn setup(app: &App) -> Outcome {
    let Some(mut dialogue) = Dialogue::open(app.printer) else {
        let refused = Failure::new(Code::BadRequest, Subject::Request, Refusal::NobodyToAsk);
        return Err(refused.hint(Hint::Configure).into());
    };
    let found = app.discover()?;
    adopt(app, &mut dialogue, &found).await?;
    if dialogue.agrees("Add a server of your own?").await? {
        add(app, &mut dialogue).await?;
    }
    let command = |words: &str| app.printer.err.command(format!("`switchboard {words}`"));
    app.printer.note(&format!(
        "Next: {} lists what your servers offer, and {} puts them all into your agent's host",
        command("tools"),
        command("install HOST"),
    ));
    Ok(Exit::Done)
}

/// `connect` without a name: the part of the setup that adds a server.
pub(super) async fn connect_new(app: &App) -> Outcome {
    match Dialogue::open(app.printer) {
        Some(mut dialogue) => add(app, &mut dialogue).await,
        None => Err(no_name().into()),
    }
}

pub(super) fn no_name() -> Failure {
    Failure::new(Code::BadRequest, Subject::Request, Refusal::NoName).hint(Hint::ListServers)
}

/// Shows each host that has servers, and imports those that are wanted.
async fn adopt(app: &App, dialogue: &mut Dialogue, found: &Discovery) -> Result<(), Stop> {
    let printer = dialogue.printer;
    // A file that cannot be changed is said before anything is asked.
    app.editor().add_imports(&[], Effect::Planned).map_err(explain::edit)?;
    let offered = found.new_imports(&[]);
    if offered.is_empty() {
        printer.note(&import::nothing_new(found, &[]));
    }
    let mut hosts = Vec::new();
    for host in offered {
        printer.note(&import::shown(found, &[host], printer.err));
        import::warn(app, found, &[host]);
        if dialogue.agrees(&format!("Use the servers of {}?", host.title())).await? {
            hosts.push(host);
        }
    }
    if hosts.is_empty() {
        return Ok(());
    }
    let planned = app.editor().add_imports(&hosts, Effect::Planned).map_err(explain::edit)?;
    let conflicts = found.conflicts(&hosts);
    if !conflicts.is_empty() {
        printer.note(&import::disagreement(&conflicts, printer.err));
    }
    printer.note(&diff::text(&planned, printer.err));
    if dialogue.agrees("Write this?").await? {
        app.editor().add_imports(&hosts, Effect::Written).map_err(explain::edit)?;
        dialogue.written = Written::Something;
        printer.note(&import::imported(&hosts, printer.err));
    }
    Ok(())
}

/// Asks for a server, tries it, and writes it.
async fn add(app: &App, dialogue: &mut Dialogue) -> Outcome {
    let printer = dialogue.printer;
    // Where that cannot be told, writing it will say why.
    let is_taken = |name: &ServerName| app.editor().is_taken(name).unwrap_or(false);
    let mut form = Form::new(&is_taken);
    while let Some(question) = form.question() {
        let choices = printer.err.aside(question.choices);
        let answer = dialogue.ask(format!("{} {choices}", question.text).trim_end()).await?;
        if let Err(problem) = form.answer(&answer) {
            printer.warn(&problem.to_string());
        }
    }
    let add = form.filled();
    let scope = Scope::from(add.scope);
    let servers = wanted(app, &add)?;
    let planned = app
        .editor()
        .add(scope, &servers, Existing::Refuse, Effect::Planned)
        .map_err(explain::edit)?;
    for server in &servers {
        if let Err(failure) = attempt(app, server).await? {
            printer.note(&report::text(&failure, printer.err));
            if !dialogue.agrees("Keep it all the same?").await? {
                printer.note("nothing was changed");
                return Ok(Exit::from(failure.code));
            }
        }
    }
    printer.note(&diff::text(&planned, printer.err));
    if !dialogue.agrees("Write this?").await? {
        printer.note("nothing was changed");
        return Ok(Exit::NotApproved);
    }
    app.editor().add(scope, &servers, Existing::Refuse, Effect::Written).map_err(explain::edit)?;
    servers.iter().for_each(|s| printer.note(&format!("`{}` is configured", shown(&s.name))));
    if scope == Scope::Project {
        trust_what_was_typed(app, &servers)?;
    }
    Ok(Exit::Done)
}

/// Connects to a server that stands in no file yet, lists it and closes it again.
async fn attempt(app: &App, server: &NewServer) -> Result<Result<(), Failure>, Stop> {
    let config = app.editor().trial(server).map_err(explain::edit)?;
    let gateway = app.gateway(config).on_demand().build();
    let mut tried = Ok(());
    let exit = app
        .converse(gateway, Consent::Ask, async |talk| {
            let request = Request::Connect { server: server.name.as_str().to_owned() };
            match talk.ask(request, "listing").await {
                Ok(Reply::Connected(page)) => {
                    let tools = plural(page.total, "tool");
                    talk.app.printer.note(&format!("`{}` works: {tools}", shown(&server.name)));
                }
                Ok(_) => {}
                Err(failure) => tried = Err(failure),
            }
            Ok(Exit::Done)
        })
        .await?;
    if exit == Exit::Interrupted { Err(Stop::Left(exit)) } else { Ok(tried) }
}
