//! The interactive setup: imports, a new server, and hosts; nothing is written without
//! confirmation.

mod form;

use switchboard::config::hosts::Host;
use switchboard::config::install::Target;
use switchboard::discover::Discovery;
use switchboard::edit::{EditEffect, Existing, NewServer, Scope};
use switchboard::explain;
use switchboard::failure::{Code, Failure, Hint, Subject};
use switchboard::install::Servers;
use switchboard::name::ServerName;
use switchboard::render::words::{clean_line, list, plural};
use switchboard::reply::Reply;
use switchboard::request::Request;

use self::form::ServerForm;
use super::add::{trust_what_was_typed, wanted};
use super::edit::shown;
use super::{import, install};
use crate::boot::App;
use crate::dialogue::{Dialogue, Written};
use crate::diff;
use crate::exit::Exit;
use crate::host::Consent;
use crate::printer::is_yes;
use crate::report::{self, CommandResult, Stop};

/// The maximum length of the choices of a question, in characters.
const CHOICES: usize = 500;

#[derive(Debug, thiserror::Error)]
enum SetupError {
    #[error("`setup` is interactive and needs a terminal")]
    NoTerminal,
    #[error("the name of a server is missing")]
    NoName,
}

pub(super) async fn setup(app: &App) -> CommandResult {
    let Some(mut dialogue) = Dialogue::open(app.printer) else {
        let refused = Failure::new(Code::BadRequest, Subject::Request, SetupError::NoTerminal);
        return Err(refused.hint(Hint::Configure).into());
    };
    let found = app.discover()?;
    import_from_hosts(app, &mut dialogue, &found).await?;
    if let Some(typed) = wants_to_add(&mut dialogue).await? {
        add(app, &mut dialogue, typed).await?;
    }
    install_in_hosts(app, &mut dialogue, &found).await?;
    let command = |words: &str| app.printer.err.command(format!("`switchboard {words}`"));
    app.printer.note(&format!(
        "Next: {} lists what your servers offer, and {} adds them all to your agent's host",
        command("tools"),
        command("install HOST"),
    ));
    Ok(Exit::Done)
}

/// Asks whether to add a server. The user may answer with the server: its JSON, URL or command line.
async fn wants_to_add(dialogue: &mut Dialogue) -> Result<Option<Option<String>>, Stop> {
    loop {
        let question = dialogue.printer.yes_or_no("Add a server of your own?");
        let answer = dialogue.ask(&question).await?;
        match answer.trim() {
            "" | "n" | "N" => return Ok(None),
            typed if is_yes(typed) => return Ok(Some(None)),
            typed if form::is_server(typed) => return Ok(Some(Some(answer))),
            _ => dialogue.printer.warn("enter y or n, or its command line, URL or JSON"),
        }
    }
}

/// `connect` without a name: the part of the setup that adds a server.
pub(super) async fn connect_new(app: &App) -> CommandResult {
    match Dialogue::open(app.printer) {
        Some(mut dialogue) => add(app, &mut dialogue, None).await,
        None => Err(no_name().into()),
    }
}

pub(super) fn no_name() -> Failure {
    Failure::new(Code::BadRequest, Subject::Request, SetupError::NoName).hint(Hint::ListServers)
}

/// Shows the hosts that have servers, and imports those that the user chooses.
async fn import_from_hosts(
    app: &App,
    dialogue: &mut Dialogue,
    found: &Discovery,
) -> Result<(), Stop> {
    let printer = dialogue.printer;
    // A file that cannot be changed is reported before the first question.
    app.editor().add_imports(&[], EditEffect::Planned).map_err(explain::edit)?;
    let offered = found.new_imports(&[]);
    if offered.is_empty() {
        printer.note(&import::nothing_new(found, &[]));
        return Ok(());
    }
    printer.note(&import::shown(found, &offered, printer.err));
    import::warn(app, found, &offered);
    let conflicts = found.conflicts(&offered);
    if !conflicts.is_empty() {
        printer.note(&import::disagreement(&conflicts, printer.err));
    }
    let titles = offered.iter().map(|host| (host.as_str(), host.title())).collect::<Vec<_>>();
    let chosen = choose(dialogue, "Use the servers of", &titles).await?;
    let hosts: Vec<Host> = chosen.into_iter().filter_map(|at| offered.get(at).copied()).collect();
    if hosts.is_empty() {
        return Ok(());
    }
    let edited = app.editor().add_imports(&hosts, EditEffect::Written).map_err(explain::edit)?;
    dialogue.written = Written::Something;
    printer.note(&diff::text(&edited, printer.err));
    printer.note(&import::imported(&hosts, printer.err));
    Ok(())
}

/// Offers to install Switchboard in the hosts on this machine.
async fn install_in_hosts(
    app: &App,
    dialogue: &mut Dialogue,
    found: &Discovery,
) -> Result<(), Stop> {
    let printer = dialogue.printer;
    let here = found.hosts.iter().filter(|host| host.files.iter().any(|file| file.found));
    let mut plans = Vec::new();
    for host in here {
        let target = Target::Host(host.host);
        // `install` reports a malformed file of a host.
        let Ok(plan) = app.installer().install(target, Servers::Stay) else { continue };
        if !plan.is_nothing() {
            plans.push((target, plan));
        }
    }
    if plans.is_empty() {
        return Ok(());
    }
    let titles: Vec<_> =
        plans.iter().map(|(target, _)| (target.as_str(), target.title())).collect();
    let chosen = choose(dialogue, "Add Switchboard to", &titles).await?;
    for (target, plan) in chosen.into_iter().filter_map(|at| plans.get(at)) {
        install::show(app, plan);
        app.installer().carry_out(plan).map_err(explain::install)?;
        dialogue.written = Written::Something;
        printer.note(&format!("Switchboard is installed in {}", target.title()));
    }
    Ok(())
}

/// Asks one question about several items, and returns the indexes of the chosen ones. The answer is
/// all, none, or some by name.
async fn choose(
    dialogue: &mut Dialogue,
    what: &str,
    of: &[(&str, &str)],
) -> Result<Vec<usize>, Stop> {
    let titles: Vec<&str> = of.iter().map(|(_, title)| *title).collect();
    let words: Vec<&str> = of.iter().map(|(word, _)| *word).collect();
    let choices = match words[..] {
        [_] => "[y/N]".to_owned(),
        _ => format!("[y = all, N = none, or some of: {}]", words.join(" ")),
    };
    let choices = dialogue.printer.err.aside(choices).to_string();
    loop {
        let typed = dialogue.ask(&format!("{what} {}? {choices}", list(&titles, 20))).await?;
        if is_yes(&typed) {
            return Ok((0..of.len()).collect());
        }
        if typed.is_empty() || typed.eq_ignore_ascii_case("n") {
            return Ok(Vec::new());
        }
        let named = typed.split([' ', ',']).filter(|word| !word.is_empty());
        let places: Option<Vec<usize>> =
            named.map(|word| words.iter().position(|known| *known == word)).collect();
        match places {
            Some(places) => return Ok(places),
            None => dialogue.printer.warn(&format!("enter y, n, or some of: {}", words.join(" "))),
        }
    }
}

/// Asks for a server, tries to connect to it, and writes it. `typed` is the first answer, if the
/// user gave it already.
async fn add(app: &App, dialogue: &mut Dialogue, mut typed: Option<String>) -> CommandResult {
    let printer = dialogue.printer;
    // On an error the name is treated as free; writing the entry reports the error.
    let is_taken = |name: &ServerName| app.editor().is_taken(name).unwrap_or(false);
    let mut form = ServerForm::new(&is_taken);
    let (scope, servers, planned, confirmed) = loop {
        while let Some(question) = form.question() {
            let choices = clean_line(&question.choices, CHOICES);
            let text = format!("{} {}", question.text, printer.err.aside(choices));
            let answer = match typed.take() {
                Some(answer) => answer,
                None if question.continues => dialogue.ask_more(text.trim()).await?,
                None => dialogue.ask(text.trim_end()).await?,
            };
            if let Err(problem) = form.answer(&answer) {
                printer.warn(&problem.to_string());
            }
        }
        let add = form.filled();
        let scope = Scope::from(add.scope);
        let servers = wanted(app, add)?;
        let planned = app
            .editor()
            .add(scope, &servers, Existing::Refuse, EditEffect::Planned)
            .map_err(explain::edit)?;
        let mut failed = None;
        for server in &servers {
            if let Err(mut failure) = attempt(app, server).await? {
                // The server is not in a file yet, so `logs` does not know it.
                failure.hints.retain(|hint| !matches!(hint, Hint::ReadLog(_)));
                printer.note(&report::text(&failure, printer.err));
                failed = Some(failure);
            }
        }
        let Some(failure) = failed else { break (scope, servers, planned, false) };
        let choices = match servers.len() {
            1 => "[c = correct it, w = write it anyway, N = drop it]",
            _ => "[c = correct them, w = write all anyway, N = drop all]",
        };
        let choices = printer.err.aside(choices);
        match dialogue.ask(&format!("What now? {choices}")).await?.as_str() {
            "w" | "W" => break (scope, servers, planned, true),
            "c" | "C" => form.correct(),
            _ => {
                printer.note("nothing was changed");
                return Ok(Exit::from(failure.code));
            }
        }
    };
    printer.note(&diff::text(&planned, printer.err));
    if !confirmed && !dialogue.agrees("Write this?").await? {
        printer.note("nothing was changed");
        return Ok(Exit::NotApproved);
    }
    app.editor()
        .add(scope, &servers, Existing::Refuse, EditEffect::Written)
        .map_err(explain::edit)?;
    dialogue.written = Written::Something;
    servers.iter().for_each(|s| printer.note(&format!("`{}` is configured", shown(&s.name))));
    if scope == Scope::Project {
        trust_what_was_typed(app, &servers)?;
    }
    Ok(Exit::Done)
}

/// Connects to a server that is not in a file yet, lists its tools, and closes the connection.
pub(super) async fn attempt(app: &App, server: &NewServer) -> Result<Result<(), Failure>, Stop> {
    let config = app.editor().trial(server).map_err(explain::edit)?;
    let gateway = app.gateway(config.clone()).on_demand().build();
    let mut tried = Ok(());
    let exit = app
        .converse((gateway, config), Consent::Ask, async |conversation| {
            let request = Request::Connect { server: server.name.as_str().to_owned() };
            match conversation.ask(request, "listing").await {
                Ok(Reply::Connected(page)) => {
                    let tools = plural(page.total, "tool");
                    conversation
                        .app
                        .printer
                        .note(&format!("`{}` works: {tools}", shown(&server.name)));
                }
                Ok(_) => {}
                Err(failure) => tried = Err(failure),
            }
            Ok(Exit::Done)
        })
        .await?;
    if exit == Exit::Interrupted { Err(Stop::Left(exit)) } else { Ok(tried) }
}
