//! The scenario `misbehavior`: calls of servers that crash, and calls beside servers that misbehave.

use std::io::{self, Write};
use std::time::Duration;

use switchboard_it::program::Programs;
use switchboard_it::soak::misbehavior::{
    Answers, Commits, Latency, Misbehavior, answers, commits, measure_beside, time_to_report_exit,
};
use tokio::runtime::Runtime;

use crate::usage;

const SESSIONS: usize = 50;

/// The limit for the p99 latency of calls beside a misbehaving server.
const BESIDE: Duration = Duration::from_millis(20);

/// The limit for the memory growth of a gateway by a misbehaving server.
const GROWTH: u64 = 32 * 1024 * 1024;

/// The limit for reporting the end of a killed server.
const NEWS: Duration = Duration::from_millis(200);

pub(crate) fn run(runtime: &Runtime, numbers: &[usize]) -> io::Result<bool> {
    let &[calls, trials] = numbers else { return Err(usage()) };
    runtime.block_on(call_beside_misbehavior(calls, trials))
}

/// Measures calls beside servers that misbehave; returns whether all figures are within limits.
async fn call_beside_misbehavior(calls: usize, trials: usize) -> io::Result<bool> {
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

    for misbehavior in Misbehavior::ALL {
        let effect = measure_beside(programs, misbehavior, 2_000).await;
        let Latency { p50, p99 } = effect.beside;
        let ratio = p50.as_secs_f64() / effect.quiet.p50.as_secs_f64();
        let grew = effect.grew / 1024;
        writeln!(
            out,
            "beside a server that {misbehavior:?}: p50 {p50:.0?} ({ratio:.2} x), p99 {p99:.0?} \
             (quiet: {:.0?}, {:.0?}), grew by {grew} KiB",
            effect.quiet.p50, effect.quiet.p99
        )?;
        fine &= ratio <= 2.0 && p99 <= BESIDE && effect.grew < GROWTH;
    }

    let mut times = Vec::new();
    for _ in 0..20 {
        times.push(time_to_report_exit(programs).await);
    }
    let worst = times.iter().max().copied().unwrap_or_default();
    writeln!(out, "{} servers killed in a call: told after at most {worst:.0?}", times.len())?;
    Ok(fine && worst <= NEWS)
}
