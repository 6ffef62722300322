//! The scenario `kills`: kills many gateways, reapers and keepers; no process may be left.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use switchboard_it::fixture::Helper;
use switchboard_it::grove::{COMMANDS, Grove, Moment, Role, Temper, Victims};
use switchboard_it::program::Programs;
use tokio::runtime::Runtime;

use crate::usage;

/// The limit for the p99 time of the clean-up after a kill.
const CLEAN_UP: Duration = Duration::from_secs(1);

/// The limit for ending twenty servers that ignore all signals.
const EXIT: Duration = Duration::from_secs(5);

pub(crate) fn run(runtime: &Runtime, numbers: &[usize]) -> io::Result<bool> {
    let &[gateways, reapers, commands] = numbers else { return Err(usage()) };
    let programs = Programs::beside_this_one()?;
    runtime.block_on(kill_all(programs, [gateways, reapers, commands]))
}

/// Panics if a process survives; returns whether the times are within their limits.
async fn kill_all(
    programs: Programs,
    [gateways, reapers, commands]: [usize; 3],
) -> io::Result<bool> {
    let grove = |helper| Grove::new(programs, 1, helper, Temper::Stubborn);
    let mut times = Vec::new();
    for trial in 0..gateways {
        let others = [Victims::GatewayAndReaper, Victims::GatewayAndKeepers];
        let victims = *others.get(trial % 4).unwrap_or(&Victims::Gateway);
        times.push(grove(Helper::Daemon).fell(victims, moment(trial)).await);
    }
    let quick = report("gateways killed", times)?;
    let mut times = Vec::new();
    for trial in 0..reapers {
        let victims = [Victims::Reaper, Victims::Keepers][trial % 2];
        times.push(grove(Helper::Daemon).wound(victims, moment(trial)).await);
    }
    let quick = report("reapers and keepers killed, their gateway served on", times)? && quick;
    let mut times = Vec::new();
    for _ in 0..reapers.div_ceil(5) {
        times.push(kill_all_roles(&grove(Helper::Session)).await);
    }
    report("gateways killed with their reaper and keepers, then a command", times)?;
    let mut times = Vec::new();
    let grove = Grove::new(programs, 1, Helper::Daemon, Temper::Obedient);
    for command in COMMANDS.iter().flat_map(|command| std::iter::repeat_n(command, commands)) {
        let started = Instant::now();
        grove.installed.run(command.iter().copied()).await;
        grove.until_empty().await;
        times.push(started.elapsed());
    }
    report("commands", times)?;
    let took = Grove::new(programs, 20, Helper::Session, Temper::Stubborn).close(20).await;
    writeln!(io::stdout(), "20 servers that ignore everything: stopped in {took:.1?}")?;
    Ok(quick && took < EXIT)
}

/// A third of the kills happen while the server starts.
fn moment(trial: usize) -> Moment {
    if trial.is_multiple_of(3) { Moment::ALL[trial / 3 % 4] } else { Moment::TreeUp }
}

async fn kill_all_roles(grove: &Grove) -> Duration {
    let client = grove.reach(Moment::TreeUp).await;
    grove.kill_all_roles(client).await;
    assert!(!grove.having(Role::Server).is_empty(), "no server was left to end");
    let asked = Instant::now();
    grove.installed.run(["status"]).await;
    grove.until_empty().await;
    asked.elapsed()
}

/// Prints the times; returns whether their p99 is within the limit.
fn report(what: &str, mut times: Vec<Duration>) -> io::Result<bool> {
    times.sort_unstable();
    let at = |percent: usize| times.get(times.len() * percent / 100).or(times.last()).copied();
    let (Some(p50), Some(p99), Some(worst)) = (at(50), at(99), times.last()) else {
        return Ok(true);
    };
    writeln!(
        io::stdout(),
        "{} {what}: nothing left after {p50:.0?} (p50), {p99:.0?} (p99), {worst:.0?} (worst)",
        times.len()
    )?;
    Ok(p99 < CLEAN_UP)
}
