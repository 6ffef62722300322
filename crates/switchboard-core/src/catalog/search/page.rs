//! A page of a ranking.

/// Some hits of a ranking, and where the next ones start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankingPage<'a, T> {
    pub items: &'a [T],
    /// Length of the whole ranking.
    pub total: usize,
    pub offset: usize,
    /// Offset of the page after this one, if there is one.
    pub next: Option<usize>,
}

impl<'a, T> RankingPage<'a, T> {
    /// At most `limit` items from `offset` on. A limit of zero means one, so that paging ends.
    pub fn of(ranking: &'a [T], offset: usize, limit: usize) -> Self {
        let total = ranking.len();
        let offset = offset.min(total);
        let end = offset.saturating_add(limit.max(1)).min(total);
        RankingPage {
            items: ranking.get(offset..end).unwrap_or_default(),
            total,
            offset,
            next: (end < total).then_some(end),
        }
    }
}
