//! THE PIPELINE of a tool call: its steps, in order of execution.
//!
//! Rare steps are boxed: the future of a call is allocated for every call and must stay small
//! (`call_future_stays_below_two_kilobytes`).

pub(crate) mod guess;

use std::sync::Arc;

use serde_json::Value;
use switchboard_core::approval::{ApprovalAnswer, Approved, By, Decision, Question, decide};
use switchboard_core::catalog::resolve::Checked;
use switchboard_core::catalog::{Catalog, Entry, EntryKind, Resolution, Resolved};
use switchboard_core::content::CallOutput;
use switchboard_core::exact::{Args, Exact};
use switchboard_core::failure::Failure;
use switchboard_core::reply::{Output, OutputOrigin, Reply};
use switchboard_core::request::{self, CallRequest, Reading};
use switchboard_core::schema;
use switchboard_wire::Raw;

use crate::explain;
use crate::results::Unselected;
use crate::select::JqFilter;
use crate::session::Session;
use crate::upstream::lease::Caller;
use crate::upstream::{CallError, Lease};

/// The maximum number of retries of a call. The second retry follows only if the first one was not
/// sent, as when the server no longer knows the session after a broken HTTP connection.
const REPETITIONS: usize = 2;

/// Runs one tool call for `session`. Read this function first.
pub(crate) async fn call(
    session: &Session,
    mut call: Box<CallRequest>,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let catalog = session.catalog(); // One snapshot for the whole call.
    let found = resolve(session, catalog, &call.tool, call.server.as_deref()).await;
    let (catalog, target) = match found {
        Ok(found) => found,
        Err(failure) => {
            return Box::pin(guess::call_nearest_match(session, call, failure, caller)).await;
        }
    };
    let select = call.select.take();
    let checked = check(target, *call)?;
    let filter = Box::pin(filter(select)).await?;
    let (target, raw) = run(session, &catalog, checked, caller).await?;
    Ok(Reply::Output(finish(session, target, raw, filter, caller).await))
}

/// A resolved tool, and the catalog snapshot that contains it.
pub struct FoundTool {
    catalog: Arc<Catalog>,
    /// The resolved tool, with its server and definition.
    pub target: Resolved,
}

/// Resolves the name of a tool to the target for [`call_found`].
pub(crate) async fn find(
    session: &Session,
    tool: &str,
    within: Option<&str>,
) -> Result<FoundTool, Failure> {
    let (catalog, target) = resolve(session, session.catalog(), tool, within).await?;
    Ok(FoundTool { catalog, target })
}

/// Like [`call`], for a tool that is already resolved.
pub(crate) async fn call_found(
    session: &Session,
    FoundTool { catalog, target }: FoundTool,
    args: Args,
    select: Option<String>,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let checked = target.check(args).map_err(explain::arguments)?;
    let filter = filter(select).await?;
    let (target, raw) = run(session, &catalog, checked, caller).await?;
    Ok(Reply::Output(finish(session, target, raw, filter, caller).await))
}

/// Checks the arguments against the tool's schema.
fn check(target: Resolved, mut call: CallRequest) -> Result<Checked, Failure> {
    if call.reading == Reading::Beside {
        let schema = target.entry.input_value();
        match inner_arguments(&schema, &mut call.args) {
            Some(args) => call.args = request::args_of(args).map_err(explain::request_error)?,
            None => explain::beside(&target, &call.args)?,
        }
    }
    target.check(call.args).map_err(explain::arguments)
}

/// The value of the argument `arguments`, unless the tool declares a parameter of that name: some
/// models write the protocol's name for `args`.
fn inner_arguments(schema: &Value, args: &mut Args) -> Option<Exact> {
    let is_alone = args.values().len() == 1 && args.values().contains_key("arguments");
    let is_slip = is_alone && schema::undeclared(schema, args.values()).is_some();
    if is_slip { args.take("arguments") } else { None }
}

/// Whether a call may continue if the tool's definition changed after the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefinitionChange {
    /// The call continues after a check against the new definition.
    Allowed,
    /// The call of a guessed tool fails: the guess was based on the old definition.
    Refused,
}

/// Converts a server's result into an output of bounded size.
pub(crate) fn finish(
    session: &Session,
    target: Resolved,
    raw: Raw,
    filter: Option<JqFilter>,
    caller: &Caller,
) -> impl Future<Output = Box<Output>> {
    let form = caller.result_form();
    let json = raw.into_string();
    let content = match target.entry.kind {
        EntryKind::Tool => CallOutput::of_call(json),
        EntryKind::Resource { .. } => CallOutput::of_resource(json),
        EntryKind::Prompt => CallOutput::of_prompt(json),
    };
    let hidden = content.hidden_characters();
    async move {
        let selected = match filter {
            Some(filter) => Box::pin(session.results.select(content, &filter, form)).await,
            None => Ok(session.results.guard(content, form).await),
        };
        let (mut content, result, unselected) = match selected {
            Ok((content, result)) => (content, result, None),
            Err(Unselected { error, shown, id }) => {
                let failure = explain::unselected(error, id.clone(), &target);
                (shown, id, Some(Box::new(failure)))
            }
        };
        let expected = match result {
            None if content.is_error() => explain::complaint(&target, &content.text()),
            None | Some(_) => None,
        };
        let hidden = match content.selected() {
            Some(_) => content.hidden_characters(),
            None => hidden,
        };
        if !session.results.is_unstored() {
            content.mark_hidden(hidden);
        }
        Box::new(Output {
            origin: OutputOrigin::Tool,
            server: target.server,
            name: target.entry.name.as_str().to_owned(),
            content,
            result,
            expected,
            guessed: None,
            unselected,
        })
    }
}

/// Parses the filter before the call, so that an invalid filter prevents the call.
async fn filter(text: Option<String>) -> Result<Option<JqFilter>, Failure> {
    let Some(text) = text else { return Ok(None) };
    JqFilter::read(text).await.map(Some).map_err(explain::select)
}

/// Runs a checked call and returns the server's result unchanged. Tools, resources and prompts all
/// pass through here, because a lease takes only an [`Approved`].
pub(crate) async fn run(
    session: &Session,
    catalog: &Arc<Catalog>,
    checked: Checked,
    caller: &Caller,
) -> Result<(Resolved, Raw), Failure> {
    let approved = approve(session, checked, caller).await?;
    run_approved(session, catalog, approved, DefinitionChange::Allowed, caller).await
}

async fn run_approved(
    session: &Session,
    catalog: &Arc<Catalog>,
    approved: Approved,
    definition: DefinitionChange,
    caller: &Caller,
) -> Result<(Resolved, Raw), Failure> {
    let lease = session.lease(&approved.target().server).await?;
    let mut approved = confirm(session, catalog, approved, definition, caller).await?;
    let mut outcome = call_with_progress(session, &lease, &approved, caller).await;
    drop(lease);
    for repetition in 0..REPETITIONS {
        match &outcome {
            Err(CallError::NotSent) => {}
            Err(error) if repetition == 0 && may_be_repeated(error, &approved.target().entry) => {}
            Ok(_) | Err(_) => break,
        }
        let server = &approved.target().server;
        let lease = match &outcome {
            Err(CallError::Outdated(_)) => Box::pin(session.refreshed(server)).await?,
            Ok(_) | Err(_) => Box::pin(session.lease(server)).await?,
        };
        approved = confirm(session, catalog, approved, definition, caller).await?;
        outcome = Box::pin(call_with_progress(session, &lease, &approved, caller)).await;
    }
    let (target, _) = approved.into_parts();
    match outcome {
        Ok(raw) => Ok((target, raw)),
        Err(error) => Err(explain::call(error, &target)),
    }
}

/// Makes one attempt of a call, and passes its progress to notification handlers.
async fn call_with_progress(
    session: &Session,
    lease: &Lease,
    approved: &Approved,
    caller: &Caller,
) -> Result<Raw, CallError> {
    let notices = session.gateway.notices();
    if notices.has_no_handlers() {
        return lease.call(approved, caller).await;
    }
    let server = approved.target().server.clone();
    let call = async |caller| lease.call(approved, &caller).await;
    Box::pin(notices.with_steps(server, caller.clone(), call)).await
}

/// Whether a failed call can be retried without a repeated effect, because the call did not reach
/// the server or the tool is read-only.
fn may_be_repeated(error: &CallError, entry: &Entry) -> bool {
    match error {
        CallError::NotSent | CallError::Parted | CallError::Outdated(_) => true,
        CallError::Lost { .. } => entry.annotations.is_harmless(),
        CallError::Refused(_)
        | CallError::TimedOut(_)
        | CallError::TooLarge { .. }
        | CallError::Unfinished(_)
        | CallError::Http(_) => false,
    }
}

/// Resolves the name of a tool. Connects a server that was never listed, then resolves again.
pub(crate) async fn resolve(
    session: &Session,
    catalog: Arc<Catalog>,
    tool: &str,
    within: Option<&str>,
) -> Result<(Arc<Catalog>, Resolved), Failure> {
    match catalog.resolve(tool, within).map_err(explain::resolve)? {
        Resolution::Tool(target) => Ok((catalog, target)),
        Resolution::Unlisted(server) => {
            let _listed = Box::pin(session.lease(&server)).await?;
            let catalog = session.catalog();
            match catalog.resolve(tool, within).map_err(explain::resolve)? {
                Resolution::Tool(target) => Ok((catalog, target)),
                Resolution::Unlisted(server) => Err(explain::no_lists(&server)),
            }
        }
    }
}

/// Approves the call or refuses it. Asks the user if a rule requires that.
pub(crate) async fn approve(
    session: &Session,
    checked: Checked,
    caller: &Caller,
) -> Result<Approved, Failure> {
    let rules = session.gateway.approval_rules(&checked.target.server, session.id());
    let decision = decide(&rules, &session.grants(), caller.access, checked);
    match decision {
        Decision::Free(approved) => Ok(approved),
        Decision::Refused(refusal) => Err(explain::refused(&refusal)),
        Decision::Ask(question) => Box::pin(ask(session, question, caller)).await,
    }
}

/// Refuses a subscription or completion for a resource or prompt that is denied. Does not ask the
/// user.
pub(crate) fn refuse_denied(
    session: &Session,
    target: Resolved,
    caller: &Caller,
) -> Result<(), Failure> {
    let rules = session.gateway.approval_rules(&target.server, session.id());
    let checked = Checked { target, args: Args::default() };
    match decide(&rules, &session.grants(), caller.access, checked) {
        Decision::Refused(refusal) => Err(explain::refused(&refusal)),
        Decision::Free(_) | Decision::Ask(_) => Ok(()),
    }
}

async fn ask(session: &Session, question: Question, caller: &Caller) -> Result<Approved, Failure> {
    let answer = caller.listener.host.approve(&question).await;
    let target = question.target().clone();
    let answer = answer.map_err(|why| explain::cannot_ask(why, &target))?;
    if answer == ApprovalAnswer::No {
        return Err(explain::denied(&target));
    }
    question.settle(answer, &mut session.grants()).map_err(|target| explain::denied(&target))
}

/// Ensures that the approved definition runs: if the server connected with another definition of
/// the tool, the call is checked and approved again.
async fn confirm(
    session: &Session,
    before: &Arc<Catalog>,
    approved: Approved,
    definition: DefinitionChange,
    caller: &Caller,
) -> Result<Approved, Failure> {
    let now = session.catalog();
    if Arc::ptr_eq(before, &now) {
        return Ok(approved);
    }
    // A rule that denies the call may have been saved since the approval.
    refuse_denied(session, approved.target().clone(), caller)?;
    let old = approved.target();
    if old.entry.kind != EntryKind::Tool {
        // Resources and prompts have no definition that could change.
        return Ok(approved);
    }
    let current = now.all_tools_of(&old.server).find(|item| item.entry.name == old.entry.name);
    let Some(current) = current else {
        return Err(explain::tool_gone(old));
    };
    if current.entry.same_definition(&old.entry) && current.pin == old.pin {
        return Ok(approved);
    }
    let new = current.clone();
    if approved.by() == By::User || definition == DefinitionChange::Refused {
        return Err(explain::tool_changed(&new));
    }
    let (_, args) = approved.into_parts();
    let checked = new.check(args).map_err(|(new, _)| explain::tool_changed(&new))?;
    Box::pin(approve(session, checked, caller)).await
}
