//! The status: all servers, the result of connecting to them, and the token cost of the tools.

use std::cell::Cell;

use serde_json::{Value, json};
use switchboard::catalog::account::Account;
use switchboard::config::layers::Config;
use switchboard::failure::{Code, Failure, Subject};
use switchboard::gateway::CheckedServer;
use switchboard::render::words::plural;
use switchboard::render::{json, remedy};
use switchboard::reply::{Overview, Reply, ServerLine, ServerStatus};
use switchboard::secret::Token;
use switchboard_server::definitions;

use crate::args::Format;
use crate::args::status::Status;
use crate::boot::App;
use crate::conversation::Conversation;
use crate::exit::Exit;
use crate::report::CommandResult;
use crate::show;
use crate::show::status::Servers;

pub(super) async fn status(conversation: &Conversation<'_>, options: Status) -> CommandResult {
    match options {
        Status { tokens: true, format, .. } => tokens(conversation, format),
        Status { check: true, format, .. } => check(conversation, format).await,
        Status { http_token: true, .. } => http_token(conversation.app),
        Status { server: Some(server), format, .. } => one(conversation, &server, format),
        Status { format, .. } => overview(conversation, format),
    }
}

fn overview(conversation: &Conversation<'_>, format: Format) -> CommandResult {
    let printer = conversation.app.printer;
    let overview = conversation.session.overview();
    if format.json {
        conversation.print(&Reply::Status(overview), format)?;
        return Ok(Exit::Done);
    }
    // The built-in demo server is alone if nothing is configured.
    let Config { servers, pending, .. } = &conversation.config;
    let servers = match overview.servers.as_slice() {
        [_] if servers.is_empty() && pending.is_empty() => Servers::DemoAlone,
        _ => Servers::Configured,
    };
    let pending = overview.servers.iter().any(|server| server.status == ServerStatus::Pending);
    printer.text(&show::status::text(&overview, servers, printer.out))?;
    if pending {
        let command = printer.err.command("`switchboard trust`");
        printer.note(&format!("{command} shows the servers that this project defines"));
    }
    Ok(Exit::Done)
}

/// The status of one server.
fn one(conversation: &Conversation<'_>, server: &str, format: Format) -> CommandResult {
    let server = conversation.server(server)?;
    let mut overview = conversation.session.overview();
    overview.servers.retain(|line| line.name == server);
    overview.tools = overview.servers.iter().filter_map(|line| line.tools).sum();
    let is_connected = |line: &&ServerLine| line.status == ServerStatus::Connected;
    overview.connected = overview.servers.iter().filter(is_connected).count();
    if format.json {
        conversation.print(&Reply::Status(overview), format)?;
        return Ok(Exit::Done);
    }
    let printer = conversation.app.printer;
    let lines = overview.servers.iter().map(|line| show::status::line(line, printer.out));
    printer.text(&lines.collect::<Vec<_>>().join("\n"))?;
    Ok(Exit::Done)
}

/// Connects all servers. Prints a line for each server as soon as it is connected or failed, and a
/// summary.
async fn check(conversation: &Conversation<'_>, format: Format) -> CommandResult {
    let printer = conversation.app.printer;
    let written = Cell::new(Ok(()));
    let report = |checked: &CheckedServer| {
        if !format.json {
            let line = show::status::checked(checked, printer.out);
            let before = written.replace(Ok(()));
            written.set(before.and_then(|()| conversation.spinner.print(&line)));
        }
    };
    let checking = conversation.session.gateway().check(report);
    let checked = conversation.wait(async || "connecting".to_owned(), checking).await;
    written.into_inner()?;
    let failed = checked.iter().filter(|checked| checked.outcome.is_err()).count();
    if format.json {
        printer.json(&with_checks(&conversation.session.overview(), &checked))?;
    } else {
        let works = checked.len() - failed;
        printer.note(&match (works, failed) {
            (0, 0) => "no server to check".to_owned(),
            (works, 0) => format!("{} connected", plural(works, "server")),
            (works, failed) => format!("{} connected, {failed} failed", plural(works, "server")),
        });
        let left = conversation.session.overview();
        let left =
            left.servers.iter().filter(|server| !checked.iter().any(|c| c.server == server.name));
        left.for_each(|server| {
            printer.note(&format!("not checked: {}", show::status::line(server, printer.err)))
        });
    }
    Ok(if failed > 0 { Exit::Unreachable } else { Exit::Done })
}

/// The JSON of the status. Each server that was connected also has the member `check`.
fn with_checks(overview: &Overview, checked: &[CheckedServer]) -> Value {
    let mut value = json::status(overview);
    let lines = value.get_mut("servers").and_then(Value::as_array_mut);
    for (line, server) in lines.into_iter().flatten().zip(&overview.servers) {
        let check = checked.iter().find(|checked| checked.server == server.name);
        let Some(check) = check else { continue };
        let took = u64::try_from(check.took.as_millis()).unwrap_or(u64::MAX);
        line["check"] = json!({ "ok": check.outcome.is_ok(), "tookMs": took });
        if let Err(failure) = &check.outcome {
            line["check"]["error"] = json::failure(failure)["error"].take();
        }
    }
    value
}

/// The token cost of the tools, from cached listings.
fn tokens(conversation: &Conversation<'_>, format: Format) -> CommandResult {
    let (session, printer) = (&conversation.session, conversation.app.printer);
    let toolset = session.gateway().settings().toolset;
    let shown = definitions(session.gateway(), toolset);
    let account = Account::of(&session.catalog(), toolset, &shown);
    let overview = session.overview();
    if format.json {
        printer.json(&json::status_with_tokens(&overview, &account))?;
        return Ok(Exit::Done);
    }
    printer.text(&show::account::table(&overview, &account, printer.out))?;
    printer.note("tokens of o200k, estimated; usually within 3 %");
    if !account.not_listed.is_empty() {
        printer.note(&remedy::not_listed(&account.not_listed, &printer.err));
    }
    Ok(Exit::Done)
}

/// Prints the bearer token only on request, because users show the text of a status to others.
fn http_token(app: &App) -> CommandResult {
    let unusable = |error| Failure::new(Code::Storage, Subject::Request, error);
    match Token::existing(&app.paths).map_err(unusable)? {
        Some(token) => {
            app.printer.text(token.expose())?;
            Ok(Exit::Done)
        }
        None => {
            let command = app.printer.err.command("`switchboard serve --http`");
            app.printer.note(&format!("there is no bearer token yet; {command} creates one"));
            Ok(Exit::Usage)
        }
    }
}
