//! Putting our entry into a host's file, or our package into Pi, and taking it out: shown first,
//! then asked, then written.

use std::fmt::Write;
use std::path::Path;

use switchboard::config::install::Target;
use switchboard::explain;
use switchboard::failure::{Code, Failure, Hint, Subject};
use switchboard::install::{FileChange, Owner, Plan, Reason, Servers, Staying};
use switchboard::render::words::{clean_line, list, plural};

use crate::args::install::{HostName, Install};
use crate::boot::App;
use crate::diff;
use crate::exit::Exit;
use crate::report::Outcome;
use crate::style::Palette;

/// How many servers are named.
const NAMES: usize = 20;

#[derive(Debug, thiserror::Error)]
#[error("nobody can be asked whether these files may be changed")]
struct NobodyToAsk;

pub(super) async fn install(app: &App, wish: Install) -> Outcome {
    let HostName(target) = wish.host;
    let servers = if wish.move_servers { Servers::Move } else { Servers::Stay };
    let plan = app.installer().install(target, servers).map_err(explain::install)?;
    for Staying { name, reason } in &plan.stay {
        let why = match reason {
            Reason::Conflict => "your own file has another server of that name",
            Reason::OnlyInHost => "only this host can start it",
        };
        let name = clean_line(name, 100);
        app.printer.warn(&format!("`{name}` stays in {}: {why}", target.title()));
    }
    if target == Target::Pi && wish.move_servers {
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
    if wish.dry_run {
        app.printer.note("nothing was written");
        return Ok(Exit::Done);
    }
    let done = format!("Switchboard is installed in {}", target.title());
    carry_out(app, &plan, wish.yes, &(done + &with_moved(&plan))).await
}

pub(super) async fn uninstall(app: &App, HostName(target): HostName, yes: bool) -> Outcome {
    let plan = app.installer().uninstall(target).map_err(explain::install)?;
    let title = target.title();
    if plan.is_nothing() {
        // What an interrupted command wrote down has no more use.
        app.installer().carry_out(&plan).map_err(explain::install)?;
        app.printer.note(&format!("Switchboard is not installed in {title}, nothing was changed"));
        return Ok(Exit::Done);
    }
    show(app, &plan);
    let done = if plan.leaves_ours {
        format!("{title} is as it was, with the entry of Switchboard that it had before")
    } else {
        format!("Switchboard is not installed in {title} any more")
    };
    carry_out(app, &plan, yes, &(done + &with_moved_back(&plan, target))).await
}

fn show(app: &App, plan: &Plan) {
    let (package, others): (Vec<_>, Vec<_>) =
        plan.files.iter().partition(|file| file.owner == Owner::Package);
    if !package.is_empty() {
        app.printer.note(&of_package(&package, app.printer.err));
    }
    for file in others {
        let shown = match file.owner {
            Owner::Host(target) => diff::of_host(&file.edited(), target, app.printer.err),
            Owner::User | Owner::Package => diff::text(&file.edited(), app.printer.err),
        };
        app.printer.note(&shown);
        if file.after.is_none() {
            app.printer.note("the file is removed");
        }
    }
}

/// Our own files are named; nobody has to read them.
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

async fn carry_out(app: &App, plan: &Plan, yes: bool, done: &str) -> Outcome {
    if !yes && !app.printer.can_ask() {
        let failure = Failure::new(Code::ApprovalRequired, Subject::Request, NobodyToAsk);
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

/// Which servers were moved, if any were.
fn with_moved(plan: &Plan) -> String {
    if plan.moved.is_empty() {
        return String::new();
    }
    let verb = if plan.moved.len() == 1 { "runs" } else { "run" };
    let servers = plural(plan.moved.len(), "server");
    format!("; {servers} {verb} from your own file now: {}", names(plan))
}

fn with_moved_back(plan: &Plan, target: Target) -> String {
    if plan.moved.is_empty() {
        return String::new();
    }
    format!("; back in {}: {}", target.title(), names(plan))
}

fn names(plan: &Plan) -> String {
    let names: Vec<_> = plan.moved.iter().map(|name| clean_line(name, 100)).collect();
    list(&names, NAMES)
}
