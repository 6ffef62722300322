//! From an error inside to the failure that a face shows: code, subject, remedies.

mod auth;
mod dial;
mod lookup;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use switchboard_core::approval::{self, Refusal, RefusalCause};
use switchboard_core::catalog::find::SearchError;
use switchboard_core::catalog::guess::NotCalled;
use switchboard_core::catalog::pin::Pin;
use switchboard_core::catalog::resolve::ArgumentsError;
use switchboard_core::catalog::{Kind, ResolveError, Resolved};
use switchboard_core::config::edit;
use switchboard_core::config::expand::ExpandError;
use switchboard_core::config::layers::Origin;
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
use crate::edit::error::EditError;
use crate::host::CannotAsk;
use crate::install::error::InstallError;
use crate::load::{LoadError, RefusedEntry};
use crate::pins::PinError;
use crate::results::ResultError;
use crate::select::SelectError;
use crate::upstream::CallError;
pub(crate) use auth::{auth, no_sign_in};
pub(crate) use dial::{connect, failed_before, lease, still_starting};
use dial::{http_code, http_hints};
pub(crate) use lookup::{prompt, resource, unknown_prompt, unknown_resource, unknown_tool};

/// An error and its causes as one clause.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// Causes that are born here.
#[derive(Clone, Debug, thiserror::Error)]
enum Cause {
    #[error("the server `{0}` gives no instructions")]
    NoInstructions(ServerName),
    #[error("the server `{0}` has not been connected yet")]
    NotConnected(ServerName),
    #[error("the server `{0}` lists nothing")]
    NoLists(ServerName),
    #[error("the user said no to `{0}`")]
    Denied(String),
    #[error("refusing to call `{0}`: your allow and deny rules cannot be parsed")]
    UnreadRules(String),
    #[error("`{tool}` is denied by the rule `{pattern}`")]
    DeniedByRule { tool: String, pattern: String },
    #[error("`{0}` needs the user's approval")]
    NeedsApproval(String, #[source] CannotAsk),
    #[error("the tools of `{0}` were never listed, so there is nothing to accept")]
    NeverListed(ServerName),
    #[error("`{0}` is no longer what it was when this call was checked")]
    Changed(String),
    #[error("`{0}` is blocked: its definition changed since it was accepted")]
    Drifted(String),
    #[error("`{0}` is blocked: it is new since its server was first listed")]
    Added(String),
    #[error("`{0}` is blocked: what it was when it was accepted cannot be read")]
    Unverified(String),
    #[error("`{0}` does not declare itself read-only, and `mcp` calls only tools that do")]
    NotReadOnly(String),
    #[error("`mcp` only reads here")]
    ReadsOnly,
    #[error(
        "`{0}` was listed as read-only and does not declare that any more: list the tools again"
    )]
    NoLongerReadOnly(String),
    #[error("the server no longer has `{0}`")]
    Gone(String),
    #[error("the server has no tool `{0}`")]
    NoSuchTool(String),
    #[error("no connected server lists the resource `{0}`")]
    UnknownResource(String),
    #[error("no connected server has the prompt `{0}`")]
    UnknownPrompt(String),
    #[error("several servers have the prompt `{0}`")]
    AmbiguousPrompt(String),
    #[error("several servers have the resource `{0}`")]
    AmbiguousResource(String),
    #[error("the connection `{0}` needs the user's approval")]
    NeedsConsent(ServerName, #[source] CannotAsk),
    #[error("the user said no to the connection `{0}`")]
    ConnectionDenied(ServerName),
    #[error("the user allows no connection that is not configured, such as `{0}`")]
    AdHocIsOff(ServerName),
    #[error("the server `{0}` is not at a URL, so it takes no token")]
    NoAddress(ServerName),
    #[error("the token cannot be sent as a header")]
    UnusableToken,
    #[error("the tokens of servers cannot be used")]
    Tokens(#[source] Arc<VaultError>),
    #[error("the URL of `{0}` cannot be filled in")]
    UnfilledUrl(ServerName, #[source] ExpandError),
    #[error("there are too many handlers of notifications")]
    ManyHandlers,
    #[error("no files are followed that could be read again")]
    NothingToReload,
    #[error("{miss}, and nothing was called: {why}")]
    NotCalled { why: NotCalled, miss: Arc<dyn Error + Send + Sync> },
    #[error("the search clearly means `{0}`")]
    Found(String, #[source] Arc<dyn Error + Send + Sync>),
    #[error("no tool is named `{name}`, and `{shown}` is next to it")]
    Misspelt {
        name: String,
        shown: String,
        #[source]
        cause: Arc<dyn Error + Send + Sync>,
    },
}

/// A call of the `mcp` tool that asks for nothing that can be answered.
pub fn request_error(error: RequestError) -> Failure {
    let outside = matches!(error, RequestError::OutsideArgs { .. } | RequestError::ArgsAlone);
    let failure = Failure::new(Code::BadRequest, Subject::Request, error);
    if outside { failure.hint(Hint::UseArgs) } else { failure }
}

pub fn resolve(error: ResolveError) -> Failure {
    let (code, subject, hints) = match &error {
        ResolveError::NotFound { name, suggestions, unlisted } => {
            let mut hints = Vec::new();
            if !suggestions.is_empty() {
                hints.push(Hint::DidYouMean(suggestions.clone()));
            }
            if !unlisted.is_empty() {
                hints.push(Hint::NotListedYet(unlisted.clone()));
            }
            hints.push(Hint::Search(name.replace(['_', '-'], " ")));
            (Code::UnknownTool, Subject::Request, hints)
        }
        ResolveError::Ambiguous { choices, .. } => {
            (Code::AmbiguousTool, Subject::Request, vec![Hint::Choose(choices.clone())])
        }
        ResolveError::UnknownServer { suggestions, .. } => {
            let mut hints = Vec::new();
            if !suggestions.is_empty() {
                hints.push(Hint::DidYouMean(suggestions.clone()));
            }
            hints.push(Hint::ListServers);
            (Code::UnknownServer, Subject::Request, hints)
        }
        ResolveError::Refused(server) => {
            (Code::Config, Subject::Server(server.clone()), vec![Hint::CheckConfig])
        }
        ResolveError::Disabled(server) => (
            Code::ServerDisabled,
            Subject::Server(server.clone()),
            vec![Hint::Enable(server.clone())],
        ),
        ResolveError::Pending { server, .. } => (
            Code::TrustRequired,
            Subject::Server(server.clone()),
            vec![Hint::Trust(server.clone())],
        ),
    };
    with_hints(Failure::new(code, subject, error), hints)
}

pub(crate) fn search(error: SearchError) -> Failure {
    match error {
        SearchError::Server(error) => resolve(error),
        SearchError::Pattern(_) => Failure::new(Code::BadPattern, Subject::Request, error),
    }
}

pub(crate) fn arguments((target, error): (Resolved, ArgumentsError)) -> Failure {
    let expected = schema::expected(&target.entry.input_value());
    Failure::new(Code::BadArguments, tool(&target), error).hint(Hint::Expected(expected))
}

/// Arguments beside `tool` that are not all the tool's own.
pub(crate) fn beside(target: &Resolved, args: &Args) -> Result<(), Failure> {
    let schema = target.entry.input_value();
    let Some(name) = schema::undeclared(&schema, args.values()) else {
        return Ok(());
    };
    let error = request::unknown(name, Some(target.shown.to_string()));
    let expected = Hint::Expected(schema::expected(&schema));
    Err(Failure::new(Code::BadRequest, tool(target), error).hint(expected))
}

/// A name that no tool has, with the tool that it is next to and why that was not called.
pub(crate) fn offered(mut failure: Failure, target: &Resolved, why: NotCalled) -> Failure {
    failure.cause = Arc::new(Cause::NotCalled { why, miss: failure.cause });
    let signature = schema::signature(&target.shown, &target.entry.input_value());
    failure.hints = vec![Hint::DidYouMean(vec![signature])];
    failure
}

/// What a tool takes, if its error is likely about that.
pub(crate) fn complaint(target: &Resolved, error: &str) -> Option<String> {
    let schema = target.entry.input_value();
    schema::complains(&schema, error).then(|| schema::expected(&schema))
}

/// What became of the call of a tool that nobody named.
pub(crate) fn guessed(mut failure: Failure, guessed: &Guessed) -> Failure {
    let (shown, cause) = (guessed.shown.clone(), failure.cause);
    failure.cause = Arc::new(match &guessed.by {
        Clue::Search => Cause::Found(shown, cause),
        Clue::Misspelt(name) => Cause::Misspelt { name: name.clone(), shown, cause },
    });
    failure
}

pub(crate) fn cannot_ask_to_connect(nobody: CannotAsk, server: &ServerName) -> Failure {
    let cause = Cause::NeedsConsent(server.clone(), nobody);
    Failure::new(Code::ApprovalRequired, Subject::Server(server.clone()), cause)
        .hint(Hint::AskUser)
        .hint(Hint::Configure)
}

pub(crate) fn connection_denied(server: &ServerName) -> Failure {
    let cause = Cause::ConnectionDenied(server.clone());
    Failure::new(Code::ApprovalDenied, Subject::Server(server.clone()), cause)
}

pub(crate) fn ad_hoc_is_off(server: &ServerName) -> Failure {
    let cause = Cause::AdHocIsOff(server.clone());
    Failure::new(Code::ApprovalDenied, Subject::Server(server.clone()), cause).hint(Hint::Configure)
}

pub(crate) fn many_handlers() -> Failure {
    Failure::new(Code::BadRequest, Subject::Request, Cause::ManyHandlers)
}

pub(crate) fn nothing_to_reload() -> Failure {
    Failure::new(Code::Config, Subject::Request, Cause::NothingToReload)
}

/// A call that was made and got no result.
pub(crate) fn call(error: CallError, target: &Resolved) -> Failure {
    if target.entry.kind != Kind::Tool {
        return request(error, &target.server);
    }
    let harmless = target.entry.annotations.is_harmless();
    let mut failure = request(error.clone(), &target.server);
    failure.subject = tool(target);
    match &error {
        CallError::Lost { .. } | CallError::TimedOut(_) if !harmless => {
            if matches!(error, CallError::Lost { .. }) {
                failure.code = Code::OutcomeUnknown;
            }
            failure.hints.push(Hint::CheckOutcome);
        }
        CallError::Http(HttpError::Status { status: 500.., .. }) if !harmless => {
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

/// The most pages that are named.
const PAGES: usize = 3;

/// The pages that such a server names, as far as they may be opened in a browser.
fn pages(refused: &RpcError) -> Vec<Hint> {
    let data = refused.data.as_ref().and_then(|data| data.parse::<Value>().ok());
    let wanted = data.as_ref().and_then(|data| data["elicitations"].as_array());
    let urls = wanted.into_iter().flatten().filter_map(|page| page["url"].as_str());
    let links = urls.filter_map(|url| {
        // Whoever opens it sees where it leads; nothing is asked of it here.
        let reach = Reach::of(&Url::parse(url).ok()?);
        Link::of(url, &reach).ok()
    });
    links.take(PAGES).map(Hint::VisitFirst).collect()
}

fn request(error: CallError, server: &ServerName) -> Failure {
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
        CallError::Http(error) => (http_code(error), http_hints(error, server)),
        CallError::Parted | CallError::NotSent => {
            (Code::ConnectionLost, vec![Hint::Connect(server.clone())])
        }
    };
    with_hints(Failure::new(code, Subject::Server(server.clone()), error), hints)
}

/// A server whose entry does not count.
pub fn refused_entry(refused: RefusedEntry) -> Failure {
    let RefusedEntry { path, line, .. } = &refused;
    let (path, line) = (path.clone(), *line);
    Failure::new(Code::Config, Subject::Config { path: path.clone() }, refused)
        .hint(Hint::Edit { path, line })
}

/// A configuration file that was not changed.
pub fn edit(error: EditError) -> Failure {
    let of_file = |path: &Path| Subject::Config { path: path.display().to_string() };
    match error {
        EditError::Unknown { name, suggestions } => {
            resolve(ResolveError::UnknownServer { name, suggestions })
        }
        EditError::RefusedEntry(refused) => refused_entry(*refused),
        EditError::Exists { ref path, .. } => {
            Failure::new(Code::Config, of_file(path), error).hint(Hint::Replace)
        }
        EditError::Elsewhere { ref path, ref server } => {
            let (subject, hint) = (of_file(path), Hint::Disable(server.clone()));
            Failure::new(Code::Config, subject, error).hint(hint)
        }
        EditError::Refused { ref path, ref cause } | EditError::Unread { ref path, ref cause } => {
            let subject = of_file(path);
            let hint = match cause {
                edit::EditError::Syntax { line, .. } => Some(Hint::Edit {
                    path: path.display().to_string(),
                    line: u32::try_from(*line).unwrap_or(u32::MAX),
                }),
                edit::EditError::WrongType { .. } => None,
            };
            let hints = hint.into_iter().chain([Hint::CheckConfig]).collect();
            with_hints(Failure::new(Code::Config, subject, error), hints)
        }
        EditError::NotText { ref path } | EditError::LeadsOut { ref path } => {
            Failure::new(Code::Config, of_file(path), error)
        }
        EditError::Load(LoadError::Missing { ref path }) => {
            Failure::new(Code::Config, of_file(path), error).hint(Hint::ListFiles)
        }
        EditError::BadDefinition { ref server, .. } => {
            Failure::new(Code::Config, Subject::Server(server.clone()), error)
        }
        EditError::UnknownKey { ref suggestions, .. } => {
            let hint = (!suggestions.is_empty()).then(|| Hint::DidYouMean(suggestions.clone()));
            let failure = Failure::new(Code::BadRequest, Subject::Request, error);
            with_hints(failure, hint.into_iter().collect())
        }
        EditError::BadValue { .. } => Failure::new(Code::BadRequest, Subject::Request, error),
        EditError::BadPattern { .. } => Failure::new(Code::BadPattern, Subject::Request, error),
        EditError::Io { ref path, .. } => Failure::new(Code::Storage, of_file(path), error),
        EditError::Trust(_) => Failure::new(Code::Storage, Subject::Request, error),
    }
}

/// A host whose file was not changed, or not changed back.
pub fn install(error: InstallError) -> Failure {
    let of_file = |path: &Path| Subject::Config { path: path.display().to_string() };
    match error {
        InstallError::Edit(error) => edit(error),
        InstallError::NameTaken { ref path } => Failure::new(Code::Config, of_file(path), error),
        InstallError::Changed { ref path } | InstallError::Record { ref path, .. } => {
            Failure::new(Code::Storage, of_file(path), error)
        }
        InstallError::Linked { ref path } | InstallError::Foreign { ref path } => {
            let hint = Hint::MoveAway(path.display().to_string());
            Failure::new(Code::Storage, of_file(path), error).hint(hint)
        }
        InstallError::NoProgram => Failure::new(Code::BadRequest, Subject::Request, error),
        InstallError::Renamed { .. } => {
            Failure::new(Code::BadRequest, Subject::Request, error).hint(Hint::LinkProgram)
        }
    }
}

pub(crate) fn result(error: ResultError, id: &str) -> Failure {
    let (code, hint) = match &error {
        ResultError::Unknown { .. } => (Code::UnknownResult, Some(Hint::CallAgain)),
        ResultError::Io(_) => (Code::Storage, None),
        ResultError::Pattern(_) => (Code::BadPattern, None),
        ResultError::Select(_) => (Code::BadFilter, Some(Hint::ReadResult(id.to_owned()))),
    };
    with_hints(Failure::new(code, Subject::Request, error), hint.into_iter().collect())
}

/// A filter that was looked at before the call.
pub(crate) fn select(error: SelectError) -> Failure {
    Failure::new(Code::BadFilter, Subject::Request, error)
}

/// A filter that failed after the call.
pub(crate) fn unselected(error: SelectError, id: Option<String>, target: &Resolved) -> Failure {
    let failure = Failure::new(Code::BadFilter, tool(target), error);
    with_hints(failure, id.map(Hint::ReadResult).into_iter().collect())
}

pub(crate) fn storage(error: PinError, server: &ServerName) -> Failure {
    Failure::new(Code::Storage, Subject::Server(server.clone()), error)
}

/// What is kept of tokens cannot be read or changed.
pub(crate) fn vault(error: VaultError) -> Failure {
    let hint = vault_hint(&error);
    let failure = Failure::new(Code::Storage, Subject::Request, Cause::Tokens(Arc::new(error)));
    with_hints(failure, hint.into_iter().collect())
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
    let subject = Subject::Server(server.clone());
    Failure::new(Code::BadRequest, subject, Cause::NoAddress(server.clone()))
}

pub(crate) fn unusable_token(server: &ServerName) -> Failure {
    Failure::new(Code::BadRequest, Subject::Server(server.clone()), Cause::UnusableToken)
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
    let cause = Cause::UnfilledUrl(server.clone(), error);
    Failure::new(Code::Config, Subject::Server(server.clone()), cause).hint(hint)
}

pub(crate) fn unknown_server(server: &ServerName) -> Failure {
    let error = ResolveError::UnknownServer { name: server.to_string(), suggestions: Vec::new() };
    resolve(error)
}

pub(crate) fn no_instructions(server: &ServerName, listed: bool) -> Failure {
    let subject = Subject::Server(server.clone());
    if listed {
        return Failure::new(Code::NoInstructions, subject, Cause::NoInstructions(server.clone()));
    }
    Failure::new(Code::NoInstructions, subject, Cause::NotConnected(server.clone()))
        .hint(Hint::Connect(server.clone()))
}

pub(crate) fn no_lists(server: &ServerName) -> Failure {
    Failure::new(Code::UnknownTool, Subject::Server(server.clone()), Cause::NoLists(server.clone()))
}

/// Nothing is known of its tools, so there is nothing to accept.
pub(crate) fn never_listed(server: &ServerName) -> Failure {
    let cause = Cause::NeverListed(server.clone());
    Failure::new(Code::UnknownTool, Subject::Server(server.clone()), cause)
        .hint(Hint::Connect(server.clone()))
}

pub(crate) fn denied(target: &Resolved) -> Failure {
    Failure::new(Code::ApprovalDenied, tool(target), Cause::Denied(target.shown.to_string()))
        .hint(Hint::Allow(approval::pattern_of(target)))
}

/// A tool under its own name that was shown as read-only and is not any more.
pub fn no_longer_read_only(mut failure: Failure) -> Failure {
    if let Subject::Tool { shown, server } = &failure.subject {
        failure.hints = vec![Hint::ListTools(server.clone())];
        failure.cause = Arc::new(Cause::NoLongerReadOnly(shown.clone()));
        failure.code = Code::ToolChanged;
    }
    failure
}

/// A request that changes something, of a caller that only reads.
pub(crate) fn reads_only() -> Failure {
    Failure::new(Code::NotReadOnly, Subject::Request, Cause::ReadsOnly)
        .hint(Hint::UseWriteTool(None))
}

pub(crate) fn cannot_ask(nobody: CannotAsk, target: &Resolved) -> Failure {
    let cause = Cause::NeedsApproval(target.shown.to_string(), nobody);
    Failure::new(Code::ApprovalRequired, tool(target), cause)
        .hint(Hint::AskUser)
        .hint(Hint::Allow(approval::pattern_of(target)))
}

pub(crate) fn blocked_instructions(server: &ServerName, pin: Pin) -> Failure {
    let subject = Subject::Server(server.clone());
    Failure::new(Code::ToolBlocked, subject, not_accepted(pin, "instructions".to_owned()))
        .hint(Hint::Accept(server.clone()))
}

fn not_accepted(pin: Pin, shown: String) -> Cause {
    match pin {
        Pin::Unknown => Cause::Unverified(shown),
        Pin::New => Cause::Added(shown),
        Pin::Changed | Pin::Same => Cause::Drifted(shown),
    }
}

pub(crate) fn refused(refusal: &Refusal) -> Failure {
    let shown = refusal.target.shown.to_string();
    match &refusal.cause {
        RefusalCause::NotAccepted(pin) => {
            let cause = not_accepted(*pin, shown);
            Failure::new(Code::ToolBlocked, tool(&refusal.target), cause)
                .hint(Hint::Accept(refusal.target.server.clone()))
        }
        RefusalCause::NotReadOnly => {
            let cause = Cause::NotReadOnly(shown.clone());
            Failure::new(Code::NotReadOnly, tool(&refusal.target), cause)
                .hint(Hint::UseWriteTool(Some(shown)))
        }
        RefusalCause::Unread(Origin { path, line, .. }) => {
            let cause = Cause::UnreadRules(shown);
            let (path, line) = (path.to_string(), *line);
            Failure::new(Code::Config, tool(&refusal.target), cause).hint(Hint::Edit { path, line })
        }
        RefusalCause::Denied { pattern } => denied_name(shown, pattern.clone(), &refusal.target),
    }
}

/// A name that a `deny` rule covers; `target` is the tool that has it, or one that is similar.
pub(crate) fn denied_name(name: String, pattern: String, target: &Resolved) -> Failure {
    let cause = Cause::DeniedByRule { tool: name, pattern: pattern.clone() };
    Failure::new(Code::ApprovalDenied, tool(target), cause).hint(Hint::LiftDenial(pattern))
}

pub(crate) fn tool_changed(target: &Resolved) -> Failure {
    let expected = schema::expected(&target.entry.input_value());
    Failure::new(Code::ToolChanged, tool(target), Cause::Changed(target.shown.to_string()))
        .hint(Hint::Expected(expected))
}

pub(crate) fn tool_gone(target: &Resolved) -> Failure {
    Failure::new(Code::ToolChanged, tool(target), Cause::Gone(target.shown.to_string()))
        .hint(Hint::ListTools(target.server.clone()))
}

fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// What asking a server for a list, or the like, came to.
pub(crate) fn lookup(error: CallError, server: &ServerName) -> Failure {
    request(error, server)
}

fn tool(target: &Resolved) -> Subject {
    Subject::Tool { shown: target.shown.to_string(), server: target.server.clone() }
}

fn with_hints(mut failure: Failure, hints: Vec<Hint>) -> Failure {
    failure.hints.extend(hints);
    failure
}
