//! The quality of a ranking: judged queries over all tools, by kind of query and over all kinds.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use switchboard_core::catalog::search::{Document, Postings, index_all, rank};

use crate::adapter::Adapter;
use crate::data::{Query, Tool, ToolData};

/// The mean scores of one kind of query, or of all kinds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Score {
    pub(crate) queries: usize,
    /// The share of queries with a right tool among the first three hits.
    pub(crate) first_three: f64,
    /// The share of queries with a right tool among the first five hits.
    pub(crate) hit: f64,
    /// How high the right tools are among the first ten hits (nDCG@10).
    pub(crate) ndcg: f64,
}

/// The scores of one ranking.
#[derive(Debug, Default)]
pub(crate) struct Scores {
    pub(crate) kinds: BTreeMap<String, Score>,
}

pub(crate) struct RankingScores {
    pub(crate) ours: Scores,
    /// The scores of an adapter with one tool for each server.
    pub(crate) adapter: Scores,
    /// The median time of a query.
    pub(crate) query: Duration,
    /// The time to build the index of all tools.
    pub(crate) index: Duration,
}

pub(crate) fn judge(data: &ToolData) -> RankingScores {
    let schemas: Vec<Vec<String>> = data
        .servers
        .values()
        .map(|tools| tools.iter().map(|tool| tool.input_schema.to_string()).collect())
        .collect();
    let started = Instant::now();
    let index: Vec<OnceLock<Postings>> = schemas.iter().map(|_| OnceLock::new()).collect();
    let listings: Vec<_> = data.servers.values().zip(&schemas).zip(&index).collect();
    index_all(&listings, data.tool_count(), |((tools, schemas), index), indexer| {
        index.get_or_init(|| indexer.index(documents(tools, schemas)));
    });
    let built = started.elapsed();
    let index: Vec<&Postings> = index.iter().filter_map(OnceLock::get).collect();
    let servers: Vec<&Vec<Tool>> = data.servers.values().collect();

    let (mut ours, mut adapter) = (Scores::default(), Scores::default());
    let mut times = Vec::new();
    for query in &data.queries {
        let started = Instant::now();
        let hits = rank(&index, &query.query).hits;
        times.push(started.elapsed());
        let found = hits.iter().filter_map(|hit| servers.get(hit.listing)?.get(hit.document));
        ours.add(query, found);
    }
    let of_adapter = Adapter::of(data.servers.values().flatten());
    // The adapter is not judged in the timed loop, because it would evict the processor's caches.
    for query in &data.queries {
        adapter.add(query, of_adapter.rank(&query.query).into_iter());
    }
    times.sort_unstable();
    let query = times.get(times.len() / 2).copied().unwrap_or_default();
    RankingScores { ours, adapter, query, index: built }
}

impl Scores {
    fn add<'a>(&mut self, query: &Query, found: impl Iterator<Item = &'a Tool>) {
        let right: Vec<bool> =
            found.take(10).map(|tool| query.relevant.contains(&tool.id)).collect();
        let within = |count| f64::from(u8::from(right.iter().take(count).any(|right| *right)));
        let (first_three, hit) = (within(3), within(5));
        let ndcg = gain(&right) / gain(&vec![true; query.relevant.len().min(10)]);
        let score = self.kinds.entry(query.kind.clone()).or_default();
        let before = score.queries as f64;
        score.queries += 1;
        score.first_three += (first_three - score.first_three) / (before + 1.0);
        score.hit += (hit - score.hit) / (before + 1.0);
        score.ndcg += (ndcg - score.ndcg) / (before + 1.0);
    }

    /// The mean over all kinds. Each kind has the same weight.
    pub(crate) fn all(&self) -> Score {
        let kinds = self.kinds.values();
        let count = kinds.len().max(1) as f64;
        Score {
            queries: kinds.clone().map(|score| score.queries).sum(),
            first_three: kinds.clone().map(|score| score.first_three).sum::<f64>() / count,
            hit: kinds.clone().map(|score| score.hit).sum::<f64>() / count,
            ndcg: kinds.map(|score| score.ndcg).sum::<f64>() / count,
        }
    }
}

fn documents<'a>(tools: &'a [Tool], schemas: &'a [String]) -> impl Iterator<Item = Document<'a>> {
    tools.iter().zip(schemas).map(|(tool, schema)| Document {
        server: &tool.server,
        name: &tool.name,
        title: None,
        description: tool.description(),
        input_schema: schema,
        keywords: &[],
        annotations: tool.annotations(),
    })
}

/// The discounted gain: a right tool has less weight the lower its rank is.
fn gain(right: &[bool]) -> f64 {
    let ranks = right.iter().zip(2_u32..).filter(|(right, _)| **right);
    ranks.map(|(_, rank)| 1.0 / f64::from(rank).log2()).sum()
}
