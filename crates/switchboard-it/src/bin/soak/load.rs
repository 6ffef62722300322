//! The scenario `load`: misbehaving servers for some minutes, and the memory, files and processes of
//! their gateway.

use std::io::{self, Write};
use std::time::Duration;

use switchboard_it::program::Programs;
use switchboard_it::soak::load::{LoadFigures, LoadPlan, run_load};
use switchboard_it::soak::vitals::Trend;
use tokio::runtime::Runtime;

use crate::usage;

/// The limit in MiB for the memory growth of a gateway or its reaper after the warm-up.
const GROWTH: f64 = 4.0;

/// The maximum time until caches and the allocator have reached their size.
const WARM_UP: Duration = Duration::from_secs(60);

const MIB: f64 = 1024.0 * 1024.0;

pub(crate) fn run(runtime: &Runtime, numbers: &[usize]) -> io::Result<bool> {
    let &[seconds, servers, seed] = numbers else { return Err(usage()) };
    let (seconds, seed) = (seconds as u64, seed as u64);
    let plan = LoadPlan { length: Duration::from_secs(seconds), servers, seed };
    let figures = runtime.block_on(run_load(Programs::beside_this_one()?, plan));
    report(&figures, plan)
}

/// Prints the figures; returns whether they are within their limits.
fn report(figures: &LoadFigures, plan: LoadPlan) -> io::Result<bool> {
    let mut out = io::stdout();
    let LoadPlan { length, servers, seed } = plan;
    let answers = &figures.answers;
    let failed: usize = answers.failed.values().sum();
    writeln!(out, "{servers} servers, {length:.0?} (seed {seed}): {:?}", figures.faults)?;
    writeln!(
        out,
        "calls       {} calls, {} right, {failed} failed with their server, {} wrong, {} lost, {} twice",
        figures.calls, answers.right, answers.wrong, figures.lost, figures.twice
    )?;
    writeln!(out, "failed      {:?}", answers.failed)?;

    let warm = WARM_UP.min(length / 4);
    let gateway = Trend::of(&figures.under_load, warm, |at| at.gateway_memory as f64 / MIB);
    let reaper = Trend::of(&figures.under_load, warm, |at| at.reaper_memory as f64 / MIB);
    for (who, Trend { from, to, per_minute }) in [("gateway", gateway), ("reaper", reaper)] {
        writeln!(
            out,
            "RSS         {who}: {from:.2} to {to:.2} MiB, {per_minute:+.3} MiB/min \
             (may grow by {GROWTH} MiB after {warm:.0?})"
        )?;
    }
    let most = figures.under_load.iter().map(|at| at.gateway_files + at.reaper_files).max();
    let [before, after] = figures.at_rest;
    writeln!(
        out,
        "open files  {} gateway and {} reaper at rest before, {} both at the most, {} and {} after",
        before.gateway_files,
        before.reaper_files,
        most.unwrap_or_default(),
        after.gateway_files,
        after.reaper_files
    )?;
    let busiest = figures.under_load.iter().map(|at| at.children).max().unwrap_or_default();
    writeln!(
        out,
        "processes   {busiest} keepers at the most, {} at rest after, {} left after the end",
        after.children, figures.left
    )?;
    let answered = answers.wrong + figures.lost + figures.twice == 0;
    let flat = gateway.to - gateway.from <= GROWTH && reaper.to - reaper.from <= GROWTH;
    // The session keeps the directory of its stored results open.
    let closed = after.gateway_files <= before.gateway_files + 1
        && after.reaper_files <= before.reaper_files
        && after.children == 0;
    Ok(answered && flat && closed && figures.left == 0)
}
