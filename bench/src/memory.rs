//! Measures the time and the memory that a large result takes.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::BenchResult;
use crate::process;
use crate::table::Table;
use crate::world::World;

const BIG: &str = "[server]\nname = \"big\"\n[[tools]]\nname = \"big\"\n\
    input_schema = { type = \"object\", properties = { bytes = { type = \"integer\" } } }\n\
    behaviour = { kind = \"big\", bytes = 10485760, lines = true }\n";
const TRIES: usize = 5;

pub(crate) fn measure(world: &World, table: &mut Table) -> BenchResult<()> {
    for (name, guard, bar) in [
        ("10 MiB text, guard off", json!({ "outputGuard": false }), "≤ 3 ×, ≤ 48 MiB"),
        ("10 MiB text, capped at 50 KiB", json!({}), "+ ≤ 64 MiB"),
    ] {
        let home = world.home(1, BIG, guard)?;
        home.fill_cache()?;
        let script = home.script();
        let mut direct = world.direct(&[&script])?;
        direct.initialize()?;
        let mut through = home.serve()?;
        through.initialize()?;
        through.mcp(&json!({ "tool": "server0_big", "args": { "bytes": 10 } }))?;
        let before = process::peak_resident(through.pid())?;
        let floor = fastest(|| {
            direct.ask("tools/call", &json!({ "name": "big", "arguments": {} })).map(|_| ())
        })?;
        let ours = fastest(|| through.mcp(&json!({ "tool": "server0_big" })).map(|_| ()))?;
        let peak = process::peak_resident(through.pid())?;
        table.row(
            name,
            format!("{:.1} ms, peak {}", ours.as_secs_f64() * 1e3, process::mebibytes(peak)),
            format!(
                "{:.2} × direct, grew by {}",
                ours.as_secs_f64() / floor.as_secs_f64(),
                process::mebibytes(peak.saturating_sub(before))
            ),
            bar,
        );
    }
    Ok(())
}

fn fastest(mut work: impl FnMut() -> BenchResult<()>) -> BenchResult<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..TRIES {
        let started = Instant::now();
        work()?;
        best = best.min(started.elapsed());
    }
    Ok(best)
}
