//! Ad-hoc servers, which `--stdio` or `--url` names on the command line. Nothing about them is
//! stored.

use std::collections::VecDeque;

use serde_json::{Map, Value};
use switchboard::config::diagnostic::DiagnosticKind;
use switchboard::config::layers::{Config, Tier};
use switchboard::config::snippet;
use switchboard::config::transport::{is_address, looks_like_a_url};
use switchboard::config::values::{AdHocConnections, ToolPrefix};
use switchboard::config::words::{self, OpenQuote};
use switchboard::connection::{ConnectError, ConnectionRequest};
use switchboard::failure::{Code, Failure, Hint, Subject};

use super::add::take_assignments;
use super::edit::named;
use crate::args::call::AdHoc;
use crate::boot::{App, Terms};
use crate::conversation::Conversation;
use crate::report::{CommandResult, Stop};

/// The name of every ad-hoc server in messages.
const NAME: &str = "ad-hoc";

#[derive(Debug, thiserror::Error)]
enum UsageError {
    #[error("cannot split the command line of `--stdio` into words")]
    Quote(#[source] OpenQuote),
    #[error("`--stdio` needs a program")]
    NoProgram,
    #[error("`--stdio` takes a program; a URL goes with `--url`")]
    NotAProgram,
    #[error("`--url` takes a URL; a program goes with `--stdio`")]
    NotAnAddress,
    #[error("a URL begins with a scheme, such as `https://`")]
    NoScheme,
    #[error("the ad-hoc server is invalid")]
    Definition(#[source] DiagnosticKind),
}

impl From<UsageError> for Failure {
    fn from(error: UsageError) -> Failure {
        Failure::new(Code::BadRequest, Subject::Request, error)
    }
}

/// The server that `--stdio` or `--url` describes. It is treated as an entry of the user's own
/// file.
pub(super) fn wanted(given: &AdHoc) -> Result<ConnectionRequest, Failure> {
    let (entry, address) = entry(given)?;
    let definition = snippet::check(NAME, &entry, Tier::User).map_err(UsageError::Definition)?;
    let transport = definition.transport(NAME).map_err(UsageError::Definition)?;
    Ok(ConnectionRequest { id: named(NAME)?, address, definition, transport })
}

fn entry(given: &AdHoc) -> Result<(Map<String, Value>, String), UsageError> {
    let mut entry = Map::new();
    if let Some(line) = &given.stdio {
        let mut words = VecDeque::from(words::split(line).map_err(UsageError::Quote)?);
        let variables = take_assignments(&mut words);
        if !variables.is_empty() {
            entry.insert("env".to_owned(), variables.into());
        }
        let program = words.pop_front().filter(|program| !program.is_empty());
        let program = program.ok_or(UsageError::NoProgram)?;
        if is_address(&program) {
            return Err(UsageError::NotAProgram);
        }
        entry.insert("command".to_owned(), program.into());
        entry.insert("args".to_owned(), words.into_iter().collect());
        return Ok((entry, line.clone()));
    }
    let url = given.url.as_deref().unwrap_or_default();
    if !is_address(url) {
        let is_program = !looks_like_a_url(url);
        return Err(if is_program { UsageError::NotAnAddress } else { UsageError::NoScheme });
    }
    entry.insert("url".to_owned(), url.into());
    Ok((entry, url.to_owned()))
}

/// Runs a command with the ad-hoc server alone. The rules of the user's files apply.
pub(super) async fn with(
    app: &App,
    terms: Terms,
    wanted: &ConnectionRequest,
    command: impl AsyncFnOnce(&Conversation<'_>) -> CommandResult,
) -> CommandResult {
    let config = app.load_strictly()?.config;
    let mut settings = config.settings.clone();
    settings.tool_prefix = ToolPrefix::None;
    // The user typed the server on the command line, which approves the connection.
    settings.ad_hoc_connections = AdHocConnections::Allow;
    let config = Config { servers: Default::default(), pending: Vec::new(), settings, ..config };
    let has_time_limit = terms.timeout.is_some();
    let gateway = terms.gateway(app.gateway_of(config.clone()));
    let outcome = app.converse((gateway, config), terms.consent, async |conversation| {
        let caller = conversation.session.caller();
        let connecting = conversation.session.connect_to(wanted, &caller);
        conversation.wait(async || "connecting".to_owned(), connecting).await.map_err(|error| {
            match error {
                ConnectError::NoTransport(failure)
                | ConnectError::Failed(failure)
                | ConnectError::TimedOut { failure, .. } => failure,
                other => Failure::new(other.code(), Subject::Request, other),
            }
        })?;
        command(conversation).await
    });
    outcome.await.map_err(|stop| match stop {
        Stop::Failed(mut failure) => {
            if has_time_limit {
                failure.hints.retain(|hint| !matches!(hint, Hint::Setting(_)));
            }
            Stop::Failed(without_name(failure))
        }
        other @ (Stop::Output(_) | Stop::Left(_)) => other,
    })
}

/// Removes hints that name the ad-hoc server, because other commands do not know it.
fn without_name(mut failure: Failure) -> Failure {
    let names_it = |hint: &Hint| match hint {
        Hint::ListTools(server)
        | Hint::Connect(server)
        | Hint::Trust(server)
        | Hint::SignIn(server)
        | Hint::GiveToken(server)
        | Hint::SetToken(server)
        | Hint::Enable(server)
        | Hint::Disable(server)
        | Hint::ReadLog(server)
        | Hint::Accept(server) => server.as_str() == NAME,
        // A rule for this name would apply to every ad-hoc server.
        Hint::Allow(_) => true,
        // These hints refer to configured servers, which this command does not use.
        Hint::NotListedYet(_)
        | Hint::ListServers
        | Hint::ListResources
        | Hint::ListPrompts
        | Hint::Search(_)
        | Hint::CheckUrl
        | Hint::Correct(_) => true,
        Hint::DidYouMean(_)
        | Hint::Choose(_)
        | Hint::Expected(_)
        | Hint::SignInAt(_)
        | Hint::VisitFirst(_)
        | Hint::Unlock
        | Hint::Configure
        | Hint::Replace
        | Hint::RetryAfter(_)
        | Hint::Stderr(_)
        | Hint::Setting(_)
        | Hint::AskUser
        | Hint::UseWriteTool(_)
        | Hint::LiftDenial(_)
        | Hint::ReadResult(_)
        | Hint::CallAgain
        | Hint::UseArgs
        | Hint::CheckCommand(_)
        | Hint::SplitCommand(_)
        | Hint::MakeExecutable(_)
        | Hint::Install(_)
        | Hint::InstallIn(_)
        | Hint::SetVariable(_)
        | Hint::PassOn(_)
        | Hint::LinkProgram
        | Hint::ChoosePort
        | Hint::ListFiles
        | Hint::Edit { .. }
        | Hint::CheckConfig
        | Hint::Rename
        | Hint::MoveAway(_)
        | Hint::MakePrivate(_)
        | Hint::CheckOutcome => false,
    };
    let needs_entry = failure.code == Code::SignInRequired;
    failure.hints.retain(|hint| !names_it(hint));
    if needs_entry { failure.hint(Hint::Configure) } else { failure }
}
