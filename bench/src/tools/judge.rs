//! How good a ranking is: judged queries over all tools, by kind of query and over the kinds.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use switchboard_core::catalog::search::{Document, Postings, rank};

use crate::data::{Data, Tool};

/// The means of one kind of query, or of all kinds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Score {
    pub(crate) queries: usize,
    /// Whether a right tool is among the first five.
    pub(crate) hit: f64,
    /// How far up the right tools are among the first ten.
    pub(crate) ndcg: f64,
}

pub(crate) struct Verdict {
    pub(crate) kinds: BTreeMap<String, Score>,
    /// Every kind counts the same.
    pub(crate) all: Score,
    /// The median of a query.
    pub(crate) query: Duration,
    /// Of all tools.
    pub(crate) index: Duration,
}

pub(crate) fn judge(data: &Data) -> Verdict {
    let schemas: Vec<Vec<String>> = data
        .servers
        .values()
        .map(|tools| tools.iter().map(|tool| tool.input_schema.to_string()).collect())
        .collect();
    let started = Instant::now();
    let index: Vec<Postings> = data.servers.values().zip(&schemas).map(postings).collect();
    let built = started.elapsed();
    let index: Vec<&Postings> = index.iter().collect();
    let servers: Vec<&Vec<Tool>> = data.servers.values().collect();

    let mut kinds: BTreeMap<String, Score> = BTreeMap::new();
    let mut times = Vec::new();
    for query in &data.queries {
        let started = Instant::now();
        let hits = rank(&index, &query.query).hits;
        times.push(started.elapsed());
        let first = hits.iter().take(10);
        let found = first.filter_map(|hit| servers.get(hit.listing)?.get(hit.document));
        let right: Vec<bool> = found.map(|tool| query.relevant.contains(&tool.id)).collect();
        let score = kinds.entry(query.kind.clone()).or_default();
        score.queries += 1;
        score.hit += f64::from(u8::from(right.iter().take(5).any(|right| *right)));
        score.ndcg += gain(&right) / gain(&vec![true; query.relevant.len().min(10)]);
    }
    for score in kinds.values_mut() {
        score.hit /= score.queries as f64;
        score.ndcg /= score.queries as f64;
    }
    times.sort_unstable();
    let all = over(&kinds);
    let query = times.get(times.len() / 2).copied().unwrap_or_default();
    Verdict { kinds, all, query, index: built }
}

fn postings((tools, schemas): (&Vec<Tool>, &Vec<String>)) -> Postings {
    Postings::build(tools.iter().zip(schemas).map(|(tool, schema)| Document {
        server: &tool.server,
        name: &tool.name,
        title: None,
        description: tool.description(),
        input_schema: schema,
        keywords: &[],
    }))
}

/// Each right tool counts less the further down it is.
fn gain(right: &[bool]) -> f64 {
    let ranks = right.iter().zip(2_u32..).filter(|(right, _)| **right);
    ranks.map(|(_, rank)| 1.0 / f64::from(rank).log2()).sum()
}

fn over(kinds: &BTreeMap<String, Score>) -> Score {
    let count = kinds.len().max(1) as f64;
    Score {
        queries: kinds.values().map(|score| score.queries).sum(),
        hit: kinds.values().map(|score| score.hit).sum::<f64>() / count,
        ndcg: kinds.values().map(|score| score.ndcg).sum::<f64>() / count,
    }
}
