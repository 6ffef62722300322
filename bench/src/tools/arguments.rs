//! Which tool a search with arguments chooses, and whether that tool is called without being named.

use serde_json::json;
use switchboard_core::approval::Access;
use switchboard_core::catalog::Resolved;
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
    /// The right tool was chosen but not called, because it does not declare itself read-only.
    pub(crate) writes: usize,
    /// The right tool was chosen and called, because it declares itself read-only.
    pub(crate) called: usize,
    pub(crate) miscalled: usize,
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
        let is_called = chosen.check_unnamed(args, Access::Full).is_ok();
        choices.called += usize::from(is_called && is_right);
        choices.writes += usize::from(!is_called && is_right);
        choices.miscalled += usize::from(is_called && !is_right);
    }
    Ok(choices)
}

fn is_relevant(data: &ToolData, query: &Query, chosen: &Resolved) -> bool {
    data.servers.values().flatten().any(|tool| {
        query.relevant.contains(&tool.id)
            && tool.name == chosen.entry.name.as_str()
            && server_name(&tool.server).is_ok_and(|server| server == chosen.server)
    })
}
