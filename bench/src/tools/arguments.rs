//! Which tool a search with arguments chooses, and whether that tool is called without being named:
//! at once, or after the user has approved the call.

use serde_json::json;
use switchboard_core::approval::{Access, Decision, Grants, Rules, decide};
use switchboard_core::catalog::Resolved;
use switchboard_core::config::server::ServerEntry;
use switchboard_core::config::settings::Settings;
use switchboard_core::exact::Args;
use switchboard_core::request::{Matching, Request, parse};

use crate::BenchResult;
use crate::data::{Query, ToolData};
use crate::world::{Worlds, server_name};

/// The counts of the outcomes of searches with arguments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Choices {
    pub(crate) searches: usize,
    /// Exactly one of the first five hits accepts the arguments. All counts below are part of this
    /// one.
    pub(crate) fits_one: usize,
    /// The right tool was chosen, whether it was called or not.
    pub(crate) right: usize,
    pub(crate) wrong: usize,
    /// The right tool was called, because it declares that it only reads or only adds.
    pub(crate) called: usize,
    /// The user is asked about the right tool, because it declares that it is destructive.
    pub(crate) asked: usize,
    pub(crate) miscalled: usize,
    pub(crate) misasked: usize,
}

pub(crate) fn choose(data: &ToolData) -> BenchResult<Choices> {
    let mut choices = Choices::default();
    if data.queries.iter().all(|query| query.args.is_none()) {
        return Ok(choices);
    }
    let catalog = Worlds::new(data)?.whole();
    for query in &data.queries {
        let Some(args) = &query.args else { continue };
        let args = Args::parse(&args.to_string())?;
        let Request::Search(request) = parse(json!({ "search": query.query }).into())?.request
        else {
            continue;
        };
        let page = catalog.search(&request)?;
        choices.searches += 1;
        if catalog.takers(&args, &page).count() != 1 {
            continue;
        }
        choices.fits_one += 1;
        let Some(chosen) = catalog.meant(&page, Matching::Words, None, &args) else { continue };
        let is_right = is_relevant(data, query, &chosen);
        choices.right += usize::from(is_right);
        choices.wrong += usize::from(!is_right);
        let is_called = chosen.clone().check_unnamed(args.clone(), Access::Full).is_ok();
        let is_asked = !is_called && is_asked(chosen, args);
        choices.called += usize::from(is_called && is_right);
        choices.asked += usize::from(is_asked && is_right);
        choices.miscalled += usize::from(is_called && !is_right);
        choices.misasked += usize::from(is_asked && !is_right);
    }
    Ok(choices)
}

/// Whether the default rules require the user's approval of this call.
fn is_asked(chosen: Resolved, args: Args) -> bool {
    let rules = Rules::new(&ServerEntry::default(), &Settings::default());
    let decision = chosen
        .check_declared(args)
        .map(|checked| decide(&rules, &Grants::default(), Access::Full, checked));
    matches!(decision, Ok(Decision::Ask(_)))
}

fn is_relevant(data: &ToolData, query: &Query, chosen: &Resolved) -> bool {
    data.servers.values().flatten().any(|tool| {
        query.relevant.contains(&tool.id)
            && tool.name == chosen.entry.name.as_str()
            && server_name(&tool.server).is_ok_and(|server| server == chosen.server)
    })
}
