//! Runs the trials of `switchboard_it::ordeal` many times and prints the figures.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use switchboard_it::ordeal::{Answers, Commits, Latency, Nuisance, answers, commits};
use switchboard_it::ordeal::{neighbour, obituary};
use switchboard_it::program::Programs;

const USAGE: &str = "usage: ordeal CALLS TRIALS";

const SESSIONS: usize = 50;

/// The limit for the p99 latency of calls beside a misbehaving server.
const BESIDE: Duration = Duration::from_millis(20);

/// The limit for the memory growth of a gateway by a misbehaving server.
const GROWTH: u64 = 32 * 1024 * 1024;

/// The limit for reporting the end of a killed server.
const NEWS: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Option<Vec<usize>> = words.iter().map(|word| word.parse().ok()).collect();
    let Some([calls, trials]) = numbers.as_deref() else {
        // Nothing to do if stderr is closed.
        let _ = writeln!(io::stderr(), "{USAGE}");
        return ExitCode::from(2);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(endure(*calls, *trials))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(io::stderr(), "ordeal: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether all figures are within their limits.
async fn endure(calls: usize, trials: usize) -> io::Result<bool> {
    let programs = Programs::beside_this_one()?;
    let mut out = io::stdout();

    let Answers { right, failed, wrong } =
        answers(programs, SESSIONS, calls.div_ceil(SESSIONS)).await;
    writeln!(
        out,
        "{calls} calls of {SESSIONS} sessions with the same ids, 5 % crashes, garbage: \
         {right} right, {wrong} wrong, 0 lost, failed with their server: {failed:?}"
    )?;

    let Commits { unknown, twice } = commits(programs, trials).await;
    writeln!(out, "{trials} commits whose server died: {unknown} told as unknown, {twice} twice")?;
    let mut fine = wrong == 0 && twice == 0 && unknown == trials;

    for nuisance in Nuisance::ALL {
        let noticed = neighbour(programs, nuisance, 2_000).await;
        let Latency { p50, p99 } = noticed.beside;
        let ratio = p50.as_secs_f64() / noticed.quiet.p50.as_secs_f64();
        let grew = noticed.grew / 1024;
        writeln!(
            out,
            "beside a server that {nuisance:?}: p50 {p50:.0?} ({ratio:.2} x), p99 {p99:.0?} \
             (quiet: {:.0?}, {:.0?}), grew by {grew} KiB",
            noticed.quiet.p50, noticed.quiet.p99
        )?;
        fine &= ratio <= 2.0 && p99 <= BESIDE && noticed.grew < GROWTH;
    }

    let mut times = Vec::new();
    for _ in 0..20 {
        times.push(obituary(programs).await);
    }
    let worst = times.iter().max().copied().unwrap_or_default();
    writeln!(out, "{} servers killed in a call: told after at most {worst:.0?}", times.len())?;
    Ok(fine && worst <= NEWS)
}
