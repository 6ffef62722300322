//! How well the best tool fits: what a search may promise, and when it should not.
//!
//! The bounds are set on judged queries: of the searches that are called clear, nine in ten have
//! the right tool first, even among five thousand.

use super::Hit;

/// How well the best tool fits a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// It shares little with the query; probably no tool does what was asked for.
    Weak,
    Plausible,
    /// It fits far better than every other.
    Clear,
}

/// What a hit has in common with a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Match {
    /// Words of the query that it has, of so many.
    pub(super) words: u16,
    pub(super) of: u16,
    /// How close it is in what it is about, if that is known of the query.
    pub(super) near: Option<f32>,
}

/// The score of a best tool that leaves no doubt, and how far the second stays behind it. It has
/// every word, too, or another for it: what lists branches is not what renames one.
const CLEAR_SCORE: f32 = 0.6;
const CLEAR_LEAD: f32 = 0.2;
/// A best tool that is less close than this, and lacks a word, is not what was meant.
const WEAK_NEARNESS: f32 = 0.42;
/// A hit with this share of the best score is as good.
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

/// How many hits from the first on are about as good as it.
pub(super) fn good(hits: &[Hit]) -> usize {
    let least = hits.first().map_or(0.0, |best| best.score * AS_GOOD);
    hits.iter().take_while(|hit| hit.score >= least).count()
}
