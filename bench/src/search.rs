//! Measures searches in a process that has built its index already.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::BenchResult;
use crate::table::Table;
use crate::world::World;

const QUERIES: [&str; 5] = [
    "list open pull requests",
    "create issue",
    "delete branch protection rule",
    "serch repositories",
    "get workflow run logs",
];
const ROUNDS: usize = 40;

pub(crate) fn measure(world: &World, table: &mut Table) -> BenchResult<()> {
    for (servers, tools, bar) in [(1, 100, ""), (10, 100, "≤ 0.5 ms"), (10, 1_000, "≤ 5 ms")] {
        let script = format!("generate = {tools}\n[server]\nname = \"many\"\n");
        let home = world.home(servers, &script, json!({}))?;
        home.fill_cache()?;
        let mut client = home.serve()?;
        client.initialize()?;
        let mut times = Vec::new();
        let mut floor = Vec::new();
        for _ in 0..ROUNDS {
            for query in QUERIES {
                let started = Instant::now();
                client.mcp(&json!({ "search": query }))?;
                times.push(started.elapsed());
                let started = Instant::now();
                client.ask("ping", &json!({}))?;
                floor.push(started.elapsed());
            }
        }
        let micros = |times: &mut Vec<Duration>| {
            times.sort_unstable();
            times[times.len() / 2].as_secs_f64() * 1e6
        };
        let (ours, ping) = (micros(&mut times), micros(&mut floor));
        table.row(
            &format!("search, warm, {} tools", servers * tools),
            format!("{:.3} ms", ours / 1e3),
            format!("whole round trip; a ping takes {ping:.0} µs"),
            bar,
        );
    }
    Ok(())
}
