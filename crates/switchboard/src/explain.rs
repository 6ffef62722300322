//! Turns an error of the engine into the failure that a face shows: code, subject and hints.

mod approval;
mod auth;
mod config_file;
mod dial;
mod lookup;

use std::error::Error;
use std::sync::Arc;

use serde_json::Value;
use switchboard_core::catalog::find::SearchError;
use switchboard_core::catalog::guess::NotCalled;
use switchboard_core::catalog::resolve::ArgumentsError;
use switchboard_core::catalog::{EntryKind, ResolveError, Resolved};
use switchboard_core::config::expand::ExpandError;
use switchboard_core::exact::Args;
use switchboard_core::failure::{Code, Failure, Hint, Subject};
use switchboard_core::name::ServerName;
use switchboard_core::reply::{Clue, Guessed};
use switchboard_core::request::{self, RequestError};
use switchboard_core::schema;
use switchboard_core::sign_in::address::Reach;
use switchboard_core::sign_in::link::Link;
use switchboard_wire::RpcError;
use switchboard_wire::envelope::URL_ELICITATION_REQUIRED;
use switchboard_wire::http_client::HttpError;
use url::Url;

use crate::auth::vault::{KEY_VARIABLE, VaultError};
use crate::host::CannotAsk;
use crate::pins::PinError;
use crate::results::ResultError;
use crate::select::SelectError;
use crate::upstream::CallError;
pub use approval::no_longer_read_only;
pub(crate) use approval::{
    ad_hoc_is_off, blocked_instructions, cannot_ask, cannot_ask_to_connect, connection_denied,
    denied, denied_name, reads_only, refused, tool_changed,
};
pub(crate) use auth::{auth, no_sign_in};
pub use config_file::{edit, install, refused_entry};
use dial::http;
pub(crate) use dial::{connect, failed_before, lease, not_ready};
pub(crate) use lookup::{prompt, resource, unknown_prompt, unknown_resource, unknown_tool};

/// The texts of an error and of its causes, joined to one clause.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Causes of failures for which no other error type exists.
#[derive(Clone, Debug, thiserror::Error)]
enum Cause {
    #[error("the server `{0}` has no instructions")]
    NoInstructions(ServerName),
    #[error("the server `{0}` has not been connected yet")]
    NotConnected(ServerName),
    #[error("the server `{0}` offers no tools, prompts or resources")]
    NoLists(ServerName),
    #[error("the user denied `{0}`")]
    Denied(String),
    #[error("refusing to call `{0}`: your allow and deny rules cannot be parsed")]
    UnreadRules(String),
    #[error("`{tool}` is denied by the rule `{pattern}`")]
    DeniedByRule { tool: String, pattern: String },
    #[error("`{0}` needs the user's approval")]
    NeedsApproval(String, #[source] CannotAsk),
    #[error("nothing to accept: the tools of `{0}` were never listed")]
    NeverListed(ServerName),
    #[error("`{0}` has changed since this call was checked")]
    Changed(String),
    #[error("`{0}` is blocked: its definition has changed since it was pinned")]
    Drifted(String),
    #[error("`{0}` is blocked: its server added it after its tools were pinned")]
    Added(String),
    #[error("`{0}` is blocked: cannot read the pins of its server")]
    Unverified(String),
    #[error("`{0}` does not declare itself read-only, and `mcp` calls only tools that do")]
    NotReadOnly(String),
    #[error("`mcp` accepts only read-only requests here")]
    ReadsOnly,
    #[error("`{0}` was listed as read-only and no longer declares that: list the tools again")]
    NoLongerReadOnly(String),
    #[error("the server no longer has the tool `{0}`")]
    Gone(String),
    #[error("the server has no tool `{0}`")]
    NoSuchTool(String),
    #[error("no server lists the resource `{0}`")]
    UnknownResource(String),
    #[error("no server has the prompt `{0}`")]
    UnknownPrompt(String),
    #[error("several servers have the prompt `{0}`")]
    AmbiguousPrompt(String),
    #[error("several servers have the resource `{0}`")]
    AmbiguousResource(String),
    #[error("the connection `{0}` needs the user's approval")]
    NeedsConsent(ServerName, #[source] CannotAsk),
    #[error("the user denied the connection `{0}`")]
    ConnectionDenied(ServerName),
    #[error("ad hoc connections such as `{0}` are disabled")]
    AdHocIsOff(ServerName),
    #[error("the server `{0}` has no URL, so it cannot have a token")]
    NoAddress(ServerName),
    #[error("the token is not valid in a header")]
    UnusableToken,
    #[error("cannot read or change the stored tokens")]
    Tokens(#[source] Arc<VaultError>),
    #[error("cannot expand the URL of `{0}`")]
    UnfilledUrl(ServerName, #[source] ExpandError),
    #[error("the session has too many notification handlers")]
    ManyHandlers,
    #[error("cannot reload: this gateway does not watch configuration files")]
    NothingToReload,
    #[error("{miss}, and nothing was called: {why}")]
    NotCalled { why: NotCalled, miss: Arc<dyn Error + Send + Sync> },
    #[error("cannot call `{0}`, which the search clearly means")]
    Found(String, #[source] Arc<dyn Error + Send + Sync>),
    #[error("no tool is named `{name}`; the nearest match is `{shown}`")]
    Misspelt {
        name: String,
        shown: String,
        #[source]
        cause: Arc<dyn Error + Send + Sync>,
    },
}

/// The failure for a request of the `mcp` tool that cannot be parsed.
pub fn request_error(error: RequestError) -> Failure {
    let outside = matches!(error, RequestError::OutsideArgs { .. } | RequestError::ArgsAlone);
    with_hints(of_request(Code::BadRequest, error), outside.then_some(Hint::UseArgs))
}

/// The failure for a name that resolves to no tool.
pub fn resolve(error: ResolveError) -> Failure {
    let of_server = |server: &ServerName| Subject::Server(server.clone());
    let (code, subject, hints) = match &error {
        ResolveError::NotFound { name, suggestions, unlisted } => {
            let unlisted = (!unlisted.is_empty()).then(|| Hint::NotListedYet(unlisted.clone()));
            let search = Some(Hint::Search(name.replace(['_', '-'], " ")));
            let hints = [did_you_mean(suggestions), unlisted, search].into_iter().flatten();
            (Code::UnknownTool, Subject::Request, hints.collect())
        }
        ResolveError::Ambiguous { choices, .. } => {
            (Code::AmbiguousTool, Subject::Request, vec![Hint::Choose(choices.clone())])
        }
        ResolveError::UnknownServer { suggestions, .. } => {
            let hints = did_you_mean(suggestions).into_iter().chain([Hint::ListServers]);
            (Code::UnknownServer, Subject::Request, hints.collect())
        }
        ResolveError::Refused(server) => (Code::Config, of_server(server), vec![Hint::CheckConfig]),
        ResolveError::Disabled(server) => {
            (Code::ServerDisabled, of_server(server), vec![Hint::Enable(server.clone())])
        }
        ResolveError::Pending { server, .. } => {
            (Code::TrustRequired, of_server(server), vec![Hint::Trust(server.clone())])
        }
    };
    with_hints(Failure::new(code, subject, error), hints)
}

fn did_you_mean(suggestions: &[String]) -> Option<Hint> {
    (!suggestions.is_empty()).then(|| Hint::DidYouMean(suggestions.to_vec()))
}

pub(crate) fn search(error: SearchError) -> Failure {
    match error {
        SearchError::Server(error) => resolve(error),
        SearchError::Pattern(_) => of_request(Code::BadPattern, error),
    }
}

pub(crate) fn arguments((target, error): (Resolved, ArgumentsError)) -> Failure {
    of_tool(Code::BadArguments, &target, error).hint(expected(&target))
}

/// Rejects fields beside `tool` that are neither request fields nor arguments of the tool.
pub(crate) fn beside(target: &Resolved, args: &Args) -> Result<(), Failure> {
    let schema = target.entry.input_value();
    let Some(name) = schema::undeclared(&schema, args.values()) else {
        return Ok(());
    };
    let error = request::unknown(name, Some(target.shown.to_string()));
    Err(of_tool(Code::BadRequest, target, error).hint(expected(target)))
}

/// The failure for an unknown tool name, with the nearest match and why that was not called.
pub(crate) fn offered(mut failure: Failure, target: &Resolved, why: NotCalled) -> Failure {
    failure.cause = Arc::new(Cause::NotCalled { why, miss: failure.cause });
    let signature = schema::signature(&target.shown, &target.entry.input_value());
    failure.hints = vec![Hint::DidYouMean(vec![signature])];
    failure
}

/// The arguments that a tool expects, if its error seems to be about them.
pub(crate) fn complaint(target: &Resolved, error: &str) -> Option<String> {
    let schema = target.entry.input_value();
    schema::complains(&schema, error).then(|| schema::expected(&schema))
}

/// The failure of calling a tool that the request did not name exactly.
pub(crate) fn guessed(mut failure: Failure, guessed: &Guessed) -> Failure {
    let (shown, cause) = (guessed.shown.clone(), failure.cause);
    failure.cause = Arc::new(match &guessed.by {
        Clue::Search => Cause::Found(shown, cause),
        Clue::Misspelt(name) => Cause::Misspelt { name: name.clone(), shown, cause },
    });
    failure
}

pub(crate) fn many_handlers() -> Failure {
    of_request(Code::BadRequest, Cause::ManyHandlers)
}

pub(crate) fn nothing_to_reload() -> Failure {
    of_request(Code::Config, Cause::NothingToReload)
}

/// The failure of a call that was sent and returned no result.
pub(crate) fn call(error: CallError, target: &Resolved) -> Failure {
    if target.entry.kind != EntryKind::Tool {
        return lookup(error, &target.server);
    }
    let harmless = target.entry.annotations.is_harmless();
    let mut failure = lookup(error.clone(), &target.server);
    failure.subject = tool(target);
    match &error {
        CallError::Lost { .. } if !harmless => {
            failure.code = Code::OutcomeUnknown;
            failure.hints.push(Hint::CheckOutcome);
        }
        CallError::TimedOut(_) | CallError::Http(HttpError::Status { status: 500.., .. })
            if !harmless =>
        {
            failure.hints.push(Hint::CheckOutcome);
        }
        CallError::Refused(refused) if refused.code == URL_ELICITATION_REQUIRED => {
            failure.hints.extend(pages(refused));
        }
        CallError::Refused(refused) | CallError::Outdated(refused) => {
            let said = format!("{} {}", refused.code, refused.message);
            failure.hints.extend(complaint(target, &said).map(Hint::Expected));
        }
        CallError::Lost { .. }
        | CallError::TimedOut(_)
        | CallError::TooLarge { .. }
        | CallError::Http(_)
        | CallError::Unfinished(_)
        | CallError::Parted
        | CallError::NotSent => {}
    }
    failure
}

/// The maximum number of web pages in a hint.
const PAGES: usize = 3;

/// Hints for the web pages that the server's error names, if their URLs may be opened in a browser.
fn pages(refused: &RpcError) -> Vec<Hint> {
    let data = refused.data.as_ref().and_then(|data| data.parse::<Value>().ok());
    let wanted = data.as_ref().and_then(|data| data["elicitations"].as_array());
    let urls = wanted.into_iter().flatten().filter_map(|page| page["url"].as_str());
    let links = urls.filter_map(|url| {
        // The user checks the URL when opening it; Switchboard sends no request to it.
        let reach = Reach::of(&Url::parse(url).ok()?);
        Link::of(url, &reach).ok()
    });
    links.take(PAGES).map(Hint::VisitFirst).collect()
}

/// The failure of a request to a server, such as for a listing, that returned no result.
pub(crate) fn lookup(error: CallError, server: &ServerName) -> Failure {
    let (code, hints) = match &error {
        CallError::Refused(_) | CallError::Outdated(_) | CallError::Unfinished(_) => {
            (Code::ServerError, Vec::new())
        }
        CallError::TimedOut(_) => (Code::TimedOut, vec![Hint::Setting("requestTimeoutMs")]),
        CallError::TooLarge { .. } => (Code::AnswerTooLarge, vec![Hint::Setting("maxFrameBytes")]),
        CallError::Lost { stderr, .. } if stderr.is_empty() => (Code::ConnectionLost, Vec::new()),
        CallError::Lost { stderr, .. } => (
            Code::ConnectionLost,
            vec![Hint::Stderr(stderr.clone()), Hint::ReadLog(server.clone())],
        ),
        CallError::Http(error) => http(error, server),
        CallError::Parted | CallError::NotSent => {
            (Code::ConnectionLost, vec![Hint::Connect(server.clone())])
        }
    };
    with_hints(of_server(code, server, error), hints)
}

pub(crate) fn result(error: ResultError, id: &str) -> Failure {
    let (code, hint) = match &error {
        ResultError::Unknown { .. } => (Code::UnknownResult, Some(Hint::CallAgain)),
        ResultError::Io(_) => (Code::Storage, None),
        ResultError::Pattern(_) | ResultError::Slow(_) => (Code::BadPattern, None),
        ResultError::Select(_) => (Code::BadFilter, Some(Hint::ReadResult(id.to_owned()))),
    };
    with_hints(of_request(code, error), hint)
}

/// The failure for a filter that cannot be parsed; detected before the call.
pub(crate) fn select(error: SelectError) -> Failure {
    of_request(Code::BadFilter, error)
}

/// The failure for a filter that failed after the call.
pub(crate) fn unselected(error: SelectError, id: Option<String>, target: &Resolved) -> Failure {
    with_hints(of_tool(Code::BadFilter, target, error), id.map(Hint::ReadResult))
}

pub(crate) fn storage(error: PinError, server: &ServerName) -> Failure {
    of_server(Code::Storage, server, error)
}

/// The failure for stored tokens that cannot be read or changed.
pub(crate) fn vault(error: VaultError) -> Failure {
    let hint = vault_hint(&error);
    with_hints(of_request(Code::Storage, Cause::Tokens(Arc::new(error))), hint)
}

fn vault_hint(error: &VaultError) -> Option<Hint> {
    match error {
        VaultError::Exposed { path } | VaultError::Damaged { path } => {
            Some(Hint::MoveAway(path.display().to_string()))
        }
        VaultError::NoKey | VaultError::UnusableKey | VaultError::OtherKey { .. } => {
            Some(Hint::SetVariable(KEY_VARIABLE.to_owned()))
        }
        VaultError::Keyring(_) => Some(Hint::Unlock),
        VaultError::Io { .. } | VaultError::Slow { .. } | VaultError::Held { .. } => None,
    }
}

pub(crate) fn no_address(server: &ServerName) -> Failure {
    of_server(Code::BadRequest, server, Cause::NoAddress(server.clone()))
}

pub(crate) fn unusable_token(server: &ServerName) -> Failure {
    of_server(Code::BadRequest, server, Cause::UnusableToken)
}

pub(crate) fn unfilled_url(error: ExpandError, server: &ServerName) -> Failure {
    let hint = match &error {
        ExpandError::MissingVariable { name } => Hint::SetVariable(name.clone()),
        ExpandError::NoHome
        | ExpandError::NoProject
        | ExpandError::InOrigin { .. }
        | ExpandError::TooLarge { .. }
        | ExpandError::OpenQuote
        | ExpandError::EmptyCommand => Hint::Correct("url".to_owned()),
    };
    of_server(Code::Config, server, Cause::UnfilledUrl(server.clone(), error)).hint(hint)
}

pub(crate) fn unknown_server(server: &ServerName) -> Failure {
    resolve(ResolveError::UnknownServer { name: server.to_string(), suggestions: Vec::new() })
}

pub(crate) fn no_instructions(server: &ServerName, listed: bool) -> Failure {
    if listed {
        return of_server(Code::NoInstructions, server, Cause::NoInstructions(server.clone()));
    }
    of_server(Code::NoInstructions, server, Cause::NotConnected(server.clone()))
        .hint(Hint::Connect(server.clone()))
}

pub(crate) fn no_lists(server: &ServerName) -> Failure {
    of_server(Code::UnknownTool, server, Cause::NoLists(server.clone()))
}

/// The failure for accepting the tools of a server that were never listed.
pub(crate) fn never_listed(server: &ServerName) -> Failure {
    of_server(Code::UnknownTool, server, Cause::NeverListed(server.clone()))
        .hint(Hint::Connect(server.clone()))
}

pub(crate) fn tool_gone(target: &Resolved) -> Failure {
    of_tool(Code::ToolChanged, target, Cause::Gone(target.shown.to_string()))
        .hint(Hint::ListTools(target.server.clone()))
}

fn expected(target: &Resolved) -> Hint {
    Hint::Expected(schema::expected(&target.entry.input_value()))
}

fn of_request(code: Code, cause: impl Error + Send + Sync + 'static) -> Failure {
    Failure::new(code, Subject::Request, cause)
}

fn of_server(
    code: Code,
    server: &ServerName,
    cause: impl Error + Send + Sync + 'static,
) -> Failure {
    Failure::new(code, Subject::Server(server.clone()), cause)
}

fn of_tool(code: Code, target: &Resolved, cause: impl Error + Send + Sync + 'static) -> Failure {
    Failure::new(code, tool(target), cause)
}

fn tool(target: &Resolved) -> Subject {
    Subject::Tool { shown: target.shown.to_string(), server: target.server.clone() }
}

fn with_hints(mut failure: Failure, hints: impl IntoIterator<Item = Hint>) -> Failure {
    failure.hints.extend(hints);
    failure
}
