//! Which tool a search with arguments calls: the tool that clearly matches best, or the only tool
//! that accepts the arguments.

use super::search::Fit;
use super::{Catalog, Resolved};
use crate::exact::Args;
use crate::reply::SearchPage;
use crate::request::Matching;

/// The number of hits whose schemas are compared with the arguments of a search.
const FIRST_HITS: usize = 5;
/// The minimum number of arguments for calling a weak match. The tool must also be the best hit, and
/// the only one of the first hits that accepts the arguments.
const TELLING_ARGUMENTS: usize = 2;

impl Catalog {
    /// The tool that the search clearly means. `None` for a request for a later page.
    pub fn meant(
        &self,
        page: &SearchPage,
        matching: Matching,
        within: Option<&str>,
        args: &Args,
    ) -> Option<Resolved> {
        let within = within.and_then(|server| self.active_server(server).ok());
        if let Some(named) = self.named(&page.query, within.as_ref()).ok().flatten() {
            return Some(named);
        }
        let best = page.clear.as_ref().filter(|_| page.offset == 0);
        let found = best.and_then(|best| self.shown(best)).cloned();
        let only = || match matching {
            Matching::Words => self.only_taker(args, page),
            Matching::Pattern => None,
        };
        // A request that names a server means a tool of this server.
        let is_meant = |tool: &Resolved| within.is_some() || self.can_mean(&page.query, tool);
        found.or_else(only).filter(is_meant)
    }

    /// The tool that accepts the arguments, if it is the only one of the first hits that does. Used
    /// if no hit matches clearly.
    fn only_taker(&self, args: &Args, page: &SearchPage) -> Option<Resolved> {
        if args.is_empty() || page.offset > 0 {
            return None;
        }
        let mut takers = self.takers(args, page);
        let only = takers.next().filter(|_| takers.next().is_none())?;
        // A weak match proves nothing with a single argument, because many tools accept just
        // `query` or `url`.
        let best = page.hits.first().map(|hit| hit.line.shown.as_str());
        let is_told = page.fit != Fit::Weak
            || best == Some(&*only.shown) && args.values().len() >= TELLING_ARGUMENTS;
        is_told.then(|| only.clone())
    }

    /// The tools among the first hits whose schemas accept the arguments.
    pub fn takers<'a>(
        &'a self,
        args: &'a Args,
        page: &'a SearchPage,
    ) -> impl Iterator<Item = &'a Resolved> {
        let first = page.hits.iter().take(FIRST_HITS);
        let tools = first.filter_map(|hit| self.shown(&hit.line.shown));
        tools.filter(|tool| tool.takes(args))
    }
}
