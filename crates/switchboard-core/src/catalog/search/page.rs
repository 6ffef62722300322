//! A page of search results.

/// Some items of a ranking, and the offset of the next page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankingPage<'a, T> {
    pub items: &'a [T],
    /// The number of items in the whole ranking.
    pub total: usize,
    pub offset: usize,
    /// The offset of the next page; `None` after the last page.
    pub next: Option<usize>,
}

impl<'a, T> RankingPage<'a, T> {
    /// At most `limit` items from `offset` on. A limit of zero becomes one, so that each page
    /// advances.
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
