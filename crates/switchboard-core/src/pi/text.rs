//! Replies to the user of Pi: text without control characters, and remedies as commands of the
//! extension.

use std::fmt::Write;

use crate::budget;
use crate::config::settings::Settings;
use crate::config::values::FooterStatus;
use crate::failure::Failure;
use crate::name::ServerName;
use crate::render::caution::behind_name;
use crate::render::lead::lead;
use crate::render::remedy::{self, CommandSyntax};
use crate::render::text::found::budget_of;
use crate::render::text::{causes, mistake_line, server_line, stale_line, status_header};
use crate::render::words::{clean_line, plural};
use crate::reply::{Overview, SearchHit, SearchPage, ServerLine, ServerStatus, ToolLine, ToolPage};

const LINE: usize = 120;
const DESCRIPTION: usize = 300;
const MESSAGE: usize = 1_000;
const NAME: usize = 100;
/// The maximum number of servers in a status.
const SERVERS: usize = 100;
/// The number of search results with signature and description. The rest get one line each.
const FULL_HITS: usize = 3;

/// Writes remedies as commands of the extension.
#[derive(Clone, Copy, Debug)]
pub struct Pi;

impl CommandSyntax for Pi {
    fn command(&self, words: &str) -> String {
        match words.split_once(' ') {
            Some(("auth", server)) => format!("`/mcp-auth {server}`"),
            // The command runs in a shell, because a secret must not be typed into a conversation.
            Some(("token", _)) => self.shell(&format!("switchboard {words}")),
            Some(_) | None => format!("`/mcp {words}`"),
        }
    }

    fn shell(&self, line: &str) -> String {
        format!("`{line}`")
    }

    fn approve(&self) -> String {
        "this session of Pi is not interactive; use an interactive one".to_owned()
    }
}

/// The text of a failure, with a line for each remedy.
pub fn failure(failure: &Failure) -> String {
    let mut out = failure_line(failure);
    for hint in &failure.hints {
        let _ = write!(out, "\nhint: {}", remedy::wording(hint, &Pi));
    }
    out
}

fn failure_line(failure: &Failure) -> String {
    causes(failure, MESSAGE)
}

/// The status of all servers: a header, and a line per server.
pub fn status(overview: &Overview) -> String {
    let mut out = status_header(overview);
    for server in overview.servers.iter().take(SERVERS) {
        let _ = write!(out, "\n{}", server_line(server));
    }
    if let Some(more @ 1..) = overview.servers.len().checked_sub(SERVERS) {
        let _ = write!(out, "\n… and {more} more");
    }
    for place in &overview.stale {
        let _ = write!(out, "\n{}", stale_line(place));
    }
    for place in &overview.mistakes {
        let _ = write!(out, "\n{}", mistake_line(place));
    }
    out
}

/// The text for Pi's footer; `None` if the footer is disabled.
pub fn footer(overview: &Overview, settings: &Settings) -> Option<String> {
    let count = |status| overview.servers.iter().filter(|line| line.status == status).count();
    let (connected, usable) = (overview.connected, usable(overview));
    match settings.footer {
        _ if overview.servers.is_empty() => None,
        FooterStatus::Off => None,
        FooterStatus::Compact => Some(format!("MCP {connected}/{usable}")),
        FooterStatus::Full => {
            let icon = if settings.status_icon { "🔌 " } else { "" };
            let mut states = format!("{connected} connected");
            for (number, state) in [
                (count(ServerStatus::Failed), "failed"),
                (count(ServerStatus::NeedsAuth), "needs sign-in"),
                (count(ServerStatus::Pending), "pending"),
                (count(ServerStatus::Disabled), "disabled"),
            ] {
                if number > 0 {
                    let _ = write!(states, ", {number} {state}");
                }
            }
            Some(format!("{icon}MCP: {} ({states})", plural(usable, "server")))
        }
    }
}

/// The notice at the start of a session; `None` if there is no reason for one.
pub fn greeting(overview: &Overview, settings: &Settings) -> Option<String> {
    let wanted = settings.startup_notice && !overview.servers.is_empty();
    let servers = plural(usable(overview), "server");
    wanted.then(|| format!("MCP: {servers}, {}", plural(overview.tools, "tool")))
}

/// The number of servers that are not disabled.
fn usable(overview: &Overview) -> usize {
    let is_on = |line: &&ServerLine| line.status != ServerStatus::Disabled;
    overview.servers.iter().filter(is_on).count()
}

/// The names of the pending servers.
pub fn pending(overview: &Overview) -> Vec<&str> {
    let pending = overview.servers.iter().filter(|line| line.status == ServerStatus::Pending);
    pending.map(|line| line.name.as_str()).collect()
}

/// The tools of a page, one per line, below the name of their server.
pub fn tools(page: &ToolPage) -> String {
    let mut out = String::new();
    let mut server: Option<&ServerName> = None;
    let mut room = budget::TOOLS.room();
    let mut end = page.offset;
    for tool in &page.tools {
        let mut row = String::new();
        if server != Some(&tool.server) {
            let gap = if server.is_some() { "\n" } else { "" };
            let _ = writeln!(row, "{gap}{}:", shown(&tool.server));
            server = Some(&tool.server);
        }
        let _ = writeln!(row, "- {}", tool_line(tool));
        if !room.take(&row) {
            break;
        }
        out.push_str(&row);
        end += 1;
    }
    if page.tools.is_empty() {
        out.push_str("No tools.\n");
    }
    if let Some(more @ 1..) = page.total.checked_sub(end).filter(|_| !page.tools.is_empty()) {
        let _ = writeln!(out, "… and {more} more");
    }
    if !page.skipped.is_empty() {
        let reasons = crate::render::words::list(&page.skipped, 3);
        let count = plural(page.skipped.len(), "definition");
        let _ = writeln!(out, "Left out: {count} ({})", clean_line(&reasons, DESCRIPTION));
    }
    unseen(&mut out, &page.not_listed, &page.pending);
    trimmed(out)
}

/// The text of the search results, best first.
pub fn found(page: &SearchPage) -> String {
    let mut out = String::new();
    if page.hits.is_empty() {
        let _ = writeln!(out, "No tool matches \"{}\".", clean_line(&page.query, LINE));
    }
    let mut room = budget_of(page).room();
    let mut end = page.offset;
    for (index, hit) in page.hits.iter().enumerate() {
        let row =
            if index < FULL_HITS { in_full(hit) } else { format!("- {}\n", tool_line(&hit.line)) };
        if !room.take(&row) {
            break;
        }
        out.push_str(&row);
        end += 1;
    }
    if end < page.total && !page.hits.is_empty() {
        let _ = writeln!(out, "{end} of {} are shown", page.total);
    }
    unseen(&mut out, &page.not_listed, &page.pending);
    trimmed(out)
}

fn in_full(hit: &SearchHit) -> String {
    let signature = clean_line(&hit.signature, MESSAGE);
    let mut row = format!("{signature}{}\n", mark(&hit.line));
    let about = lead(&hit.line.description, DESCRIPTION);
    if !about.is_empty() {
        let _ = writeln!(row, "  {about}");
    }
    row
}

/// The reply after a server was connected, or could not be.
pub fn connected(server: &ServerName, outcome: Result<usize, &Failure>) -> String {
    match outcome {
        Ok(tools) => {
            let glyph = ServerStatus::Connected.glyph();
            format!("{glyph} {}: connected, {}", shown(server), plural(tools, "tool"))
        }
        Err(failure) => {
            let glyph = ServerStatus::Failed.glyph();
            format!("{glyph} {}: {}", shown(server), failure_line(failure))
        }
    }
}

pub fn disconnected(server: &ServerName) -> String {
    format!("{} {}: disconnected", ServerStatus::NotConnected.glyph(), shown(server))
}

/// The notice after servers were connected at the start of a session: the connected servers, and
/// the failures.
pub fn auto_connected(
    outcomes: &[(ServerName, Result<(), Failure>)],
) -> (Option<String>, Vec<String>) {
    let connected = outcomes.iter().filter(|(_, outcome)| outcome.is_ok());
    let names: Vec<_> = connected.map(|(server, _)| shown(server)).collect();
    let failed = outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref().err());
    let connected = (!names.is_empty()).then(|| format!("Auto-connected: {}", names.join(", ")));
    (connected, failed.map(failure_line).collect())
}

/// The reply after the user trusted a server.
pub fn trusted(server: &str) -> String {
    let name = clean_line(server, NAME);
    format!("`{name}` is trusted, as long as its definition stays the same")
}

/// The reply if there is no server to connect.
pub fn nothing_to_connect() -> &'static str {
    "No server is enabled and trusted."
}

fn shown(server: &ServerName) -> std::borrow::Cow<'_, str> {
    clean_line(server.as_str(), NAME)
}

fn tool_line(tool: &ToolLine) -> String {
    let name = clean_line(&tool.shown, NAME);
    match lead(&tool.description, LINE) {
        about if about.is_empty() => format!("{name}{}", mark(tool)),
        about => format!("{name}{}: {about}", mark(tool)),
    }
}

fn mark(tool: &ToolLine) -> String {
    behind_name(tool.marks())
}

fn unseen(out: &mut String, not_listed: &[ServerName], pending: &[ServerName]) {
    if !not_listed.is_empty() {
        let _ = writeln!(out, "{}", remedy::not_listed(not_listed, &Pi));
    }
    if !pending.is_empty() {
        let _ = writeln!(out, "{}", remedy::pending(pending, &Pi));
    }
}

fn trimmed(mut out: String) -> String {
    out.truncate(out.trim_end().len());
    out
}
