//! Runs `switchboard_it::soak` for some minutes and prints the figures.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use switchboard_it::program::Programs;
use switchboard_it::soak::{Soak, Soaked, Trend, soak};

const USAGE: &str = "usage: soak SECONDS [SERVERS [SEED]]";

/// The limit in MiB for the memory growth of a gateway or its reaper after the warm-up.
const GROWTH: f64 = 4.0;

/// The maximum time until caches and the allocator have reached their size.
const WARM_UP: Duration = Duration::from_secs(60);

const MIB: f64 = 1024.0 * 1024.0;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Option<Vec<u64>> = words.iter().map(|word| word.parse().ok()).collect();
    let (seconds, servers, seed) = match numbers.as_deref() {
        Some([seconds]) => (*seconds, 50, 1),
        Some([seconds, servers]) => (*seconds, *servers, 1),
        Some([seconds, servers, seed]) => (*seconds, *servers, *seed),
        _ => {
            // Nothing to do if stderr is closed.
            let _ = writeln!(io::stderr(), "{USAGE}");
            return ExitCode::from(2);
        }
    };
    let length = Duration::from_secs(seconds);
    let plan = Soak { length, servers: usize::try_from(servers).unwrap_or(usize::MAX), seed };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let soaked = runtime.and_then(|runtime| {
        let soaked = runtime.block_on(soak(Programs::beside_this_one()?, plan));
        report(&soaked, plan)
    });
    match soaked {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(io::stderr(), "soak: {error}");
            ExitCode::from(2)
        }
    }
}

/// Prints the figures; returns whether they are within their limits.
fn report(soaked: &Soaked, plan: Soak) -> io::Result<bool> {
    let mut out = io::stdout();
    let Soak { length, servers, seed } = plan;
    let answers = &soaked.answers;
    let failed: usize = answers.failed.values().sum();
    writeln!(out, "{servers} servers, {length:.0?} (seed {seed}): {:?}", soaked.faults)?;
    writeln!(
        out,
        "calls       {} calls, {} right, {failed} failed with their server, {} wrong, {} lost, {} twice",
        soaked.calls, answers.right, answers.wrong, soaked.lost, soaked.twice
    )?;
    writeln!(out, "failed      {:?}", answers.failed)?;

    let warm = WARM_UP.min(length / 4);
    let gateway = Trend::of(&soaked.under_load, warm, |at| at.gateway_memory as f64 / MIB);
    let reaper = Trend::of(&soaked.under_load, warm, |at| at.reaper_memory as f64 / MIB);
    for (who, Trend { from, to, per_minute }) in [("gateway", gateway), ("reaper", reaper)] {
        writeln!(
            out,
            "RSS         {who}: {from:.2} to {to:.2} MiB, {per_minute:+.3} MiB/min \
             (may grow by {GROWTH} MiB after {warm:.0?})"
        )?;
    }
    let most = soaked.under_load.iter().map(|at| at.gateway_files + at.reaper_files).max();
    let [before, after] = soaked.at_rest;
    writeln!(
        out,
        "open files  {} gateway and {} reaper at rest before, {} both at the most, {} and {} after",
        before.gateway_files,
        before.reaper_files,
        most.unwrap_or_default(),
        after.gateway_files,
        after.reaper_files
    )?;
    let busiest = soaked.under_load.iter().map(|at| at.children).max().unwrap_or_default();
    writeln!(
        out,
        "processes   {busiest} keepers at the most, {} at rest after, {} left after the end",
        after.children, soaked.left
    )?;
    let answered = answers.wrong + soaked.lost + soaked.twice == 0;
    let flat = gateway.to - gateway.from <= GROWTH && reaper.to - reaper.from <= GROWTH;
    // The session keeps the directory of its stored results open.
    let closed = after.gateway_files <= before.gateway_files + 1
        && after.reaper_files <= before.reaper_files
        && after.children == 0;
    Ok(answered && flat && closed && soaked.left == 0)
}
