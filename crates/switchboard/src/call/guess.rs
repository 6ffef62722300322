//! Calls of tools that the caller did not name exactly: by a misspelt name, or by a search with
//! arguments.

use std::sync::Arc;

use switchboard_core::approval::{Access, Approved, Decision, Question, decide};
use switchboard_core::catalog::guess::NotCalled;
use switchboard_core::catalog::resolve::{Checked, clip};
use switchboard_core::catalog::{Catalog, Resolved, Shelf};
use switchboard_core::exact::Args;
use switchboard_core::failure::{Code, Failure, Hint};
use switchboard_core::name::ServerName;
use switchboard_core::reply::{Clue, Guessed, Reply};
use switchboard_core::request::{CallRequest, Reading};

use super::{DefinitionChange, approve, ask, filter, finish, run_approved};
use crate::directory;
use crate::explain;
use crate::select::JqFilter;
use crate::session::Session;
use crate::upstream::lease::Caller;

/// For an unknown tool name: calls the nearest match if it only reads or only adds, otherwise
/// suggests it.
pub(super) async fn call_nearest_match(
    session: &Session,
    call: Box<CallRequest>,
    failure: Failure,
    caller: &Caller,
) -> Result<Reply, Failure> {
    if failure.code != Code::UnknownTool || call.reading == Reading::Literal {
        return Err(failure);
    }
    let catalog = session.catalog();
    let failure = without_failed(failure, &catalog);
    let Some(target) = catalog.misspelt(&call.tool, call.server.as_deref()) else {
        return Err(failure);
    };
    let checked = check(session, &call.tool, target.clone(), call.args, caller.access);
    let checked = checked.map_err(|why| match why {
        NotCalled::Denied { written, pattern } => explain::denied_name(written, pattern, &target),
        why => explain::offered(failure, &target, why),
    })?;
    let filter = filter(call.select).await?;
    let guessed = Guessed { shown: target.shown.to_string(), by: Clue::Misspelt(clip(&call.tool)) };
    let approved = approve(session, checked, caller).await;
    run(session, &catalog, (approved, guessed), filter, caller).await
}

/// Removes servers that failed recently from the hint to connect unlisted servers: connecting does
/// not help there.
fn without_failed(mut failure: Failure, catalog: &Catalog) -> Failure {
    let now = directory::now();
    let failed = |server: &ServerName| {
        let known = catalog.shelf(server).and_then(Shelf::failure);
        known.is_some_and(|failure| failure.retry_in(now).is_some())
    };
    failure.hints.retain_mut(|hint| match hint {
        Hint::NotListedYet(servers) => {
            servers.retain(|server| !failed(server));
            !servers.is_empty()
        }
        _ => true,
    });
    failure
}

/// Calls the tool that the search for `query` means. A tool that may write is called only if the
/// user is asked and approves the call.
pub(crate) async fn call_meant(
    session: &Session,
    catalog: &Arc<Catalog>,
    query: &str,
    (target, args): (Resolved, Args),
    select: Option<String>,
    caller: &Caller,
) -> Result<Result<Reply, NotCalled>, Failure> {
    let guessed = Guessed { shown: target.shown.to_string(), by: Clue::Search };
    let checked = check(session, query, target.clone(), args.clone(), caller.access);
    let (approved, filter) = match checked {
        Ok(checked) => {
            let filter = filter(select).await?;
            (approve(session, checked, caller).await, filter)
        }
        Err(why @ NotCalled::MayWrite { .. }) => {
            let Some(question) = question(session, target, args, caller.access) else {
                return Ok(Err(why));
            };
            let filter = filter(select).await?;
            match ask(session, question, caller).await {
                Err(failure) if failure.code == Code::ApprovalRequired => return Ok(Err(why)),
                asked => (asked, filter),
            }
        }
        Err(why) => return Ok(Err(why)),
    };
    run(session, catalog, (approved, guessed), filter, caller).await.map(Ok)
}

/// Checks a call of a tool that was not named exactly; fails unless the tool only reads or only
/// adds. `written` is the name or search text in the request.
fn check(
    session: &Session,
    written: &str,
    target: Resolved,
    args: Args,
    access: Access,
) -> Result<Checked, NotCalled> {
    let rules = session.gateway.approval_rules(&target.server, session.id());
    if let Some(pattern) = rules.deny_written(written, &target) {
        let (written, pattern) = (clip(written), pattern.to_owned());
        return Err(NotCalled::Denied { written, pattern });
    }
    if rules.block(&target) {
        return Err(NotCalled::Blocked { shown: target.shown.to_string() });
    }
    let denied = session.catalog().denied_by(&target.shown).map(str::to_owned);
    let shown = target.shown.to_string();
    match (target.check_unnamed(args, access), denied) {
        // The failure must not suggest a tool that is denied.
        (Err(_), Some(pattern)) => Err(NotCalled::Denied { written: shown, pattern }),
        (checked, _) => checked,
    }
}

/// The question for the user about a call of a tool that may write. `None` if no rule requires
/// approval; the call then fails, because the user would not see which tool was chosen.
fn question(session: &Session, target: Resolved, args: Args, access: Access) -> Option<Question> {
    let rules = session.gateway.approval_rules(&target.server, session.id());
    let checked = target.check_declared(args).ok()?;
    match decide(&rules, &session.grants(), access, checked) {
        Decision::Ask(question) => Some(question),
        Decision::Free(_) | Decision::Refused(_) => None,
    }
}

/// Runs the call of a guessed tool. Both the output and a failure name the tool.
async fn run(
    session: &Session,
    catalog: &Arc<Catalog>,
    (approved, guessed): (Result<Approved, Failure>, Guessed),
    filter: Option<JqFilter>,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let run = async {
        run_approved(session, catalog, approved?, DefinitionChange::Refused, caller).await
    };
    let (target, raw) = run.await.map_err(|failure| explain::guessed(failure, &guessed))?;
    let mut output = finish(session, target, raw, filter, caller).await;
    match output.unselected.take() {
        Some(failure) => output.unselected = Some(Box::new(explain::guessed(*failure, &guessed))),
        None => output.guessed = Some(guessed),
    }
    Ok(Reply::Output(output))
}
