//! Adding servers: from arguments, or from a pasted snippet.

use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value};
use switchboard::config::snippet::{self, SnippetError};
use switchboard::config::transport::{is_address, looks_like_a_url};
use switchboard::config::words;
use switchboard::edit::{EditEffect, Existing, NewServer, Scope};
use switchboard::explain;
use switchboard::failure::{Code, Failure, Subject};
use switchboard::name::ServerName;
use switchboard::render::remedy;
use switchboard::render::words::{clean_line, list};

use super::edit::{conclude, named, shown};
use super::setup::attempt;
use crate::args::edit::{Add, AddTransport};
use crate::boot::App;
use crate::exit::Exit;
use crate::report::{self, CommandResult, Stop};

/// The size limit of a snippet on standard input, in bytes.
const LARGEST_SNIPPET: u64 = 1024 * 1024;

#[derive(Debug, thiserror::Error)]
enum UsageError {
    #[error("`--transport {kind}` needs a URL")]
    NotAnAddress { kind: &'static str },
    #[error("`--transport stdio` needs a program, not a URL")]
    NotAProgram,
    #[error("a URL begins with a scheme, such as `https://`")]
    NoScheme,
    #[error("a program is missing after the environment variables")]
    NoProgram,
    #[error("a server at a URL takes no arguments")]
    ArgumentsOfAnAddress,
    #[error("a server at a URL takes `--header`, not `--env`")]
    VariablesOfAnAddress,
    #[error("a server program takes `--env`, not `--header`")]
    HeadersOfAProgram,
    #[error("`--header` needs `NAME: VALUE`")]
    NotAHeader,
    #[error("`--env` needs `NAME=VALUE` or `NAME`")]
    NotAVariable,
    #[error("cannot read servers from the snippet")]
    Snippet(#[source] SnippetError),
    #[error("cannot read the snippet from standard input")]
    Stdin(#[source] std::io::Error),
}

impl From<UsageError> for Failure {
    fn from(error: UsageError) -> Failure {
        Failure::new(Code::BadRequest, Subject::Request, error)
    }
}

pub(super) async fn add(app: &App, add: Add) -> CommandResult {
    let scope = Scope::from(add.scope);
    let existing = if add.replace { Existing::Replace } else { Existing::Refuse };
    let servers = wanted(app, &add)?;
    let editor = app.editor();
    let edited =
        editor.add(scope, &servers, existing, EditEffect::Written).map_err(explain::edit)?;
    let names: Vec<String> =
        servers.iter().map(|server| format!("`{}`", shown(&server.name))).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    conclude(app, &edited, &format!("{} {verb} configured", list(&names, 20)));
    let mut to_check: Vec<&NewServer> = servers.iter().filter(|_| !add.no_check).collect();
    if scope == Scope::Project {
        let approved = trust_what_was_typed(app, &servers)?;
        to_check.retain(|server| approved.contains(&server.name));
    }
    for server in to_check {
        check(app, server).await?;
    }
    Ok(Exit::Done)
}

/// Connects to a server that was just configured, and suggests the next step.
async fn check(app: &App, server: &NewServer) -> Result<(), Stop> {
    let printer = app.printer;
    let name = shown(&server.name);
    let word = remedy::word(server.name.as_str());
    let command = |words: String| printer.err.command(format!("`switchboard {words}`")).to_string();
    match attempt(app, server).await? {
        Ok(()) => {
            printer.note(&format!("next: see them with {}", command(format!("tools {word}"))))
        }
        Err(failure) if failure.code == Code::SignInRequired => {
            printer.warn(&format!("`{name}` is configured, and requires authentication"));
            printer.note(&report::text(&failure, printer.err));
            printer.note(&format!(
                "next: sign in with {}, or take it out with {}",
                command(format!("auth {word}")),
                command(format!("remove {word}")),
            ));
        }
        Err(failure) => {
            printer.warn(&format!("`{name}` is configured, but it does not work yet"));
            printer.note(&report::text(&failure, printer.err));
            printer.note(&format!(
                "next: correct it with {}, or take it out with {}",
                command(format!("add --replace {word} …")),
                command(format!("remove {word}")),
            ));
        }
    }
    Ok(())
}

/// Approves the added servers of a project if the user typed the command on a terminal. Otherwise
/// they are pending.
pub(super) fn trust_what_was_typed(
    app: &App,
    servers: &[NewServer],
) -> Result<Vec<ServerName>, Failure> {
    let approved = if app.printer.can_ask() {
        app.editor().approve_added(servers).map_err(explain::edit)?
    } else {
        Vec::new()
    };
    for server in servers {
        let name = shown(&server.name);
        if approved.contains(&server.name) {
            app.printer.note(&format!("`{name}` is trusted in this project"));
        } else {
            let command = app.printer.err.command("`switchboard trust`");
            app.printer.note(&format!("`{name}` is pending; approve it with {command}"));
        }
    }
    Ok(approved)
}

/// Keys with which other programs allow tools without approval. A pasted snippet cannot allow
/// tools.
const APPROVAL_KEYS: &[&str] = &["autoApprove", "alwaysAllow"];

pub(super) fn wanted(app: &App, add: &Add) -> Result<Vec<NewServer>, Failure> {
    let Some(json) = &add.json else {
        let name = named(add.name.as_deref().unwrap_or_default())?;
        return Ok(vec![NewServer { name, entry: typed(add)? }]);
    };
    let text = match json.as_str() {
        "-" => {
            let mut text = String::new();
            let mut input = std::io::stdin().lock().take(LARGEST_SNIPPET);
            input.read_to_string(&mut text).map_err(UsageError::Stdin)?;
            text
        }
        text => text.to_owned(),
    };
    let snippet = snippet::read(&text, add.name.as_deref()).map_err(UsageError::Snippet)?;
    warn_of_ignored(app, &snippet.left_out);
    let named = |(name, entry): (String, _)| {
        Ok(NewServer { name: named(&name)?, entry: with_split_command(entry) })
    };
    snippet.servers.into_iter().map(named).collect()
}

fn warn_of_ignored(app: &App, keys: &[String]) {
    let (grants, unsupported): (Vec<&String>, Vec<&String>) =
        keys.iter().partition(|key| APPROVAL_KEYS.contains(&key.as_str()));
    let named = |keys: &[&String]| {
        let keys: Vec<String> =
            keys.iter().map(|key| format!("`{}`", clean_line(key, 100))).collect();
        list(&keys, 10)
    };
    if !unsupported.is_empty() {
        app.printer.warn(&format!("ignored unsupported keys: {}", named(&unsupported)));
    }
    if !grants.is_empty() {
        let command = app.printer.err.command("`switchboard allow`");
        app.printer.warn(&format!("ignored {}: allow tools with {command}", named(&grants)));
    }
}

/// The entry that the arguments of `add` describe.
fn typed(add: &Add) -> Result<Map<String, Value>, UsageError> {
    let endpoint = add.endpoint.as_deref().unwrap_or_default();
    // An environment variable may contain a URL, but only `--transport` can declare that it does.
    let can_be_address = is_address(endpoint) || endpoint.starts_with('$');
    let is_url = match add.transport {
        None => is_address(endpoint),
        Some(AddTransport::Stdio) if is_address(endpoint) => return Err(UsageError::NotAProgram),
        Some(AddTransport::Stdio) => false,
        Some(AddTransport::Http | AddTransport::Sse) if can_be_address => true,
        Some(AddTransport::Http) => return Err(UsageError::NotAnAddress { kind: "http" }),
        Some(AddTransport::Sse) => return Err(UsageError::NotAnAddress { kind: "sse" }),
    };
    let mut entry = Map::new();
    if !is_url {
        if !add.header.is_empty() {
            return Err(UsageError::HeadersOfAProgram);
        }
        let (command, args) = command_line(endpoint, &add.args);
        let mut words: VecDeque<String> = std::iter::once(command).chain(args).collect();
        let variables: Result<Map<_, _>, _> = add.env.iter().map(|word| variable(word)).collect();
        let mut variables = variables?;
        variables.extend(take_assignments(&mut words));
        let command = words.pop_front().ok_or(UsageError::NoProgram)?;
        if looks_like_a_url(&command) && !Path::new(&command).exists() {
            return Err(UsageError::NoScheme);
        }
        entry.insert("command".to_owned(), command.into());
        if !words.is_empty() {
            entry.insert("args".to_owned(), words.into_iter().collect());
        }
        if !variables.is_empty() {
            entry.insert("env".to_owned(), variables.into());
        }
        return Ok(entry);
    }
    if !add.args.is_empty() {
        return Err(UsageError::ArgumentsOfAnAddress);
    }
    if !add.env.is_empty() {
        return Err(UsageError::VariablesOfAnAddress);
    }
    entry.insert("url".to_owned(), endpoint.into());
    match add.transport {
        Some(AddTransport::Http) => drop(entry.insert("type".to_owned(), "http".into())),
        Some(AddTransport::Sse) => drop(entry.insert("type".to_owned(), "sse".into())),
        Some(AddTransport::Stdio) | None => {}
    }
    if !add.header.is_empty() {
        let headers: Result<Map<_, _>, _> = add.header.iter().map(|word| header(word)).collect();
        entry.insert("headers".to_owned(), headers?.into());
    }
    Ok(entry)
}

/// Splits a command line given as one argument, unless a program with that name exists.
fn command_line(endpoint: &str, args: &[String]) -> (String, Vec<String>) {
    let is_line = args.is_empty() && endpoint.trim().contains(char::is_whitespace);
    if is_line
        && !Path::new(endpoint).exists()
        && let Ok(mut words) = words::split(endpoint)
        && !words.is_empty()
    {
        let command = words.remove(0);
        return (command, words);
    }
    (endpoint.to_owned(), args.to_vec())
}

/// Splits the command line in the `command` of a pasted entry, unless a program with that name
/// exists.
fn with_split_command(mut entry: Map<String, Value>) -> Map<String, Value> {
    let has_args =
        entry.get("args").is_some_and(|args| args.as_array().is_none_or(|a| !a.is_empty()));
    if let Some(line) = entry.get("command").and_then(Value::as_str).filter(|_| !has_args) {
        let (command, args) = command_line(line, &[]);
        if !args.is_empty() {
            entry.insert("command".to_owned(), command.into());
            entry.insert("args".to_owned(), args.into());
        }
    }
    entry
}

/// Removes the environment variables at the beginning of a command line, as a shell does:
/// `API_KEY=x program`.
pub(super) fn take_assignments(words: &mut VecDeque<String>) -> Map<String, Value> {
    let mut variables = Map::new();
    while let Some(first) = words.front()
        && let Some((name, _)) = first.split_once('=')
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && let Ok((name, value)) = variable(first)
    {
        variables.insert(name, value);
        words.pop_front();
    }
    variables
}

/// Parses `NAME=VALUE`, or `NAME` for the environment variable of that name.
fn variable(word: &str) -> Result<(String, Value), UsageError> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, value.to_owned()),
        None => (word, format!("${{{word}}}")),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(UsageError::NotAVariable);
    }
    Ok((name.to_owned(), value.into()))
}

fn header(word: &str) -> Result<(String, Value), UsageError> {
    let (name, value) = word.split_once(':').ok_or(UsageError::NotAHeader)?;
    let name = name.trim();
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        return Err(UsageError::NotAHeader);
    }
    Ok((name.to_owned(), value.trim().into()))
}
