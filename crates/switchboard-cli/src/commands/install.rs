//! Adds our entry to a host's file, or our package to Pi, and removes it again. Each command shows
//! the change, asks, and writes.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};
use switchboard::catalog::resolve::nearest;
use switchboard::config::install::{NAME, Target};
use switchboard::explain;
use switchboard::failure::{Code, Failure, Hint, Subject};
use switchboard::install::{Added, FileChange, InstallPlan, Owner, Reason, Servers, Staying};
use switchboard::render::words::{clean_line, list, plural};

use crate::args::install::{GOOSE, Install};
use crate::boot::App;
use crate::diff;
use crate::exit::Exit;
use crate::report::CommandResult;
use crate::style::Palette;

/// The maximum number of servers that a message names.
const NAMES: usize = 20;

#[derive(Debug, thiserror::Error)]
#[error("changing the files of a host requires confirmation, and the user cannot be asked")]
struct NoTerminal;

#[derive(Debug, thiserror::Error)]
#[error("the name of a host is missing")]
struct NoHost;

#[derive(Debug, thiserror::Error)]
#[error("no supported host is named `{host}`")]
struct UnknownHost {
    host: String,
}

pub(super) async fn install(app: &App, options: Install) -> CommandResult {
    let Some(host) = &options.host else { return Err(no_host(app)?.into()) };
    let Some(target) = Target::from_word(host) else { return paste(app, host) };
    let servers = if options.move_servers { Servers::Move } else { Servers::Stay };
    let plan = app.installer().install(target, servers).map_err(explain::install)?;
    for Staying { name, reason } in &plan.stay {
        let why = match reason {
            Reason::Conflict => "your own file has another server of that name",
            Reason::OnlyInHost => "only this host can start it",
        };
        let name = clean_line(name, 100);
        app.printer.warn(&format!("`{name}` stays in {}: {why}", target.title()));
    }
    if target == Target::Pi && options.move_servers {
        app.printer.note("Pi's servers are read where they are, so none is moved");
    }
    if plan.is_nothing() {
        app.printer.note(&format!(
            "Switchboard is installed in {} already, nothing was changed",
            target.title()
        ));
        return Ok(Exit::Done);
    }
    show(app, &plan);
    for package in &plan.displaced {
        let package = clean_line(package, 200);
        app.printer.note(&format!(
            "`{package}` is taken out of {}: only one can have the command `/mcp`",
            target.title()
        ));
    }
    for added in &plan.added {
        app.printer.note(&explained(added, target));
    }
    if options.dry_run {
        app.printer.note("nothing was written");
        return Ok(Exit::Done);
    }
    let mut done = format!("Switchboard is installed in {}", target.title());
    if !plan.moved.is_empty() {
        let verb = if plan.moved.len() == 1 { "runs" } else { "run" };
        let (servers, names) = (plural(plan.moved.len(), "server"), names(&plan));
        let _ = write!(done, "; {servers} {verb} from your own file now: {names}");
    }
    carry_out(app, &plan, options.yes, &done).await
}

/// The failure without a host. Its hint names the hosts that have files on this machine, or all
/// hosts if none has.
fn no_host(app: &App) -> Result<Failure, Failure> {
    let here = app.discover()?.hosts.into_iter();
    let here = here.filter(|host| host.files.iter().any(|file| file.found));
    let mut names: Vec<String> = here.map(|host| host.host.as_str().to_owned()).collect();
    if names.is_empty() {
        names = Target::all().map(|target| target.as_str().to_owned()).collect();
    }
    let failure = Failure::new(Code::BadRequest, Subject::Request, NoHost);
    Ok(failure.hint(Hint::Choose(names)))
}

/// Prints the entry to paste, for a host whose file we do not edit.
fn paste(app: &App, host: &str) -> CommandResult {
    let command = app.installer().command().map_err(explain::install)?;
    if host == GOOSE {
        app.printer.note(
            "Goose keeps its extensions in YAML, which Switchboard does not edit; add this to \
             `~/.config/goose/config.yaml`",
        );
        app.printer.text(&goose(&command))?;
        return Ok(Exit::Usage);
    }
    let close = nearest(host, Target::all().map(|target| target.as_str().to_owned()));
    let close = close.first().map_or(String::new(), |name| format!(" (did you mean `{name}`?)"));
    app.printer.note(&format!(
        "Switchboard does not know the host `{}`{close}; add this to its MCP configuration",
        clean_line(host, 100)
    ));
    let entry = json!({ NAME: { "command": command, "args": ["serve"] } });
    app.printer.json(&json!({ "mcpServers": entry }))?;
    Ok(Exit::Usage)
}

fn goose(command: &str) -> String {
    // A JSON string is a valid YAML string.
    let command = Value::from(command);
    format!(
        "extensions:\n  {NAME}:\n    enabled: true\n    type: stdio\n    name: {NAME}\n    \
         cmd: {command}\n    args: [serve, --host, {GOOSE}]\n    timeout: 300\n"
    )
}

/// Explains the additional keys and variables that were written with our entry.
fn explained(added: &Added, target: Target) -> String {
    match added {
        Added::Key { key, why } => format!("`{key}`: {why}"),
        Added::Variables(names) => {
            let names: Vec<_> =
                names.iter().map(|name| format!("`{}`", clean_line(name, 100))).collect();
            let names = list(&names, NAMES);
            let title = target.title();
            format!("passed on: {names}; {title} starts a server without other variables")
        }
    }
}

pub(super) async fn uninstall(app: &App, host: &str, yes: bool) -> CommandResult {
    let Some(target) = Target::from_word(host) else {
        let close = nearest(host, Target::all().map(|target| target.as_str().to_owned()));
        let host = clean_line(host, 100).into_owned();
        let failure = Failure::new(Code::BadRequest, Subject::Request, UnknownHost { host });
        return Err(match close.is_empty() {
            true => failure.into(),
            false => failure.hint(Hint::DidYouMean(close)).into(),
        });
    };
    let plan = app.installer().uninstall(target).map_err(explain::install)?;
    let title = target.title();
    if plan.is_nothing() {
        // An empty plan removes the record of an interrupted command.
        app.installer().carry_out(&plan).map_err(explain::install)?;
        app.printer.note(&format!("Switchboard is not installed in {title}, nothing was changed"));
        return Ok(Exit::Done);
    }
    show(app, &plan);
    let mut done = if plan.leaves_ours {
        format!("{title} is as it was, with the entry of Switchboard that it had before")
    } else {
        format!("Switchboard is not installed in {title} any more")
    };
    if !plan.moved.is_empty() {
        let _ = write!(done, "; back in {title}: {}", names(&plan));
    }
    carry_out(app, &plan, yes, &done).await
}

pub(super) fn show(app: &App, plan: &InstallPlan) {
    let (package, others): (Vec<_>, Vec<_>) =
        plan.files.iter().partition(|file| file.owner == Owner::Package);
    if !package.is_empty() {
        app.printer.note(&of_package(&package, app.printer.err));
    }
    for file in others {
        let shown = match file.owner {
            Owner::Host(target) | Owner::Settings(target) => {
                diff::of_host(&file.edited(), target, app.printer.err)
            }
            Owner::User | Owner::Package => diff::text(&file.edited(), app.printer.err),
        };
        app.printer.note(&shown);
        if file.after.is_none() {
            app.printer.note("the file is removed");
        }
    }
}

/// Lists the files of our Pi package by name, without a diff.
fn of_package(files: &[&FileChange], palette: Palette) -> String {
    let directory = files.first().and_then(|file| file.path.parent());
    let directory = directory.unwrap_or(Path::new("")).to_string_lossy();
    let mut out = format!("{}\n", palette.name(clean_line(&directory, 1_000)));
    for FileChange { path, before, after, .. } in files {
        let mark = match (before, after) {
            (None, _) => '+',
            (Some(_), Some(_)) => '~',
            (Some(_), None) => '-',
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let _ = writeln!(out, "{mark} {}", clean_line(&name, 100));
    }
    out
}

async fn carry_out(app: &App, plan: &InstallPlan, yes: bool, done: &str) -> CommandResult {
    if !yes && !app.printer.can_ask() {
        let failure = Failure::new(Code::ApprovalRequired, Subject::Request, NoTerminal);
        return Err(failure.hint(Hint::AskUser).into());
    }
    if !yes {
        let files = if plan.files.len() == 1 { "this file" } else { "these files" };
        if !app.printer.agrees(&format!("Change {files}?")).await {
            app.printer.note("nothing was written");
            return Ok(Exit::NotApproved);
        }
    }
    app.installer().carry_out(plan).map_err(explain::install)?;
    app.printer.note(done);
    Ok(Exit::Done)
}

/// The names of the servers that `--move` moves, up to [`NAMES`].
fn names(plan: &InstallPlan) -> String {
    let names: Vec<_> = plan.moved.iter().map(|name| clean_line(name, 100)).collect();
    list(&names, NAMES)
}
