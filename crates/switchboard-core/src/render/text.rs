//! Replies and failures as text for a model: short, and with the next step in the tool's own words.

use std::fmt::Write;

use super::words::{clean_block, clean_line, duration, list, plural};
use crate::catalog::pin::{DriftCount, Pin};
use crate::failure::{Failure, Hint};
use crate::name::ServerName;
use crate::reply::{
    Description, Overview, Reply, SearchPage, ServerLine, ServerStatus, Stage, ToolLine, ToolPage,
    Underway,
};
use crate::request::{PARAMETERS, Place};

/// Hits that are shown with signature and description; the others get a line.
const FULL_HITS: usize = 3;

const LINE: usize = 100;
const DESCRIPTION: usize = 240;
const NAMES: usize = 8;
/// Servers that a status shows.
const SERVERS: usize = 100;
/// As much of a name that is not a plain word as is shown.
const ODD_NAME: usize = 40;

/// A server's own words about itself or a tool, in bytes.
const LONGEST_PROSE: usize = 16 * 1024;

/// The text of a reply. An output has content blocks of its own and is not text.
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
                "Ask the user to sign in to `{server}` at this address:\n\n{link}\n\nIt is waited for \
                 on this machine, for 10 minutes; then use the server again. If the browser runs on \
                 another machine, ask for the address that it was sent to at the end, and: mcp({{ \
                 action: \"auth-complete\", server: \"{server}\", args: {{ redirectUrl: \"…\" }} }})"
            );
        }
        Reply::SignedIn { server, scopes } => {
            let _ = write!(out, "Signed in to `{server}`");
            if !scopes.is_empty() {
                let _ = write!(out, ", for: {}", clean_line(&scopes.join(" "), DESCRIPTION));
            }
        }
        Reply::Found(page) => found(&mut out, page),
        Reply::Described(description) => described(&mut out, description),
        Reply::Instructions { server, text } => {
            let text = clean_block(text, LONGEST_PROSE);
            let _ = write!(out, "Instructions of {server}:\n\n{text}");
        }
        Reply::Output(output) => out.push_str(&output.content.text()),
        // Its last line says which part it is and how to go on.
        Reply::Stored { page, .. } => out.push_str(&page.text),
        Reply::Resources(resources) => {
            for (server, resource) in resources {
                let about = resource.description.as_deref().unwrap_or(&resource.name);
                let _ = writeln!(
                    out,
                    "- {} ({server}): {}",
                    clean_line(&resource.uri, LINE * 2),
                    clean_line(about, LINE)
                );
            }
        }
        Reply::Prompts(prompts) => {
            for (server, prompt) in prompts {
                let about = prompt.description.as_deref().unwrap_or("");
                let _ = writeln!(
                    out,
                    "- {} ({server}): {}",
                    clean_line(&prompt.name, LINE),
                    clean_line(about, LINE)
                );
            }
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// The first line of a status: how many servers are connected, of those that may be.
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
    let _ = writeln!(out, "{}", status_header(overview));
    for server in overview.servers.iter().take(SERVERS) {
        let _ = writeln!(out, "{}", server_line(server));
    }
    if let Some(more @ 1..) = overview.servers.len().checked_sub(SERVERS) {
        let _ = writeln!(out, "… and {more} more");
    }
    for place in &overview.stale {
        let _ = writeln!(out, "{}", stale_line(place));
    }
    for place in &overview.mistakes {
        let _ = writeln!(out, "{}", mistake_line(place));
    }
    out.push_str("\nParameters of mcp:");
    for parameter in PARAMETERS.iter().filter(|parameter| parameter.place != Place::NotYet) {
        let _ = write!(out, "\n- {}: {}", parameter.name, parameter.about);
    }
}

/// A file that does not read, as a line.
pub fn stale_line(place: &str) -> String {
    format!("⚠ {} does not read: its last good version holds", clean_line(place, DESCRIPTION))
}

/// A mistake in a file that reads, as a line. What exactly is wrong is the file's own words.
pub fn mistake_line(place: &str) -> String {
    format!("⚠ {} is wrong: what stands there does not count", clean_line(place, DESCRIPTION))
}

/// One server as a line: glyph, name, and in brackets what matters.
pub fn server_line(server: &ServerLine) -> String {
    let tools = server.tools.map(|count| plural(count, "tool"));
    let state = match (server.status, &server.failure) {
        (ServerStatus::Connected, _) => None,
        (ServerStatus::Cached, _) => Some("cached".to_owned()),
        (ServerStatus::NotConnected, _) => Some("not connected".to_owned()),
        (ServerStatus::Connecting, _) => Some(match server.underway {
            Some(Underway { stage: Stage::Installing, since }) => {
                format!("connecting, installing for {}", duration(since))
            }
            Some(Underway { stage: Stage::Starting, .. }) | None => "connecting".to_owned(),
        }),
        (ServerStatus::NeedsAuth, _) => Some("needs sign-in".to_owned()),
        (ServerStatus::Pending, None) => Some("pending: the user has to trust it".to_owned()),
        (ServerStatus::Pending, Some(failure)) => Some(format!(
            "pending: {}; the user has to trust it again",
            clean_line(&failure.cause, DESCRIPTION)
        )),
        (ServerStatus::Disabled, _) => Some("disabled".to_owned()),
        (ServerStatus::Failed, Some(failure)) => Some(format!(
            "failed {} ago: {}",
            duration(failure.ago),
            clean_line(&failure.cause, DESCRIPTION)
        )),
        (ServerStatus::Failed, None) => Some("failed".to_owned()),
    };
    let facts: Vec<String> =
        [tools, state, drift(server.drift), server.note.clone()].into_iter().flatten().collect();
    let name = server_name(&server.name);
    let mut line = format!("{} {name} ({})", server.status.glyph(), facts.join(", "));
    if let Some(description) = &server.description {
        let _ = write!(line, ": {}", clean_line(description, LINE));
    }
    line
}

/// `2 changed, 1 new`.
fn drift(drift: DriftCount) -> Option<String> {
    let DriftCount { changed, new, unknown } = drift;
    let counts = [(changed, Pin::Changed), (new, Pin::New), (unknown, Pin::Unknown)];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let words = counts.filter_map(|(count, pin)| Some(format!("{count} {}", pin.mark()?)));
    Some(words.collect::<Vec<_>>().join(", ")).filter(|words| !words.is_empty())
}

/// ` (changed)` behind the name of a tool that is not what was accepted.
fn mark(pin: Pin) -> String {
    pin.mark().map(|mark| format!(" ({mark})")).unwrap_or_default()
}

fn tools(out: &mut String, page: &ToolPage) {
    let title = page.server.as_ref().map_or("All servers", |server| server.as_str());
    let _ = writeln!(out, "{} ({}):", clean_line(title, LINE), plural(page.total, "tool"));
    for tool in &page.tools {
        let _ = writeln!(out, "- {}", tool_line(tool));
    }
    if let Some(next) = page.next {
        let _ = writeln!(out, "next page: offset {next}");
    }
    if !page.skipped.is_empty() {
        let count = plural(page.skipped.len(), "definition");
        let _ = writeln!(out, "left out: {count} ({})", list(&page.skipped, 3));
    }
    if page.without_tools {
        out.push_str("it offers no tools\n");
    }
    if let Some(server) = page.server.as_ref().filter(|_| page.has_instructions) {
        let _ = writeln!(out, "its instructions: mcp({{ instructions: \"{server}\" }})");
    }
    not_listed(out, &page.not_listed);
    pending(out, &page.pending);
}

fn tool_line(tool: &ToolLine) -> String {
    if tool.description.trim().is_empty() {
        return format!("{}{}", tool.shown, mark(tool.pin));
    }
    format!("{}{}: {}", tool.shown, mark(tool.pin), clean_line(&tool.description, LINE))
}

fn found(out: &mut String, page: &SearchPage) {
    if page.hits.is_empty() {
        let query = clean_line(&page.query, LINE);
        let _ = writeln!(out, "No tool matches \"{query}\".");
    }
    let full = if page.with_signatures { FULL_HITS } else { 0 };
    for (index, hit) in page.hits.iter().enumerate() {
        if index < full {
            let about = clean_line(&hit.line.description, DESCRIPTION);
            let _ = writeln!(out, "{}{}\n  {about}", hit.signature, mark(hit.line.pin));
        } else {
            let _ = writeln!(out, "- {}", tool_line(&hit.line));
        }
    }
    if let Some(next) = page.next {
        let shown = page.offset + page.hits.len();
        let _ = writeln!(out, "{shown} of {}; next page: offset {next}", page.total);
    }
    not_listed(out, &page.not_listed);
    pending(out, &page.pending);
}

/// A name that anybody may have chosen: one that is no plain word is quoted and cut, so that it
/// does not read as something that we say.
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
    let _ = writeln!(out, "{count} pending: {names} (ask the user to look at them and trust them)");
}

fn not_listed(out: &mut String, servers: &[ServerName]) {
    let Some(first) = servers.first() else { return };
    let names: Vec<&str> = servers.iter().map(|server| server.as_str()).collect();
    let _ = writeln!(
        out,
        "{} not listed yet: {} (mcp({{ connect: \"{first}\" }}))",
        plural(servers.len(), "server"),
        list(&names, NAMES)
    );
}

fn described(out: &mut String, description: &Description) {
    let _ = writeln!(out, "{}", description.signature);
    let _ = writeln!(out, "server: {}", description.line.server);
    if let Some(about) = about_pin(description.line.pin) {
        let _ = writeln!(out, "attention: {about}");
    }
    if let Some(title) = &description.title {
        let _ = writeln!(out, "title: {}", clean_line(title, LINE));
    }
    if let Some(uri) = &description.resource {
        let _ = writeln!(out, "reads the resource {}", clean_line(uri, LINE * 2));
    }
    if let Some(annotations) = &description.annotations {
        let _ = writeln!(out, "declares: {}", clean_line(annotations, DESCRIPTION));
    }
    if !description.line.description.trim().is_empty() {
        let prose = clean_block(description.line.description.trim(), LONGEST_PROSE);
        let _ = writeln!(out, "\n{prose}");
    }
    if !description.parameters.is_empty() {
        let _ = writeln!(out, "\n{}", description.parameters);
    }
    if let Some(returns) = &description.returns {
        let _ = writeln!(out, "\nreturns: {returns}");
    }
}

/// What it means that a tool is not what was accepted.
pub fn about_pin(pin: Pin) -> Option<&'static str> {
    match pin {
        Pin::Same => None,
        Pin::Changed => Some("its definition changed since it was accepted"),
        Pin::New => Some("it is new since its server was first listed"),
        Pin::Unknown => Some("what it was when it was accepted cannot be read"),
    }
}

/// The text of a failure: what went wrong, why, and what to do about it.
pub fn failure(failure: &Failure) -> String {
    let mut out = String::new();
    let chain = failure.chain();
    let cleaned: Vec<_> = chain.iter().map(|cause| clean_line(cause, 1_000)).collect();
    let _ = write!(out, "{}: {}", failure.code, cleaned.join(": "));
    for hint in &failure.hints {
        let _ = write!(out, "\n{}", hint_line(hint));
    }
    out
}

/// A remedy in the words of the `mcp` tool.
pub fn hint_line(hint: &Hint) -> String {
    match hint {
        Hint::DidYouMean(names) => format!("Did you mean: {}", list(names, NAMES)),
        Hint::Choose(names) => format!("Choose one of: {}", list(names, NAMES)),
        Hint::Expected(parameters) => format!("Expected parameters:\n{parameters}"),
        Hint::Search(words) => {
            format!("Find it: mcp({{ search: \"{}\" }})", clean_line(words, LINE))
        }
        Hint::NotListedYet(servers) => {
            let mut out = String::new();
            not_listed(&mut out, servers);
            out.trim_end().to_owned()
        }
        Hint::ListServers => "See the servers: mcp({})".to_owned(),
        Hint::ListTools(server) => format!("See its tools: mcp({{ server: \"{server}\" }})"),
        Hint::Connect(server) => format!("Try again: mcp({{ connect: \"{server}\" }})"),
        Hint::Trust(server) => {
            format!("Ask the user to look at the definition of `{server}` and to trust it")
        }
        Hint::SignIn(server) => {
            format!("Begin a sign-in: mcp({{ action: \"auth-start\", server: \"{server}\" }})")
        }
        Hint::SignInAt(link) => format!("Ask the user to sign in, then try again: {link}"),
        Hint::VisitFirst(link) => {
            format!("Nothing was done. Ask the user to open this page, then call it again: {link}")
        }
        Hint::GiveToken(server) => format!("Ask the user to give `{server}` a token that it takes"),
        Hint::SetToken(server) => format!("Ask the user to give `{server}` its token"),
        Hint::Unlock => "Ask the user to unlock the keyring".to_owned(),
        Hint::Enable(server) => format!("Ask the user to enable `{server}`"),
        Hint::Disable(server) => format!("Ask the user to disable `{server}`"),
        Hint::Configure => "Ask the user to configure a server".to_owned(),
        Hint::Replace => "Ask the user whether to replace it".to_owned(),
        Hint::RetryAfter(wait) => format!("Try again in {}", duration(*wait)),
        Hint::Stderr(lines) => format!("Its last words:\n  {}", lines.join("\n  ")),
        Hint::ReadLog(server) => format!("The log of `{server}` may say more"),
        Hint::Setting(name) => format!("The user can raise the setting `{name}`"),
        Hint::AskUser => "Ask the user; this host cannot ask for you".to_owned(),
        Hint::Allow(pattern) => format!(
            "The user can allow it for good: `{}` in the setting `allow`",
            clean_line(pattern, LINE)
        ),
        Hint::Accept(server) => {
            format!("Ask the user to look at what changed in `{server}` and to accept it")
        }
        Hint::LiftDenial(pattern) => format!(
            "The user decided so; only they can take `{}` out of the setting `deny`",
            clean_line(pattern, LINE)
        ),
        Hint::UseArgs => {
            "Example: mcp({ tool: \"demo_add\", args: { \"a\": 2, \"b\": 40 } })".to_owned()
        }
        Hint::CheckCommand(command) => {
            format!("Check that `{}` is installed and can be run", clean_line(command, LINE))
        }
        Hint::MakeExecutable(path) => {
            format!("Ask the user to make {} executable", clean_line(path, LINE * 2))
        }
        Hint::Install(product) => format!("Ask the user to install {product}"),
        Hint::InstallIn(host) => format!("Ask the user to install us in {}", host.title()),
        Hint::SetVariable(name) => {
            format!("Ask the user to set the environment variable `{}`", clean_line(name, LINE))
        }
        Hint::PassOn(names) => {
            format!("If it needs {}, the user can name that in its `env`", list(names, NAMES))
        }
        Hint::LinkProgram => "Ask the user to call this program `switchboard`".to_owned(),
        Hint::ChoosePort => "Ask the user to choose another port".to_owned(),
        Hint::ListFiles => "Ask the user which configuration file is meant".to_owned(),
        Hint::Edit { path, line } => {
            format!("Ask the user to correct {}, line {line}", clean_line(path, LINE * 2))
        }
        Hint::CheckConfig => "Ask the user to check the configuration files".to_owned(),
        Hint::Correct(field) => format!("Ask the user to correct `{}`", clean_line(field, LINE)),
        Hint::Rename => "Ask the user to give it another name".to_owned(),
        Hint::MoveAway(path) => format!("Ask the user to move {} away", clean_line(path, LINE * 2)),
        Hint::MakePrivate(path) => {
            format!("Ask the user to keep others out of {}", clean_line(path, LINE * 2))
        }
        Hint::CheckOutcome => "It may have taken effect: check before you call it again".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_about_itself_is_bounded() {
        let server = ServerName::new("talker").unwrap();
        let flood = "so many words \u{1b}[31m".repeat(20_000);
        let line = ToolLine {
            shown: "talker_talk".to_owned(),
            server: server.clone(),
            tool: "talk".to_owned(),
            description: flood.clone(),
            pin: Pin::Same,
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
