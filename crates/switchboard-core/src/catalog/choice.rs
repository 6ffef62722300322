//! Which tool a search with arguments means: the clearly best one, or the only one that takes them.

use super::search::Fit;
use super::{Catalog, Resolved};
use crate::exact::Args;
use crate::name::ServerName;
use crate::reply::SearchPage;
use crate::request::Matching;

/// Hits among which the arguments of a search choose.
const FIRST_HITS: usize = 5;
/// So many arguments make the best hit certain though it shares little with the query.
const TELLING_ARGUMENTS: usize = 2;

impl Catalog {
    /// The tool that is meant, if one is. A request for a further page wants another tool.
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
        found.or_else(only).filter(|tool| self.is_meant(page, within.as_ref(), tool))
    }

    /// A server that is named beside the query leaves no doubt whose tool is meant.
    fn is_meant(&self, page: &SearchPage, within: Option<&ServerName>, tool: &Resolved) -> bool {
        within.is_some() || self.can_mean(&page.query, tool)
    }

    /// The one of the first hits that takes the arguments, where none stands out by its words.
    fn only_taker(&self, args: &Args, page: &SearchPage) -> Option<Resolved> {
        if args.is_empty() || page.offset > 0 {
            return None;
        }
        let mut takers = self.takers(args, page);
        let only = takers.next().filter(|_| takers.next().is_none())?;
        // A weak fit alone proves nothing, and many tools take a lone `query` or `url`.
        let best = page.hits.first().map(|hit| hit.line.shown.as_str());
        let is_told = page.fit != Fit::Weak
            || best == Some(&*only.shown) && args.values().len() >= TELLING_ARGUMENTS;
        is_told.then(|| only.clone())
    }

    /// Those of the first hits that take the arguments.
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
