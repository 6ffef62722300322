//! Putting our entry into a host's file, and taking it out: shown first, then asked, then written.

use switchboard::config::install::Target;
use switchboard::explain;
use switchboard::failure::{Code, Failure, Hint, Subject};
use switchboard::install::{Owner, Plan, Reason, Servers, Staying};
use switchboard::render::words::{clean_line, list, plural};

use crate::args::install::{HostName, Install};
use crate::boot::App;
use crate::diff;
use crate::exit::Exit;
use crate::report::Outcome;

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
    if plan.is_nothing() {
        app.printer.note(&format!(
            "Switchboard is installed in {} already, nothing was changed",
            target.title()
        ));
        return Ok(Exit::Done);
    }
    show(app, &plan);
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
    let done = if plan.leaves_our_entry() {
        format!("{title} is as it was, with the entry of Switchboard that it had before")
    } else {
        format!("Switchboard is not installed in {title} any more")
    };
    carry_out(app, &plan, yes, &(done + &with_moved_back(&plan, target))).await
}

fn show(app: &App, plan: &Plan) {
    for file in &plan.files {
        let shown = match file.owner {
            Owner::Host(target) => diff::of_host(&file.edited(), target, app.printer.err),
            Owner::User => diff::text(&file.edited(), app.printer.err),
        };
        app.printer.note(&shown);
        if file.after.is_none() {
            app.printer.note("the file is removed");
        }
    }
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
