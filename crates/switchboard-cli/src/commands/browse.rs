//! Commands that read: tools, search, describe, instructions, resources, prompts.

use switchboard::catalog::search::Fit;
use switchboard::render::json;
use switchboard::render::words::{clean_line, plural, thousands};
use switchboard::reply::Reply;
use switchboard::request::{Matching, PageRequest, Request, SearchRequest};

use crate::args::Format;
use crate::args::server::Search;
use crate::conversation::{ALL, Conversation};
use crate::exit::Exit;
use crate::report::{CommandResult, Stop};
use crate::show;

/// Lists servers that were never listed, and returns the exit status. Failed servers were reported
/// already; with `--json`, the last failure replaces an empty result.
async fn list_first(
    conversation: &Conversation<'_>,
    server: Option<&str>,
    format: Format,
) -> Result<Exit, Stop> {
    match conversation.list_unlisted(server).await? {
        None => Ok(Exit::Done),
        Some(failure) if format.json => Err(failure.into()),
        Some(failure) => Ok(failure.code.into()),
    }
}

pub(super) async fn tools(
    conversation: &Conversation<'_>,
    server: Option<&str>,
    format: Format,
) -> CommandResult {
    let exit = list_first(conversation, server, format).await?;
    let reply = match server {
        Some(server) => {
            conversation
                .ask(Request::List { server: server.to_owned(), page: ALL }, "listing")
                .await?
        }
        None => Reply::Tools(conversation.session.catalog().page(None, ALL)),
    };
    let printer = conversation.app.printer;
    if let Reply::Tools(page) = &reply
        && format.json
    {
        printer.json(&json::described_tools(page, &conversation.session.catalog()))?;
        return Ok(exit);
    }
    conversation.print(&reply, format)?;
    if let Reply::Tools(page) = &reply {
        show::remarks(page, printer.err).iter().for_each(|remark| printer.note(remark));
        conversation.mention(&page.not_listed, &page.pending);
    }
    Ok(exit)
}

pub(super) async fn search(conversation: &Conversation<'_>, search: Search) -> CommandResult {
    let Search { words, limit, offset, regex, server, format, .. } = search;
    let exit = list_first(conversation, server.as_deref(), format).await?;
    let request = SearchRequest {
        matching: if regex { Matching::Pattern } else { Matching::Words },
        server,
        page: PageRequest { offset, limit: limit.into() },
        ..SearchRequest::words(words.join(" "))
    };
    let reply = conversation.session.handle(Request::Search(request)).await?;
    conversation.print(&reply, format)?;
    if let Reply::Found(page) = &reply
        && !format.json
    {
        let printer = conversation.app.printer;
        match page.total {
            0 if page.denied == 0 => {
                printer.note(&format!("no tool matches `{}`", clean_line(&page.query, 200)))
            }
            0 => {}
            total if page.hits.is_empty() => {
                printer.note(&format!("no more: {} in all", thousands(total)));
            }
            _ if page.fit == Fit::Weak && page.offset == 0 => {
                printer.note("no close match; try other words");
            }
            _ => {}
        }
        if page.denied > 0 {
            printer.note(&format!("{} denied by rules", plural(page.denied, "matching tool")));
        }
        if let Some(next) = page.next {
            let shown = thousands(page.offset + page.hits.len());
            let total = thousands(page.total);
            printer.note(&format!("{shown} of {total}; more with `--offset {next}`"));
        }
        conversation.mention(&page.not_listed, &page.pending);
    }
    Ok(exit)
}

pub(super) async fn describe(
    conversation: &Conversation<'_>,
    tool: &str,
    server: Option<&str>,
    format: Format,
) -> CommandResult {
    let request = Request::Describe { tool: tool.to_owned(), server: server.map(str::to_owned) };
    let described = async || conversation.session.handle(request.clone()).await;
    conversation.print(&conversation.look_up(server, described).await?, format)?;
    Ok(Exit::Done)
}

pub(super) async fn instructions(
    conversation: &Conversation<'_>,
    server: String,
    format: Format,
) -> CommandResult {
    conversation.list_unlisted(Some(&server)).await?;
    let reply = conversation.session.handle(Request::Instructions { server }).await?;
    conversation.print(&reply, format)?;
    Ok(Exit::Done)
}

/// Lists the resources or the prompts of all servers, or of one.
pub(super) async fn rows(
    conversation: &Conversation<'_>,
    server: Option<String>,
    request: impl FnOnce(Option<String>) -> Request,
    format: Format,
) -> CommandResult {
    let exit = list_first(conversation, server.as_deref(), format).await?;
    let reply = conversation.session.handle(request(server)).await?;
    conversation.print(&reply, format)?;
    match &reply {
        _ if format.json => {}
        Reply::Resources(rows) if rows.is_empty() => conversation.app.printer.note("no resources"),
        Reply::Prompts(rows) if rows.is_empty() => conversation.app.printer.note("no prompts"),
        _ => {}
    }
    Ok(exit)
}
