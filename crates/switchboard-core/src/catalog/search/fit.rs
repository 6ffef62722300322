//! How well the best tool of a search matches the query.
//!
//! The limits were tuned on labelled queries: in nine of ten searches with a clear match, the right
//! tool is first, even among five thousand tools.

use super::Hit;

/// How well the best tool matches a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// The best tool shares little with the query. Probably no tool can do what was requested.
    Weak,
    Plausible,
    /// The best tool matches far better than every other tool.
    Clear,
}

/// How much of a query a tool matches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Match {
    /// The number of query words that the tool has; `of` is the number of all query words.
    pub(super) words: u16,
    pub(super) of: u16,
    /// The similarity of tool and query by their word vectors; `None` if the query has no known
    /// words.
    pub(super) near: Option<f32>,
}

/// The minimum score of a clear match, and its minimum lead over the second hit. The tool must also
/// have every word of the query or a synonym: for `rename branch`, a tool that lists branches is no
/// clear match.
const CLEAR_SCORE: f32 = 0.6;
const CLEAR_LEAD: f32 = 0.2;
/// The similarity below which the best tool is a weak match, if it also lacks a word of the query.
const WEAK_NEARNESS: f32 = 0.42;
/// The share of the best score from which a hit is about as good as the best.
const AS_GOOD: f32 = 0.8;

pub(super) fn of(hits: &[Hit], best: Option<Match>) -> Fit {
    let Some(best) = best else { return Fit::Weak };
    let has_all = best.words == best.of;
    let is_weak = match best.near {
        Some(near) => near < WEAK_NEARNESS && !has_all,
        None => best.words * 2 < best.of,
    };
    let score = |at: usize| hits.get(at).map_or(0.0, |hit| hit.score);
    if is_weak {
        Fit::Weak
    } else if has_all && score(0) >= CLEAR_SCORE && score(0) - score(1) >= CLEAR_LEAD {
        Fit::Clear
    } else {
        Fit::Plausible
    }
}

/// How many hits at the top are about as good as the best one.
pub(super) fn good(hits: &[Hit]) -> usize {
    let least = hits.first().map_or(0.0, |best| best.score * AS_GOOD);
    hits.iter().take_while(|hit| hit.score >= least).count()
}
