//! Replies of the granular toolset (`mcp_connect`, `mcp_list_tools` …). The texts are fixed,
//! because users of this toolset rely on them.

use std::fmt::Write;

use super::caution::behind_name;
use super::lead::lead;
use super::text::{self, causes, found::budget_of};
use super::words::{clean_line, list, plural};
use crate::budget;
use crate::connection::{
    Closed, ConnectError, Connected, ConnectionLine, ConnectionState, Reloaded, ResourcesFrom,
    ToolsFrom,
};
use crate::failure::{Code, Failure, Hint};
use crate::name::ServerName;
use crate::notice::{HandlerId, NoticeFilter};
use crate::reply::SearchPage;

const ADDRESS: usize = 1_000;
const NAME: usize = 100;
const DESCRIPTION: usize = 240;
const ABOUT_HIT: usize = 140;

/// The reply to a connection names all tools if there are at most `NAMES`, and otherwise the first
/// `FIRST_NAMES`.
const NAMES: usize = 5;
const FIRST_NAMES: usize = 4;

/// The maximum number of rows of one list, and of all lists in one reply.
const ROWS: usize = 200;

/// The number of search results that are shown with their parameters.
const FULL_HITS: usize = 3;

/// The reply to a successful connection.
pub fn connected(new: &Connected) -> String {
    let names: Vec<_> = new.tools.iter().map(|name| clean_line(name, NAME)).collect();
    let all = names.len() <= NAMES;
    let shown = names.iter().take(if all { NAMES } else { FIRST_NAMES }).map(|name| &**name);
    let shown = shown.chain((!all).then_some("...")).collect::<Vec<_>>().join(", ");
    let mut out = format!(
        "Successfully connected to {}\nConnection ID: {}\nTransport: {}\n",
        clean_line(&new.address, ADDRESS),
        new.id,
        new.transport
    );
    let _ = writeln!(out, "{}", format!("Available tools ({}): {shown}", names.len()).trim_end());
    let _ = write!(out, "Available resources: {}", new.resources);
    out
}

/// The reply to a failed connection.
pub fn connect_error(error: &ConnectError) -> String {
    match error {
        ConnectError::Failed(failure) => format!("Connection failed: {}", cause(failure)),
        ConnectError::NoTransport(failure) => {
            format!("Connection failed: {error}: {}", cause(failure))
        }
        _ => format!("Connection failed: {error}"),
    }
}

pub fn closed(closed: &Closed) -> String {
    format!("Disconnected from '{}' ({})", closed.id, clean_line(&closed.address, ADDRESS))
}

/// The list of connections. Open, connecting and failed ones come first, then idle ones, which can
/// be used too.
pub fn connections(lines: &[ConnectionLine]) -> String {
    let (idle, active): (Vec<_>, Vec<_>) =
        lines.iter().partition(|line| line.state == ConnectionState::Disconnected);
    let mut out = match active.len() {
        0 => "No active MCP connections".to_owned(),
        count => format!("Active MCP Connections ({count}):"),
    };
    push_connections(&mut out, &active);
    if !idle.is_empty() {
        let _ = write!(out, "\n\nNot connected ({}):", idle.len());
        push_connections(&mut out, &idle);
    }
    out
}

fn push_connections(out: &mut String, lines: &[&ConnectionLine]) {
    let rows = lines.iter().map(|line| {
        let address = clean_line(&line.address, ADDRESS);
        let mut row = format!("\n- {}: {address} [{}]", line.id, line.state.as_str());
        if let Some(tools) = line.tools {
            let _ = write!(row, " ({})", plural(tools, "tool"));
        }
        if let Some((name, version)) = &line.implementation {
            let (name, version) = (clean_line(name, NAME), clean_line(version, NAME));
            let _ = write!(row, " - {name}/{version}");
        }
        row
    });
    push_rows(out, rows, "\n- ");
}

/// Appends as many rows as fit, and the number of omitted rows.
fn push_rows(out: &mut String, rows: impl ExactSizeIterator<Item = String>, bullet: &str) {
    let mut room = budget::LISTS.room();
    let all = rows.len();
    for (index, row) in rows.enumerate() {
        if index == ROWS || !room.take(&row) {
            let _ = write!(out, "{bullet}... and {} more", all - index);
            break;
        }
        out.push_str(&row);
    }
}

/// The list of each connection's tools.
pub fn tools(all: &[ToolsFrom]) -> String {
    if all.is_empty() {
        return "No active MCP connections".to_owned();
    }
    let mut room = budget::TOOLS.room();
    let mut rows = 0;
    let mut out = String::new();
    for from in all {
        let gap = if out.is_empty() { "" } else { "\n\n" };
        let title = format!("{gap}Tools from '{}' ({}):", from.id, from.tools.len());
        if !room.take(&title) {
            out.push_str("\n\n... and more: mcp_search(query=\"...\") finds them");
            break;
        }
        out.push_str(&title);
        for (index, tool) in from.tools.iter().enumerate() {
            let mut row = format!("\n  - {}", clean_line(&tool.tool, NAME));
            row.push_str(&behind_name(tool.marks()));
            let about = lead(&tool.description, DESCRIPTION);
            if !about.is_empty() {
                let _ = write!(row, ": {about}");
            }
            if rows == ROWS || !room.take(&row) {
                let more = from.tools.len() - index;
                let _ =
                    write!(out, "\n  ... and {more} more: mcp_search(query=\"...\") finds them");
                break;
            }
            rows += 1;
            out.push_str(&row);
        }
    }
    out
}

pub fn resources(from: &ResourcesFrom) -> String {
    let mut out = format!("Resources from '{}' ({}):", from.id, from.resources.len());
    let rows = from.resources.iter().map(|resource| {
        let about = resource.description.as_deref().unwrap_or(&resource.name);
        let (uri, about) = (clean_line(&resource.uri, ADDRESS), lead(about, DESCRIPTION));
        format!("\n  - {uri}: {about}")
    });
    push_rows(&mut out, rows, "\n  ");
    out
}

/// The list of search results, with the names that `mcp_call_tool` accepts.
pub fn found(page: &SearchPage) -> String {
    if page.hits.is_empty() {
        return format!("No tool matches \"{}\"", clean_line(&page.query, NAME));
    }
    let mut out = String::new();
    let mut room = budget_of(page).room();
    let mut shown = page.offset;
    for (index, hit) in page.hits.iter().enumerate() {
        let name = clean_line(&hit.line.tool, NAME);
        let parameters = hit.signature.strip_prefix(&hit.line.shown).unwrap_or_default();
        let parameters = if index < FULL_HITS { parameters } else { "" };
        let mark = behind_name(hit.line.marks());
        let about = lead(&hit.line.description, ABOUT_HIT);
        let row = format!("{name}{parameters}{mark} from '{}'\n  {about}\n\n", hit.line.server);
        if !room.take(&row) {
            break;
        }
        out.push_str(&row);
        shown += 1;
    }
    let _ = write!(out, "{shown} of {}", page.total);
    if shown < page.total {
        let _ = write!(out, "; next page: offset {shown}");
    }
    out
}

/// The reply to a reload; an error if a configuration file has a problem.
pub fn reloaded(reloaded: &Reloaded) -> Result<String, String> {
    let mut lines = Vec::new();
    if let Some(count) = reloaded.closed {
        lines.push(format!("Disconnected {count} existing connection(s)"));
    }
    let problems = reloaded.mistakes.iter().map(|m| format!("Error: {}", clean_line(m, ADDRESS)));
    lines.extend(problems.take(ROWS));
    let files: Vec<_> = reloaded.files.iter().map(|file| clean_line(file, ADDRESS)).collect();
    lines.push(match files.is_empty() {
        true => "Reloaded MCP config: there is no file".to_owned(),
        false => format!("Reloaded MCP config from {}", files.join(", ")),
    });
    let names = |servers: &[ServerName]| {
        servers.iter().map(|server| server.as_str()).collect::<Vec<_>>().join(", ")
    };
    if !reloaded.connected.is_empty() {
        lines.push(format!("Connected: {}", names(&reloaded.connected)));
    }
    for (server, failure) in &reloaded.failed {
        lines.push(format!("Failed: {server}: {}", cause(failure)));
    }
    if !reloaded.pending.is_empty() {
        let names = names(&reloaded.pending);
        lines.push(format!("Pending: {names} (ask the user to run: switchboard trust)"));
    }
    let text = lines.join("\n");
    if reloaded.mistakes.is_empty() { Ok(text) } else { Err(text) }
}

pub fn registered(handler: HandlerId, filter: &NoticeFilter) -> String {
    let connection = filter.server.as_ref().map_or("all connections", |server| server.as_str());
    let kinds: Vec<&str> = filter.kinds.iter().map(|kind| kind.as_str()).collect();
    let kinds = if kinds.is_empty() { "all types".to_owned() } else { kinds.join(", ") };
    format!(
        "Registered notification handler: {handler}\n\
         Connection filter: {connection}\n\
         Type filter: {kinds}"
    )
}

/// The names in a request, for errors about unknown names.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestedNames<'a> {
    pub connection: &'a str,
    pub tool: &'a str,
}

/// The reply to a failed request. Errors about unknown connections and tools have fixed texts
/// without remedies, which would use names that this toolset does not have.
pub fn failure(failure: &Failure, asked: RequestedNames<'_>) -> String {
    match failure.code {
        Code::UnknownServer => {
            format!("Error: Connection '{}' not found", clean_line(asked.connection, NAME))
        }
        Code::UnknownTool => {
            format!("Error: Tool '{}' not found on server", clean_line(asked.tool, NAME))
        }
        _ => format!("Error: {}", cause(failure)),
    }
}

/// The code, causes and remedies of a failure.
fn cause(failure: &Failure) -> String {
    let mut out = format!("{}: {}", failure.code, causes(failure, ADDRESS));
    for hint in &failure.hints {
        let _ = write!(out, "\n{}", hint_line(hint));
    }
    out
}

/// A remedy that uses the tools of this toolset.
fn hint_line(hint: &Hint) -> String {
    match hint {
        Hint::Search(words) => {
            format!("Find it: mcp_search(query=\"{}\")", clean_line(words, NAME))
        }
        Hint::ListServers => "See the connections: mcp_list_connections()".to_owned(),
        Hint::ListTools(server) => format!("See its tools: mcp_list_tools(id=\"{server}\")"),
        Hint::Connect(_) => "See its state: mcp_list_connections()".to_owned(),
        Hint::NotListedYet(servers) => {
            let names: Vec<&str> = servers.iter().map(|server| server.as_str()).collect();
            let count = plural(servers.len(), "server");
            format!("{count} not listed yet: {} (mcp_list_tools(id=\"...\"))", list(&names, 8))
        }
        hint => text::hint_line(hint),
    }
}

#[cfg(test)]
mod tests;
