//! THE PIPELINE: a tool call, top to bottom.
//!
//! Steps that few calls take are boxed: a call's future is allocated for every call, and stays
//! small that way (`a_call_is_a_small_future`).

use std::sync::Arc;

use switchboard_core::approval::{Answer, Approved, By, Decision, Question, decide};
use switchboard_core::catalog::resolve::Checked;
use switchboard_core::catalog::{Catalog, Entry, Kind, Resolution, Resolved};
use switchboard_core::content::CallOutput;
use switchboard_core::failure::Failure;
use switchboard_core::reply::{Origin, Output, Reply};
use switchboard_core::request::CallRequest;
use switchboard_wire::Raw;

use crate::explain;
use crate::session::Session;
use crate::upstream::CallError;
use crate::upstream::lease::Caller;

/// A call is made once more where that is safe, and again if it was not even sent then: a server at
/// a URL that broke off may not know the session any more.
const REPETITIONS: usize = 2;

/// Runs one tool call for `session`. Read this function first.
pub(crate) async fn call(
    session: &Session,
    call: CallRequest,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let catalog = session.catalog(); // One snapshot for the whole call.
    let (catalog, target) = resolve(session, catalog, &call.tool, call.server.as_deref()).await?;
    let checked = target.check(call.args).map_err(explain::arguments)?;
    let (target, raw) = run(session, &catalog, checked, caller).await?;
    let json = raw.into_string();
    let content = match target.entry.kind {
        Kind::Tool => CallOutput::of_call(json),
        Kind::Resource { .. } => CallOutput::of_resource(json),
        Kind::Prompt => CallOutput::of_prompt(json),
    };
    let (content, result) = session.results.guard(content).await;
    Ok(Reply::Output(Box::new(Output {
        origin: Origin::Tool,
        server: target.server,
        name: target.entry.name.as_str().to_owned(),
        content,
        result,
    })))
}

/// From a checked call to the server's answer, word for word. Tools, resources and prompts all
/// pass here: a lease takes nothing but an [`Approved`].
pub(crate) async fn run(
    session: &Session,
    catalog: &Arc<Catalog>,
    checked: Checked,
    caller: &Caller,
) -> Result<(Resolved, Raw), Failure> {
    let approved = approve(session, checked, caller).await?;
    let lease = session.lease(&approved.target().server).await?;
    let mut approved = confirm(session, catalog, approved, caller).await?;
    let mut outcome = lease.call(&approved, caller).await;
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
        approved = confirm(session, catalog, approved, caller).await?;
        outcome = Box::pin(lease.call(&approved, caller)).await;
    }
    let (target, _) = approved.into_parts();
    match outcome {
        Ok(raw) => Ok((target, raw)),
        Err(error) => Err(explain::call(error, &target)),
    }
}

/// Whether a call that failed can be made again without anything being done twice: nothing reached
/// the server, or whatever did changes nothing.
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

/// The tool that is meant. A server that was never listed is connected, and asked once more.
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

/// The proof that the call may be made; asks the user where a rule says so.
async fn approve(
    session: &Session,
    checked: Checked,
    caller: &Caller,
) -> Result<Approved, Failure> {
    let rules = session.gateway.approval_rules(&checked.target.server, session.id());
    let decision = decide(&rules, &session.grants(), checked);
    match decision {
        Decision::Free(approved) => Ok(approved),
        Decision::Refused(refusal) => Err(explain::refused(&refusal)),
        Decision::Ask(question) => Box::pin(ask(session, question, caller)).await,
    }
}

async fn ask(session: &Session, question: Question, caller: &Caller) -> Result<Approved, Failure> {
    let answer = caller.listener.host.approve(&question).await;
    let target = question.target().clone();
    let answer = answer.map_err(|nobody| explain::cannot_ask(nobody, &target))?;
    if answer == Answer::No {
        return Err(explain::denied(&target));
    }
    question.settle(answer, &mut session.grants()).map_err(|target| explain::denied(&target))
}

/// What was approved is what runs: if connecting brought another definition of the tool, the call
/// is checked and decided once more on the new one.
async fn confirm(
    session: &Session,
    before: &Arc<Catalog>,
    approved: Approved,
    caller: &Caller,
) -> Result<Approved, Failure> {
    let now = session.catalog();
    if Arc::ptr_eq(before, &now) {
        return Ok(approved);
    }
    let old = approved.target();
    if old.entry.kind != Kind::Tool {
        // An address or a prompt's name has no definition that could change.
        return Ok(approved);
    }
    let current = now.tools_of(&old.server).find(|item| item.entry.name == old.entry.name);
    let Some(current) = current else {
        return Err(explain::tool_gone(old));
    };
    if current.entry.same_definition(&old.entry) && current.pin == old.pin {
        return Ok(approved);
    }
    let new = Resolved {
        server: old.server.clone(),
        shown: Arc::clone(current.shown),
        entry: Arc::clone(current.entry),
        pin: current.pin,
    };
    if approved.by() == By::User {
        return Err(explain::tool_changed(&new));
    }
    let (_, args) = approved.into_parts();
    let checked = new.check(args).map_err(|(new, _)| explain::tool_changed(&new))?;
    Box::pin(approve(session, checked, caller)).await
}
