//! Connecting explicitly. No connection outlives the command, and the messages say so.

use switchboard::render::words::{clean_line, plural};
use switchboard::reply::Reply;
use switchboard::request::Request;

use crate::args::Format;
use crate::conversation::{ALL, Conversation};
use crate::exit::Exit;
use crate::report::{self, CommandResult};
use crate::show;

pub(super) async fn connect(
    conversation: &Conversation<'_>,
    server: &str,
    format: Format,
) -> CommandResult {
    let request = Request::Connect { server: server.to_owned() };
    let reply = conversation.ask(request, "listing").await?;
    let Reply::Connected(page) = &reply else {
        conversation.print(&reply, format)?;
        return Ok(Exit::Done);
    };
    // The reply has only the first page, with the size that suits a model, so the page comes from
    // the catalog.
    let page = conversation.session.gateway().catalog().page(page.server.as_ref(), ALL);
    let printer = conversation.app.printer;
    let count = page.total;
    let remarks = show::remarks(&page, printer.err);
    conversation.print(&Reply::Connected(page), format)?;
    if !format.json {
        remarks.iter().for_each(|remark| printer.note(remark));
        printer.note(&listed(server, count));
    }
    Ok(Exit::Done)
}

pub(super) async fn reconnect(
    conversation: &Conversation<'_>,
    server: Option<&str>,
    format: Format,
) -> CommandResult {
    if let Some(server) = server {
        return connect(conversation, server, format).await;
    }
    let catalog = conversation.session.gateway().catalog();
    let active = catalog.shelves().filter(|(_, shelf)| shelf.is_active());
    let names: Vec<String> = active.map(|(name, _)| name.as_str().to_owned()).collect();
    let printer = conversation.app.printer;
    let mut exit = Exit::Done;
    for server in names {
        let request = Request::Connect { server: server.clone() };
        match conversation.ask(request, "listing").await {
            Ok(Reply::Connected(page)) if !format.json => {
                printer.note(&listed(&server, page.total))
            }
            Ok(_) => {}
            Err(failure) => {
                exit = Exit::from(failure.code);
                printer.warn(&report::line(&failure, printer.err));
            }
        }
    }
    if format.json {
        conversation.print(
            &Reply::Tools(conversation.session.gateway().catalog().page(None, ALL)),
            format,
        )?;
    }
    Ok(exit)
}

pub(super) fn disconnect(conversation: &Conversation<'_>, server: Option<&str>) -> CommandResult {
    if let Some(server) = server {
        conversation.server(server)?;
    }
    conversation.app.printer.note(
        "nothing to disconnect: each command starts the servers that it needs and stops them when \
         it ends",
    );
    Ok(Exit::Done)
}

fn listed(server: &str, tools: usize) -> String {
    let tools = plural(tools, "tool");
    format!("listed {tools} of `{}`; the connection is closed again", clean_line(server, 100))
}
