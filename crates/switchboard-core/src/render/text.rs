//! Replies and failures as text for a model: short, with the next step as a call of `mcp`.

mod described;
pub(crate) mod found;
mod hints;

use std::fmt::Write;

pub use hints::hint_line;

use super::caution::behind_name;
use super::lead::lead;
use super::words::{ago, clean_block, clean_line, duration, list, plural};
use crate::budget::{self, Budget, cut};
use crate::catalog::pin::{DriftCount, Pin};
use crate::failure::{Failure, Hint};
use crate::name::ServerName;
use crate::reply::{
    Clue, ConnectStage, Guessed, Output, Overview, ReachedBy, Reply, ServerLine, ServerStatus,
    ToolLine, ToolPage, Underway,
};
use crate::request::PARAMETERS;
use crate::tool_card::WRITE_NAME;

const LINE: usize = 80;
const DESCRIPTION: usize = 240;
const NAMES: usize = 8;
/// The maximum number of problems in configuration files that a status lists.
const PLACES: usize = 10;
/// The length up to which a server's name is shown as it is. A longer name is shortened and put
/// between quotation marks.
const ODD_NAME: usize = 40;

/// The maximum weight of a text that a server wrote.
const LONGEST_PROSE: usize = 16_000;

/// The maximum weight of the causes of a failure.
const CAUSES: usize = 3_000;

/// The maximum weight of one remedy.
const REMEDY: usize = 4_000;

/// The weight that is reserved for the line with the number of omitted lines.
const MORE: usize = 64;

/// The text of a reply. A result is not rendered here, because it has content blocks of its own.
pub fn reply(reply: &Reply) -> String {
    let mut out = String::new();
    match reply {
        Reply::Status(overview) => status(&mut out, overview),
        Reply::Tools(page) | Reply::Connected(page) => tools(&mut out, page),
        Reply::Disconnected { servers } => {
            let names: Vec<&str> = servers.iter().map(|server| server.as_str()).collect();
            let _ = write!(out, "Disconnected: {}", list(&names, NAMES));
        }
        Reply::SignInBegun { server, link } => {
            let _ = write!(
                out,
                "Ask the user to sign in to `{server}` at this address:\n\n{link}\n\nThis machine \
                 waits 10 minutes for it; then use the server again. If the browser runs on another \
                 machine, ask for the URL that it is redirected to at the end, and: mcp({{ \
                 action: \"auth-complete\", server: \"{server}\", args: {{ redirectUrl: \"…\" }} }})"
            );
        }
        Reply::SignedIn { server, scopes } => {
            let _ = write!(out, "Signed in to `{server}`");
            if !scopes.is_empty() {
                let _ = write!(out, ", for: {}", clean_line(&scopes.join(" "), DESCRIPTION));
            }
        }
        Reply::Found(page) => out = found::found(page),
        Reply::Described(description) => out = described::described(description),
        Reply::Instructions { server, text } => {
            let text = cut(clean_block(text, LONGEST_PROSE).into_owned(), LONGEST_PROSE);
            let _ = write!(out, "Instructions of {server}:\n\n{text}");
        }
        Reply::Output(output) => {
            if let Some(guessed) = &output.guessed {
                let _ = writeln!(out, "{}", guessed_line(guessed));
            }
            if let Some(failure) = &output.unselected {
                let _ = writeln!(out, "{}", self::failure(failure));
            }
            out.push_str(&output.content.text());
            if let Some(line) = expected_line(output) {
                let _ = write!(out, "\n{line}");
            }
        }
        // The last line of the page tells which lines are shown, and how to read more.
        Reply::Stored { page, .. } => out.push_str(&page.text()),
        Reply::Resources(resources) => {
            let lines = resources.iter().map(|(server, resource)| {
                let about = resource.description.as_deref().unwrap_or(&resource.name);
                let uri = clean_line(&resource.uri, LINE * 2);
                format!("- {uri} ({}): {}", server_name(server), lead(about, LINE))
            });
            fill(&mut out, budget::LISTS, lines);
        }
        Reply::Prompts(prompts) => {
            let lines = prompts.iter().map(|(server, prompt)| {
                let about = prompt.description.as_deref().unwrap_or("");
                let name = clean_line(&prompt.name, LINE);
                format!("- {name} ({}): {}", server_name(server), lead(about, LINE))
            });
            fill(&mut out, budget::LISTS, lines);
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// The first line of a status: the numbers of connected and of enabled servers.
pub fn status_header(overview: &Overview) -> String {
    let is_disabled = |server: &&ServerLine| matches!(server.status, ServerStatus::Disabled);
    let disabled = overview.servers.iter().filter(is_disabled).count();
    let mut out = format!(
        "MCP: {}/{} servers, {}",
        overview.connected,
        overview.servers.len() - disabled,
        plural(overview.tools, "tool")
    );
    if disabled > 0 {
        let _ = write!(out, " ({disabled} disabled)");
    }
    out
}

fn status(out: &mut String, overview: &Overview) {
    let mut rest = String::new();
    let stale = overview.stale.iter().map(|place| stale_line(place));
    let mistakes = overview.mistakes.iter().map(|place| mistake_line(place));
    for line in stale.chain(mistakes).take(PLACES) {
        let _ = writeln!(rest, "{}", cut(line, DESCRIPTION * 2));
    }
    let places = overview.stale.len() + overview.mistakes.len();
    if let Some(more @ 1..) = places.checked_sub(PLACES) {
        let _ = writeln!(rest, "… and {more} more");
    }
    rest.push_str("\nParameters of mcp:");
    for parameter in PARAMETERS {
        let _ = write!(rest, "\n- {}: {}", parameter.name, parameter.about);
    }
    let _ = writeln!(out, "{}", status_header(overview));
    let left = budget::STATUS.bytes.saturating_sub(budget::weight(&rest));
    let servers = Budget { bytes: left, ..budget::STATUS };
    fill(out, servers, overview.servers.iter().map(server_line));
    out.push_str(&rest);
}

/// Appends as many lines as fit into the budget, and the number of omitted lines.
fn fill(out: &mut String, budget: Budget, lines: impl ExactSizeIterator<Item = String>) {
    let mut room = budget.room();
    room.take(out);
    room.take(&" ".repeat(MORE));
    let all = lines.len();
    for (index, line) in lines.enumerate() {
        if !(room.take(&line) && room.take("\n")) {
            let _ = writeln!(out, "… and {} more", all - index);
            break;
        }
        let _ = writeln!(out, "{line}");
    }
}

/// The line in a status about a configuration file that cannot be parsed.
pub fn stale_line(place: &str) -> String {
    format!("⚠ cannot parse {}: last good version in use", clean_line(place, DESCRIPTION))
}

/// The line in a status about an error in a configuration file. Details are omitted, because they
/// contain text of the file.
pub fn mistake_line(place: &str) -> String {
    format!("⚠ {} is invalid and ignored", clean_line(place, DESCRIPTION))
}

/// The line in a status about one server: glyph, name, and facts in brackets.
pub fn server_line(server: &ServerLine) -> String {
    let tools = server.tools.map(|count| plural(count, "tool"));
    let state = match (server.status, &server.failure) {
        (ServerStatus::Connected, _) => None,
        (ServerStatus::Cached, _) => Some("cached".to_owned()),
        (ServerStatus::NotConnected, _) => Some("not connected".to_owned()),
        (ServerStatus::Connecting, _) => Some(match server.underway {
            Some(Underway { stage: ConnectStage::Installing, since }) => {
                format!("connecting, installing for {}", duration(since))
            }
            Some(Underway { stage: ConnectStage::Starting, .. }) | None => "connecting".to_owned(),
        }),
        (ServerStatus::NeedsAuth, _) => Some("needs sign-in".to_owned()),
        (ServerStatus::Pending, None) => Some("pending: the user has to trust it".to_owned()),
        (ServerStatus::Pending, Some(failure)) => Some(format!(
            "pending: {}; the user has to trust it again",
            clean_line(&failure.cause, DESCRIPTION)
        )),
        (ServerStatus::Disabled, _) => Some("disabled".to_owned()),
        (ServerStatus::Failed, Some(failure)) => Some(format!(
            "failed {}: {}",
            ago(failure.ago),
            clean_line(&failure.cause, DESCRIPTION)
        )),
        (ServerStatus::Failed, None) => Some("failed".to_owned()),
    };
    let note = server.note.as_deref().map(|note| clean_line(note, DESCRIPTION).into_owned());
    let denied = (server.denied > 0).then(|| format!("{} denied", server.denied));
    let facts: Vec<String> =
        [tools, denied, state, drift(server.drift), note].into_iter().flatten().collect();
    let name = server_name(&server.name);
    let mut line = format!("{} {name} ({})", server.status.glyph(), facts.join(", "));
    if let Some(description) = &server.description {
        let _ = write!(line, ": {}", clean_line(description, LINE));
    }
    line
}

/// The numbers of definitions that do not match their pins, such as `2 changed, 1 new`.
fn drift(drift: DriftCount) -> Option<String> {
    let DriftCount { changed, new, unknown } = drift;
    let counts = [(changed, Pin::Changed), (new, Pin::New), (unknown, Pin::Unknown)];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let words = counts.filter_map(|(count, pin)| Some(format!("{count} {}", pin.mark()?)));
    Some(words.collect::<Vec<_>>().join(", ")).filter(|words| !words.is_empty())
}

/// The marks after the name of a tool: ` (changed)` for a pin mismatch, ` (mcp_write)` if `mcp`
/// cannot call the tool.
fn marks(tool: &ToolLine) -> String {
    let by = match tool.reached_by {
        ReachedBy::SameTool => None,
        ReachedBy::WriteTool => Some(WRITE_NAME.to_owned()),
    };
    behind_name(tool.marks().chain(by))
}

fn tools(out: &mut String, page: &ToolPage) {
    let mut rest = String::new();
    if !page.skipped.is_empty() {
        let count = plural(page.skipped.len(), "definition");
        let reasons = list(&page.skipped, 3);
        let _ = writeln!(rest, "left out: {count} ({})", clean_line(&reasons, DESCRIPTION));
    }
    if page.denied > 0 {
        let _ = writeln!(rest, "{}", denied_line(page.denied));
    }
    if page.without_tools {
        rest.push_str("it offers no tools\n");
    }
    if let Some(server) = page.server.as_ref().filter(|_| page.has_instructions) {
        let _ = writeln!(rest, "its instructions: mcp({{ instructions: \"{server}\" }})");
    }
    not_listed(&mut rest, &page.not_listed);
    pending(&mut rest, &page.pending);

    let title = page.server.as_ref().map_or("All servers".to_owned(), server_name);
    let _ = writeln!(out, "{title} ({}):", plural(page.total, "tool"));
    let mut room = budget::TOOLS.room();
    room.take(out);
    room.take(&rest);
    room.take(&" ".repeat(MORE));
    let mut next = page.offset;
    for tool in &page.tools {
        let line = format!("- {}\n", tool_line(tool));
        if !room.take(&line) {
            break;
        }
        out.push_str(&line);
        next += 1;
    }
    if next < page.total && !page.tools.is_empty() {
        let _ = writeln!(out, "next page: offset {next}");
    }
    out.push_str(&rest);
}

/// The line with the number of tools that a list omits because of `deny` rules.
pub fn denied_line(count: usize) -> String {
    format!("{} denied by rules", plural(count, "tool"))
}

fn tool_line(tool: &ToolLine) -> String {
    match lead(&tool.description, LINE) {
        about if about.is_empty() => format!("{}{}", tool.shown, marks(tool)),
        about => format!("{}{}: {about}", tool.shown, marks(tool)),
    }
}

/// The parameters of the tool, for the line below an error of the tool.
pub fn expected_line(output: &Output) -> Option<String> {
    output.expected.as_ref().map(|expected| hint_line(&Hint::Expected(expected.clone())))
}

/// The line above a result that names the tool that was called, if the caller named another one.
pub fn guessed_line(Guessed { shown, by }: &Guessed) -> String {
    match by {
        Clue::Search => format!("[called {shown}, which the search clearly means]"),
        Clue::Misspelt(name) => format!("[called {shown}: no tool is named `{name}`]"),
    }
}

/// The name of a server. A name with unusual characters is quoted and shortened, so that it cannot
/// be mistaken for text of Switchboard.
fn server_name(name: &ServerName) -> String {
    let name = name.as_str();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.len() <= ODD_NAME && name.chars().all(plain) {
        return name.to_owned();
    }
    format!("`{}`", clean_line(name, ODD_NAME).replace('`', "'"))
}

fn pending(out: &mut String, servers: &[ServerName]) {
    if servers.is_empty() {
        return;
    }
    let names: Vec<String> = servers.iter().map(server_name).collect();
    let (count, names) = (plural(servers.len(), "server"), list(&names, NAMES));
    let _ = writeln!(out, "{count} pending: {names} (ask the user to run: switchboard trust)");
}

fn not_listed(out: &mut String, servers: &[ServerName]) {
    let Some(first) = servers.first() else { return };
    let names: Vec<String> = servers.iter().map(server_name).collect();
    let _ = writeln!(
        out,
        "{} not listed yet: {} (mcp({{ server: \"{first}\" }}) connects and lists it)",
        plural(servers.len(), "server"),
        list(&names, NAMES)
    );
}

/// The text of a failure: the error, its causes and the remedies.
pub fn failure(failure: &Failure) -> String {
    let mut out = String::new();
    let _ = write!(out, "{}: {}", failure.code, cut(causes(failure, 1_000), CAUSES));
    for hint in &failure.hints {
        let _ = write!(out, "\n{}", cut(hint_line(hint), REMEDY));
    }
    cut(out, budget::FAILURE.bytes)
}

/// The error and its sources on one line. Each is shortened to `max` characters.
pub(crate) fn causes(failure: &Failure, max: usize) -> String {
    let chain = failure.chain();
    let causes: Vec<_> = chain.iter().map(|cause| clean_line(cause, max)).collect();
    causes.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Description;

    #[test]
    fn instructions_of_a_server_are_limited_in_length() {
        let server = ServerName::new("talker").unwrap();
        let flood = "so many words \u{1b}[31m".repeat(20_000);
        let line = ToolLine {
            shown: "talker_talk".to_owned(),
            server: server.clone(),
            tool: "talk".to_owned(),
            description: flood.clone(),
            pin: Pin::Same,
            claims: None,
            hidden: None,
            reached_by: ReachedBy::SameTool,
        };
        let description = Description {
            line,
            title: Some(flood.clone()),
            signature: "talker_talk()".to_owned(),
            parameters: String::new(),
            returns: None,
            resource: Some(flood.clone()),
            input_schema: "{}".to_owned(),
            output_schema: None,
            annotations: Some(flood.clone()),
            denied: Some(flood.clone()),
        };
        for said in
            [Reply::Instructions { server, text: flood }, Reply::Described(Box::new(description))]
        {
            let text = reply(&said);
            assert!(text.len() < LONGEST_PROSE + 4_096, "{} bytes", text.len());
            assert!(!text.contains('\u{1b}'));
        }
    }
}
